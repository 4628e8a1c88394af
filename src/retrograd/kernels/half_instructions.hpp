// The processor's conversions of vectors between float32 and float16, the only intrinsics of the kernels (docs/decisions/0020).
//
// GCC 12 makes an instruction per element of loops over `_Float16` and of `__builtin_convertvector`.  All processors with
// AVX2 have these instructions.
#pragma once

#include <cstdint>

#include "vectors.hpp"

namespace retrograd {

// Convert elements in whole vectors, and return how many: those at the end are left to the caller.  Numbers round to
// nearest, ties to even.  Every NaN becomes a quiet one.  `most` becomes the largest float16 without its sign, as bits:
// those of NaN are the largest, those of infinity come next.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && (!defined(RETROGRAD_ONE_PROCESSOR) || defined(__F16C__))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors wider than the baseline's; callers are compiled for these
template <int bytes>
using Halves = Vector<int16_t, bytes / 2>;

template <int bytes>
INLINE void note_largest(const typename Halves<bytes>::type& halves, typename Halves<bytes>::type& most) {
    const typename Halves<bytes>::type size = halves & int16_t(0x7fff);
    most = most > size ? most : size;
}
template <int bytes>
INLINE int16_t largest_of(const typename Halves<bytes>::type& sizes) {
    int16_t most = 0;
    for (int k = 0; k < bytes / 4; k++) most = sizes[k] > most ? sizes[k] : most;
    return most;
}

template <int bytes>
INLINE npy_intp convert_to_half(const float* x, uint16_t* out, npy_intp n, int16_t& most) {
    constexpr int TO_NEAREST = 0, lanes = bytes / sizeof(float);
    typename Halves<bytes>::type sizes{}, halves;
    npy_intp i = 0;
    for (; i + lanes <= n; i += lanes) {
        const typename Vector<float, bytes>::type numbers = Vector<float, bytes>::at(x + i);
        if constexpr (bytes == 64) halves = __builtin_ia32_vcvtps2ph512_mask(numbers, TO_NEAREST, sizes, uint16_t(-1));
        else halves = __builtin_ia32_vcvtps2ph256(numbers, TO_NEAREST);
        note_largest<bytes>(halves, sizes);
        Halves<bytes>::at(reinterpret_cast<int16_t*>(out) + i) = halves;
    }
    most = largest_of<bytes>(sizes);
    return i;
}

template <int bytes>
INLINE npy_intp convert_from_half(const uint16_t* x, float* out, npy_intp n, int16_t& most) {
    constexpr int AS_IS = 4, lanes = bytes / sizeof(float);
    typename Halves<bytes>::type sizes{};
    typename Vector<float, bytes>::type numbers{};
    npy_intp i = 0;
    for (; i + lanes <= n; i += lanes) {
        const typename Halves<bytes>::type halves = Halves<bytes>::at(reinterpret_cast<const int16_t*>(x) + i);
        if constexpr (bytes == 64) numbers = __builtin_ia32_vcvtph2ps512_mask(halves, numbers, uint16_t(-1), AS_IS);
        else numbers = __builtin_ia32_vcvtph2ps256(halves);
        note_largest<bytes>(halves, sizes);
        Vector<float, bytes>::at(out + i) = numbers;
    }
    most = largest_of<bytes>(sizes);
    return i;
}
#pragma GCC diagnostic pop
#else
template <int bytes>
INLINE npy_intp convert_to_half(const float*, uint16_t*, npy_intp, int16_t&) { return 0; }
template <int bytes>
INLINE npy_intp convert_from_half(const uint16_t*, float*, npy_intp, int16_t&) { return 0; }
#endif

}  // namespace retrograd
