// Products of small matrices in the nearest caches, for kernels that use a product at once and never store it.
//
// A tile of the result stays in registers during the loop over the inner dimension.  That needs vectors of the
// processor's width, so these are templates of the width in bytes, and `FOR_VECTORS` picks one at run time.
#pragma once

#include <cstddef>
#include <cstring>

#include "vectors.hpp"

namespace retrograd {

// Defines name(arguments), which calls the template of that name and of T for this processor.
#define FOR_VECTORS(name, T, Arguments)                                                            \
    FOR_WIDEST inline void name##_widest(const Arguments& arguments) { name<T, 64>(arguments); }   \
    FOR_WIDE inline void name##_wide(const Arguments& arguments) { name<T, 32>(arguments); }       \
    inline void name(const Arguments& arguments) {                                                 \
        const int bytes = vector_bytes;                                                            \
        if constexpr (MOST_VECTOR_BYTES >= 64)                                                     \
            if (bytes == 64) return name##_widest(arguments);                                      \
        if constexpr (MOST_VECTOR_BYTES >= 32)                                                     \
            if (bytes == 32) return name##_wide(arguments);                                        \
        name<T, 16>(arguments);                                                                    \
    }

// ------------------------------------------------------------------------------------------------------ products

// Matrices are padded to tiles: rows to a multiple of ROWS, columns to one of LANES.  Most tiles have TALL rows, as many
// as the registers hold.
template <class T, int bytes>
struct Tile {
    static constexpr std::ptrdiff_t LANES = bytes / sizeof(T), PANEL = 2 * LANES, ROWS = bytes == 64 ? 8 : 4;
    static constexpr std::ptrdiff_t TALL = bytes == 32 ? 6 : ROWS;
};

inline std::ptrdiff_t round_up(std::ptrdiff_t n, std::ptrdiff_t size) { return (n + size - 1) / size * size; }

// A matrix in memory: strides of rows and columns.  Columns of right operands and results are contiguous; right
// operands are in panels, which have their own stride.  `tile` is the stride of rows from one tile to the next, which
// differs if each tile is a matrix of its own.
template <class T>
struct Left {
    const T* at;
    std::ptrdiff_t row, column, tile;
    Left(const T* at, std::ptrdiff_t row, std::ptrdiff_t column) : Left(at, row, column, row) {}
    Left(const T* at, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t tile)
        : at(at), row(row), column(column), tile(tile) {}
};
template <class T>
struct Right {
    const T* at;
    std::ptrdiff_t row, panel;
};

// Computes a tile of a b, and adds it to the result if `add`: to ask once a tile costs nothing, a second version of all
// tiles would double the time to compile them.
template <class T, int bytes, int rows, int width>
INLINE void tile(bool add, std::ptrdiff_t depth, Left<T> a, Right<T> b, T* out, std::ptrdiff_t step) {
    using Of = Tile<T, bytes>;
    using V = Vector<T, bytes>;
    typename V::type sums[rows][width] = {};
    if (add)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < width; j++) sums[i][j] = V::at(out + i * step + j * Of::LANES);
    for (std::ptrdiff_t k = 0; k < depth; k++) {
        typename V::type row[width];
        for (int j = 0; j < width; j++) row[j] = V::at(b.at + k * b.row + j * Of::LANES);
        const T* column = a.at + k * a.column;
        UNROLL
        for (int i = 0; i < rows; i++) {
            const T x = column[i * a.row];
            UNROLL
            for (int j = 0; j < width; j++) sums[i][j] += x * row[j];
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < width; j++) V::at(out + i * step + j * Of::LANES) = sums[i][j];
}

// The number of rows and columns of a result, the number of products that each element sums, and whether the sums are
// added to the result.
struct Extent {
    std::ptrdiff_t rows, columns, depth;
    bool add;
};

template <class T, int bytes, int width>
INLINE void tiles(Extent of, Left<T> a, Right<T> b, T* out, std::ptrdiff_t step) {
    using Size = Tile<T, bytes>;
    std::ptrdiff_t i = 0;
    if constexpr (Size::TALL != Size::ROWS)  // else all tiles have TALL rows
        for (; (of.rows - i) % Size::TALL != 0; i += Size::ROWS)
            tile<T, bytes, Size::ROWS, width>(of.add, of.depth, {a.at + i * a.tile, a.row, a.column}, b, out + i * step, step);
    for (; i < of.rows; i += Size::TALL)
        tile<T, bytes, Size::TALL, width>(of.add, of.depth, {a.at + i * a.tile, a.row, a.column}, b, out + i * step, step);
}

template <class T, int bytes>
INLINE void product_inline(Extent of, Left<T> a, Right<T> b, T* out, std::ptrdiff_t step) {
    using Size = Tile<T, bytes>;
    std::ptrdiff_t j = 0;
    for (; j + Size::PANEL <= of.columns; j += Size::PANEL, b.at += b.panel) tiles<T, bytes, 2>(of, a, b, out + j, step);
    if (j < of.columns) tiles<T, bytes, 1>(of, a, b, out + j, step);
}

// Computes out = a b, or out += a b if `of.add`.
template <class T, int bytes>
INLINE void product(Extent of, Left<T> a, Right<T> b, T* out, std::ptrdiff_t step) {
    outlined<bytes, product_inline<T, 64>, product_inline<T, 32>, product_inline<T, 16>>(of, a, b, out, step);
}

// ------------------------------------------------------------------------------------------------------ operands

// A matrix in an array; strides in bytes.
struct Matrix {
    char* at;
    std::ptrdiff_t row, column;
    template <class T>
    T& number(std::ptrdiff_t i, std::ptrdiff_t j) const {
        return *reinterpret_cast<T*>(at + i * row + j * column);
    }
};

// Copies rows, times a factor, to rows of `width` elements; pads with zeros, up to `filled` rows.
template <class T>
INLINE void copy_rows_inline(Matrix from, std::ptrdiff_t rows, std::ptrdiff_t columns, T factor, T* out,
                             std::ptrdiff_t width, std::ptrdiff_t filled) {
    for (std::ptrdiff_t i = 0; i < rows; i++) {
        T* row = out + i * width;
        if (from.column == sizeof(T)) {
            const T* x = &from.number<T>(i, 0);
            for (std::ptrdiff_t j = 0; j < columns; j++) row[j] = x[j] * factor;
        } else {
            for (std::ptrdiff_t j = 0; j < columns; j++) row[j] = from.number<T>(i, j) * factor;
        }
        for (std::ptrdiff_t j = columns; j < width; j++) row[j] = 0;
    }
    for (std::ptrdiff_t i = rows * width; i < filled * width; i++) out[i] = 0;
}

template <class T, int bytes>
INLINE void copy_rows(Matrix from, std::ptrdiff_t rows, std::ptrdiff_t columns, T factor, T* out, std::ptrdiff_t width,
                      std::ptrdiff_t filled) {
    outlined<bytes, copy_rows_inline<T>, copy_rows_inline<T>, copy_rows_inline<T>>(from, rows, columns, factor, out,
                                                                                   width, filled);
}

// Copies a matrix to tiles of `ROWS` rows, each of which is a matrix by columns; pads the last one with zeros.
template <class T, int bytes>
INLINE void copy_tiles_inline(Matrix from, std::ptrdiff_t rows, std::ptrdiff_t columns, T* out) {
    constexpr std::ptrdiff_t tall = Tile<T, bytes>::ROWS, each = 8;  // columns at a time, to wait for all at once
    using V = Vector<T, tall * sizeof(T)>;
    const std::ptrdiff_t full = from.row == sizeof(T) ? rows / tall * tall : 0, broad = columns / each * each;
    for (std::ptrdiff_t j = 0; j < broad; j += each)
        for (std::ptrdiff_t i = 0; i < full; i += tall) {
            typename V::type column[each];
            UNROLL
            for (int k = 0; k < each; k++) column[k] = V::at(&from.number<T>(i, j + k));
            UNROLL
            for (int k = 0; k < each; k++) V::at(out + i * columns + (j + k) * tall) = column[k];
        }
    for (std::ptrdiff_t j = 0; j < columns; j++)
        for (std::ptrdiff_t i = j < broad ? full : 0; i < rows || i % tall; i++)
            out[i / tall * tall * columns + j * tall + i % tall] = i < rows ? from.number<T>(i, j) : T(0);
}

template <class T, int bytes>
INLINE void copy_tiles(Matrix from, std::ptrdiff_t rows, std::ptrdiff_t columns, T* out) {
    outlined<bytes, copy_tiles_inline<T, 64>, copy_tiles_inline<T, 32>, copy_tiles_inline<T, 16>>(from, rows, columns, out);
}

// Copies the transposed matrix to panels of `PANEL` rows each, interleaved; pads the last one with zeros.
template <class T, int bytes>
INLINE void copy_transposed_inline(Matrix from, std::ptrdiff_t rows, std::ptrdiff_t columns, T* out) {
    constexpr std::ptrdiff_t lanes = Tile<T, bytes>::LANES, panel = Tile<T, bytes>::PANEL;
    constexpr std::ptrdiff_t size = sizeof(T);  // signed, like strides
    const bool transposes = from.column == size && from.row % size == 0;
    for (std::ptrdiff_t start = 0; start < rows; start += panel, out += columns * panel) {
        std::ptrdiff_t squares = transposes && start + panel <= rows ? columns / lanes * lanes : 0;
        for (std::ptrdiff_t i = 0; i < panel && squares; i += lanes)
            for (std::ptrdiff_t j = 0; j < squares; j += lanes)
                transpose<T, bytes>(&from.number<T>(start + i, j), from.row / size, out + j * panel + i, panel);
        for (std::ptrdiff_t i = 0; i < panel; i++)
            for (std::ptrdiff_t j = squares; j < columns; j++)
                out[j * panel + i] = start + i < rows ? from.number<T>(start + i, j) : T(0);
    }
}

template <class T, int bytes>
INLINE void copy_transposed(Matrix from, std::ptrdiff_t rows, std::ptrdiff_t columns, T* out) {
    outlined<bytes, copy_transposed_inline<T, 64>, copy_transposed_inline<T, 32>, copy_transposed_inline<T, 16>>(
        from, rows, columns, out);
}

// The inverse of `copy_rows`, with a factor.
template <class T>
INLINE void put_rows_inline(const T* from, std::ptrdiff_t width, T factor, Matrix to, std::ptrdiff_t rows,
                            std::ptrdiff_t columns) {
    for (std::ptrdiff_t i = 0; i < rows; i++, from += width) {
        if (to.column == sizeof(T)) {
            T* row = &to.number<T>(i, 0);
            for (std::ptrdiff_t j = 0; j < columns; j++) row[j] = from[j] * factor;
        } else {
            for (std::ptrdiff_t j = 0; j < columns; j++) to.number<T>(i, j) = from[j] * factor;
        }
    }
}

template <class T, int bytes>
INLINE void put_rows(const T* from, std::ptrdiff_t width, T factor, Matrix to, std::ptrdiff_t rows,
                     std::ptrdiff_t columns) {
    outlined<bytes, put_rows_inline<T>, put_rows_inline<T>, put_rows_inline<T>>(from, width, factor, to, rows, columns);
}

// The inverse of `copy_transposed` of one panel of any width: writes the columns, which are contiguous in the result.
template <class T, int bytes>
INLINE void put_columns_inline(const T* from, std::ptrdiff_t width, Matrix to, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    constexpr std::ptrdiff_t lanes = Tile<T, bytes>::LANES, size = sizeof(T);
    const std::ptrdiff_t high = rows / lanes * lanes, broad = columns / lanes * lanes;
    for (std::ptrdiff_t j = 0; j < broad; j += lanes)
        for (std::ptrdiff_t i = 0; i < high; i += lanes)
            transpose<T, bytes>(from + i * width + j, width, &to.number<T>(i, j), to.column / size);
    for (std::ptrdiff_t j = 0; j < columns; j++)
        for (std::ptrdiff_t i = j < broad ? high : 0; i < rows; i++) to.number<T>(i, j) = from[i * width + j];
}

template <class T, int bytes>
INLINE void put_columns(const T* from, std::ptrdiff_t width, Matrix to, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    outlined<bytes, put_columns_inline<T, 64>, put_columns_inline<T, 32>, put_columns_inline<T, 16>>(from, width, to, rows,
                                                                                                     columns);
}

// ------------------------------------------------------------------------------------------------- instantiation

// Declares, or in matrices.cpp defines, those of the outlined functions that several files call.
#define OUTLINED_FUNCTIONS(declare_or_define, T)                                                                     \
    declare_or_define struct Outlined<product_inline<T, 64>, product_inline<T, 32>, product_inline<T, 16>>;          \
    declare_or_define struct Outlined<copy_rows_inline<T>, copy_rows_inline<T>, copy_rows_inline<T>>;                \
    declare_or_define struct Outlined<copy_transposed_inline<T, 64>, copy_transposed_inline<T, 32>,                  \
                                      copy_transposed_inline<T, 16>>;                                                \
    declare_or_define struct Outlined<put_rows_inline<T>, put_rows_inline<T>, put_rows_inline<T>>;

OUTLINED_FUNCTIONS(extern template, float)
OUTLINED_FUNCTIONS(extern template, double)

}  // namespace retrograd
