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
#include "tensors.hpp"
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

int state_size_of(const AnyCell& cell) {
    return std::visit([](auto own) { return own.has_memory ? 2 : 1; }, cell);
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

// A layer's call: its tensors, looked at and compared. What does not fit is left to Python, which names it.
class ForwardCall {
   public:
    ForwardCall(const AnyCell& cell, nb::handle x, const nb::list& tensors, int directions, int64_t B,
                int64_t steps, const Lengths& lengths)
        : cell_(cell), D_(directions), lengths_(lengths), tensors_(tensors) {
        const int state_size = state_size_of(cell);
        const size_t weights = size_t(D_) * fields;
        fits_ = (D_ == 1 || D_ == 2) && look(x.ptr(), x_) && x_.axes == 3 && is_as_it_lies(x.ptr()) &&
                (tensors.size() == weights || tensors.size() == weights + state_size);
        if (!fits_) return;
        B_ = x_.sizes[0];
        steps_ = x_.sizes[1];
        E_ = x_.sizes[2];
        fits_ = B_ == B && steps_ == steps && (x_.strides[2] == 1 || E_ <= 1) && has_lengths();
        for (int d = 0; d < D_ && fits_; ++d) find_weights(d);
        for (size_t i = weights; i < tensors.size() && fits_; ++i)
            fits_ = !is_none(i) && find(i, {D_, B_, H_}, first_[i - weights]);
    }

    bool fits() const { return fits_; }

    // Where the results go: y, the last states and what is kept for a way back, four tensors a direction or none.
    bool find_room(nb::handle y, const nb::list& last, const nb::list& kept) {
        const int state_size = state_size_of(cell_);
        fits_ = fits_ && look(y.ptr(), y_) && y_.bits == x_.bits && y_.has_shape({B_, steps_, D_ * H_}) &&
                (y_.strides[2] == 1 || D_ * H_ <= 1) && int(last.size()) == state_size &&
                (kept.size() == 0 || kept.size() == size_t(D_) * kinds_kept);
        for (size_t i = 0; i < last.size() && fits_; ++i) fits_ = find(last[i], {D_, B_, H_}, last_[i]);
        for (size_t i = 0; i < kept.size() && fits_; ++i)
            fits_ = find(kept[i], {tokens(), (i % kinds_kept ? 1 : gates_of(cell_)) * H_}, kept_[i]);
        return fits_;
    }

    bool is_double() const { return x_.bits == 64; }

    template <class T>
    void run(const std::vector<Packed<T>>& packed, int threads) const {
        require(packed.empty() || int(packed.size()) == D_, "all directions are packed, or none");
        const Sizes sizes(B_, H_, steps_, threads, lengths_);
        require(E_ <= most_inputs, "E out of range");
        const int G = gates_of(cell_);
        const KernelSet& set = packed.empty() ? current_set() : packed[0].set();
        std::vector<Forward<T>> directions(D_);
        for (int d = 0; d < D_; ++d) {
            directions[d] = direction<T>(d);
            if (packed.empty()) continue;
            require(&packed[d].set() == &set && packed[d].fits(G, int(H_), E_),
                    "weights were packed for another set of kernels or other sizes");
            directions[d].packed = packed[d].states();
            directions[d].packed_input = packed[d].inputs();
        }
        nb::gil_scoped_release released;
        const Plan plan = make_plan(G, sizes.shape, D_, sizeof(T));
        run_forward(set, cell_, sizes.shape, plan, directions.data(), D_);
    }

   private:
    // The fields of nn/cells.py's Weights, and of nn/kernel_gradients.py's Kept.
    enum { ih, hh, bias_ih, bias_hh, peephole, hr, fields };
    enum { gates, inner, cells, before, kinds_kept };

    bool has_lengths() const {
        auto is_wrong = [&](int64_t length) { return length < 1 || length > steps_; };
        return lengths_.empty() || (int64_t(lengths_.size()) == B_ &&
                                    std::none_of(lengths_.begin(), lengths_.end(), is_wrong));
    }

    int64_t tokens() const {
        return lengths_.empty() ? B_ * steps_ : std::accumulate(lengths_.begin(), lengths_.end(), int64_t(0));
    }

    bool is_none(size_t i) const { return PyList_GET_ITEM(tensors_.ptr(), i) == Py_None; }

    // A tensor of this shape, or none.
    bool find(nb::handle value, std::initializer_list<int64_t> shape, TensorView& view) const {
        if (value.is_none()) return true;
        return look(value.ptr(), view) && view.bits == x_.bits && view.has_shape(shape) &&
               view.is_contiguous();
    }

    // The same of what went in.
    bool find(size_t i, std::initializer_list<int64_t> shape, TensorView& view) const {
        nb::handle value = PyList_GET_ITEM(tensors_.ptr(), i);
        return find(value, shape, view) && (value.is_none() || is_as_it_lies(value.ptr()));
    }

    void find_weights(int d) {
        const size_t begin = size_t(d) * fields;
        TensorView* own = weights_[d];
        if (d == 0) {
            TensorView first;
            fits_ = look(PyList_GET_ITEM(tensors_.ptr(), hh), first) && first.axes == 2;
            if (!fits_) return;
            H_ = first.sizes[1];
        }
        const int64_t rows = gates_of(cell_) * H_;
        const LstmCell* lstm = std::get_if<LstmCell>(&cell_);
        const int64_t peepholes = lstm ? lstm->peepholes() : 0;
        fits_ = !is_none(begin + ih) && !is_none(begin + hh) && is_none(begin + hr) &&
                is_none(begin + peephole) == (peepholes == 0) &&
                find(begin + ih, {rows, E_}, own[ih]) && find(begin + hh, {rows, H_}, own[hh]) &&
                find(begin + bias_ih, {rows}, own[bias_ih]) && find(begin + bias_hh, {rows}, own[bias_hh]) &&
                find(begin + peephole, {peepholes, H_}, own[peephole]);
    }

    template <class T>
    static T* numbers(const TensorView& view, int64_t skip = 0) {
        return view.data ? static_cast<T*>(view.data) + skip : nullptr;
    }

    template <class T>
    Forward<T> direction(int d) const {
        const TensorView* own = weights_[d];
        const TensorView* keep = kept_ + d * kinds_kept;
        const int64_t skip = d * B_ * H_;
        Forward<T> f;
        f.reverse = d == 1;
        f.weights = numbers<T>(own[hh]);
        f.input_bias = numbers<T>(own[bias_ih]);
        f.state_bias = numbers<T>(own[bias_hh]);
        f.peephole = numbers<T>(own[peephole]);
        f.first_h = numbers<T>(first_[0], skip);
        f.first_c = numbers<T>(first_[1], skip);
        f.gates = numbers<T>(keep[gates]);
        f.inner = numbers<T>(keep[inner]);
        f.cells = numbers<T>(keep[cells]);
        f.before = numbers<T>(keep[before]);
        f.y = numbers<T>(y_, d * H_);
        f.y_row = y_.strides[0];
        f.y_step = y_.strides[1];
        f.last_h = numbers<T>(last_[0], skip);
        f.last_c = numbers<T>(last_[1], skip);
        f.input = numbers<T>(x_);
        f.x_row = x_.strides[0];
        f.x_step = x_.strides[1];
        f.input_weights = numbers<T>(own[ih]);
        f.E = E_;
        return f;
    }

    AnyCell cell_;
    int D_;
    const Lengths& lengths_;
    const nb::list& tensors_;
    bool fits_ = false;
    int64_t B_ = 0;
    int64_t steps_ = 0;
    int64_t E_ = 0;
    int64_t H_ = 0;
    TensorView x_;
    TensorView y_;
    TensorView first_[2];
    TensorView last_[2];
    TensorView kept_[most_directions * kinds_kept];
    TensorView weights_[most_directions][fields];
};

// Whether the layer ran; else something of it does not fit, and nothing has changed.
bool forward(const AnyCell& cell, nb::handle x, const nb::list& tensors, nb::handle y, const nb::list& last,
             const nb::list& kept, const nb::list& packed, int directions, int64_t B, int64_t steps, int threads,
             const Lengths& lengths) {
    ForwardCall call(cell, x, tensors, directions, B, steps, lengths);
    if (!call.fits() || !call.find_room(y, last, kept)) return false;
    if (call.is_double()) call.run(nb::cast<std::vector<Packed<double>>>(packed), threads);
    else call.run(nb::cast<std::vector<Packed<float>>>(packed), threads);
    return true;
}

// Whether all that is not None is a plain tensor of one type in the processor's memory.
bool are_plain(const nb::list& tensors) {
    int bits = 0;
    for (nb::handle value : tensors) {
        TensorView view;
        if (value.is_none()) continue;
        if (!look(value.ptr(), view) || (bits && view.bits != bits)) return false;
        bits = view.bits;
    }
    return true;
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
    module.def("are_plain", &are_plain, "tensors"_a);
    module.def("forward", &forward, "cell"_a, "x"_a, "tensors"_a, nb::kw_only(), "y"_a, "last"_a, "kept"_a,
               "packed"_a, "directions"_a, "B"_a, "steps"_a, "threads"_a, "lengths"_a);
}
