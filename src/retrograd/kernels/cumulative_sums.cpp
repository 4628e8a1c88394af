// Cumulative sums of the rows, or of the columns, of matrices, each in the order of its elements, as in NumPy.

#include "rows.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// Sums along several rows at the same time: a sum waits for the one before it, so that one row alone takes longer.
template <class T, int count>
INLINE void sum_along_rows(char** args, const npy_intp* steps, npy_intp i, npy_intp n) {
    const char* x = ROW_PTR(0);
    char* out = ROW_PTR(1);
    T sums[count];
    for (int r = 0; r < count; r++) *reinterpret_cast<T*>(out + r * steps[1]) = sums[r] = number<T>(x + r * steps[0]);
    for (npy_intp k = 1; k < n; k++)
        for (int r = 0; r < count; r++)
            *reinterpret_cast<T*>(out + r * steps[1] + k * steps[3]) = sums[r] += number<T>(x + r * steps[0] + k * steps[2]);
}

LOOP(cumsum_rows) {
    const npy_intp n = dimensions[1];
    if (n == 0) return;
    npy_intp i = 0;
    for (; i + 4 <= dimensions[0]; i += 4) sum_along_rows<T, 4>(args, steps, i, n);
    for (; i < dimensions[0]; i++) sum_along_rows<T, 1>(args, steps, i, n);
}

// A matrix in memory; strides in bytes, of rows and within one.
struct Matrix {
    char* data;
    npy_intp row, step;
};

template <class T>
INLINE void add_row(const T* x, const T* before, T* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp c = 0; c < n; c++) out[c] = before[c] + x[c];
}

// Sums along n columns of m rows.
template <class T>
void sum_along_columns(Matrix x, Matrix out, npy_intp m, npy_intp n) {
    Reader<T> read(x.step, n), read_sums(out.step, n);
    Writer<T> write(out.step, n);
    for (npy_intp i = 0; i < m; i++) {
        const T* row = read.at(x.data + i * x.row);
        T* to = write.at(out.data + i * out.row);
        if (i == 0) std::copy(row, row + n, to);
        else cpu_dispatch<add_row<T>>(row, read_sums.at(out.data + (i - 1) * out.row), to, n);
        write.finish();
    }
}

// A loop for a generalised ufunc over stacks of matrices.  Threads share the columns of all of them.
template <class T>
void cumsum_columns(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    const npy_intp m = dimensions[1], n = dimensions[2];
    if (m == 0) return;
    parallel_for(dimensions[0] * n, std::max<npy_intp>(16, ENOUGH / m), [=](npy_intp begin, npy_intp end) {
        for (npy_intp at = begin, stop; at < end; at = stop) {
            const npy_intp stack = at / n, first = at % n;
            stop = std::min(end, (stack + 1) * n);
            const Matrix x{args[0] + stack * steps[0] + first * steps[3], steps[2], steps[3]};
            const Matrix out{args[1] + stack * steps[1] + first * steps[5], steps[4], steps[5]};
            sum_along_columns<T>(x, out, m, stop - at);
        }
    });
    std::feclearexcept(FE_ALL_EXCEPT);
}

const Kernel kernels[] = {
    ROW(cumsum_rows, 2, "TT", 1, "(n)->(n)"),
    {"cumsum_columns", {cumsum_columns<float>, cumsum_columns<double>}, "TT", 1, "(m,n)->(m,n)"},
};

}  // namespace

const Part part_cumulative_sums{kernels};

}  // namespace retrograd
