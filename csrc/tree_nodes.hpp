// What an inner node does with its sums, and the way back through it; one row of H units at a time.
#pragma once

#include "product.hpp"
#include "tree.hpp"

namespace UNROLLED_ISA {

// The rows of a node on its way forth.
template <class T>
struct NodeRow {
    const T* sums;   // (G·H, and a vector more)
    const T* c[2];   // of the children
    T* h;
    T* own_c;
    T* kept;         // or null
};

// And on its way back. dsums has room for a vector more.
template <class T>
struct NodeRowBack {
    const T* h;
    const T* c[2];
    const T* kept;
    const T* dh;
    const T* dc;
    T* dsums;        // (G·H)
    T* dc_below[2];  // of the children
};

// Tai et al. 2015, N = 2: gates i, f₁, f₂, g and o.
struct LstmNode {
    static constexpr int gates = 5;
    static constexpr bool has_c = true;

    template <class T>
    static void forward(const NodeRow<T>& row, int H) {
        constexpr int L = Lanes<T>::count;
        for (int u = 0; u < H; u += L) {
            int n = std::min(L, H - u);
            Vec<T> i = vsigmoid<T>(load(row.sums + u));
            Vec<T> f1 = vsigmoid<T>(load(row.sums + H + u));
            Vec<T> f2 = vsigmoid<T>(load(row.sums + 2 * H + u));
            Vec<T> g = vtanh<T>(load(row.sums + 3 * H + u));
            Vec<T> o = vsigmoid<T>(load(row.sums + 4 * H + u));
            Vec<T> c = i * g + f1 * load(row.c[0] + u, n) + f2 * load(row.c[1] + u, n);
            Vec<T> t = vtanh<T>(c);
            store(row.own_c + u, c, n);
            store(row.h + u, o * t, n);
            if (!row.kept) continue;
            Vec<T> all[6] = {i, f1, f2, g, o, t};
            for (int part = 0; part < 6; ++part) store(row.kept + part * H + u, all[part], n);
        }
    }

    template <class T>
    static void backward(const NodeRowBack<T>& row, int H) {
        constexpr int L = Lanes<T>::count;
        const T one = 1;
        for (int u = 0; u < H; u += L) {
            int n = std::min(L, H - u);
            Vec<T> i = load(row.kept + u, n), f1 = load(row.kept + H + u, n);
            Vec<T> f2 = load(row.kept + 2 * H + u, n), g = load(row.kept + 3 * H + u, n);
            Vec<T> o = load(row.kept + 4 * H + u, n), t = load(row.kept + 5 * H + u, n);
            Vec<T> dh = load(row.dh + u, n);
            Vec<T> dc = dh * o * (one - t * t);
            if (row.dc) dc += load(row.dc + u, n);
            store(row.dc_below[0] + u, dc * f1, n);
            store(row.dc_below[1] + u, dc * f2, n);
            Vec<T> all[5] = {dc * g * i * (one - i), dc * load(row.c[0] + u, n) * f1 * (one - f1),
                             dc * load(row.c[1] + u, n) * f2 * (one - f2), dc * i * (one - g * g),
                             dh * t * o * (one - o)};
            for (int gate = 0; gate < 5; ++gate) store(row.dsums + gate * H + u, all[gate], n);
        }
    }
};

struct TanhNode {
    static constexpr int gates = 1;
    static constexpr bool has_c = false;

    template <class T>
    static void forward(const NodeRow<T>& row, int H) {
        constexpr int L = Lanes<T>::count;
        for (int u = 0; u < H; u += L) store(row.h + u, vtanh<T>(load(row.sums + u)), std::min(L, H - u));
    }

    template <class T>
    static void backward(const NodeRowBack<T>& row, int H) {
        constexpr int L = Lanes<T>::count;
        for (int u = 0; u < H; u += L) {
            int n = std::min(L, H - u);
            Vec<T> h = load(row.h + u, n);
            store(row.dsums + u, load(row.dh + u, n) * (T(1) - h * h), n);
        }
    }
};

// p = t / ‖t‖ with t = tanh(sums), as the recursive autoencoder has it; the length is kept.
struct UnitTanhNode {
    static constexpr int gates = 1;
    static constexpr bool has_c = false;

    template <class T>
    static void forward(const NodeRow<T>& row, int H) {
        constexpr int L = Lanes<T>::count;
        Vec<T> squares{};
        for (int u = 0; u < H; u += L) {
            Vec<T> t = vtanh<T>(load(row.sums + u));
            store(row.h + u, t, std::min(L, H - u));
            t = load(row.h + u, std::min(L, H - u));
            squares += t * t;
        }
        T length = std::max(std::sqrt(sum<T>(squares)), T(1e-12));
        for (int u = 0; u < H; u += L) {
            int n = std::min(L, H - u);
            store(row.h + u, load(row.h + u, n) / length, n);
        }
        if (row.kept) *row.kept = length;
    }

    template <class T>
    static void backward(const NodeRowBack<T>& row, int H) {
        constexpr int L = Lanes<T>::count;
        Vec<T> along{};
        for (int u = 0; u < H; u += L) {
            int n = std::min(L, H - u);
            along += load(row.h + u, n) * load(row.dh + u, n);
        }
        T radial = sum<T>(along), length = *row.kept;
        if (length <= T(1e-12)) radial = 0;  // no direction to keep
        for (int u = 0; u < H; u += L) {
            int n = std::min(L, H - u);
            Vec<T> h = load(row.h + u, n), t = h * length;
            Vec<T> dt = (load(row.dh + u, n) - h * radial) / length;
            store(row.dsums + u, dt * (T(1) - t * t), n);
        }
    }
};

}  // namespace UNROLLED_ISA
