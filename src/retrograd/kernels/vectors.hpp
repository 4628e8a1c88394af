// SIMD vectors by compiler extensions, where available.
#pragma once

#include <memory>
#include <new>

#include "loops.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 16")
#define NOT_UNROLLED _Pragma("GCC unroll 1")  // a loop over lanes: once it is unrolled, GCC does not make vectors of it
#else
#define UNROLL
#define NOT_UNROLLED
#endif

namespace retrograd {

#if defined(__GNUC__)
template <class T, int bytes>
struct Vector {
    typedef T type __attribute__((vector_size(bytes)));
    typedef T anywhere __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
    static INLINE const anywhere& at(const T* ptr) { return *reinterpret_cast<const anywhere*>(ptr); }
    static INLINE anywhere& at(T* ptr) { return *reinterpret_cast<anywhere*>(ptr); }
};
#else
template <class T, int bytes>
struct Vector {
    struct type {
        T numbers[bytes / sizeof(T)];
        type& operator+=(const type& other) {
            for (size_t i = 0; i < bytes / sizeof(T); i++) numbers[i] += other.numbers[i];
            return *this;
        }
        friend type operator*(T factor, type v) {
            for (T& number : v.numbers) number *= factor;
            return v;
        }
    };
    static const type& at(const T* ptr) { return *reinterpret_cast<const type*>(ptr); }
    static type& at(T* ptr) { return *reinterpret_cast<type*>(ptr); }
};
#endif

// Memory for numbers, aligned to cache lines.  `new` aligns to 16 bytes; then most vectors of 64 bytes are in two lines,
// and matrix products take up to 12 % longer.
constexpr std::align_val_t CACHE_LINE{64};
template <class T>
struct AlignedDelete {
    void operator()(T* at) const { ::operator delete[](at, CACHE_LINE); }
};
template <class T>
using AlignedArray = std::unique_ptr<T[], AlignedDelete<T>>;

template <class T>
AlignedArray<T> aligned_array(std::ptrdiff_t n) {
    return AlignedArray<T>(static_cast<T*>(::operator new[](n * sizeof(T), CACHE_LINE)));
}
template <class T>
AlignedArray<T> aligned_zeros(std::ptrdiff_t n) {
    AlignedArray<T> zeros = aligned_array<T>(n);
    std::fill_n(zeros.get(), n, T(0));
    return zeros;
}

// Transposes a square of as many vectors as a vector has elements, by swapping ever smaller off-diagonal squares.
template <class T, int bytes>
INLINE void transpose(const T* from, std::ptrdiff_t pitch, T* to, std::ptrdiff_t to_pitch) {
    constexpr int lanes = bytes / sizeof(T);
#if defined(__GNUC__) && !defined(__clang__)
    using V = Vector<T, bytes>;
    typedef typename Format<T>::Bits Permutation __attribute__((vector_size(bytes)));
    typename V::type row[lanes];
    UNROLL
    for (int i = 0; i < lanes; i++) row[i] = V::at(from + i * pitch);
    UNROLL
    for (int half = lanes / 2; half > 0; half /= 2) {
        Permutation upper, lower;
        UNROLL
        for (int i = 0; i < lanes; i++) {
            upper[i] = i & half ? lanes + i - half : i;
            lower[i] = i & half ? lanes + i : i + half;
        }
        UNROLL
        for (int i = 0; i < lanes; i++) {
            if (i & half) continue;
            typename V::type a = row[i], b = row[i + half];
            row[i] = __builtin_shuffle(a, b, upper);
            row[i + half] = __builtin_shuffle(a, b, lower);
        }
    }
    UNROLL
    for (int i = 0; i < lanes; i++) V::at(to + i * to_pitch) = row[i];
#else
    for (int i = 0; i < lanes; i++)
        for (int j = 0; j < lanes; j++) to[j * to_pitch + i] = from[i * pitch + j];
#endif
}

}  // namespace retrograd
