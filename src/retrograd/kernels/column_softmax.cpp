// Softmax of the columns of matrices, its logarithm, and their derivatives, in two passes over blocks of columns.  The
// first pass finds maxima and sums at the same time: rows at a stride of a power of two would not stay in the caches for
// a third one.

#include <algorithm>
#include <limits>

#include "rows.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

constexpr npy_intp WIDEST = 512, LEAST = 128;  // columns of a block, and of a thread's share
constexpr npy_intp TILE = 16;                  // rows that stay in the first cache, and are summed in the kernel's type

// A block of columns in memory; strides in bytes, of rows and within one.
struct Block {
    char* data;
    npy_intp row, step;
};

// The operands of a kernel: m rows and n columns of x, perhaps of y, and of the result.
struct Columns {
    Block x, y, out;
    npy_intp m, n;
};

// Reads and writes the rows of a block.
template <class T>
class Rows {
public:
    INLINE Rows(const Columns& of) : of(of), read_x(of.x.step, of.n), read_y(of.y.step, of.n), write(of.out.step, of.n) {}
    INLINE const T* x(npy_intp i) { return read_x.at(of.x.data + i * of.x.row); }
    INLINE const T* y(npy_intp i) { return read_y.at(of.y.data + i * of.y.row); }
    INLINE T* out(npy_intp i) { return write.at(of.out.data + i * of.out.row); }
    INLINE void finish() { write.finish(); }

private:
    const Columns& of;
    Reader<T> read_x, read_y;
    Writer<T> write;
};

// Adds f(i, c) over the rows i of a tile to the totals of the columns c; f(i, sums) adds to all of them.
template <class T, class F>
INLINE void add_tile(npy_intp begin, npy_intp end, npy_intp n, double* totals, F f) {
    T sums[WIDEST];
    std::fill(sums, sums + n, T(0));
    for (npy_intp i = begin; i < end; i++) f(i, sums);
    for (npy_intp c = 0; c < n; c++) totals[c] += sums[c];
}

// Raises the maxima of columns to those of a tile, ignoring NaN, and scales the sums of exponentials relative to them.
template <class T>
INLINE void raise(Rows<T>& rows, npy_intp begin, npy_intp end, npy_intp n, T* tops, double* totals) {
    T before[WIDEST];
    std::copy(tops, tops + n, before);
    for (npy_intp i = begin; i < end; i++) {
        const T* x = rows.x(i);
        IN_ANY_ORDER
        for (npy_intp c = 0; c < n; c++) tops[c] = x[c] > tops[c] ? x[c] : tops[c];
    }
    for (npy_intp c = 0; c < n; c++)
        if (tops[c] != before[c]) totals[c] *= std::exp(double(before[c]) - double(tops[c]));
}

// Writes the maximum of each column, and the sum of exp(x - maximum).
template <class T>
INLINE void sum_exponentials(Rows<T>& rows, npy_intp m, npy_intp n, T* tops, double* totals) {
    T shifts[WIDEST];
    std::fill(tops, tops + n, -std::numeric_limits<T>::infinity());
    std::fill(totals, totals + n, 0.0);
    for (npy_intp start = 0; start < m; start += TILE) {
        const npy_intp end = std::min(m, start + TILE);
        raise(rows, start, end, n, tops, totals);
        for (npy_intp c = 0; c < n; c++) shifts[c] = tops[c] == -std::numeric_limits<T>::infinity() ? T(0) : tops[c];
        add_tile<T>(start, end, n, totals, [&](npy_intp i, T* sums) {
            const T* x = rows.x(i);
            IN_ANY_ORDER
            for (npy_intp c = 0; c < n; c++) sums[c] += exp_of_negative(x[c] - shifts[c]);
        });
    }
}

#define COLUMNS(name) template <class T> INLINE void name(const Columns& of)

COLUMNS(softmax) {
    Rows<T> rows(of);
    T tops[WIDEST], scales[WIDEST];
    double totals[WIDEST];
    sum_exponentials(rows, of.m, of.n, tops, totals);
    for (npy_intp c = 0; c < of.n; c++) scales[c] = T(1 / totals[c]);
    for (npy_intp i = 0; i < of.m; i++, rows.finish()) {
        const T* x = rows.x(i);
        T* out = rows.out(i);
        IN_ANY_ORDER
        for (npy_intp c = 0; c < of.n; c++) out[c] = exp_of_negative(x[c] - tops[c]) * scales[c];
    }
}

