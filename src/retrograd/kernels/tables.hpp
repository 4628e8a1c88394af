// The kernels that the module offers, from the files that define them.
#pragma once

#include "loops.hpp"

namespace retrograd {

extern const Kernel of_numbers[], of_rows[], of_norms[], of_updates[], of_chance[], of_gates[];
extern const int count_of_numbers, count_of_rows, count_of_norms, count_of_updates, count_of_chance, count_of_gates;

// Functions that are no ufuncs; false, with an error, if they can't be added.
bool add_arithmetic(PyObject* module);
bool add_scatter(PyObject* module);
bool add_chance(PyObject* module);

// Methods of the module, which are no ufuncs.
PyObject* sum_windows(PyObject*, PyObject* args);
PyObject* sum_places(PyObject*, PyObject* args);
PyObject* attend_call(PyObject*, PyObject* args);
PyObject* attend_grad_call(PyObject*, PyObject* args);

}  // namespace retrograd
