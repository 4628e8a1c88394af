// Products of large matrices on the threads of this package, which never wait for a thread that is not running, unlike
// those of BLAS.  Besides, NumPy's OpenBLAS uses vectors of 64 bytes on only some of the processors that have them.
//
// Blocks of the left operand and panels of the right one, which is copied so that panels are contiguous, fit the
// caches: K. Goto and R. A. van de Geijn, Anatomy of high-performance matrix multiplication, ACM Trans. Math. Softw. 34
// (2008) 12.  The order of summation does not depend on the blocks and threads.

#include <algorithm>

#include "matrices.hpp"
#include "registration.hpp"

namespace retrograd {

constexpr npy_intp DEPTH = 256, TALL = 64, BROAD = 512;  // sizes of blocks, multiples of every processor's tiles
constexpr npy_intp NARROW = 64;                          // columns of blocks, if broad ones are too few for the threads
constexpr npy_intp ALONE = 1 << 19;                      // multiplications up to which another thread does not pay

// out = a b, in blocks of `broad` columns; the right operand is in panels, those of its first DEPTH rows first.
struct Product {
    Matrix a, b, out;
    npy_intp m, k, n, broad;
};
template <class T>
struct Pieces {
    const Product* of;
    T* panels;
    npy_intp begin, end;
};

inline npy_intp parts(npy_intp n, npy_intp size) { return (n + size - 1) / size; }

// Copies panels `first` to `last` of rows of the right operand, which are contiguous, row by row: the processor prefetches
// along rows.  `to` is the first panel of these rows.
template <class T, int bytes>
INLINE void copy_panels_by_rows(Matrix from, npy_intp rows, npy_intp first, npy_intp last, T* to) {
    constexpr npy_intp lanes = Tile<T, bytes>::LANES, panel = Tile<T, bytes>::PANEL;
    using V = Vector<T, bytes>;
    for (npy_intp i = 0; i < rows; i++) {
        const T* row = &from.number<T>(i, 0);
        for (npy_intp j = first; j < last; j++) {
            T* out = to + (j * rows + i) * panel;
            const typename V::type x = V::at(row + j * panel), y = V::at(row + j * panel + lanes);
            V::at(out) = x, V::at(out + lanes) = y;
        }
    }
}

// Copies panels, numbered through all blocks of rows.
template <class T, int bytes>
INLINE void copy_panels(const Pieces<T>& pieces) {
    constexpr npy_intp panel = Tile<T, bytes>::PANEL;
    const Product& of = *pieces.of;
    const npy_intp count = parts(of.n, panel), whole = of.n / panel;
    for (npy_intp begin = pieces.begin, end; begin < pieces.end; begin = end) {
        npy_intp row = begin / count * DEPTH, rows = std::min(DEPTH, of.k - row);
        npy_intp first = begin % count, last = std::min(count, first + pieces.end - begin);
        end = begin + last - first;
        T* to = pieces.panels + row * count * panel;
        Matrix from{of.b.at + row * of.b.row, of.b.row, of.b.column};
        if (of.b.column == sizeof(T)) {
            copy_panels_by_rows<T, bytes>(from, rows, first, std::min(last, whole), to);
            first = std::max(first, whole);
        }
        for (npy_intp j = first; j < last; j++) {
            npy_intp columns = std::min(panel, of.n - j * panel);
            Matrix some{from.at + j * panel * from.column, from.row, from.column};
            if (of.b.column == sizeof(T)) copy_rows<T, bytes>(some, rows, columns, T(1), to + j * panel * rows, panel, rows);
            else copy_transposed<T, bytes>({some.at, some.column, some.row}, columns, rows, to + j * panel * rows);
        }
    }
}

// Returns rows of the left operand in the layout of tiles: in place, or a copy.
template <class T, int bytes>
INLINE Left<T> left(const Product& of, npy_intp row, npy_intp rows, npy_intp column, npy_intp columns, T* room) {
    Matrix from{of.a.at + row * of.a.row + column * of.a.column, of.a.row, of.a.column};
    npy_intp filled = round_up(rows, Tile<T, bytes>::ROWS);
    if (of.a.column != sizeof(T) && Tile<T, bytes>::TALL == Tile<T, bytes>::ROWS) {
        copy_tiles<T, bytes>(from, rows, columns, room);
        return {room, 1, Tile<T, bytes>::ROWS, columns};
    }
    if (of.a.column != sizeof(T)) {
        copy_rows<T, bytes>(Matrix{from.at, from.column, from.row}, columns, rows, T(1), room, TALL, columns);
        return {room, 1, TALL};
    }
    if (filled == rows && from.row % npy_intp(sizeof(T)) == 0)
        return {&from.number<T>(0, 0), from.row / npy_intp(sizeof(T)), 1};
    copy_rows<T, bytes>(from, rows, columns, T(1), room, DEPTH, filled);
    return {room, DEPTH, 1};
}

// Computes blocks of TALL rows and BROAD columns of the result.
template <class T, int bytes>
INLINE void multiply_blocks(const Pieces<T>& pieces) {
    using Of = Tile<T, bytes>;
    const Product& of = *pieces.of;
    const npy_intp across = parts(of.n, of.broad), width = round_up(of.n, Of::PANEL);
    const AlignedArray<T> room = aligned_array<T>(TALL * (DEPTH + BROAD));
    for (npy_intp item = pieces.begin; item < pieces.end; item++) {
        npy_intp row = item / across * TALL, rows = std::min(TALL, of.m - row);
        npy_intp column = item % across * of.broad, columns = std::min(of.broad, of.n - column);
        npy_intp filled = round_up(rows, Of::ROWS), broad = round_up(columns, Of::LANES);
        Matrix to{of.out.at + row * of.out.row + column * of.out.column, of.out.row, of.out.column};
        bool direct = filled == rows && broad == columns && to.column == sizeof(T) && to.row % npy_intp(sizeof(T)) == 0;
        T* out = direct ? &to.number<T>(0, 0) : room.get() + TALL * DEPTH;
        npy_intp step = direct ? to.row / npy_intp(sizeof(T)) : BROAD;
        for (npy_intp k = 0; k < of.k; k += DEPTH) {
            npy_intp depth = std::min(DEPTH, of.k - k);
            Left<T> a = left<T, bytes>(of, row, rows, k, depth, room.get());
            Right<T> b{pieces.panels + k * width + column * depth, Of::PANEL, depth * Of::PANEL};
            product<T, bytes>({filled, broad, depth, k > 0}, a, b, out, step);
        }
        if (direct) continue;
        if (to.row == sizeof(T) && to.column % npy_intp(sizeof(T)) == 0) put_columns<T, bytes>(out, BROAD, to, rows, columns);
        else put_rows<T, bytes>(out, BROAD, T(1), to, rows, columns);
    }
}

FOR_VECTORS(copy_panels, float, Pieces<float>)
FOR_VECTORS(copy_panels, double, Pieces<double>)
FOR_VECTORS(multiply_blocks, float, Pieces<float>)
FOR_VECTORS(multiply_blocks, double, Pieces<double>)

namespace {

template <class T>
void multiply_one(Product of) {
    if (of.k == 0) {
        for (npy_intp i = 0; i < of.m; i++)
            for (npy_intp j = 0; j < of.n; j++) of.out.number<T>(i, j) = 0;
        return;
    }
    const npy_intp panel = 2 * vector_bytes / sizeof(T), width = round_up(of.n, panel);
    const AlignedArray<T> panels = aligned_array<T>(of.k * width);
    npy_intp copied = parts(of.k, DEPTH) * parts(of.n, panel), blocks = parts(of.m, TALL) * parts(of.n, of.broad);
    parallel_for(copied, 1 + ENOUGH / (std::min(of.k, DEPTH) * panel), [&](npy_intp begin, npy_intp end) {
        copy_panels(Pieces<T>{&of, panels.get(), begin, end});
    });
    npy_intp each = std::min(of.m, TALL) * std::min(of.n, of.broad) * of.k;
    parallel_for(blocks, 1 + ALONE / each, [&](npy_intp begin, npy_intp end) {
        multiply_blocks(Pieces<T>{&of, panels.get(), begin, end});
    });
}

// Returns whether a product takes less time as the transpose of one with exchanged operands, which has the same bits: the
// smaller operand is copied to panels then, the larger one is read in place, and the result is written by columns.
template <class T>
bool is_faster_transposed(const Product& of) {
    const npy_intp panel = 2 * vector_bytes / sizeof(T);
    return of.b.row == sizeof(T) && of.m >= panel && of.k * (of.n - of.m) >= of.m * of.n;
}

inline Matrix transposed(Matrix x) { return {x.at, x.column, x.row}; }

template <class T>
void multiply(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    const npy_intp *of = steps + 3, m = dimensions[1], k = dimensions[2], n = dimensions[3];
    if (m == 0 || n == 0) return;
    for (npy_intp i = 0; i < dimensions[0]; i++) {
        Product one{{args[0] + i * steps[0], of[0], of[1]},
                    {args[1] + i * steps[1], of[2], of[3]},
                    {args[2] + i * steps[2], of[4], of[5]},
                    m, k, n, BROAD};
        if (is_faster_transposed<T>(one)) one = {transposed(one.b), transposed(one.a), transposed(one.out), n, k, m, BROAD};
        while (one.broad > NARROW && parts(one.m, TALL) * parts(one.n, one.broad) < 2 * retrograd_get_num_threads()) one.broad /= 2;
        multiply_one<T>(one);
    }
    std::feclearexcept(FE_ALL_EXCEPT);
}

const Kernel kernels[] = {
    {"multiply_matrices", {multiply<float>, multiply<double>}, "TTT", 2, "(m,k),(k,n)->(m,n)"},
};

}  // namespace

const Part part_products{kernels};

}  // namespace retrograd
