// Loops of elementary functions in place of NumPy's; see elementary_functions.cpp.
#pragma once

#include "loops.hpp"

namespace retrograd {

// Replaces a loop of NumPy's ufunc of that name, and its data, by one of ours that may call it; returns false if there is none.
// Its allocations are never freed, as the ufunc is not.
bool replace_loop(const char* name, const char* types, PyUFuncGenericFunction& function, void*& data);

}  // namespace retrograd
