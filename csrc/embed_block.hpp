// Rows of a block of words against the negatives that they share. Compiled once an instruction set.
#pragma once

#include <vector>

#include "embed_rows.hpp"

namespace UNROLLED_ISA {

constexpr int most_block = 64;

// Rows that begin on a cache line.
struct Rows {
    std::vector<float> memory;
    float* data = nullptr;
    int64_t stride = 0;

    void make(size_t count, int64_t numbers) {
        stride = numbers;
        memory.assign(count * stride + 16, 0.0f);
        const auto base = reinterpret_cast<uintptr_t>(memory.data());
        data = memory.data() + (64 - base % 64) % 64 / sizeof(float);
    }

    float* operator[](size_t row) const { return data + row * stride; }
};

// What a block is worked on in.
struct BlockRoom {
    Rows rows;        // (words, stride): what predicts
    Rows change;      // (words, stride): of these rows
    Rows transposed;  // (words / lanes, stride, lanes): the rows
    Rows noise;       // (shared, stride): the negatives as they were
    Rows gradient;    // (shared, words): what a negative is moved by along a row

    void make(int words, int shared, int64_t stride) {
        for (Rows* each : {&rows, &change, &transposed}) each->make(words, stride);
        noise.make(shared, stride);
        gradient.make(shared, words);
    }
};

// Scores of `lanes` rows with eight negatives: score[r] = Σ_d column[d] · y_r[d].
UNROLLED_INLINE void score_eight(const float* column, const float* y, int64_t stride, int dimension,
                                 Vec<float> (&score)[8]) {
    constexpr int apart = lanes == 16 ? 2 : 1;  // sums that do not wait for each other
    Vec<float> part[apart][8] = {};
    const float* row[8];
    for (int r = 0; r < 8; ++r) row[r] = y + r * stride;
    for (int d = 0; d < dimension; d += apart) {
#pragma GCC unroll 2
        for (int k = 0; k < apart; ++k) {
            const Vec<float> x = load(column + (d + k) * lanes);
#pragma GCC unroll 8
            for (int r = 0; r < 8; ++r) part[k][r] += x * row[r][d + k];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) score[r] = apart == 2 ? part[0][r] + part[apart - 1][r] : part[0][r];
}

// gradient[j][i] = −rate · weight[i] · σ(x_i · y_j), and the loss of all; words and shared are whole vectors.
inline double score_negatives(const BlockRoom& room, const float* weight, int words, int shared, int64_t stride,
                              int dimension, float rate) {
    Vec<float> nats{};
    for (int i = 0; i < words; i += lanes) {
        float* column = room.transposed[i];
        for (int d = 0; d < stride; d += lanes) pack_square(room.rows[i] + d, stride, column + d * lanes);
        const Vec<float> weights = load(weight + i);
        Losses losses;
        for (int j = 0; j < shared; j += 8) {
            Vec<float> score[8];
            score_eight(column, room.noise[j], stride, dimension, score);
#pragma GCC unroll 8
            for (int r = 0; r < 8; ++r)
                store(room.gradient[j + r] + i, (-rate * weights) * losses.wrong(score[r]));
        }
        nats += weights * losses.nats();
    }
    return sum<float>(nats);
}

// change[i] += Σ_j gradient[j][i] · y_j
inline void change_rows(const BlockRoom& room, int words, int shared, int64_t stride) {
    for (int i = 0; i < words; i += 4) {
        float* to[4];
        for (int r = 0; r < 4; ++r) to[r] = room.change[i + r];
        add_products(to, room.gradient[0] + i, words, 1, room.noise[0], stride, shared);
    }
}

// y_j += Σ_i gradient[j][i] · x_i, at their places in the matrix
inline void change_negatives(const BlockRoom& room, float* const* places, int words, int size, int shared,
                             int64_t stride) {
    for (int j = 0; j < shared; j += 4)
        add_products(places + j, room.gradient[j], 1, words, room.rows[0], stride, size);
}

}  // namespace UNROLLED_ISA
