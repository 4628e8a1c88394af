// Conversions between float32 and the floating-point formats of 16 bits, by the processor's instructions for float16 or in
// integer arithmetic that every processor vectorizes.  The instructions would set the quiet bit of NaN, which NumPy
// leaves as it is.

#include <atomic>
#include <cstdint>
#include <cstring>

#include "half_instructions.hpp"
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
constexpr int16_t HALF_INFINITE = 0x7c00;

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

// For what the instructions do not convert, and for processors without them.
NOT_INLINE void to_half_in_integers(const float* x, uint16_t* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const int32_t bits = bits_of(x[i]);
        out[i] = static_cast<uint16_t>((bits >> 16 & 0x8000) | half_of(bits & 0x7fffffff));
    }
}

// Writes NumPy's NaNs, and returns whether a finite number became infinite.
NOT_INLINE bool mend_infinite(const float* x, uint16_t* out, npy_intp n) {
    int32_t overflow = 0;
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const int32_t bits = bits_of(x[i]), size = bits & 0x7fffffff, payload = size >> 13 & 0x3ff;
        const int32_t nan = (bits >> 16 & 0x8000) | HALF_INFINITE | (payload ? payload : 1);
        overflow |= TOO_LARGE <= size && size < INFINITE;
        out[i] = static_cast<uint16_t>(size > INFINITE ? nan : out[i]);
    }
    return overflow != 0;
}

// Returns the largest number without its sign, as bits: those of NaN are the largest, those of infinity come next.
INLINE int16_t largest_half(const uint16_t* x, npy_intp n) {
    int16_t most = 0;
    for (npy_intp i = 0; i < n; i++) {
        const int16_t size = x[i] & 0x7fff;
        most = size > most ? size : most;
    }
    return most;
}

template <bool by_instruction>
INLINE void to_half(const float* x, uint16_t* out, npy_intp n, bool* overflow) {
    for (npy_intp count; n > 0; x += count, out += count, n -= count) {
        count = std::min(n, BLOCK);
        const npy_intp done = by_instruction ? convert_to_half(x, out, count) : 0;
        if (done < count) to_half_in_integers(x + done, out + done, count - done);
        if (largest_half(out, count) >= HALF_INFINITE) *overflow |= mend_infinite(x, out, count);
    }
}

NOT_INLINE void from_half_in_integers(const uint16_t* x, float* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const int32_t sign = (x[i] & 0x8000) << 16, size = (x[i] & 0x7fff) << 13;
        const int32_t subnormal = bits_of(float_of(size + (113 << 23)) - float_of(113 << 23));
        int32_t bits = size + (size < (31 << 23) ? 112 << 23 : 224 << 23);
        bits = size < (1 << 23) ? subnormal : bits;
        out[i] = float_of(sign | bits);
    }
}

template <bool by_instruction>
INLINE void from_half(const uint16_t* x, float* out, npy_intp n, bool*) {
    for (npy_intp count; n > 0; x += count, out += count, n -= count) {
        count = std::min(n, BLOCK);
        const bool converts = by_instruction && largest_half(x, count) <= HALF_INFINITE;
        const npy_intp done = converts ? convert_from_half(x, out, count) : 0;
        if (done < count) from_half_in_integers(x + done, out + done, count - done);
    }
}

// Writes the NaNs of ml_dtypes.
NOT_INLINE void mend_nan(const float* x, uint16_t* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const int32_t bits = bits_of(x[i]), nan = (bits >> 16 & 0x8000) | 0x7fc0;
        out[i] = static_cast<uint16_t>((bits & 0x7fffffff) > INFINITE ? nan : out[i]);
    }
}

// Rounds to nearest, ties to even; every NaN becomes the quiet one of its sign.
INLINE void to_bfloat16(const float* x, uint16_t* out, npy_intp n, bool*) {
    for (npy_intp count; n > 0; x += count, out += count, n -= count) {
        count = std::min(n, BLOCK);
        int32_t most = 0;
        IN_ANY_ORDER
        for (npy_intp i = 0; i < count; i++) {
            const int32_t bits = bits_of(x[i]), size = bits & 0x7fffffff;
            most = size > most ? size : most;
            out[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        }
        if (most > INFINITE) mend_nan(x, out, count);
    }
}

INLINE void from_bfloat16(const uint16_t* x, float* out, npy_intp n, bool*) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = float_of(static_cast<uint32_t>(x[i]) << 16);
}

// Converts elements at any strides, in contiguous blocks.
template <class From, class To, Convert<From, To> convert>
void anywhere(bool overlap, const char* x, npy_intp x_step, char* out, npy_intp out_step, npy_intp n, bool* overflow) {
    if (!overlap && x_step == sizeof(From) && out_step == sizeof(To))
        return convert(reinterpret_cast<const From*>(x), reinterpret_cast<To*>(out), n, overflow);
    From from[BLOCK];
    To to[BLOCK];
    for (npy_intp start = 0; start < n; start += BLOCK) {
        const npy_intp count = n - start < BLOCK ? n - start : BLOCK;
        gather(x + start * x_step, x_step, count, from);
        convert(from, to, count, overflow);
        scatter(to, count, out + start * out_step, out_step);
    }
}

// A loop for NumPy, which reports an overflow if the processor's flag is set.
template <class From, class To, Convert<From, To> convert>
void loop(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    std::atomic<bool> overflow{false};
    const bool overlap = overlaps(2, args, dimensions[0], steps);
    const auto work = [&](npy_intp begin, npy_intp end) {
        bool found = false;
        anywhere<From, To, convert>(overlap, args[0] + begin * steps[0], steps[0], args[1] + begin * steps[1], steps[1],
                                    end - begin, &found);
        if (found) overflow = true;
    };
    if (overlap) work(0, dimensions[0]);
    else parallel_for(dimensions[0], ENOUGH, work);
    std::feclearexcept(FE_ALL_EXCEPT);
    if (overflow) std::feraiseexcept(FE_OVERFLOW);
}

#define CAST(name, From, To, types, ...) \
    {name, {loop<From, To, cpu_dispatch<__VA_ARGS__>>, nullptr}, types, 1, nullptr}

const Kernel kernels[] = {
    CAST("float_to_half", float, uint16_t, "fe", to_half<true>, to_half<false>),
    CAST("half_to_float", uint16_t, float, "ef", from_half<true>, from_half<false>),
    CAST("float_to_bfloat16", float, uint16_t, "fH", to_bfloat16),
    CAST("bfloat16_to_float", uint16_t, float, "Hf", from_bfloat16),
};

}  // namespace

const Part part_casts{kernels};

}  // namespace retrograd
