// Fused groups and the floating-point flags that steps raise, for plans of calls.
#pragma once

#include "loops.hpp"

#if defined(__SSE2__)
#include <xmmintrin.h>  // <immintrin.h> takes half a second to compile
#endif

namespace retrograd {

// Reading the flags of the vector unit takes a few nanoseconds, and <cfenv> some thirty; only the former's are used.
#if defined(__SSE2__)
constexpr unsigned INVALID = 1, DIVISION = 4, OVERFLOWN = 8, UNDERFLOWN = 16;
INLINE unsigned raised() { return _mm_getcsr() & (INVALID | DIVISION | OVERFLOWN | UNDERFLOWN); }
INLINE void clear_raised() { _mm_setcsr(_mm_getcsr() & ~0x3Fu); }
#else
constexpr unsigned UNDERFLOWN = FE_UNDERFLOW;
INLINE unsigned raised() { return std::fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID | FE_UNDERFLOW); }
INLINE void clear_raised() { std::feclearexcept(FE_ALL_EXCEPT); }
#endif

// Returns which of the flags NumPy may report: none if there is only an underflow, which it ignores by default.
// Python's error is set if that cannot be found out.
unsigned reported(unsigned flags);

// Returns the type number of the loop of a ufunc for operands of these types; -1 if it has none.
int loop_of(PyUFuncObject* ufunc, const int* types);

// Returns whether an object is a fused group with that many operands and results.
bool is_group(PyObject* object, int operands, int results);

// Runs a fused group on the memory of its operands and results, and returns the flags that were raised.
unsigned run_group(PyObject* group, char* const* arrays);

}  // namespace retrograd
