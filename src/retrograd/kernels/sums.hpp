// Sums and largest numbers of rows, in an order that depends on their length alone.
#pragma once

#include "loops.hpp"

namespace retrograd {

constexpr npy_intp LANES = 32, PIECE = 1024;

// The sum of f(i) for i < n: lanes side by side, pieces in double precision.
template <class T, class F>
INLINE double summed(npy_intp n, F f) {
    double total = 0;
    for (npy_intp start = 0; start < n; start += PIECE) {
        npy_intp end = n - start < PIECE ? n : start + PIECE, i = start;
        T lanes[LANES] = {};
        for (; i + LANES <= end; i += LANES)
            for (npy_intp k = 0; k < LANES; k++) lanes[k] += f(i + k);
        T rest = 0;
        for (; i < end; i++) rest += f(i);
        for (npy_intp k = 0; k < LANES; k++) rest += lanes[k];
        total += rest;
    }
    return total;
}

// The largest number, as if NaN were none; -inf of an empty row.
template <class T>
INLINE T largest(const T* x, npy_intp n) {
    T lanes[LANES], top = -INFINITY;
    for (npy_intp k = 0; k < LANES; k++) lanes[k] = top;
    npy_intp i = 0;
    for (; i + LANES <= n; i += LANES)
        for (npy_intp k = 0; k < LANES; k++) lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
    for (; i < n; i++) top = x[i] > top ? x[i] : top;
    for (npy_intp k = 0; k < LANES; k++) top = lanes[k] > top ? lanes[k] : top;
    return top;
}

// out = exp(x - top), and the sum of that.
template <class T>
INLINE double exponentials(const T* x, T top, T* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = exp_of_negative(x[i] - top);
    return summed<T>(n, [=](npy_intp i) { return out[i]; });
}

// The sum of exp(x - top).
template <class T>
INLINE double sum_of_exponentials(const T* x, T top, npy_intp n) {
    T piece[PIECE];
    double total = 0;
    for (npy_intp start = 0; start < n; start += PIECE)
        total += exponentials(x + start, top, piece, n - start < PIECE ? n - start : PIECE);
    return total;
}

}  // namespace retrograd
