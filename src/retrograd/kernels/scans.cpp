// Cumulative sums, products and extremes of the rows of matrices, and sums of their columns, each in the order of its
// elements, as in NumPy.

#include <type_traits>

#include "rows.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// Calls `run` for several rows at the same time: a sum waits for the one before it, so that one row alone takes longer.
template <class F>
INLINE void in_groups(const npy_intp* dimensions, F run) {
    if (dimensions[1] == 0) return;
    npy_intp i = 0;
    for (; i + 4 <= dimensions[0]; i += 4) run(i, std::integral_constant<int, 4>{});
    for (; i < dimensions[0]; i++) run(i, std::integral_constant<int, 1>{});
}

template <class T, int count, class F>
INLINE void scan(char** args, const npy_intp* steps, npy_intp i, npy_intp n, F join) {
    const char* x = ROW_PTR(0);
    char* out = ROW_PTR(1);
    T joined[count];
    for (int r = 0; r < count; r++) *reinterpret_cast<T*>(out + r * steps[1]) = joined[r] = number<T>(x + r * steps[0]);
    for (npy_intp k = 1; k < n; k++)
        for (int r = 0; r < count; r++) {
            joined[r] = join(joined[r], number<T>(x + r * steps[0] + k * steps[2]));
            *reinterpret_cast<T*>(out + r * steps[1] + k * steps[3]) = joined[r];
        }
}

LOOP(cumsum_rows) {
    in_groups(dimensions, [=](npy_intp i, auto count) {
        scan<T, count>(args, steps, i, dimensions[1], [](T a, T b) { return a + b; });
    });
}
LOOP(cumprod_rows) {
    in_groups(dimensions, [=](npy_intp i, auto count) {
        scan<T, count>(args, steps, i, dimensions[1], [](T a, T b) { return a * b; });
    });
}

// The largest numbers so far, if `sign` is 1, or the smallest, if it is -1, and the indices of the last of equal ones.
template <class T, int count>
INLINE void scan_extremes(char** args, const npy_intp* steps, npy_intp i, npy_intp n, int sign) {
    const char* x = ROW_PTR(0);
    char *values = ROW_PTR(1), *indices = ROW_PTR(2);
    T best[count];
    npy_int64 at[count];
    for (int r = 0; r < count; r++) best[r] = number<T>(x + r * steps[0]), at[r] = 0;
    for (npy_intp k = 0; k < n; k++)
        for (int r = 0; r < count; r++) {
            const T found = number<T>(x + r * steps[0] + k * steps[3]);
            const bool is_next = (sign > 0 ? found >= best[r] : found <= best[r]) | (found != found);
            best[r] = is_next ? found : best[r], at[r] = is_next ? k : at[r];
            *reinterpret_cast<T*>(values + r * steps[1] + k * steps[4]) = best[r];
            *reinterpret_cast<npy_int64*>(indices + r * steps[2] + k * steps[5]) = at[r];
        }
}

LOOP(cummax_rows) {
    in_groups(dimensions, [=](npy_intp i, auto count) { scan_extremes<T, count>(args, steps, i, dimensions[1], 1); });
}
LOOP(cummin_rows) {
    in_groups(dimensions, [=](npy_intp i, auto count) { scan_extremes<T, count>(args, steps, i, dimensions[1], -1); });
}

// Products of rows, in parallel lanes.
template <class T>
INLINE T product(const T* x, npy_intp n) {
    T lanes[LANES<T>];
    for (npy_intp k = 0; k < LANES<T>; k++) lanes[k] = 1;
    npy_intp i = 0;
    for (; i + LANES<T> <= n; i += LANES<T>)
        for (npy_intp k = 0; k < LANES<T>; k++) lanes[k] *= x[i + k];
    for (npy_intp k = 0; k < n - i; k++) lanes[k] *= x[i + k];
    for (npy_intp half = LANES<T> / 2; half > 0; half /= 2)
        for (npy_intp k = 0; k < half; k++) lanes[k] *= lanes[k + half];
    return lanes[0];
}

LOOP(product_rows) {
    Reader<T> read(steps[2], dimensions[1]);
    for (npy_intp i = 0; i < dimensions[0]; i++) *reinterpret_cast<T*>(ROW_PTR(1)) = product(read.at(ROW_PTR(0)), dimensions[1]);
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
    ROW(cumprod_rows, 2, "TT", 1, "(n)->(n)"),
    ROW(cummax_rows, 3, "TTl", 1, "(n)->(n),(n)"),
    ROW(cummin_rows, 3, "TTl", 1, "(n)->(n),(n)"),
    ROW(product_rows, 2, "TT", 1, "(n)->()"),
    {"cumsum_columns", {cumsum_columns<float>, cumsum_columns<double>}, "TT", 1, "(m,n)->(m,n)"},
};

}  // namespace

const Part part_scans{kernels};

}  // namespace retrograd
