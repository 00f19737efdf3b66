// Recurrent layers as Python sees them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.hpp"
#include "kernel_sets.hpp"
#include "memory.hpp"
#include "plan.hpp"
#include "threads.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace unrolled {

template <class T, class Visit>
void each_field(Backward<T>& b, Visit visit) {
    visit("reverse", b.reverse);
    visit("weights", b.weights);
    visit("peephole", b.peephole);
    visit("first_c", b.first_c);
    visit("gates", b.gates);
    visit("inner", b.inner);
    visit("cells", b.cells);
    visit("before", b.before);
    visit("dy", b.dy);
    visit("y_row", b.y_row);
    visit("y_step", b.y_step);
    visit("dlast_h", b.dlast_h);
    visit("dlast_c", b.dlast_c);
    visit("dfirst_h", b.dfirst_h);
    visit("dfirst_c", b.dfirst_c);
    visit("input", b.input);
    visit("x_row", b.x_row);
    visit("x_step", b.x_step);
    visit("input_weights", b.input_weights);
    visit("E", b.E);
    visit("dinput", b.dinput);
    visit("dinput_weights", b.dinput_weights);
    visit("dweights", b.dweights);
    visit("dinput_bias", b.dinput_bias);
    visit("dstate_bias", b.dstate_bias);
    visit("dpeephole", b.dpeephole);
    visit("dgates", b.dgates);
    visit("dinner", b.dinner);
    visit("gate_step", b.gate_step);
    visit("inner_step", b.inner_step);
}

namespace {

using AnyCell = std::variant<RnnCell, LstmCell, GruCell>;
using Lengths = std::vector<int64_t>;

int gates_of(const AnyCell& cell) {
    return std::visit([](auto own) { return own.gates(); }, cell);
}

template <class Enum>
using Names = std::initializer_list<std::pair<const char*, Enum>>;

template <class Enum>
Enum named(const char* setting, const std::string& name, Names<Enum> names) {
    for (const auto& [known, value] : names)
        if (name == known) return value;
    throw std::invalid_argument(std::string(setting) + " has no variant '" + name + "'");
}

RnnCell rnn_cell(const std::string& activation) {
    return {named<Activation>("activation", activation,
                              {{"tanh", Activation::tanh},
                               {"sigmoid", Activation::sigmoid},
                               {"relu", Activation::relu},
                               {"leaky_relu", Activation::leaky_relu},
                               {"identity", Activation::identity}})};
}

LstmCell lstm_cell(const std::string& output, const std::string& peephole) {
    return {named<Output>("output", output, {{"tanh", Output::tanh}, {"linear", Output::linear}}),
            named<Peephole>("peephole", peephole,
                            {{"none", Peephole::none},
                             {"output", Peephole::output},
                             {"full", Peephole::full}})};
}

GruCell gru_cell(const std::string& reset, const std::string& update) {
    return {named<Reset>("reset", reset,
                         {{"after", Reset::after}, {"before", Reset::before}, {"none", Reset::none}}),
            named<Update>("update", update, {{"keep", Update::keep}, {"write", Update::write}})};
}

// Both weights of one direction, packed for the kernels of one set, for many calls. Copies share them.
template <class T>
class Packed {
   public:
    Packed() = default;

    Packed(uintptr_t input_weights, uintptr_t weights, int G, int H, int E)
        : set_(&current_set()), G_(G), H_(H), E_(E) {
        require(G > 0 && H >= 0 && H <= most_units && E >= 0 && E <= most_inputs, "sizes out of range");
        states_ = packed(weights, H);
        inputs_ = packed(input_weights, E);
    }

    explicit operator bool() const { return set_ != nullptr; }
    const KernelSet& set() const { return *set_; }
    const T* states() const { return states_.get(); }
    const T* inputs() const { return inputs_.get(); }

    bool fits(int G, int H, int64_t E) const { return G == G_ && H == H_ && E == E_; }

    const char* set_name() const { return set_->name; }

   private:
    using Numbers = std::shared_ptr<const T[]>;

    Numbers packed(uintptr_t weights, int K) const {
        constexpr std::align_val_t line{64};
        const int lanes = set_->vector_bytes / int(sizeof(T));
        const size_t size = size_t(G_) * ((H_ + lanes - 1) / lanes) * lanes * K;
        T* numbers = static_cast<T*>(operator new[](size * sizeof(T), line));
        Numbers result(numbers, [](const T* p) { operator delete[](const_cast<T*>(p), line); });
        kernels_of<T>(*set_).pack(reinterpret_cast<const T*>(weights), G_, H_, K, numbers);
        return result;
    }

