// What the module offers, from the files that define it.
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

extern const Part part_arithmetic, part_attention, part_chance, part_channels, part_columns, part_convolution, part_convolution_weight, part_gates, part_norms,
    part_pointwise, part_pooling, part_products, part_rows, part_scatter, part_segments, part_updates;

// The numbers of a plan's `table`, which the plan keeps; null, with an error, if it has none.
const npy_int64* table_of(PyObject* plan);

}  // namespace retrograd
