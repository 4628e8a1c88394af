// Sums, maxima and softmax over segments, the rows from one offset to the next: the components of ragged arrays.

#include <algorithm>
#include <limits>

#include "loops.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

constexpr npy_intp WIDTH = 64;  // columns that are processed together
constexpr npy_intp LANES = 16;  // rows of one element are grouped into rows of this many

// Rows of `width` elements, `step` apart, and the number of columns after them.
template <class T>
struct Panel {
    const T* x;
    npy_intp rows, width, step, rest;
};

template <class T>
INLINE T larger(T a, T b) {
    return b > a || b != b ? b : a;  // NaN is the largest
}

template <class T>
INLINE void find_top(const Panel<T>& p, T* top) {
    for (npy_intp c = 0; c < p.width; c++) top[c] = -std::numeric_limits<T>::infinity();
    for (npy_intp r = 0; r < p.rows; r++)
        for (npy_intp c = 0; c < p.width; c++) top[c] = larger(top[c], p.x[r * p.step + c]);
    for (npy_intp c = 0; c < p.rest; c++) top[c] = larger(top[c], p.x[p.rows * p.step + c]);
}

template <class T>
INLINE void find_sum(const Panel<T>& p, T* sum) {
    for (npy_intp c = 0; c < p.width; c++) sum[c] = 0;
    for (npy_intp r = 0; r < p.rows; r++)
        for (npy_intp c = 0; c < p.width; c++) sum[c] += p.x[r * p.step + c];
    for (npy_intp c = 0; c < p.rest; c++) sum[c] += p.x[p.rows * p.step + c];
}

// Computes out = x - top, or exp of that, and the sums of exp.
template <class T>
INLINE void shift(const Panel<T>& p, const T* top, T* out, T* sum, bool log) {
    for (npy_intp c = 0; c < p.width; c++) sum[c] = 0;
    for (npy_intp r = 0; r <= p.rows; r++) {
        npy_intp count = r < p.rows ? p.width : p.rest;
        const T* x = p.x + r * p.step;
        T* to = out + r * p.step;
        IN_ANY_ORDER
        for (npy_intp c = 0; c < count; c++) {
            T away = x[c] - top[c], e = exp_of_negative(away);
            to[c] = log ? away : e;
            sum[c] += e;
        }
    }
}

template <class T>
INLINE void finish(const Panel<T>& p, T* out, T* sum, bool log) {
    for (npy_intp c = 0; c < p.width; c++) sum[c] = log ? std::log(sum[c]) : T(1) / sum[c];
    for (npy_intp r = 0; r <= p.rows; r++) {
        npy_intp count = r < p.rows ? p.width : p.rest;
        T* to = out + r * p.step;
        for (npy_intp c = 0; c < count; c++) to[c] = log ? to[c] - sum[c] : to[c] * sum[c];
    }
}

enum Kind { SUM, MAX, SOFTMAX, LOG_SOFTMAX };

// x (batch, rows, columns); out has a row for each of n segments, or the rows of x.
template <class T>
struct Segments {
    const T* x;
    const npy_int64* offsets;
    T* out;
    npy_intp n, rows, columns;
    Kind kind;
};

// Reduces the lanes to one value, and copies it to all of them.
template <class T>
INLINE void join(T* lanes, bool adding) {
    for (npy_intp c = 1; c < LANES; c++) lanes[0] = adding ? lanes[0] + lanes[c] : larger(lanes[0], lanes[c]);
    for (npy_intp c = 1; c < LANES; c++) lanes[c] = lanes[0];
}

template <class T>
INLINE void reduce_panel(const Segments<T>& all, const Panel<T>& p, T* out) {
    bool lanes = all.columns == 1, log = all.kind == LOG_SOFTMAX;
    T top[WIDTH], sum[WIDTH];
    if (all.kind == SUM) {
        find_sum(p, sum);
        if (lanes) join(sum, true);
    } else {
        find_top(p, top);
        if (lanes) join(top, false);
    }
    if (all.kind == SUM || all.kind == MAX) {
        for (npy_intp c = 0; c < (lanes ? 1 : p.width); c++) out[c] = all.kind == SUM ? sum[c] : top[c];
        return;
    }
    shift(p, top, out, sum, log);
    if (lanes) join(sum, true);
    finish(p, out, sum, log);
}

