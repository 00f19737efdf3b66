// The kernels of one instruction set against the equations and against central differences.
//
// Built by `make sanitize`. Every array has just the size it needs and begins as NaN, so that what
// is read or written beyond an end, or read before it is written, is noticed.
#include <cstdio>
#include <thread>
#include <utility>

#include "../layer.hpp"
#include "naive.hpp"

namespace {

using namespace UNROLLED_ISA;
using naive::AnyCell;
using naive::Problem;
using unrolled::make_plan;
using unrolled::Plan;

int failures = 0, checks = 0;

void expect(bool holds, const char* what, const Problem& p, double seen, double wanted) {
    ++checks;
    if (holds) return;
    if (++failures < 20)
        std::printf("%s: %.9g, not %.9g  (cell %d of %d gates, H %d, B %d, D %d, steps %ld)\n", what, seen,
                    wanted, int(p.cell.index()), p.gates(), p.H, p.B, p.D, long(p.steps));
}

template <class T>
double tolerance() {
    return sizeof(T) == 4 ? 3e-5 : 1e-12;
}

template <class T>
void expect_near(const char* what, const Problem& p, T seen, double wanted, double allowed) {
    double scale = std::max(1.0, std::abs(wanted));
    expect(std::abs(seen - wanted) <= allowed * scale, what, p, seen, wanted);
}

template <class T>
std::vector<T> as(const naive::Array& values) {
    return std::vector<T>(values.begin(), values.end());
}

template <class T>
std::vector<T> unset(size_t size) {
    return std::vector<T>(size, std::numeric_limits<T>::quiet_NaN());
}

template <class T>
std::vector<T> waves(size_t size, double pace) {
    std::vector<T> result(size);
    for (size_t i = 0; i < size; ++i) result[i] = T(std::sin(pace * i + 1));
    return result;
}

// How many numbers x has: on the way back any will do.
int inputs(const Problem& p) { return p.H + 2; }

// A direction's arrays in T, and what the kernels leave there.
template <class T>
struct Arrays {
    std::vector<T> weights, input_bias, state_bias, peephole, first_h, first_c, gates;
    std::vector<T> dlast_h, dlast_c, input_weights;
    std::vector<T> inner, cells, before, last_h, last_c, dgates, dinner, dfirst_h, dfirst_c;
    std::vector<T> dinput_weights, dweights, dinput_bias, dstate_bias, dpeephole;
    int64_t gate_step, inner_step;  // as step_of has them: a tile reads beyond a token's last unit

    Arrays(const Problem& p, const naive::Direction& d)
        : weights(as<T>(d.weights)), input_bias(p.gates() * p.H), state_bias(input_bias),
          peephole(d.peephole.begin(), d.peephole.begin() + p.peepholes() * p.H),
          first_h(as<T>(d.first_h)), first_c(as<T>(d.first_c)), gates(as<T>(d.gates)),
          dlast_h(as<T>(d.dlast_h)), dlast_c(as<T>(d.dlast_c)), gate_step(step_of(p.gates() * p.H)),
          inner_step(step_of(p.H)) {
        int width = p.gates() * p.H;
        if (p.has_bias()) std::copy(d.bias.begin(), d.bias.end(), &state_bias[2 * p.H]);
        for (auto* tokens : {&inner, &cells, &before}) *tokens = unset<T>(p.N * p.H);
        dgates = unset<T>(p.N * gate_step), dinner = unset<T>(p.N * inner_step);
        input_weights = waves<T>(size_t(width) * inputs(p), 1.3);
        dinput_weights = unset<T>(input_weights.size()), dweights = unset<T>(weights.size());
        dinput_bias = dstate_bias = unset<T>(width), dpeephole = unset<T>(peephole.size());
        for (auto* rows : {&last_h, &last_c, &dfirst_h, &dfirst_c})
            *rows = unset<T>(size_t(p.B) * p.H);
    }
};

// A first state or its gradient: none where it is zero.
template <class T>
T* given(std::vector<T>& state, const Problem& p) {
    return p.from_zero ? nullptr : state.data();
}

template <class T>
struct Run {
    std::vector<Arrays<T>> arrays;
    std::vector<T> y, dy, x, dx;