COLUMNS(log_softmax) {
    Rows<T> rows(of);
    T tops[WIDEST], shifts[WIDEST];
    double totals[WIDEST];
    sum_exponentials(rows, of.m, of.n, tops, totals);
    for (npy_intp c = 0; c < of.n; c++) shifts[c] = T(std::log(totals[c]));
    for (npy_intp i = 0; i < of.m; i++, rows.finish()) {
        const T* x = rows.x(i);
        T* out = rows.out(i);
        IN_ANY_ORDER
        for (npy_intp c = 0; c < of.n; c++) out[c] = (x[c] - tops[c]) - shifts[c];
    }
}

COLUMNS(softmax_grad) {
    Rows<T> rows(of);
    T levels[WIDEST];
    double totals[WIDEST] = {};
    for (npy_intp start = 0; start < of.m; start += TILE)
        add_tile<T>(start, std::min(of.m, start + TILE), of.n, totals, [&](npy_intp i, T* sums) {
            const T *g = rows.x(i), *y = rows.y(i);
            IN_ANY_ORDER
            for (npy_intp c = 0; c < of.n; c++) sums[c] += g[c] * y[c];
        });
    for (npy_intp c = 0; c < of.n; c++) levels[c] = T(totals[c]);
    for (npy_intp i = 0; i < of.m; i++, rows.finish()) {
        const T *g = rows.x(i), *y = rows.y(i);
        T* out = rows.out(i);
        IN_ANY_ORDER
        for (npy_intp c = 0; c < of.n; c++) out[c] = y[c] * (g[c] - levels[c]);
    }
}

COLUMNS(log_softmax_grad) {
    Rows<T> rows(of);
    T sums_of_g[WIDEST];
    double totals[WIDEST] = {};
    for (npy_intp start = 0; start < of.m; start += TILE)
        add_tile<T>(start, std::min(of.m, start + TILE), of.n, totals, [&](npy_intp i, T* sums) {
            const T* g = rows.x(i);
            IN_ANY_ORDER
            for (npy_intp c = 0; c < of.n; c++) sums[c] += g[c];
        });
    for (npy_intp c = 0; c < of.n; c++) sums_of_g[c] = T(totals[c]);
    for (npy_intp i = 0; i < of.m; i++, rows.finish()) {
        const T *g = rows.x(i), *y = rows.y(i);
        T* out = rows.out(i);
        IN_ANY_ORDER
        for (npy_intp c = 0; c < of.n; c++) out[c] = g[c] - exp_of_negative(y[c]) * sums_of_g[c];
    }
}

// A loop for NumPy's generalised ufuncs over stacks of matrices, with one or two operands.  Threads share the columns of
// all of them.
template <class T, int operands, void (*work)(const Columns&)>
void stacks(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    const npy_intp m = dimensions[1], n = dimensions[2], *core = steps + operands + 1;
    if (m == 0) return;
    parallel_for(dimensions[0] * n, std::max(LEAST, ENOUGH / m), [=](npy_intp begin, npy_intp end) {
        for (npy_intp at = begin, stop; at < end; at = stop) {
            const npy_intp stack = at / n, first = at % n;
            stop = std::min({end, (stack + 1) * n, at + WIDEST});
            const auto block = [&](int k) {
                const npy_intp row = core[2 * k], step = core[2 * k + 1];
                return Block{args[k] + stack * steps[k] + first * step, row, step};
            };
            work({block(0), block(operands - 1), block(operands), m, stop - at});
        }
    });
    std::feclearexcept(FE_ALL_EXCEPT);
}

#define UFUNC(name, operands, types, signature)                                                            \
    {                                                                                                      \
        #name "_columns",                                                                                  \
            {stacks<float, operands, cpu_dispatch<name<float>>>, stacks<double, operands, cpu_dispatch<name<double>>>}, \
            types, operands, signature                                                                     \
    }

const Kernel kernels[] = {
    UFUNC(softmax, 1, "TT", "(m,n)->(m,n)"),
    UFUNC(log_softmax, 1, "TT", "(m,n)->(m,n)"),
    UFUNC(softmax_grad, 2, "TTT", "(m,n),(m,n)->(m,n)"),
    UFUNC(log_softmax_grad, 2, "TTT", "(m,n),(m,n)->(m,n)"),
};

}  // namespace

const Part part_column_softmax{kernels};

}  // namespace retrograd
