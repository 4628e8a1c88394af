// Registration of the module's functions, by the files that define them.
#pragma once

#include "loops.hpp"

namespace retrograd {

// The ufuncs of a file, and its other functions.
struct Part {
    const Kernel* kernels = nullptr;
    int count = 0;
    PyMethodDef* methods = nullptr;

    template <int n>
    explicit constexpr Part(const Kernel (&ufuncs)[n], PyMethodDef* others = nullptr) : kernels(ufuncs), count(n), methods(others) {}
    explicit constexpr Part(PyMethodDef* functions) : methods(functions) {}
};

extern const Part part_arithmetic, part_array_memory, part_attention, part_casts, part_channels, part_checksum,
    part_column_softmax, part_column_sums, part_convolution, part_convolution_weight, part_scans,
    part_dropout_rng, part_flat_buffer, part_fused_group, part_grid_sample, part_lstm_gru, part_norms, part_plan_checks, part_planned_calls, part_pointwise,
    part_pooling, part_products, part_recurrence, part_row_major, part_rows, part_scatter, part_segments, part_small_products,
    part_threaded_ufuncs, part_updates;

// The values of a plan's `table`, a borrowed reference; null, with an error, if it has none.
struct Table {
    const npy_int64* at;
    npy_intp size;
};
Table table_of(PyObject* plan);

// Returns whether an array has that dtype and number of dimensions, and is contiguous, aligned and in native order.
inline bool is(PyArrayObject* a, int type, int ndim) {
    return PyArray_TYPE(a) == type && PyArray_NDIM(a) == ndim && PyArray_ISCARRAY_RO(a);
}
inline bool is_writable(PyArrayObject* a, int type, int ndim) { return is(a, type, ndim) && PyArray_ISWRITEABLE(a); }

// Returns float32 if the array has that, else float64, which other dtypes then fail to match.
inline int type_of(PyArrayObject* a) { return PyArray_TYPE(a) == NPY_FLOAT ? NPY_FLOAT : NPY_DOUBLE; }

// Returns null, with the error that a method's arrays do not fit it.
PyObject* raise_mismatch(const char* name);

// Returns the arguments of a method, of which the last `results` are written to, with copies of operands that share
// memory with those; a new reference. Returns null, with an error, if results share memory with each other.
PyObject* without_overlap(PyObject* args, int results);

// A method that may read its operands in any order while it writes to its last `results` arguments.
template <PyCFunction method, int results>
PyObject* separate(PyObject* module, PyObject* args) {
    PyObject* copied = without_overlap(args, results);
    PyObject* out = copied ? method(module, copied) : nullptr;
    Py_XDECREF(copied);
    return out;
}

}  // namespace retrograd
