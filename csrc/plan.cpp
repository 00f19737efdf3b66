#include "plan.hpp"

#include <algorithm>
#include <numeric>

namespace unrolled {

constexpr size_t worth_waiting = 1 << 17;  // bytes of weights below which waiting at a barrier costs too much
constexpr int full_rows = 24;              // rows a thread that use fetched weights often enough

// Longest first, each to the group with the fewest tokens so far.
static std::vector<RowGroup> group_rows(const Shape& shape, int groups) {
    std::vector<int> order(shape.B);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return shape.lengths[a] > shape.lengths[b]; });
    std::vector<RowGroup> result(groups);
    for (int row : order) {
        RowGroup& least = *std::min_element(
            result.begin(), result.end(),
            [](const RowGroup& a, const RowGroup& b) { return a.tokens < b.tokens; });
        least.rows.push_back(row);
        least.tokens += shape.lengths[row];
    }
    return result;
}

Plan make_plan(int gates, const Shape& shape, int directions, size_t number_bytes) {
    size_t weight_bytes = size_t(gates) * shape.H * shape.H * number_bytes;
    int threads = std::max(1, shape.threads / directions);
    bool shares = weight_bytes > shape.cache && shape.B < full_rows * threads;
    bool few = shape.B < 4 * threads && weight_bytes > worth_waiting;
    bool by_units = threads > 1 && directions == 1 && (shares || few);
    int64_t most_steps = shape.B ? *std::max_element(shape.lengths, shape.lengths + shape.B) : 0;
    int groups = by_units ? 1 : std::min(threads, shape.B);
    Plan plan{by_units, group_rows(shape, groups), most_steps, {}};
    int rows = 0;
    for (const RowGroup& group : plan.groups) {
        plan.starts.push_back(rows);
        rows += group.count();
    }
    return plan;
}

}  // namespace unrolled
