// Recurrent networks over all steps of sequences, forward and backward; see recurrence_reference.py.
//
// Threads share the sequences, which do not depend on each other: a thread runs all steps of some of them, so no step
// waits for another thread.  The weight is copied once to panels, in the layout of the tiles.

#include <cstring>
#include <memory>
#include <vector>

#include "matrices.hpp"
#include "registration.hpp"

namespace retrograd {

enum class Cell { RNN_TANH, RNN_RELU, LSTM, GRU };

constexpr npy_intp SEQUENCES = 8, MOST_SEQUENCES = 64;  // of a block, and of a chunk: multiples of every tile's rows
constexpr npy_intp INNER = 256;                         // rows of a panel that are multiplied at a time
constexpr npy_intp WORTHWHILE = 1 << 19;                // multiplications up to which another thread does not pay

// The arrays of a call.  Rows of `gates` and of the other arrays of all steps are ordered by step: offsets[t] is the first
// row of step t, which has the rows of the sequences that are not finished.
template <class T>
struct Recurrence {
    Cell cell;
    bool reverse, backward;
    std::vector<npy_intp> offsets;
    npy_intp sequences, size, width;  // the numbers of sequences, of elements of a state, and of those of all gates
    const T *weight, *bias;
    T *gates, *extra, *out, *h, *c;           // forward: h and c are the states, first and last
    const T *first_h, *first_c, *g;           // backward: h and c are the cotangents of the states
    T *of_gates, *of_hidden, *before;
    T* panels;

