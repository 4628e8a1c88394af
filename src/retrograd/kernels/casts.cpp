// Conversions between float32 and the floating-point formats of 16 bits, in integer arithmetic that every processor
// vectorizes.  The instructions for float16 would set the quiet bit of NaN, which NumPy leaves as it is.

#include <atomic>
#include <cstdint>
#include <cstring>

#include "loops.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

constexpr npy_intp BLOCK = 512;
constexpr int32_t INFINITE = 0x7f800000;  // the bits of float32: exponents of 8 bits, significands of 23

INLINE uint32_t bits_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
INLINE float float_of(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// A conversion of n elements; it returns whether a finite number became infinite.
template <class From, class To>
using Convert = void (*)(const From* x, To* out, npy_intp n, bool* overflow);

// The bits of float16 are those of float32 with an exponent's bias of 15 instead of 127, and 10 instead of 23 bits of
// significand.
constexpr int32_t SMALLEST_NORMAL = 113 << 23, TOO_LARGE = 0x477ff000;  // 2^-14; 65520, which rounds to 65536

// Rounds nonnegative numbers to nearest, ties to even; 65536 and more become infinite, NaN too.
INLINE int32_t half_of(int32_t size) {
    constexpr int32_t ENOUGH_FOR_INFINITY = 143 << 23;  // 65536
    size = size < ENOUGH_FOR_INFINITY ? size : ENOUGH_FOR_INFINITY;
    const int32_t power = size & INFINITE, exponent = power > SMALLEST_NORMAL ? power : SMALLEST_NORMAL;
    // The last bit of a sum with 2^13 times the power of two is the last one of float16: the addition rounds.
    const int32_t large = exponent + (13 << 23);
    const int32_t units = bits_of(float_of(size) + float_of(large)) - large;
    return ((exponent - SMALLEST_NORMAL) >> 13) + units;
}

INLINE void to_half(const float* x, uint16_t* out, npy_intp n, bool* overflow) {
    int32_t most = 0;
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const int32_t bits = bits_of(x[i]), size = bits & 0x7fffffff;
        most = size > most ? size : most;
        out[i] = static_cast<uint16_t>((bits >> 16 & 0x8000) | half_of(size));
    }
    if (most < TOO_LARGE) return;
    for (npy_intp i = 0; i < n; i++) {
        const int32_t bits = bits_of(x[i]), size = bits & 0x7fffffff, payload = size >> 13 & 0x3ff;
        *overflow |= TOO_LARGE <= size && size < INFINITE;
        if (size > INFINITE) out[i] = static_cast<uint16_t>((bits >> 16 & 0x8000) | 0x7c00 | (payload ? payload : 1));
    }
}

INLINE void from_half(const uint16_t* x, float* out, npy_intp n, bool*) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const int32_t sign = (x[i] & 0x8000) << 16, size = (x[i] & 0x7fff) << 13;
        const int32_t subnormal = bits_of(float_of(size + (113 << 23)) - float_of(113 << 23));
        int32_t bits = size + (size < (31 << 23) ? 112 << 23 : 224 << 23);
        bits = size < (1 << 23) ? subnormal : bits;
        out[i] = float_of(sign | bits);
    }
}

// Rounds to nearest, ties to even; every NaN becomes the quiet one of its sign, as in ml_dtypes.
INLINE void to_bfloat16(const float* x, uint16_t* out, npy_intp n, bool*) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const uint32_t bits = bits_of(x[i]);
        const int32_t nan = (bits >> 16 & 0x8000) | 0x7fc0, rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        out[i] = static_cast<uint16_t>(int32_t(bits & 0x7fffffff) > INFINITE ? nan : rounded);
    }
}

INLINE void from_bfloat16(const uint16_t* x, float* out, npy_intp n, bool*) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = float_of(static_cast<uint32_t>(x[i]) << 16);
}

// Converts elements at any strides, in contiguous blocks.
template <class From, class To, Convert<From, To> convert>
void anywhere(const char* x, npy_intp x_step, char* out, npy_intp out_step, npy_intp n, bool* overflow) {
    if (x_step == sizeof(From) && out_step == sizeof(To))
        return convert(reinterpret_cast<const From*>(x), reinterpret_cast<To*>(out), n, overflow);
    From from[BLOCK];
    To to[BLOCK];
    for (npy_intp start = 0; start < n; start += BLOCK) {
        const npy_intp count = n - start < BLOCK ? n - start : BLOCK;
        for (npy_intp i = 0; i < count; i++) from[i] = *reinterpret_cast<const From*>(x + (start + i) * x_step);
        convert(from, to, count, overflow);
        for (npy_intp i = 0; i < count; i++) *reinterpret_cast<To*>(out + (start + i) * out_step) = to[i];
    }
}

// A loop for NumPy, which reports an overflow if the processor's flag is set.
template <class From, class To, Convert<From, To> convert>
void loop(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    std::atomic<bool> overflow{false};
    const auto work = [&](npy_intp begin, npy_intp end) {
        bool found = false;
        anywhere<From, To, convert>(args[0] + begin * steps[0], steps[0], args[1] + begin * steps[1], steps[1], end - begin, &found);
        if (found) overflow = true;
    };
    if (may_split(dimensions[0], ENOUGH) && overlaps(2, args, dimensions[0], steps)) work(0, dimensions[0]);
    else parallel_for(dimensions[0], ENOUGH, work);
    std::feclearexcept(FE_ALL_EXCEPT);
    if (overflow) std::feraiseexcept(FE_OVERFLOW);
}

#define CAST(name, From, To, body, types) \
    {name, {loop<From, To, cpu_dispatch<body>>, nullptr}, types, 1, nullptr}

const Kernel kernels[] = {
    CAST("float_to_half", float, uint16_t, to_half, "fe"),
    CAST("half_to_float", uint16_t, float, from_half, "ef"),
    CAST("float_to_bfloat16", float, uint16_t, to_bfloat16, "fH"),
    CAST("bfloat16_to_float", uint16_t, float, from_bfloat16, "Hf"),
};

}  // namespace

const Part part_casts{kernels};

}  // namespace retrograd
