// Which rows a thread runs. Compiled once, for every machine: code that is built for one instruction
// set must not bring in library templates that the linker could hand to all.
#pragma once

#include <cstddef>
#include <vector>

#include "recurrent.hpp"

namespace unrolled {

// The rows of one thread or team, longest first: those still running at a step are the first ones.
struct RowGroup {
    std::vector<int> rows;
    int64_t tokens = 0;

    int count() const { return int(rows.size()); }
};

struct Plan {
    bool by_units;
    std::vector<RowGroup> groups;  // of each direction
    int64_t most_steps;        // of any row
    std::vector<int> starts;   // of each group: how many rows the groups before it have

    int count() const { return int(groups.size()); }

    int most_rows() const {
        int most = 0;
        for (const RowGroup& group : groups) most = most < group.count() ? group.count() : most;
        return most;
    }
};

Plan make_plan(int gates, const Shape& shape, int directions, size_t number_bytes);

}  // namespace unrolled