    npy_intp steps() const { return static_cast<npy_intp>(offsets.size()) - 1; }
    npy_intp active(npy_intp t) const { return offsets[t + 1] - offsets[t]; }
};
template <class T>
struct Chunk {
    const Recurrence<T>* of;
    npy_intp begin, end;  // sequences
};

// Copies the weight to panels: transposed in the forward pass, which multiplies states by it.
template <class T, int bytes>
INLINE void copy_weight(const Recurrence<T>& of) {
    constexpr npy_intp panel = Tile<T, bytes>::PANEL, each = sizeof(T);
    Matrix weight{reinterpret_cast<char*>(const_cast<T*>(of.weight)), of.size * each, each};
    if (!of.backward) return copy_transposed<T, bytes>(weight, of.width, of.size, of.panels);
    for (npy_intp column = 0; column < of.size; column += panel) {
        Matrix from{weight.at + column * each, weight.row, each};
        T* to = of.panels + column * of.width;
        copy_rows<T, bytes>(from, of.width, std::min(panel, of.size - column), T(1), to, panel, of.width);
    }
}

// Computes out = a w for the panels of w, with rows of a and out that are padded to tiles.
template <class T, int bytes>
INLINE void multiply_panels(npy_intp rows, npy_intp depth, npy_intp columns, const T* a, const T* panels, T* out) {
    using Of = Tile<T, bytes>;
    for (npy_intp k = 0; k < depth; k += INNER)
        product<T, bytes>({round_up(rows, Of::ROWS), columns, std::min(INNER, depth - k), k > 0}, Left<T>{a + k, depth, 1},
                          Right<T>{panels + k * Of::PANEL, Of::PANEL, depth * Of::PANEL}, out, columns);
}

// ------------------------------------------------------------------------------------------------------- forward

// Each function computes a row: `x` are the gates' terms from the input, replaced by the gates, and `z` those from the
// state. The bias is added here, because a pass over the terms of all steps before would take longer.
template <class T>
INLINE void rnn_row(bool relu, npy_intp n, const T* x, const T* z, const T* bias, T* h) {
    const auto term = [=](npy_intp k) { return (x[k] + bias[k]) + z[k]; };
    if (relu) {
        IN_ANY_ORDER
        for (npy_intp k = 0; k < n; k++) h[k] = term(k) <= 0 ? T(0) : term(k);
    } else {
        IN_ANY_ORDER
        for (npy_intp k = 0; k < n; k++) h[k] = tanh_of(term(k));
    }
}

template <class T>
INLINE void lstm_row(npy_intp n, T* x, const T* z, const T* bias, T* c, T* cell, T* h) {
    const auto term = [=](npy_intp k) { return (x[k] + bias[k]) + z[k]; };
    IN_ANY_ORDER
    for (npy_intp k = 0; k < n; k++) {
        const T i = sigmoid_of(term(k)), f = sigmoid_of(term(n + k));
        const T g = tanh_of(term(2 * n + k)), o = sigmoid_of(term(3 * n + k));
        const T after = f * c[k] + i * g;
        x[k] = i, x[n + k] = f, x[2 * n + k] = g, x[3 * n + k] = o;
        c[k] = cell[k] = after;
        h[k] = o * tanh_of(after);
    }
}

template <class T>
INLINE void gru_row(npy_intp n, T* x, const T* z, const T* bias, T* memory, T* h) {
    IN_ANY_ORDER
    for (npy_intp k = 0; k < n; k++) {
        const T r = sigmoid_of(x[k] + z[k] + bias[k]), u = sigmoid_of(x[n + k] + z[n + k] + bias[n + k]);
        const T term = z[2 * n + k] + bias[2 * n + k], candidate = tanh_of(x[2 * n + k] + r * term);
        x[k] = r, x[n + k] = u, x[2 * n + k] = candidate;
        memory[k] = term;
        h[k] = candidate + u * (h[k] - candidate);
    }
}

template <class T, int bytes>
INLINE void run_forward(const Chunk<T>& chunk) {
    const Recurrence<T>& of = *chunk.of;
    const npy_intp n = of.size, rows = chunk.end - chunk.begin, columns = round_up(of.width, Tile<T, bytes>::LANES);
    const npy_intp filled = round_up(rows, SEQUENCES);
    const AlignedArray<T> room = aligned_zeros<T>(filled * (n + columns));
    T *state = room.get(), *terms = state + filled * n;
    std::memcpy(state, of.h + chunk.begin * n, rows * n * sizeof(T));
    for (npy_intp step = 0; step < of.steps(); step++) {
        const npy_intp t = of.reverse ? of.steps() - 1 - step : step;
        const npy_intp active = std::min(chunk.end, of.active(t)) - chunk.begin;
        if (active <= 0) continue;
        multiply_panels<T, bytes>(active, n, columns, state, of.panels, terms);
        for (npy_intp b = 0; b < active; b++) {
            const npy_intp row = of.offsets[t] + chunk.begin + b;
            T *x = of.gates + row * of.width, *h = state + b * n;
            const T* z = terms + b * columns;
            if (of.cell == Cell::LSTM) lstm_row(n, x, z, of.bias, of.c + (chunk.begin + b) * n, of.extra + row * n, h);
            else if (of.cell == Cell::GRU) gru_row(n, x, z, of.bias, of.extra + row * n, h);
            else rnn_row(of.cell == Cell::RNN_RELU, n, x, z, of.bias, h);
            std::memcpy(of.out + row * n, h, n * sizeof(T));
        }
    }
    std::memcpy(of.h + chunk.begin * n, state, rows * n * sizeof(T));
}

// ------------------------------------------------------------------------------------------------------ backward

// Each function computes a row: `g` is the cotangent of the new state, and `d` those of the gates' arguments.
template <class T>
INLINE void rnn_grad_row(bool relu, npy_intp n, const T* out, const T* g, T* d) {
    if (relu) {
        IN_ANY_ORDER
        for (npy_intp k = 0; k < n; k++) d[k] = out[k] <= 0 ? T(0) : g[k];
    } else {
        IN_ANY_ORDER
        for (npy_intp k = 0; k < n; k++) d[k] = g[k] * (1 - out[k] * out[k]);
    }
}

// `gc` is the cotangent of c after the step, replaced by that of c before.
template <class T>
INLINE void lstm_grad_row(npy_intp n, const T* gates, const T* cell, const T* c, const T* g, T* gc, T* d) {
    IN_ANY_ORDER
    for (npy_intp k = 0; k < n; k++) {
        const T i = gates[k], f = gates[n + k], candidate = gates[2 * n + k], o = gates[3 * n + k], top = tanh_of(cell[k]);
        const T flow = gc[k] + g[k] * o * (1 - top * top), before = c[k];
        d[k] = flow * candidate * (i * (1 - i));
        d[n + k] = flow * before * (f * (1 - f));
        d[2 * n + k] = flow * i * (1 - candidate * candidate);
        d[3 * n + k] = g[k] * top * (o * (1 - o));
        gc[k] = flow * f;
    }
}

// `hidden` are the cotangents of the gates' terms from the state; `g` is replaced by its part that passes the gates by.
template <class T>
INLINE void gru_grad_row(npy_intp n, const T* gates, const T* memory, const T* h, T* g, T* d, T* hidden) {
    IN_ANY_ORDER
    for (npy_intp k = 0; k < n; k++) {
        const T r = gates[k], u = gates[n + k], candidate = gates[2 * n + k];
        const T of_candidate = g[k] * (1 - u) * (1 - candidate * candidate);
        hidden[k] = d[k] = of_candidate * memory[k] * (r * (1 - r));
        hidden[n + k] = d[n + k] = g[k] * (h[k] - candidate) * (u * (1 - u));
        d[2 * n + k] = of_candidate;
        hidden[2 * n + k] = of_candidate * r;
        g[k] = g[k] * u;
    }
}

// Returns the row of a state before step t: that of the step before, or the first state.
template <class T>
inline const T* state_before(const Recurrence<T>& of, const T* states, const T* first, npy_intp t, npy_intp sequence) {
    const npy_intp s = of.reverse ? t + 1 : t - 1;
    const bool running = s >= 0 && s < of.steps() && sequence < of.active(s);
    return running ? states + (of.offsets[s] + sequence) * of.size : first + sequence * of.size;
}

template <class T, int bytes>
INLINE void run_backward(const Chunk<T>& chunk) {
    const Recurrence<T>& of = *chunk.of;
    const npy_intp n = of.size, rows = chunk.end - chunk.begin, columns = round_up(n, Tile<T, bytes>::LANES);
    const npy_intp filled = round_up(rows, SEQUENCES);
    const bool gru = of.cell == Cell::GRU;
    const AlignedArray<T> room = aligned_zeros<T>(filled * (of.width + columns));
    T *of_terms = room.get(), *of_states = of_terms + filled * of.width;
    for (npy_intp step = 0; step < of.steps(); step++) {
        const npy_intp t = of.reverse ? step : of.steps() - 1 - step;
        const npy_intp active = std::min(chunk.end, of.active(t)) - chunk.begin;
        if (active <= 0) continue;
        for (npy_intp b = 0; b < active; b++) {
            const npy_intp sequence = chunk.begin + b, row = of.offsets[t] + sequence;
            const T *gates = of.gates + row * of.width, *before = state_before(of, of.out, of.first_h, t, sequence);
            T *g = of.h + sequence * n, *d = of.of_gates + row * of.width, *hidden = of_terms + b * of.width;
            const T* g_out = of.g + row * n;
            for (npy_intp k = 0; k < n; k++) g[k] += g_out[k];
            if (of.before) std::memcpy(of.before + row * n, before, n * sizeof(T));
            if (gru) {
                gru_grad_row(n, gates, of.extra + row * n, before, g, d, hidden);
                std::memcpy(of.of_hidden + row * of.width, hidden, of.width * sizeof(T));
                continue;
            }
            if (of.cell == Cell::LSTM) {
                const T* c = state_before(of, of.extra, of.first_c, t, sequence);
                lstm_grad_row(n, gates, of.extra + row * n, c, g, of.c + sequence * n, hidden);
            } else rnn_grad_row(of.cell == Cell::RNN_RELU, n, of.out + row * n, g, hidden);
            std::memcpy(d, hidden, of.width * sizeof(T));
        }
        multiply_panels<T, bytes>(active, of.width, columns, of_terms, of.panels, of_states);
        for (npy_intp b = 0; b < active; b++) {
            T* g = of.h + (chunk.begin + b) * n;
            const T* through = of_states + b * columns;
            for (npy_intp k = 0; k < n; k++) g[k] = gru ? g[k] + through[k] : through[k];
        }
    }
}

FOR_VECTORS(copy_weight, float, Recurrence<float>)
FOR_VECTORS(copy_weight, double, Recurrence<double>)
FOR_VECTORS(run_forward, float, Chunk<float>)
FOR_VECTORS(run_forward, double, Chunk<double>)
FOR_VECTORS(run_backward, float, Chunk<float>)
FOR_VECTORS(run_backward, double, Chunk<double>)

namespace {

template <class T>
void run(Recurrence<T>& of) {
    const npy_intp panel = 2 * vector_bytes / sizeof(T), rows = of.offsets.back();
    const npy_intp copied = of.backward ? round_up(of.size, panel) * of.width : round_up(of.width, panel) * of.size;
    const AlignedArray<T> panels = aligned_array<T>(copied);
    std::unique_ptr<T[]> zeros(of.bias ? nullptr : new T[of.width]());
    of.panels = panels.get();
    if (!of.bias) of.bias = zeros.get();
    copy_weight(of);
    const npy_intp blocks = (of.sequences + SEQUENCES - 1) / SEQUENCES;
    const npy_intp each = std::max<npy_intp>(1, rows / blocks * of.width * of.size);
    parallel_for(blocks, 1 + WORTHWHILE / each, [&](npy_intp begin, npy_intp end) {
        const npy_intp last = std::min(end * SEQUENCES, of.sequences);
        for (npy_intp at = begin * SEQUENCES; at < last; at += MOST_SEQUENCES) {
            const Chunk<T> chunk{&of, at, std::min(at + MOST_SEQUENCES, last)};
            if (of.backward) run_backward(chunk);
            else run_forward(chunk);
        }
    });
}

// ------------------------------------------------------------------------------------------------- calls' arguments

// An argument: an array or None.  Returns its memory, or null; `fits` becomes false if it is missing or has another shape.
struct Arguments {
    int type;
    bool fits = true;

