// The processor's conversions of vectors between float32 and float16, the only intrinsics of the kernels (docs/decisions/0020).
//
// GCC 12 makes an instruction per element of loops over `_Float16` and of `__builtin_convertvector`.  All processors with
// AVX2 have these instructions.
#pragma once

#include <cstdint>

#include "vectors.hpp"

namespace retrograd {

// Convert elements in whole vectors, and return how many: those at the end are left to the caller.  Numbers round to
// nearest, ties to even.  Every NaN becomes a quiet one.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && (!defined(RETROGRAD_ONE_PROCESSOR) || defined(__F16C__))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors wider than the baseline's; callers are compiled for AVX2
constexpr npy_intp HALVES = 8;  // in a vector

INLINE npy_intp convert_to_half(const float* x, uint16_t* out, npy_intp n) {
    constexpr int TO_NEAREST = 0;
    npy_intp i = 0;
    for (; i + HALVES <= n; i += HALVES)
        Vector<int16_t, 16>::at(reinterpret_cast<int16_t*>(out) + i) =
            __builtin_ia32_vcvtps2ph256(Vector<float, 32>::at(x + i), TO_NEAREST);
    return i;
}

INLINE npy_intp convert_from_half(const uint16_t* x, float* out, npy_intp n) {
    npy_intp i = 0;
    for (; i + HALVES <= n; i += HALVES)
        Vector<float, 32>::at(out + i) =
            __builtin_ia32_vcvtph2ps256(Vector<int16_t, 16>::at(reinterpret_cast<const int16_t*>(x) + i));
    return i;
}
#pragma GCC diagnostic pop
#else
INLINE npy_intp convert_to_half(const float*, uint16_t*, npy_intp) { return 0; }
INLINE npy_intp convert_from_half(const uint16_t*, float*, npy_intp) { return 0; }
#endif

}  // namespace retrograd