template <class T>
INLINE void segments(const Segments<T>& all, npy_intp begin, npy_intp end) {
    bool keeps_rows = all.kind == SOFTMAX || all.kind == LOG_SOFTMAX;
    for (npy_intp i = begin; i < end; i++) {
        npy_intp b = i / all.n, k = i % all.n, first = all.offsets[k], count = all.offsets[k + 1] - first;
        const T* x = all.x + (b * all.rows + first) * all.columns;
        T* out = all.out + (keeps_rows ? b * all.rows + first : i) * all.columns;
        if (all.columns == 1) {
            reduce_panel(all, Panel<T>{x, count / LANES, LANES, LANES, count % LANES}, out);
            continue;
        }
        for (npy_intp c = 0; c < all.columns; c += WIDTH)
            reduce_panel(all, Panel<T>{x + c, count, std::min(WIDTH, all.columns - c), all.columns, 0}, out + c);
    }
}

bool valid_offsets(const npy_int64* offsets, npy_intp n, npy_intp rows) {
    bool good = offsets[0] == 0 && offsets[n] == rows;
    for (npy_intp i = 0; i < n; i++) good &= offsets[i] <= offsets[i + 1];
    return good;
}

template <class T>
void share_segments(PyArrayObject* x, PyArrayObject* offsets, PyArrayObject* out, Kind kind) {
    const npy_intp* shape = PyArray_DIMS(x);
    npy_intp n = PyArray_DIM(offsets, 0) - 1;
    Segments<T> all{static_cast<T*>(PyArray_DATA(x)), static_cast<npy_int64*>(PyArray_DATA(offsets)),
                    static_cast<T*>(PyArray_DATA(out)), n, shape[1], shape[2], kind};
    npy_intp each = (shape[1] / std::max<npy_intp>(n, 1) + 1) * (shape[2] + 1) * (kind < SOFTMAX ? 1 : 4);
    parallel_for(shape[0] * n, ENOUGH / each, [&](npy_intp begin, npy_intp end) { cpu_dispatch<segments<T>>(all, begin, end); });
}

template <Kind kind>
PyObject* method(PyObject*, PyObject* args) {
    PyArrayObject *x, *offsets, *out;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyArray_Type, &x, &PyArray_Type, &offsets, &PyArray_Type, &out)) return nullptr;
    int type = type_of(x);
    bool good = is(x, type, 3) && is_writable(out, type, 3) && is(offsets, NPY_INT64, 1) && PyArray_DIM(offsets, 0) > 0;
    good = good && valid_offsets(static_cast<npy_int64*>(PyArray_DATA(offsets)), PyArray_DIM(offsets, 0) - 1, PyArray_DIM(x, 1));
    if (good) {
        npy_intp out_dims[3] = {PyArray_DIM(x, 0), kind < SOFTMAX ? PyArray_DIM(offsets, 0) - 1 : PyArray_DIM(x, 1), PyArray_DIM(x, 2)};
        good = PyArray_CompareLists(PyArray_DIMS(out), out_dims, 3);
    }
    if (!good) return raise_mismatch("segments");
    auto fill = type == NPY_FLOAT ? share_segments<float> : share_segments<double>;
    if (!without_gil([=] { fill(x, offsets, out, kind); })) return nullptr;
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"segment_sum", separate<method<SUM>, 1>, METH_VARARGS, "Sums of the rows of each segment."},
    {"segment_max", separate<method<MAX>, 1>, METH_VARARGS, "The largest of the rows of each segment."},
    {"segment_softmax", separate<method<SOFTMAX>, 1>, METH_VARARGS, "Softmax over the rows of each segment."},
    {"segment_log_softmax", separate<method<LOG_SOFTMAX>, 1>, METH_VARARGS, "Its logarithm."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_segments{methods};

}  // namespace retrograd
