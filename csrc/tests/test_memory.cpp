// Memory that runs out anywhere in a call: it throws std::bad_alloc, from the thread that called, and the
// next call has the right numbers.
//
// Built by `make sanitize`. The program's own `operator new` counts what is allocated and fails on demand.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "../chain.hpp"
#include "../layer.hpp"
#include "naive.hpp"

namespace {

thread_local bool is_caller = false;  // the thread whose allocations are counted
int64_t allowed = -1;                 // so many more allocations succeed; negative: all
int64_t elsewhere = 0;                // allocations of other threads while some are counted

void* allocate(size_t bytes, size_t alignment) {
    if (!is_caller && allowed >= 0) ++elsewhere;
    if (is_caller && allowed == 0) throw std::bad_alloc();
    if (is_caller && allowed > 0) --allowed;
    void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (!data) throw std::bad_alloc();
    return data;
}

}  // namespace

void* operator new[](size_t bytes, std::align_val_t alignment) {
    return allocate(bytes, size_t(alignment));
}
void operator delete[](void* data, std::align_val_t) noexcept { std::free(data); }

namespace {

using namespace UNROLLED_ISA;
using naive::AnyCell;
using unrolled::keep_buffers;
using unrolled::make_plan;

int failures = 0, checks = 0;

void expect(bool holds, const char* what, const char* call) {
    ++checks;
    if (!holds && ++failures < 20) std::printf("%s: %s\n", call, what);
}

// Whether a call throws for want of memory when it may allocate no more than so often.
template <class Call>
bool runs_out(Call call, int64_t allocations) {
    allowed = allocations;
    bool thrown = false;
    try {
        call();
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    allowed = -1;
    return thrown;
}

// A call that fails at its first allocation, at its second, and so on, until it does not; then
// is_right() looks at what it has left.
template <class Call, class IsRight>
void check(const char* name, int64_t least, Call call, IsRight is_right) {
    int64_t allocations = 0;
    while (runs_out(call, allocations)) ++allocations;
    expect(allocations >= least, "fewer allocations than there must be", name);
    expect(elsewhere == 0, "memory is acquired within a parallel region", name);
    expect(is_right(), "wrong numbers after memory had run out", name);
}

std::vector<double> waves(size_t size) {
    std::vector<double> result(size);
    for (size_t i = 0; i < size; ++i) result[i] = 0.5 * std::sin(1.7 * i + 1);
    return result;
}

// A layer's call, and its gradients, by rows or by units.
void check_layer(const AnyCell& any, int D, int threads, bool by_units) {
    const int B = 4, H = 9, E = 3, G = naive::gates_of(any);
    const int64_t steps = 5, N = B * steps;
    std::vector<int64_t> lengths(B, steps), offsets{0, steps, 2 * steps, 3 * steps};
    std::vector<double> x = waves(N * E), W = waves(G * H * E), U = waves(G * H * H), p = waves(3 * H);
    std::vector<double> y(N * D * H), dx(N * E), dW(W.size()), dU(U.size()), db(G * H), du(G * H), dp(3 * H);
    std::vector<std::vector<double>> kept;
    for (int d = 0; d < D; ++d)
        for (int width : {G, 1, 1, 1}) kept.emplace_back(N * width * H);
    Shape shape{B, H, threads, steps, lengths.data(), offsets.data(), 1 << 20};
    Plan plan = make_plan(G, shape, D, sizeof(double));
    if (by_units) {
        plan = make_plan(G, Shape{B, H, 1, steps, lengths.data(), offsets.data(), 1 << 20}, D, 8);
        plan.by_units = true;
    }
    std::vector<Forward<double>> forth(D);
    std::vector<Backward<double>> back(D);
    for (int d = 0; d < D; ++d) {
        double *gates = kept[4 * d].data(), *inner = kept[4 * d + 1].data();
        double *cells = kept[4 * d + 2].data(), *before = kept[4 * d + 3].data();
        Forward<double>& f = forth[d];
        f = {};
        f.reverse = d == 1, f.weights = U.data(), f.peephole = p.data();
        f.gates = gates, f.inner = inner, f.cells = cells, f.before = before;
        f.y = y.data() + d * H, f.y_row = steps * D * H, f.y_step = D * H;
        f.input = x.data(), f.x_row = steps * E, f.x_step = E, f.input_weights = W.data(), f.E = E;
        Backward<double>& b = back[d];
        b = {};
        b.reverse = d == 1, b.weights = U.data(), b.peephole = p.data();
        b.gates = gates, b.inner = inner, b.cells = cells, b.before = before;
        b.dy = y.data() + d * H, b.y_row = f.y_row, b.y_step = f.y_step;
        b.input = x.data(), b.x_row = f.x_row, b.x_step = f.x_step, b.input_weights = W.data(), b.E = E;
        b.dinput = dx.data(), b.dinput_weights = dW.data(), b.dweights = dU.data();
        b.dinput_bias = db.data(), b.dstate_bias = du.data(), b.dpeephole = dp.data();
    }
    auto run_forward = [&] {
        std::visit([&](auto cell) { forward<double>(cell, shape, plan, forth.data(), D); }, any);
    };
    auto run_backward = [&] {
        std::vector<Backward<double>> own = back;  // the call notes there where its room is
        std::visit([&](auto cell) { backward<double>(cell, shape, plan, own.data(), D); }, any);
    };
    run_forward();
    run_backward();
    std::vector<double> right_y = y, right_dx = dx, right_dU = dU;
    std::fill(y.begin(), y.end(), NAN);
    check("forward", 6, run_forward, [&] { return y == right_y; });
    std::fill(dx.begin(), dx.end(), NAN);
    check("backward", 6, run_backward, [&] { return dx == right_dx && dU == right_dU; });
}

void check_chain(int threads) {
    const int64_t B = 20, steps = 4, K = 5;
    std::vector<double> scores = waves(B * steps * K), moves = waves(K * K);
    std::vector<double> log_z(B), nodes(scores.size()), edges(moves.size()), best(B);
    std::vector<int64_t> paths(B * steps), lengths(B, steps);
    Chain<double> chain;
    chain.scores = scores.data(), chain.transitions = moves.data(), chain.lengths = lengths.data();
    chain.B = B, chain.steps = steps, chain.K = K;
    chain.log_z = log_z.data(), chain.nodes = nodes.data(), chain.edges = edges.data();
    chain.paths = paths.data(), chain.best = best.data();
    chain_sums(chain, threads);
    chain_best(chain, threads);
    std::vector<double> right_z = log_z, right_best = best;
    std::fill(log_z.begin(), log_z.end(), NAN);
    std::fill(best.begin(), best.end(), NAN);
    check("chain sums", 3, [&] { chain_sums(chain, threads); }, [&] { return log_z == right_z; });
    check("chain best", 3, [&] { chain_best(chain, threads); }, [&] { return best == right_best; });
}

}  // namespace

int main() {
    const std::vector<AnyCell> cells = {RnnCell{Activation::tanh}, LstmCell{Output::tanh, Peephole::full},
                                        GruCell{Reset::after, Update::keep},
                                        GruCell{Reset::before, Update::keep}};
    keep_buffers(0);
    is_caller = true;
    for (int threads : {1, 3}) {
        for (int D : {1, 2})
            for (const AnyCell& cell : cells) check_layer(cell, D, threads, false);
        for (const AnyCell& cell : cells) check_layer(cell, 1, threads, true);
        check_chain(threads);
    }
    bool refused = false;
    try {
        Buffer<double> beyond(size_t(-1) / 4);
    } catch (const std::bad_alloc&) {
        refused = true;
    }
    expect(refused, "more bytes than a number can count are not refused", "buffer");
    std::printf("memory, vectors of %d bytes: %d checks, %d failures\n", UNROLLED_VECTOR_BYTES, checks,
                failures);
    return failures != 0;
}
