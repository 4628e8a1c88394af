// Conversions between float32 and the floating-point formats of 16 bits, by the processor's instructions for float16 or in
// integer arithmetic that every processor vectorizes.  The instructions would set the quiet bit of NaN, which NumPy
// leaves as it is.

#include <atomic>
#include <cstdint>

#include "half_instructions.hpp"
#include "loops.hpp"
#include "registration.hpp"
#include "sums.hpp"

namespace retrograd {
namespace {

constexpr npy_intp BLOCK = 512;
constexpr int32_t INFINITE = 0x7f800000;  // the bits of float32: exponents of 8 bits, significands of 23

// A conversion of at most BLOCK elements; it returns whether a finite number became infinite.
template <class From, class To>
using ConvertBlock = bool (*)(const From* x, To* out, npy_intp n);

// Converts n elements in blocks that begin at lines of the cache, but the first: vectors of 64 bytes that are in two lines
// take 1.4 times as long where memory is the limit.
template <class From, class To, ConvertBlock<From, To> block>
INLINE void in_blocks(const From* x, To* out, npy_intp n, bool* overflow) {
    constexpr uintptr_t LINE = 64;
    npy_intp count = std::min<npy_intp>(n, -reinterpret_cast<uintptr_t>(x) % LINE / sizeof(From));
    for (; n > 0; x += count, out += count, n -= count, count = std::min(n, BLOCK)) *overflow |= block(x, out, count);
}

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
    const int32_t units = bits_of(from_bits<float>(size) + from_bits<float>(large)) - large;
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

template <int bytes>
INLINE bool to_half(const float* x, uint16_t* out, npy_intp n) {
    int16_t most = 0;
    npy_intp done = 0;
    if constexpr (bytes > 0) done = convert_to_half<bytes>(x, out, n, most);
    if (done < n) {
        to_half_in_integers(x + done, out + done, n - done);
        most = std::max(most, largest_half(out + done, n - done));
    }
    return most >= HALF_INFINITE && mend_infinite(x, out, n);
}

NOT_INLINE void from_half_in_integers(const uint16_t* x, float* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const int32_t sign = (x[i] & 0x8000) << 16, size = (x[i] & 0x7fff) << 13;
        const int32_t subnormal = bits_of(from_bits<float>(size + (113 << 23)) - from_bits<float>(113 << 23));
        int32_t bits = size + (size < (31 << 23) ? 112 << 23 : 224 << 23);
        bits = size < (1 << 23) ? subnormal : bits;
        out[i] = from_bits<float>(sign | bits);
    }
}

template <int bytes>
INLINE bool from_half(const uint16_t* x, float* out, npy_intp n) {
    int16_t most = 0;
    npy_intp done = 0;
    if constexpr (bytes > 0) done = convert_from_half<bytes>(x, out, n, most);
    if (most > HALF_INFINITE) done = 0;
    if (done < n) from_half_in_integers(x + done, out + done, n - done);
    return false;
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
INLINE bool to_bfloat16(const float* x, uint16_t* out, npy_intp n) {
    // The instructions of 512 numbers keep few reads waiting for memory: without this, 4 million take 1.2 times as long.
    Prefetch<float, 1>{{reinterpret_cast<const char*>(x)}}.fetch(2 * BLOCK, BLOCK);
    int32_t most = 0;
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const int32_t bits = bits_of(x[i]), size = bits & 0x7fffffff;
        most = size > most ? size : most;
        out[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    if (most > INFINITE) mend_nan(x, out, n);
    return false;
}

INLINE bool from_bfloat16(const uint16_t* x, float* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = from_bits<float>(static_cast<uint32_t>(x[i]) << 16);
    return false;
}

// A conversion of any number of elements.
template <class From, class To>
using Convert = void (*)(const From* x, To* out, npy_intp n, bool* overflow);

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

#define CAST(name, From, To, types, widest, narrow, wide)                                                         \
    {name, {loop<From, To, cpu_dispatch<in_blocks<From, To, widest>, in_blocks<From, To, narrow>, in_blocks<From, To, wide>>>, nullptr}, \
     types, 1, nullptr}

const Kernel kernels[] = {
    CAST("float_to_half", float, uint16_t, "fe", to_half<64>, to_half<0>, to_half<32>),
    CAST("half_to_float", uint16_t, float, "ef", from_half<64>, from_half<0>, from_half<32>),
    CAST("float_to_bfloat16", float, uint16_t, "fH", to_bfloat16, to_bfloat16, to_bfloat16),
    CAST("bfloat16_to_float", uint16_t, float, "Hf", from_bfloat16, from_bfloat16, from_bfloat16),
};

}  // namespace

const Part part_casts{kernels};

}  // namespace retrograd
