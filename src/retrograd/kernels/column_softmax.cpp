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
    // Before row i is read for the first time: the processor fetches ahead within a row only.
    INLINE void fetch_after(npy_intp i) {
        fetch(of.x, i + AHEAD);
        if (of.y.data != of.x.data) fetch(of.y, i + AHEAD);
    }

private:
    static constexpr npy_intp AHEAD = 2;  // rows
    INLINE void fetch(const Block& block, npy_intp i) {
        if (block.step == sizeof(T)) Prefetch<T, 1>{{block.data + i * block.row}}.fetch(0, of.n);
    }

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
        rows.fetch_after(i);
        const T* x = rows.x(i);
        IN_ANY_ORDER
        for (npy_intp c = 0; c < n; c++) tops[c] = x[c] > tops[c] ? x[c] : tops[c];
    }
    if (begin == 0) return;  // the sums are 0
    IN_ANY_ORDER
    for (npy_intp c = 0; c < n; c++)
        totals[c] *= exp_of_negative(tops[c] == before[c] ? 0.0 : double(before[c]) - double(tops[c]));
}

// The maximum of each column, and the sum of exp(x - maximum).
template <class T>
struct Exponentials {
    T tops[WIDEST];
    double totals[WIDEST];
};

template <class T>
INLINE void sum_exponentials(const Columns& of, Exponentials<T>& found) {
    Rows<T> rows(of);
    const npy_intp n = of.n;
    T shifts[WIDEST], *tops = found.tops;
    double* totals = found.totals;
    std::fill(tops, tops + n, -std::numeric_limits<T>::infinity());
    std::fill(totals, totals + n, 0.0);
    for (npy_intp start = 0; start < of.m; start += TILE) {
        const npy_intp end = std::min(of.m, start + TILE);
        raise(rows, start, end, n, tops, totals);
        for (npy_intp c = 0; c < n; c++) shifts[c] = tops[c] == -std::numeric_limits<T>::infinity() ? T(0) : tops[c];
        add_tile<T>(start, end, n, totals, [&](npy_intp i, T* sums) {
            const T* x = rows.x(i);
            IN_ANY_ORDER
            for (npy_intp c = 0; c < n; c++) sums[c] += exp_of_negative(x[c] - shifts[c]);
        });
    }
}

template <class T>
INLINE void divide(const Columns& of, const Exponentials<T>& found) {
    Rows<T> rows(of);
    T scales[WIDEST];
    const T* tops = found.tops;
    for (npy_intp c = 0; c < of.n; c++) scales[c] = T(1 / found.totals[c]);
    for (npy_intp i = 0; i < of.m; i++, rows.finish()) {
        const T* x = rows.x(i);
        T* out = rows.out(i);
        IN_ANY_ORDER
        for (npy_intp c = 0; c < of.n; c++) out[c] = exp_of_negative(x[c] - tops[c]) * scales[c];
    }
}

template <class T>
INLINE void subtract_logarithms(const Columns& of, const Exponentials<T>& found) {
    Rows<T> rows(of);
    T shifts[WIDEST];
    const T* tops = found.tops;
    IN_ANY_ORDER
    for (npy_intp c = 0; c < of.n; c++) {
        const double total = found.totals[c];  // 1 for a maximum, and those of the others; else NaN
        shifts[c] = T(total >= 1 ? log_of_normal(total) : std::numeric_limits<double>::quiet_NaN());
    }
    for (npy_intp i = 0; i < of.m; i++, rows.finish()) {
        const T* x = rows.x(i);
        T* out = rows.out(i);
        IN_ANY_ORDER
        for (npy_intp c = 0; c < of.n; c++) out[c] = (x[c] - tops[c]) - shifts[c];
    }
}

// The first pass is compiled once for both functions.
template <class T, void (*second)(const Columns&, const Exponentials<T>&)>
void both_passes(const Columns& of) {
    Exponentials<T> found;
    cpu_dispatch<sum_exponentials<T>>(of, found);
    second(of, found);
}

template <class T>
INLINE void softmax_grad(const Columns& of) {
    Rows<T> rows(of);
    T levels[WIDEST];
    double totals[WIDEST] = {};
    for (npy_intp start = 0; start < of.m; start += TILE)
        add_tile<T>(start, std::min(of.m, start + TILE), of.n, totals, [&](npy_intp i, T* sums) {
            rows.fetch_after(i);
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

template <class T>
INLINE void log_softmax_grad(const Columns& of) {
    Rows<T> rows(of);
    T sums_of_g[WIDEST];
    double totals[WIDEST] = {};
    for (npy_intp start = 0; start < of.m; start += TILE)
        add_tile<T>(start, std::min(of.m, start + TILE), of.n, totals, [&](npy_intp i, T* sums) {
            rows.fetch_after(i);
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

#define WHOLE(name, T) cpu_dispatch<name<T>>
#define AFTER_SUMS(name, T) both_passes<T, cpu_dispatch<name<T>>>
#define STACKS(kind, name, operands) {stacks<float, operands, kind(name, float)>, stacks<double, operands, kind(name, double)>}

const Kernel kernels[] = {
    {"softmax_columns", STACKS(AFTER_SUMS, divide, 1), "TT", 1, "(m,n)->(m,n)"},
    {"log_softmax_columns", STACKS(AFTER_SUMS, subtract_logarithms, 1), "TT", 1, "(m,n)->(m,n)"},
    {"softmax_grad_columns", STACKS(WHOLE, softmax_grad, 2), "TTT", 2, "(m,n),(m,n)->(m,n)"},
    {"log_softmax_grad_columns", STACKS(WHOLE, log_softmax_grad, 2), "TTT", 2, "(m,n),(m,n)->(m,n)"},
};

}  // namespace

const Part part_column_softmax{kernels};

}  // namespace retrograd
