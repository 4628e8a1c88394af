#include "tiles.hpp"

#include "vectors.hpp"

namespace retrograd {
namespace {

struct Wide {
    static constexpr int bytes = 64, tall = 8, high = 12;
};
struct Middle {
    static constexpr int bytes = 32, tall = 4, high = 6;
};
struct Narrow {
    static constexpr int bytes = 16, tall = 4, high = 6;
};

template <class W, class T, int tall, int wide>
INLINE void from_runs(const T* a, const T* b, const npy_intp* begins, npy_intp n, T* out, npy_intp pitch) {
    using V = Vector<T, W::bytes>;
    constexpr int lanes = W::bytes / sizeof(T);
    typename V::type total[tall][wide] = {};
    for (npy_intp k = 0; k < n; k++, a += tall) {
        const T* from = b + begins[k];
        typename V::type read[wide];
        UNROLL
        for (int j = 0; j < wide; j++) read[j] = V::at(from + j * lanes);
        UNROLL
        for (int i = 0; i < tall; i++) {
            UNROLL
            for (int j = 0; j < wide; j++) total[i][j] += a[i] * read[j];
        }
    }
    UNROLL
    for (int i = 0; i < tall; i++) {
        UNROLL
        for (int j = 0; j < wide; j++) V::at(out + i * pitch + j * lanes) = total[i][j];
    }
}

template <class W, class T, int wide>
INLINE void from_rows(const T* const* a, const npy_intp* begins, npy_intp rows, npy_intp cols, const T* b,
                      npy_intp columns, T* out) {
    using V = Vector<T, W::bytes>;
    constexpr int lanes = W::bytes / sizeof(T), high = W::high;
    typename V::type total[high][wide] = {};
    for (npy_intp r = 0; r < rows; r++) {
        const T* from[high];
        UNROLL
        for (int i = 0; i < high; i++) from[i] = a[i] + begins[r];
        for (npy_intp k = 0; k < cols; k++, b += columns) {
            typename V::type read[wide];
            UNROLL
            for (int j = 0; j < wide; j++) read[j] = V::at(b + j * lanes);
            UNROLL
            for (int i = 0; i < high; i++) {
                UNROLL
                for (int j = 0; j < wide; j++) total[i][j] += from[i][k] * read[j];
            }
        }
    }
    UNROLL
    for (int i = 0; i < high; i++) {
        UNROLL
        for (int j = 0; j < wide; j++) V::at(out + i * columns + j * lanes) += total[i][j];
    }
}

// One function per kind and width: compilers keep the sums in registers only if the function has nothing else.
#define TILES(W, attributes)                                                                                       \
    template <class T, int tall, int wide>                                                                         \
    attributes void runs_##W(const T* a, const T* b, const npy_intp* begins, npy_intp n, T* out, npy_intp pitch) { \
        from_runs<W, T, tall, wide>(a, b, begins, n, out, pitch);                                                  \
    }                                                                                                              \
    template <class T, int wide>                                                                                   \
    attributes void rows_##W(const T* const* a, const npy_intp* begins, npy_intp rows, npy_intp cols, const T* b,  \
                             npy_intp columns, T* out) {                                                           \
        from_rows<W, T, wide>(a, begins, rows, cols, b, columns, out);                                             \
    }                                                                                                              \
    template <class T>                                                                                             \
    attributes void transpose_##W(const T* from, npy_intp pitch, T* to, npy_intp to_pitch) {                       \
        transpose<T, W::bytes>(from, pitch, to, to_pitch);                                                         \
    }                                                                                                              \
    template <class T>                                                                                             \
    const Tiles<T> of_##W = {W::bytes / sizeof(T),                                                                 \
                             W::tall,                                                                              \
                             W::high,                                                                              \
                             {{runs_##W<T, 1, 1>, runs_##W<T, 1, 2>, runs_##W<T, 1, 3>},                           \
                              {runs_##W<T, 4, 1>, runs_##W<T, 4, 2>, runs_##W<T, 4, 3>},                           \
                              {runs_##W<T, W::tall, 1>, runs_##W<T, W::tall, 2>, runs_##W<T, W::tall, 3>}},        \
                             {rows_##W<T, 1>, rows_##W<T, 2>},                                                     \
                             transpose_##W<T>};

TILES(Narrow, )
TILES(Middle, FOR_WIDE)
TILES(Wide, FOR_WIDEST)

}  // namespace

template <class T>
const Tiles<T>& tiles() {
    const int bytes = vector_bytes;
    if constexpr (MOST_VECTOR_BYTES >= 64)
        if (bytes == 64) return of_Wide<T>;
    if constexpr (MOST_VECTOR_BYTES >= 32)
        if (bytes == 32) return of_Middle<T>;
    return of_Narrow<T>;
}

template const Tiles<float>& tiles();
template const Tiles<double>& tiles();

}  // namespace retrograd
