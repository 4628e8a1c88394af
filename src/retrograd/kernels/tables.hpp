// The kernels that the module offers, from the files that define them.
#pragma once

#include "loops.hpp"

namespace retrograd {

extern const Kernel of_numbers[], of_rows[], of_norms[], of_updates[], of_chance[], of_gates[], of_products[];
extern const int count_of_numbers, count_of_rows, count_of_norms, count_of_updates, count_of_chance, count_of_gates,
    count_of_products;

// Functions that are no ufuncs; false, with an error, if they can't be added.
bool add_arithmetic(PyObject* module);
bool add_scatter(PyObject* module);
bool add_chance(PyObject* module);
bool add_segments(PyObject* module);
bool add_windows(PyObject* module);
bool add_places(PyObject* module);
bool add_pooling(PyObject* module);

// The numbers of a plan's `table`, which the plan keeps; null, with an error, if it has none.
const npy_int64* table_of(PyObject* plan);

// Methods of the module, which are no ufuncs.
PyObject* attend_call(PyObject*, PyObject* args);
PyObject* attend_grad_call(PyObject*, PyObject* args);

}  // namespace retrograd
