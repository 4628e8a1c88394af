// Sums of the columns of matrices.

#include <algorithm>

#include "rows.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// A matrix in memory; strides in bytes, of rows and within one.
template <class T>
struct Columns {
    const char* x;
    npy_intp row, step, n;
};

// Adds four rows at a time, so that the sums are read and written once for all of them.
template <class T>
INLINE void add_group(const Columns<T>& of, npy_intp begin, npy_intp end, Reader<T>& read, T* sums) {
    npy_intp i = begin;
    if (of.step == sizeof(T))
        for (; i + 4 <= end; i += 4) {
            const T *x = read.at(of.x + i * of.row), *y = read.at(of.x + (i + 1) * of.row);
            const T *z = read.at(of.x + (i + 2) * of.row), *w = read.at(of.x + (i + 3) * of.row);
            IN_ANY_ORDER
            for (npy_intp k = 0; k < of.n; k++) sums[k] += (x[k] + y[k]) + (z[k] + w[k]);
        }
    for (; i < end; i++) {
        const T* x = read.at(of.x + i * of.row);
        for (npy_intp k = 0; k < of.n; k++) sums[k] += x[k];
    }
}

template <class T>
INLINE void add_rows(const Columns<T>& of, npy_intp begin, npy_intp end, double* totals) {
    Reader<T> read(of.step, of.n);
    std::unique_ptr<T[]> sums(new T[of.n]);
    for (npy_intp i = begin; i < end; i += GROUP) {
        std::fill(sums.get(), sums.get() + of.n, T(0));
        add_group(of, i, std::min(end, i + GROUP), read, sums.get());
        for (npy_intp k = 0; k < of.n; k++) totals[k] += sums[k];
    }
}

constexpr npy_intp BROAD = 128;  // elements; several shorter contiguous rows are treated as one

template <class T>
void column_sums_of_one(const Columns<T>& of, npy_intp m, char* out, npy_intp step) {
    const bool gaps = (of.step != sizeof(T) && of.n > 1) || of.row != of.n * npy_intp(sizeof(T));
    const npy_intp merged = gaps || of.n == 0 ? 1 : std::max<npy_intp>(1, BROAD / of.n), count = of.n * merged;
    const Columns<T> broad{of.x, of.row * merged, gaps ? of.step : npy_intp(sizeof(T)), count};
    const auto totals = sums_of_blocks(m / merged, count, count, [&](npy_intp begin, npy_intp end, double* to) {
        cpu_dispatch<add_rows<T>>(broad, begin, end, to);
    });
    for (npy_intp k = of.n; k < count; k++) totals[k % of.n] += totals[k];
    cpu_dispatch<add_rows<T>>(of, m / merged * merged, m, totals.get());
    for (npy_intp k = 0; k < of.n; k++) *reinterpret_cast<T*>(out + k * step) = T(totals[k]);
}

template <class T>
void column_sums(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    for (npy_intp i = 0; i < dimensions[0]; i++)
        column_sums_of_one<T>({args[0] + i * steps[0], steps[2], steps[3], dimensions[2]}, dimensions[1],
                              args[1] + i * steps[1], steps[4]);
    std::feclearexcept(FE_ALL_EXCEPT);
}

const Kernel kernels[] = {
    {"column_sums", {column_sums<float>, column_sums<double>}, "TT", 1, "(m,n)->(n)"},
};

}  // namespace

const Part part_column_sums{kernels};

}  // namespace retrograd
