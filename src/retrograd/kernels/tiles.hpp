// Sums of products in registers, in the widest vectors of the processor.
#pragma once

#include "loops.hpp"

namespace retrograd {

constexpr npy_intp BEYOND = 64;  // elements after the last that vectors may read and write

template <class T>
struct Tiles {
    npy_intp lanes;        // elements of a vector
    npy_intp tall, high;   // rows of the tallest tile of three vectors, and of those of one or two

    // out[i * pitch + j] = sum over k < n of a[k * rows + i] * (b + begins[k])[j], for the rows of 1, 4 or `tall`
    // (first index) and for j of one, two or three vectors (second index).
    void (*from_runs[3][3])(const T* a, const T* b, const npy_intp* begins, npy_intp n, T* out, npy_intp pitch);

    // out[i * columns + j] += sum over r < rows and k < cols of (a[i] + begins[r])[k] * b[(r * cols + k) * columns + j],
    // for i < high and j of one or two vectors.
    void (*from_rows[2])(const T* const* a, const npy_intp* begins, npy_intp rows, npy_intp cols, const T* b,
                         npy_intp columns, T* out);

    // Transposes a square of `lanes` rows and columns; `pitch` and `to_pitch` are the row strides.
    void (*transpose)(const T* from, npy_intp pitch, T* to, npy_intp to_pitch);
};

template <class T>
const Tiles<T>& tiles();

extern template const Tiles<float>& tiles();
extern template const Tiles<double>& tiles();

// Transposes some rows of a matrix into rows of `columns` elements.  The processor fetches ahead along few rows at a time, so
// without fetching the next squares here, a copy of images with channels last takes 3 times as long.
template <class T>
inline void transposed(const T* from, npy_intp pitch, npy_intp rows, npy_intp pixels, T* out, npy_intp columns) {
    npy_intp lanes = tiles<T>().lanes;
    npy_intp whole = rows / lanes * lanes, p = 0;
    for (; p + lanes <= pixels; p += lanes) {
        for (npy_intp o = 0; o < whole; o += lanes) {
            for (npy_intp k = 0; k < lanes; k++) prefetch(from + (o + k) * pitch + p + 2 * lanes);
            tiles<T>().transpose(from + o * pitch + p, pitch, out + p * columns + o, columns);
        }
        for (npy_intp o = whole; o < rows; o++)
            for (npy_intp k = p; k < p + lanes; k++) out[k * columns + o] = from[o * pitch + k];
    }
    for (npy_intp o = 0; o < rows; o++)
        for (npy_intp k = p; k < pixels; k++) out[k * columns + o] = from[o * pitch + k];
}

}  // namespace retrograd