    explicit Run(const Problem& p)
        : y(unset<T>(p.dy.size())), dy(as<T>(p.dy)), x(waves<T>(p.B * p.steps * inputs(p), 1.7)),
          dx(unset<T>(x.size())) {
        for (const auto& direction : p.directions) arrays.emplace_back(p, direction);
    }

    std::vector<Forward<T>> forward(const Problem& p) {
        std::vector<Forward<T>> result;
        for (int d = 0; d < p.D; ++d) {
            Arrays<T>& a = arrays[d];
            Forward<T> f;
            f.reverse = d == 1;
            f.weights = a.weights.data();
            if (p.has_bias()) {
                f.input_bias = a.input_bias.data();
                f.state_bias = a.state_bias.data();
            }
            if (p.peepholes()) f.peephole = a.peephole.data();
            f.first_h = given(a.first_h, p);
            f.first_c = given(a.first_c, p);
            f.gates = a.gates.data();
            f.inner = a.inner.data();
            f.cells = a.cells.data();
            f.before = a.before.data();
            f.y = y.data() + d * p.H;
            f.y_row = p.steps * p.D * p.H;
            f.y_step = int64_t(p.D) * p.H;
            f.last_h = a.last_h.data();
            f.last_c = a.last_c.data();
            result.push_back(f);
        }
        return result;
    }

