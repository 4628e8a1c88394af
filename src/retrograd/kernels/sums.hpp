// Sums and maxima of rows, in an order that depends on their length alone.
#pragma once

#include <memory>

#include "vectors.hpp"

namespace retrograd {

// Sums are accumulated in parallel lanes, as many as a processor can add to at the same time.
constexpr npy_intp PIECE = 1024;
template <class T>
constexpr npy_intp LANES = 128 / sizeof(T);

// Returns the sum of a power of two of lanes, by adding halves until one is left.  The compiler would unroll plain
// loops over halves first, and make hundreds of shuffles of them.
template <npy_intp count, class T>
INLINE T folded(T* lanes) {
    constexpr npy_intp half = count / 2;
    if constexpr (half * sizeof(T) >= 16) {
        using V = Vector<T, half * sizeof(T)>;
        V::at(lanes) += V::at(lanes + half);
        return folded<half>(lanes);
    }
    for (npy_intp k = 0; k < half; k++) lanes[k] += lanes[k + half];
    return half > 1 ? lanes[0] + lanes[1] : lanes[0];
}

// Prefetches the next rows while the current ones are read: the processor's own prefetching ends with a row.
template <class T, int count>
struct Prefetch {
    const char* rows[count];

    INLINE void fetch(npy_intp i, npy_intp numbers) const {
        for (const char* row : rows)
            for (npy_intp k = 0; k < numbers; k += 64 / sizeof(T)) prefetch(row + (i + k) * sizeof(T));
    }
};
template <class T>
struct Prefetch<T, 0> {
    INLINE void fetch(npy_intp, npy_intp) const {}
};

// Computes several sums over i < n in one pass, in pieces that are added in double precision: add(i, to) adds to the
// values to(0), to(1), ...
template <class T, int count>
struct SumsOf {
    using V = Vector<T, 64>;  // sets zeros without memset, whose call takes as long as half of a short row
    double total[count] = {};

    template <class F, int rows = 0>
    INLINE SumsOf(npy_intp n, F add, Prefetch<T, rows> prefetch = {}) {
        for (npy_intp start = 0; start < n; start += PIECE) {
            npy_intp end = n - start < PIECE ? n : start + PIECE, i = start;
            T lanes[count][LANES<T>];
            UNROLL
            for (int which = 0; which < count; which++)
                for (npy_intp k = 0; k < LANES<T>; k += LANES<T> / 2) V::at(&lanes[which][k]) = typename V::type{};
            for (; i + LANES<T> <= end; i += LANES<T>) {
                prefetch.fetch(i, LANES<T>);
                NOT_UNROLLED
                for (npy_intp k = 0; k < LANES<T>; k++) add(i + k, [&](int which) -> T& { return lanes[which][k]; });
            }
            for (npy_intp k = 0; k < end - i; k++) add(i + k, [&](int which) -> T& { return lanes[which][k]; });
            for (int which = 0; which < count; which++) total[which] += folded<LANES<T>>(lanes[which]);
        }
    }
};

// Returns the sum of f(i) over i < n.
template <class T, class F, int rows = 0>
INLINE double summed(npy_intp n, F f, Prefetch<T, rows> prefetch = {}) {
    return SumsOf<T, 1>(n, [&](npy_intp i, auto to) { to(0) += f(i); }, prefetch).total[0];
}

// Returns the maximum of a power of two of lanes.
template <npy_intp count, class T>
INLINE T top_of(T* lanes) {
    if constexpr (count > 1) {
        const T* others = lanes + count / 2;
        for (npy_intp k = 0; k < count / 2; k++) lanes[k] = others[k] > lanes[k] ? others[k] : lanes[k];
        top_of<count / 2>(lanes);
    }
    return lanes[0];
}

// Returns the maximum, ignoring NaN; -inf for an empty row.
template <class T, int rows = 0>
INLINE T largest(const T* x, npy_intp n, Prefetch<T, rows> prefetch = {}) {
    T lanes[LANES<T>];
    for (npy_intp k = 0; k < LANES<T>; k++) lanes[k] = -INFINITY;
    npy_intp i = 0;
    for (; i + LANES<T> <= n; i += LANES<T>) {
        prefetch.fetch(i, LANES<T>);
        for (npy_intp k = 0; k < LANES<T>; k++) lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
    }
    for (npy_intp k = 0; k < n - i; k++) lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
    return top_of<LANES<T>>(lanes);
}

// Write exp(x - top) to out, and return its sum.  Many kernels call them, so rows.cpp alone compiles them.
double exponentials(const float* x, float top, float* out, npy_intp n);
double exponentials(const double* x, double top, double* out, npy_intp n);

// Returns the sum of exp(x - top).
template <class T>
INLINE double sum_of_exponentials(const T* x, T top, npy_intp n) {
    T piece[PIECE];
    double total = 0;
    for (npy_intp start = 0; start < n; start += PIECE)
        total += exponentials(x + start, top, piece, n - start < PIECE ? n - start : PIECE);
    return total;
}

// Sums over the rows of a matrix must not depend on the number of threads: rows are summed in blocks that are the same
// for any number, and within a block in groups, so that single precision does not add many small values to a large one.
constexpr npy_intp BLOCKS = 16, GROUP = 32;

// Sums a matrix (m, n): `add(begin, end, totals)` adds the rows from begin to end to the totals.
template <class F>
std::unique_ptr<double[]> sums_of_blocks(npy_intp m, npy_intp n, npy_intp count, F add) {
    npy_intp blocks = n > 0 ? m / (1 + ENOUGH / 4 / n) : 0;
    blocks = blocks < 1 ? 1 : blocks > BLOCKS ? BLOCKS : blocks;
    const npy_intp size = (m + blocks - 1) / blocks;
    std::unique_ptr<double[]> totals(new double[count * blocks]());
    parallel_for(blocks, m * n < 2 * ENOUGH ? blocks : 1, [&](npy_intp first, npy_intp last) {
        for (npy_intp b = first; b < last; b++)
            if (b * size < m) add(b * size, (b + 1) * size < m ? (b + 1) * size : m, &totals[count * b]);
    });
    for (npy_intp b = 1; b < blocks; b++)
        for (npy_intp i = 0; i < count; i++) totals[i] += totals[count * b + i];
    return totals;
}

}  // namespace retrograd