    const KernelSet* set_ = nullptr;
    int G_ = 0;
    int H_ = 0;
    int E_ = 0;
    Numbers states_;
    Numbers inputs_;
};

template <class T>
void set_field(const char* name, Packed<T>& field, nb::handle value) {
    if (value.is_none() || nb::try_cast(value, field)) return;
    refuse_field(name, "packed weights of the same type");
}

template <class T>
struct ForwardArguments : Forward<T> {
    Packed<T> ready;
};

template <class T, class Visit>
void each_field(ForwardArguments<T>& f, Visit visit) {
    visit("reverse", f.reverse);
    visit("weights", f.weights);
    visit("input_bias", f.input_bias);
    visit("state_bias", f.state_bias);
    visit("peephole", f.peephole);
    visit("first_h", f.first_h);
    visit("first_c", f.first_c);
    visit("gates", f.gates);
    visit("inner", f.inner);
    visit("cells", f.cells);
    visit("before", f.before);
    visit("y", f.y);
    visit("y_row", f.y_row);
    visit("y_step", f.y_step);
    visit("last_h", f.last_h);
    visit("last_c", f.last_c);
    visit("input", f.input);
    visit("x_row", f.x_row);
    visit("x_step", f.x_step);
    visit("input_weights", f.input_weights);
    visit("E", f.E);
    visit("packed", f.ready);
}

// A call's sizes; lengths: none where all rows have `steps`.
struct Sizes {
    Shape shape;
    Lengths lengths;
    Lengths offsets;

    Sizes(int64_t B, int64_t H, int64_t steps, int threads, const Lengths& given) {
        static const size_t cache = core_cache();
        require(B >= 0 && B <= most_batch && H >= 0 && H <= most_units && steps >= 0, "sizes out of range");
        require(given.empty() || int64_t(given.size()) == B, "there must be a length for each row");
        auto is_wrong = [&](int64_t length) { return length < 1 || length > steps; };
        require(std::none_of(given.begin(), given.end(), is_wrong), "lengths must be in 1..steps");
        lengths = given.empty() ? Lengths(B, steps) : given;
        offsets.resize(B);
        std::exclusive_scan(lengths.begin(), lengths.end(), offsets.begin(), int64_t(0));
        const int team = has_threads ? std::clamp(threads, 1, most_threads) : 1;
        shape = {int(B), int(H), team, steps, lengths.data(), offsets.data(), cache};
    }
};

void require_directions(size_t count) {
    require(count >= 1 && count <= most_directions, "a layer has one or two directions");
}

// The set that the weights were packed for, which must be one; else the default.
template <class T>
const KernelSet& set_of(const std::vector<ForwardArguments<T>>& directions, int G, int H) {
    const KernelSet* set = directions[0].ready ? &directions[0].ready.set() : &current_set();
    for (const ForwardArguments<T>& d : directions) {
        require(bool(d.ready) == bool(directions[0].ready), "all directions are packed, or none");
        require(d.E == directions[0].E && d.E >= 0 && d.E <= most_inputs, "E out of range");
        require(!d.ready || (&d.ready.set() == set && d.ready.fits(G, H, d.E)),
                "weights were packed for another set of kernels or other sizes");
    }
    return *set;
}

template <class T>
std::vector<Forward<T>> with_packed(const std::vector<ForwardArguments<T>>& directions) {
    std::vector<Forward<T>> result(directions.begin(), directions.end());
    for (size_t d = 0; d < result.size(); ++d) {
        result[d].packed = directions[d].ready.states();
        result[d].packed_input = directions[d].ready.inputs();
    }
    return result;
}

template <class T>
void run_forward(const KernelSet& set, const AnyCell& cell, const Shape& shape, const Plan& plan,
                 const Forward<T>* directions, int count) {
    auto run = [&](auto own) { kernels_of<T>(set).forward(own)(own, shape, plan, directions, count); };
    std::visit(run, cell);
}

template <class T>
void forward(const AnyCell& cell, const std::vector<ForwardArguments<T>>& directions, int64_t B, int64_t H,
             int64_t steps, int threads, const Lengths& lengths) {
    require_directions(directions.size());
    Sizes sizes(B, H, steps, threads, lengths);
    const int G = gates_of(cell);
    const KernelSet& set = set_of(directions, G, int(H));
    const int D = int(directions.size());
    Plan plan = make_plan(G, sizes.shape, D, sizeof(T));
    run_forward(set, cell, sizes.shape, plan, with_packed(directions).data(), D);
}

template <class T>
void backward(const AnyCell& cell, std::vector<Backward<T>> directions, int64_t B, int64_t H, int64_t steps,
              int threads, const Lengths& lengths) {
    require_directions(directions.size());
    Sizes sizes(B, H, steps, threads, lengths);
    const int D = int(directions.size());
    for (const Backward<T>& d : directions)
        require(d.E == directions[0].E && d.E >= 0 && d.E <= most_inputs, "E out of range");
    Plan plan = make_plan(gates_of(cell), sizes.shape, D, sizeof(T));
    const NumberKernels<T>& kernels = kernels_of<T>(current_set());
    auto run = [&](auto own) {
        kernels.backward(own)(own, sizes.shape, plan, directions.data(), D);
    };
    std::visit(run, cell);
}

// One step of a stack of layers, from packed weights. Nothing in it changes: threads may share it.
template <class T>
class Steps {
   public:
    Steps(AnyCell cell, std::vector<ForwardArguments<T>> layers, int64_t H)
        : cell_(cell), layers_(std::move(layers)), H_(H) {
        require(!layers_.empty(), "a stack has a layer or more");
        require(H >= 0 && H <= most_units, "sizes out of range");
        for (const ForwardArguments<T>& layer : layers_) {
            require(bool(layer.ready), "the weights of all layers must be packed");
            require(&layer.ready.set() == &layers_[0].ready.set() &&
                        layer.ready.fits(gates_of(cell_), int(H), layer.E),
                    "weights were packed for another set of kernels or other sizes");
        }
        with_packed_ = with_packed(layers_);
    }