    std::vector<Backward<T>> backward(const Problem& p) {
        std::vector<Backward<T>> result;
        for (int d = 0; d < p.D; ++d) {
            Arrays<T>& a = arrays[d];
            int64_t E = inputs(p);
            Backward<T> b;
            b.reverse = d == 1;
            b.weights = a.weights.data();
            if (p.peepholes()) b.peephole = a.peephole.data();
            b.first_c = given(a.first_c, p);
            b.gates = a.gates.data();
            b.inner = a.inner.data();
            b.cells = a.cells.data();
            b.before = a.before.data();
            b.dy = dy.data() + d * p.H;
            b.y_row = p.steps * p.D * p.H;
            b.y_step = int64_t(p.D) * p.H;
            b.dlast_h = a.dlast_h.data();
            b.dlast_c = a.dlast_c.data();
            b.dfirst_h = given(a.dfirst_h, p);
            b.dfirst_c = given(a.dfirst_c, p);
            b.input = x.data();
            b.x_row = p.steps * E;
            b.x_step = E;
            b.input_weights = a.input_weights.data();
            b.E = E;
            b.dinput = dx.data();
            b.dinput_weights = a.dinput_weights.data();
            b.dweights = a.dweights.data();
            b.dinput_bias = a.dinput_bias.data();
            if (p.has_bias()) b.dstate_bias = a.dstate_bias.data();
            if (p.peepholes()) b.dpeephole = a.dpeephole.data();
            b.dgates = a.dgates.data();
            b.dinner = a.dinner.data();
            b.gate_step = a.gate_step;
            b.inner_step = a.inner_step;
            result.push_back(b);
        }
        return result;
    }
};

// Some problems have so small a cache that nothing stays there.
Shape shape_of(const Problem& p, int threads) {
    size_t cache = p.H % 3 ? 1 << 20 : 16;
    return {p.B, p.H, threads, p.steps, p.lengths.data(), p.offsets.data(), cache};
}

// All rows in one group, longest first, for a team that splits the units.
Plan team_plan(const Problem& p, int threads) {
    Plan plan = make_plan(p.gates(), shape_of(p, 1), 1, 4);
    plan.by_units = threads > 1;
    return plan;
}

template <class T>
void run_forward(const Problem& p, const Shape& shape, const Plan& plan, const std::vector<Forward<T>>& at) {
    std::visit([&](auto cell) { forward<T>(cell, shape, plan, at.data(), p.D); }, p.cell);
}

template <class T>
void run_backward(const Problem& p, const Shape& shape, const Plan& plan, std::vector<Backward<T>> at) {
    std::visit([&](auto cell) { backward<T>(cell, shape, plan, at.data(), p.D); }, p.cell);
}

template <class T>
void check_forward(const Problem& p, const Run<T>& run) {
    naive::Results wanted = naive::run(p);
    for (int row = 0; row < p.B; ++row)
        for (int64_t t = 0; t < p.steps; ++t)
            for (int j = 0; j < p.D * p.H; ++j) {
                size_t at = (row * p.steps + t) * p.D * p.H + j;
                if (t < p.lengths[row])
                    expect_near("y", p, run.y[at], wanted.y[at], tolerance<T>());
                else
                    expect(run.y[at] == 0, "y in the padding", p, run.y[at], 0);
            }
    for (int d = 0; d < p.D; ++d)
        for (size_t i = 0; i < wanted.last_h[d].size(); ++i) {
            expect_near("last h", p, run.arrays[d].last_h[i], wanted.last_h[d][i], tolerance<T>());
            if (p.is_lstm())
                expect_near("last c", p, run.arrays[d].last_c[i], wanted.last_c[d][i],
                            tolerance<T>());
        }
}

// Some gradients of the gates, first states, weights and peepholes: those of the kernels (in T) against
// differences of the equations (in double).
template <class T>
void check_slopes(Problem p, const Run<T>& run, bool sums) {
    const double allowed = sizeof(T) == 4 ? 2e-4 : 1e-7;
    const int H = p.H, G = p.gates();
    for (int d = 0; d < p.D; ++d) {
        const Arrays<T>& a = run.arrays[d];
        naive::Direction& own = p.directions[d];
        for (size_t i = 0; i < own.gates.size(); i += 1 + own.gates.size() / 7)
            expect_near("dgates", p, a.dgates[i / (G * H) * a.gate_step + i % (G * H)],
                        naive::slope(p, own.gates[i]), allowed);
        for (size_t i = 0; !p.from_zero && i < own.first_h.size(); i += 1 + own.first_h.size() / 5) {
            expect_near("dfirst h", p, a.dfirst_h[i], naive::slope(p, own.first_h[i]), allowed);
            if (p.is_lstm())
                expect_near("dfirst c", p, a.dfirst_c[i], naive::slope(p, own.first_c[i]), allowed);
        }
        if (!sums) continue;
        for (size_t i = 0; i < own.weights.size(); i += 1 + own.weights.size() / 7)
            expect_near("dU", p, a.dweights[i], naive::slope(p, own.weights[i]), allowed);
        for (int unit = 0; p.has_bias() && unit < H; ++unit)
            expect_near("db", p, a.dstate_bias[2 * H + unit], naive::slope(p, own.bias[unit]), allowed);
        for (int i = 0; i < p.peepholes() * H; ++i)
            expect_near("dpeephole", p, a.dpeephole[i], naive::slope(p, own.peephole[i]), allowed);
    }
}

// The sums over all tokens against the same sums written out.
template <class T>
void check_sums(const Problem& p, const Run<T>& run) {
    const int H = p.H, width = p.gates() * H, E = inputs(p);
    const double allowed = 10 * tolerance<T>();
    naive::Array dx(run.dx.size());
    for (int d = 0; d < p.D; ++d) {
        const Arrays<T>& a = run.arrays[d];
        naive::Array dW(a.dinput_weights.size()), db(width), du(width);
        for (int row = 0; row < p.B; ++row)
            for (int64_t t = 0; t < p.lengths[row]; ++t) {
                int64_t n = p.offsets[row] + t, at = (row * p.steps + t) * E;
                for (int unit = 0; unit < width; ++unit) {
                    double left = a.dgates[n * a.gate_step + unit];
                    bool inside = p.has_bias() && unit >= 2 * H;
                    db[unit] += left;
                    du[unit] += inside ? a.dinner[n * a.inner_step + unit - 2 * H] : left;
                    for (int e = 0; e < E; ++e) {
                        dW[unit * E + e] += left * run.x[at + e];
                        dx[at + e] += left * a.input_weights[unit * E + e];
                    }
                }
            }
        for (size_t i = 0; i < dW.size(); ++i)
            expect_near("dW", p, a.dinput_weights[i], dW[i], allowed);
        for (int unit = 0; unit < width; ++unit) {
            expect_near("db", p, a.dinput_bias[unit], db[unit], allowed);
            if (p.has_bias()) expect_near("db of U", p, a.dstate_bias[unit], du[unit], allowed);
        }
    }
    for (size_t i = 0; i < dx.size(); ++i) expect_near("dx", p, run.dx[i], dx[i], allowed);
}

// With no room given for the gates' gradients, the call has its own: the same bits.
template <class T>
void check_own_room(const Problem& p, const Plan& plan, const Shape& shape, Run<T>& run) {
    std::vector<T> dx = run.dx;
    std::vector<Arrays<T>> arrays = run.arrays;
    std::vector<Backward<T>> at = run.backward(p);
    for (Backward<T>& direction : at) direction.dgates = direction.dinner = nullptr;
    run_backward<T>(p, shape, plan, at);
    expect(dx == run.dx, "dx in the call's own room", p, 0, 0);
    for (int d = 0; d < p.D; ++d) {
        expect(arrays[d].dinput_weights == run.arrays[d].dinput_weights, "dW, own room", p, 0, 0);
        expect(arrays[d].dweights == run.arrays[d].dweights, "dU, own room", p, 0, 0);
    }
}

template <class T>
void check(const Problem& p, const Plan& plan, int threads, bool slopes) {
    Run<T> run(p);
    Shape shape = shape_of(p, threads);
    run_forward<T>(p, shape, plan, run.forward(p));
    check_forward(p, run);
    run_backward<T>(p, shape, plan, run.backward(p));
    check_sums(p, run);
    check_own_room(p, plan, shape, run);
    if (slopes) check_slopes(p, run, true);
}

// A team of plain threads, where run_plan has OpenMP's: these the thread sanitiser can follow.
template <class T>
void check_team(const Problem& p, int threads) {
    constexpr int L = Lanes<T>::count;
    int H = p.H, V = vectors(H, L), G = p.gates();
    Run<T> run(p);
    Plan plan = team_plan(p, threads);
    Shape shape = shape_of(p, threads);
    Buffer<T> packed(size_t(G) * V * H * L), states(size_t(4) * p.B * H);
    size_t all = size_t(p.B) * H;
    T* own = states.data();
    auto in_parts = [&](auto&& part_of) {
        Barrier barrier(threads);
        std::vector<std::thread> team;
        for (int me = 0; me < threads; ++me)
            team.emplace_back([&, me] {
                part_of(Part{V * me / threads, V * (me + 1) / threads, true, &barrier, me});
            });
        for (std::thread& member : team) member.join();
    };
    for (int i = 0; i < G * V; ++i)
        pack_transposed(run.arrays[0].weights.data() + size_t(i / V) * H * H, H, H, i % V,
                        packed.data() + size_t(i / V) * V * H * L);
    auto forwards = run.forward(p);
    Buffer<T> biases(size_t(G + 1) * V * L);
    sum_biases(G, p.has_bias(), H, forwards[0], biases.data());
    PackedWeights<T> ready{packed.data(), nullptr, biases.data(), nullptr};
    in_parts([&](Part part) {
        ForwardState<T> state{own, own + all, own + 2 * all, own + 3 * all};
        Projection<T> none{nullptr, nullptr, nullptr, 1};
        auto forth = [&](auto cell) {
            ForwardRun<T, decltype(cell)>(cell, shape, forwards[0], ready, plan.groups[0], state, none,
                                          part)();
        };
        std::visit(forth, p.cell);
    });
    check_forward(p, run);
    for (int v = 0; v < V; ++v)
        pack_straight(run.arrays[0].weights.data(), G * H, H, v, packed.data());
    auto backwards = run.backward(p);
    in_parts([&](Part part) {
        BackwardState<T> state{own, own + all};
        auto back = [&](auto cell) {
            BackwardRun<T, decltype(cell)>(cell, shape, backwards[0], packed.data(), plan.groups[0], state,
                                           part)();
        };
        std::visit(back, p.cell);
    });
    if (H < 8) check_slopes(p, run, false);
}

// W x + b made by the kernel from x (B, T, E), without a way back; packed: from weights that were packed
// before the call.
template <class T>
void check_inputs(const Problem& p, int E, int threads, bool packed) {
    Run<T> run(p);
    int width = p.gates() * p.H, V = vectors(p.H, Lanes<T>::count) * Lanes<T>::count;
    std::vector<T> x(p.B * p.steps * E), weights(size_t(width) * E), b(width), u(width);
    for (auto* values : {&x, &weights, &b, &u})
        for (size_t i = 0; i < values->size(); ++i) (*values)[i] = T(std::sin(1.7 * i + 1) / std::sqrt(E));
    bool lacks_b = p.H % 2, lacks_u = p.B % 2;  // each may be absent by itself
    if (lacks_b) std::fill(b.begin(), b.end(), T(0));
    if (lacks_u) std::fill(u.begin(), u.end(), T(0));
    Problem with = p;
    auto forwards = run.forward(p);
    std::vector<std::vector<T>> columns;
    for (int d = 0; d < p.D; ++d) {
        for (int row = 0; row < p.B; ++row)
            for (int64_t t = 0; t < p.lengths[row]; ++t)
                for (int unit = 0; unit < width; ++unit) {
                    const T* own = &x[(row * p.steps + t) * E];
                    bool inside = p.has_bias() && unit >= 2 * p.H;
                    double sum = b[unit] + (inside ? T(0) : u[unit]);
                    for (int e = 0; e < E; ++e) sum += double(own[e]) * weights[unit * E + e];
                    with.directions[d].gates[(p.offsets[row] + t) * width + unit] = sum;
                    if (inside) with.directions[d].bias[unit - 2 * p.H] = u[unit];
                }
        Forward<T>& at = forwards[d];
        at.input = x.data(), at.input_weights = weights.data(), at.E = E;
        at.x_row = p.steps * E, at.x_step = E;
        at.input_bias = lacks_b ? nullptr : b.data();
        at.state_bias = lacks_u ? nullptr : u.data();
        at.gates = at.inner = at.cells = at.before = nullptr;
        if (!packed) continue;
        for (auto [from, K] : {std::pair{at.weights, p.H}, std::pair{at.input_weights, E}}) {
            columns.push_back(unset<T>(size_t(p.gates()) * V * K));
            pack_gates(from, p.gates(), p.H, K, columns.back().data());
        }
        at.packed = columns[2 * d].data(), at.packed_input = columns[2 * d + 1].data();
        at.weights = nullptr;
    }
    Shape shape = shape_of(p, threads);
    run_forward<T>(p, shape, make_plan(p.gates(), shape, p.D, sizeof(T)), forwards);
    check_forward(with, run);
}

std::vector<AnyCell> every_cell() {
    std::vector<AnyCell> cells;
    for (Activation activation : {Activation::tanh, Activation::sigmoid, Activation::relu,
                                  Activation::leaky_relu, Activation::identity})
        cells.push_back(RnnCell{activation});
    for (Output output : {Output::tanh, Output::linear})
        for (Peephole peephole : {Peephole::none, Peephole::output, Peephole::full})
            cells.push_back(LstmCell{output, peephole});
    for (Reset reset : {Reset::after, Reset::before, Reset::none})
        for (Update update : {Update::keep, Update::write}) cells.push_back(GruCell{reset, update});
    return cells;
}

template <class T>
void check_cell(const AnyCell& cell) {
    const std::vector<std::vector<int64_t>> batches = {
        {1}, {2, 1}, {5}, {3, 3, 3}, {1, 7, 2, 7, 4, 1, 3, 5}, {2, 25, 1, 1}};
    unsigned seed = 1;
    for (int H : {1, 3, 7, 16, 33, 65})
        for (const auto& lengths : batches)
            for (int D : {1, 2}) {
                if (H > 16 && lengths.size() != 8 && ++seed % 3) continue;  // a third of the large
                Problem p(cell, H, D, lengths, ++seed);
                int threads = 1 + seed % 4, team = lengths.size() == 8 ? 3 : 2;
                check<T>(p, make_plan(p.gates(), shape_of(p, threads), D, sizeof(T)), threads, H < 8);
                if (p.steps > 2) check_inputs<T>(p, H + 2, threads, false);
                if (p.steps < 6) check_inputs<T>(p, H + 2, threads, true);
                if (D == 2 || H < 7) continue;
                check<T>(p, team_plan(p, team), team, H < 8);
                if (p.steps > 2) check_team<T>(p, team);
            }
}

}  // namespace

int main() {
    for (const AnyCell& cell : every_cell()) {
        check_cell<float>(cell);
        check_cell<double>(cell);
    }
    std::printf("recurrent, vectors of %d bytes: %d of %d checks failed\n", UNROLLED_VECTOR_BYTES,
                failures, checks);
    return failures != 0;
}