    PyArrayObject* array(PyObject* object, std::initializer_list<npy_intp> shape, bool written) {
        const int ndim = static_cast<int>(shape.size());
        PyArrayObject* a = reinterpret_cast<PyArrayObject*>(object);
        if (!PyArray_Check(object) || !(written ? is_writable(a, type, ndim) : is(a, type, ndim)) ||
            !std::equal(shape.begin(), shape.end(), PyArray_DIMS(a))) {
            fits = false;
            return nullptr;
        }
        return a;
    }
    template <class T>
    const T* operand(PyObject* object, std::initializer_list<npy_intp> shape) {
        PyArrayObject* a = array(object, shape, false);
        return a ? static_cast<const T*>(PyArray_DATA(a)) : nullptr;
    }
    template <class T>
    T* result(PyObject* object, std::initializer_list<npy_intp> shape) {
        PyArrayObject* a = array(object, shape, true);
        return a ? static_cast<T*>(PyArray_DATA(a)) : nullptr;
    }
};

bool cell_of(const char* name, Cell& cell, npy_intp& gates) {
    const char* names[] = {"rnn_tanh", "rnn_relu", "lstm", "gru"};
    const npy_intp counts[] = {1, 1, 4, 3};
    for (int k = 0; k < 4; k++)
        if (std::strcmp(name, names[k]) == 0) {
            cell = static_cast<Cell>(k), gates = counts[k];
            return true;
        }
    return false;
}

// Reads the number of sequences of each step, which must not increase; None: all sequences have as many steps.
bool read_sizes(PyObject* sizes, npy_intp rows, npy_intp sequences, std::vector<npy_intp>& offsets) {
    offsets.assign(1, 0);
    if (sizes == Py_None) {
        if (sequences == 0 || rows % sequences != 0) return rows == 0;
        for (npy_intp row = sequences; row <= rows; row += sequences) offsets.push_back(row);
        return true;
    }
    PyArrayObject* array = reinterpret_cast<PyArrayObject*>(sizes);
    if (!PyArray_Check(sizes) || !is(array, NPY_INT64, 1)) return false;
    const npy_int64* at = static_cast<const npy_int64*>(PyArray_DATA(array));
    npy_int64 most = sequences;
    for (npy_intp t = 0; t < PyArray_SIZE(array); t++) {
        if (at[t] < 1 || at[t] > most || at[t] > rows - offsets.back()) return false;
        most = at[t];
        offsets.push_back(offsets.back() + at[t]);
    }
    return offsets.back() == rows;
}

struct Values {
    const char* cell;
    int reverse;
    PyObject *sizes, *weight, *bias, *gates, *extra, *out, *first_h, *first_c, *g, *h, *c, *of_gates, *of_hidden, *before;
};

template <class T>
PyObject* call(const Values& values, bool backward, const char* name) {
    Recurrence<T> of{};
    Arguments arguments{sizeof(T) == 4 ? NPY_FLOAT : NPY_DOUBLE};
    PyArrayObject *weight = reinterpret_cast<PyArrayObject*>(values.weight), *gates = reinterpret_cast<PyArrayObject*>(values.gates),
                  *h = reinterpret_cast<PyArrayObject*>(values.h);
    npy_intp count = 0;
    if (!cell_of(values.cell, of.cell, count) || PyArray_NDIM(weight) != 2 || !PyArray_Check(values.gates) ||
        PyArray_NDIM(gates) != 2 || !PyArray_Check(values.h) || PyArray_NDIM(h) != 2)
        return raise_mismatch(name);
    of.reverse = values.reverse, of.backward = backward;
    of.size = PyArray_DIM(weight, 1), of.width = count * of.size, of.sequences = PyArray_DIM(h, 0);
    const npy_intp rows = PyArray_DIM(gates, 0), n = of.size, width = of.width;
    const bool lstm = of.cell == Cell::LSTM, gru = of.cell == Cell::GRU;
    if (!read_sizes(values.sizes, rows, of.sequences, of.offsets)) return raise_mismatch(name);
    of.weight = arguments.operand<T>(values.weight, {width, n});
    of.h = arguments.result<T>(values.h, {of.sequences, n});
    if (lstm) of.c = arguments.result<T>(values.c, {of.sequences, n});
    if (backward) {
        of.gates = const_cast<T*>(arguments.operand<T>(values.gates, {rows, width}));
        if (lstm || gru) of.extra = const_cast<T*>(arguments.operand<T>(values.extra, {rows, n}));
        of.out = const_cast<T*>(arguments.operand<T>(values.out, {rows, n}));
        of.first_h = arguments.operand<T>(values.first_h, {of.sequences, n});
        if (lstm) of.first_c = arguments.operand<T>(values.first_c, {of.sequences, n});
        of.g = arguments.operand<T>(values.g, {rows, n});
        of.of_gates = arguments.result<T>(values.of_gates, {rows, width});
        if (gru) of.of_hidden = arguments.result<T>(values.of_hidden, {rows, width});
        if (values.before != Py_None) of.before = arguments.result<T>(values.before, {rows, n});
    } else {
        if (values.bias != Py_None) of.bias = arguments.operand<T>(values.bias, {width});
        of.gates = arguments.result<T>(values.gates, {rows, width});
        if (lstm || gru) of.extra = arguments.result<T>(values.extra, {rows, n});
        of.out = arguments.result<T>(values.out, {rows, n});
    }
    if (!arguments.fits) return raise_mismatch(name);
    if (rows && n && !without_gil([&] { run(of); })) return nullptr;
    Py_RETURN_NONE;
}

PyObject* call_of_type(const Values& values, bool backward, const char* name) {
    if (!PyArray_Check(values.weight)) return raise_mismatch(name);
    const int type = PyArray_TYPE(reinterpret_cast<PyArrayObject*>(values.weight));
    return type == NPY_FLOAT ? call<float>(values, backward, name) : call<double>(values, backward, name);
}

PyObject* recurrent_layer(PyObject*, PyObject* args) {
    Values of{};
    if (!PyArg_ParseTuple(args, "spOOOOOOOO:recurrent_layer", &of.cell, &of.reverse, &of.sizes, &of.weight, &of.bias, &of.gates, &of.extra,
                          &of.h, &of.c, &of.out))
        return nullptr;
    return call_of_type(of, false, "recurrent_layer");
}

PyObject* recurrent_layer_grad(PyObject*, PyObject* args) {
    Values of{};
    if (!PyArg_ParseTuple(args, "spOOOOOOOOOOOOO:recurrent_layer_grad", &of.cell, &of.reverse, &of.sizes, &of.weight, &of.gates, &of.extra,
                          &of.out, &of.first_h, &of.first_c, &of.g, &of.h, &of.c, &of.of_gates, &of.of_hidden, &of.before))
        return nullptr;
    return call_of_type(of, true, "recurrent_layer_grad");
}

PyMethodDef methods[] = {
    {"recurrent_layer", separate<recurrent_layer, 5>, METH_VARARGS, "All steps of a recurrent network."},
    {"recurrent_layer_grad", separate<recurrent_layer_grad, 5>, METH_VARARGS, "The gradients of all steps of a recurrent network."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_recurrence{methods};

}  // namespace retrograd
