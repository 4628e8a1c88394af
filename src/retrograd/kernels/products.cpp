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
constexpr npy_intp CACHE = 1 << 20;                      // bytes of panels that stay in a core's own cache
constexpr npy_intp ALONE = 1 << 19;                      // multiplications up to which another thread does not pay

// out = a b, in parts of some rows and columns, which threads compute in turn.  Each part copies its columns of the
// right operand to panels itself: nothing is shared, and the copy is in the cache of the core that reads it.
struct Product {
    Matrix a, b, out;
    npy_intp m, k, n, rows, columns;
};
template <class T>
struct Parts {
    const Product* of;
    npy_intp begin, end;
};

inline npy_intp parts(npy_intp n, npy_intp size) { return (n + size - 1) / size; }

// Copies whole panels of the right operand, whose rows are contiguous, row by row: the processor prefetches along rows.
template <class T, int bytes>
INLINE void copy_panels_by_rows(Matrix from, npy_intp rows, npy_intp count, T* to) {
    constexpr npy_intp lanes = Tile<T, bytes>::LANES, panel = Tile<T, bytes>::PANEL;
    using V = Vector<T, bytes>;
    for (npy_intp i = 0; i < rows; i++) {
        const T* row = &from.number<T>(i, 0);
        for (npy_intp j = 0; j < count; j++) {
            T* out = to + (j * rows + i) * panel;
            const typename V::type x = V::at(row + j * panel), y = V::at(row + j * panel + lanes);
            V::at(out) = x, V::at(out + lanes) = y;
        }
    }
}

// Copies rows and columns of the right operand to panels.
template <class T, int bytes>
INLINE void copy_panels(Matrix from, npy_intp rows, npy_intp columns, T* to) {
    constexpr npy_intp panel = Tile<T, bytes>::PANEL;
    if (from.column != sizeof(T)) return copy_transposed<T, bytes>({from.at, from.column, from.row}, columns, rows, to);
    const npy_intp whole = columns / panel, rest = columns % panel;
    copy_panels_by_rows<T, bytes>(from, rows, whole, to);
    if (rest == 0) return;
    const Matrix last{from.at + whole * panel * from.column, from.row, from.column};
    copy_rows<T, bytes>(last, rows, rest, T(1), to + whole * panel * rows, panel, rows);
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

// Computes parts of the result, in blocks of TALL rows.  If the panels of all rows of the right operand do not fit the
// cache, those of DEPTH rows at a time are copied and used for all rows of the part; the result holds the sums so far.
template <class T, int bytes>
INLINE void multiply_parts(const Parts<T>& some) {
    using Of = Tile<T, bytes>;
    const Product& of = *some.of;
    constexpr npy_intp size = sizeof(T);
    const npy_intp down = parts(of.m, of.rows), width = round_up(std::min(of.columns, of.n), Of::PANEL);
    const bool by_rows = of.out.column == size && of.out.row % size == 0;
    const bool whole = by_rows && of.m % Of::ROWS == 0 && of.n % Of::LANES == 0;  // no tile is padded
    const npy_intp deep = whole && of.k * width * size > CACHE ? DEPTH : of.k;
    const AlignedArray<T> panels = aligned_array<T>(deep * width), room = aligned_array<T>(TALL * (DEPTH + BROAD));
    npy_intp copied = -1;  // the first column of the panels, if they have all rows
    for (npy_intp item = some.begin; item < some.end; item++) {
        const npy_intp top = item % down * of.rows, bottom = std::min(of.m, top + of.rows);
        const npy_intp column = item / down * of.columns, columns = std::min(of.columns, of.n - column);
        const npy_intp wide = round_up(columns, Of::PANEL), broad = round_up(columns, Of::LANES);
        for (npy_intp first = 0; first < of.k; first += deep) {
            const npy_intp last = std::min(of.k, first + deep);
            for (npy_intp k = first; k < last && copied != column; k += DEPTH)
                copy_panels<T, bytes>({of.b.at + k * of.b.row + column * of.b.column, of.b.row, of.b.column},
                                      std::min(DEPTH, last - k), columns, panels.get() + (k - first) * wide);
            if (deep == of.k) copied = column;
            for (npy_intp row = top; row < bottom; row += TALL) {
                const npy_intp rows = std::min(TALL, bottom - row), filled = round_up(rows, Of::ROWS);
                const Matrix to{of.out.at + row * of.out.row + column * of.out.column, of.out.row, of.out.column};
                const bool direct = by_rows && filled == rows && broad == columns;
                T* out = direct ? &to.number<T>(0, 0) : room.get() + TALL * DEPTH;
                const npy_intp step = direct ? to.row / size : BROAD;
                for (npy_intp k = first; k < last; k += DEPTH) {
                    const npy_intp depth = std::min(DEPTH, last - k);
                    const Left<T> a = left<T, bytes>(of, row, rows, k, depth, room.get());
                    const Right<T> b{panels.get() + (k - first) * wide, Of::PANEL, depth * Of::PANEL};
                    product<T, bytes>({filled, broad, depth, k > 0}, a, b, out, step);
                }
                if (direct) continue;
                if (to.row == size && to.column % size == 0) put_columns<T, bytes>(out, BROAD, to, rows, columns);
                else put_rows<T, bytes>(out, BROAD, T(1), to, rows, columns);
            }
        }
    }
}

FOR_VECTORS(multiply_parts, float, Parts<float>)
FOR_VECTORS(multiply_parts, double, Parts<double>)

namespace {

// Sets the rows and columns of a product's parts: two for each thread, if they are large enough, such that the fewest
// numbers are copied.  Every part copies its columns of the right operand, and reads its rows of the left one.
template <class T>
void split(Product& of) {
    const npy_intp panel = 2 * vector_bytes / sizeof(T), threads = retrograd_get_num_threads();
    const npy_intp count = threads == 1 ? 1 : std::max<npy_intp>(1, std::min(2 * threads, of.m * of.n * of.k / ALONE));
    const npy_intp cheap = of.a.column == sizeof(T) ? 4 : 1;  // reading rows in place takes a fourth of copying them
    npy_intp best = NPY_MAX_INTP;
    for (npy_intp across = 1; across <= count; across++) {
        const npy_intp down = parts(count, across), copied = down * of.n + across * of.m / cheap;
        if (copied >= best) continue;
        best = copied;
        of.rows = std::min(of.m, round_up(parts(of.m, down), 16));
        of.columns = std::min(BROAD, round_up(parts(of.n, across), panel));
    }
}

template <class T>
void multiply_one(Product of) {
    if (of.k == 0) {
        for (npy_intp i = 0; i < of.m; i++)
            for (npy_intp j = 0; j < of.n; j++) of.out.number<T>(i, j) = 0;
        return;
    }
    split<T>(of);
    parallel_for(parts(of.m, of.rows) * parts(of.n, of.columns), 1, [&](npy_intp begin, npy_intp end) {
        multiply_parts(Parts<T>{&of, begin, end});
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
                    m, k, n, m, n};
        if (is_faster_transposed<T>(one))
            one = {transposed(one.b), transposed(one.a), transposed(one.out), n, k, m, n, m};
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