    // x (N, E), the states before and after (L, N, H); c: 0 but for an LSTM.
    void run(int64_t N, int threads, uintptr_t x, uintptr_t h, uintptr_t c, uintptr_t next_h,
             uintptr_t next_c) const {
        Sizes sizes(N, H_, 1, threads, {});
        Plan plan = make_plan(gates_of(cell_), sizes.shape, 1, sizeof(T));
        const T* input = reinterpret_cast<const T*>(x);
        for (size_t i = 0; i < with_packed_.size(); ++i) {
            const size_t skip = i * N * H_;
            Forward<T> layer = with_packed_[i];
            layer.first_h = place(h, skip);
            layer.first_c = place(c, skip);
            layer.last_h = place(next_h, skip);
            layer.last_c = place(next_c, skip);
            layer.y = layer.last_h;
            layer.y_row = layer.y_step = H_;
            layer.input = input;
            layer.x_row = layer.x_step = layer.E;
            layer.input_weights = layer.packed_input;  // not null: the kernel makes W x
            run_forward(layers_[0].ready.set(), cell_, sizes.shape, plan, &layer, 1);
            input = layer.y;
        }
    }

   private:
    static T* place(uintptr_t state, size_t skip) {
        return state ? reinterpret_cast<T*>(state) + skip : nullptr;
    }

    AnyCell cell_;
    std::vector<ForwardArguments<T>> layers_;  // keep what is packed
    std::vector<Forward<T>> with_packed_;
    int64_t H_;
};

template <class T>
void bind_number(nb::module_& module, const std::string& bits) {
    auto name = [&](const char* kind) { return kind + bits; };
    nb::class_<Packed<T>>(module, name("Packed").c_str())
        .def(nb::init<uintptr_t, uintptr_t, int, int, int>(), nb::kw_only(), "input_weights"_a,
             "weights"_a, "G"_a, "H"_a, "E"_a)
        .def_prop_ro("set_name", &Packed<T>::set_name);
    bind_fields<ForwardArguments<T>>(module, name("Forward").c_str());
    bind_fields<Backward<T>>(module, name("Backward").c_str());
    using released = nb::call_guard<nb::gil_scoped_release>;
    module.def("forward", &forward<T>, "cell"_a, "directions"_a, nb::kw_only(), "B"_a, "H"_a, "steps"_a,
               "threads"_a, "lengths"_a, released());
    module.def("backward", &backward<T>, "cell"_a, "directions"_a, nb::kw_only(), "B"_a, "H"_a, "steps"_a,
               "threads"_a, "lengths"_a, released());
    nb::class_<Steps<T>>(module, name("Steps").c_str())
        .def(nb::init<AnyCell, std::vector<ForwardArguments<T>>, int64_t>(), "cell"_a, "layers"_a,
             nb::kw_only(), "H"_a)
        .def("run", &Steps<T>::run, nb::kw_only(), "N"_a, "threads"_a, "x"_a, "h"_a, "c"_a, "next_h"_a,
             "next_c"_a, released());
}

template <class Cell, class Make, class... Arguments>
void bind_cell(nb::module_& module, const char* name, Make make, Arguments... arguments) {
    nb::class_<Cell>(module, name).def(nb::new_(make), nb::kw_only(), arguments...);
}

}  // namespace

}  // namespace unrolled

void bind_recurrent(nb::module_& module) {
    using namespace unrolled;
    bind_cell<RnnCell>(module, "RnnCell", &rnn_cell, "activation"_a);
    bind_cell<LstmCell>(module, "LstmCell", &lstm_cell, "output"_a, "peephole"_a);
    bind_cell<GruCell>(module, "GruCell", &gru_cell, "reset"_a, "update"_a);
    bind_number<float>(module, "32");
    bind_number<double>(module, "64");
}
