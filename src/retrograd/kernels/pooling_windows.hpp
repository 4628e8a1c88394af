// Windows of images, and the operands of the pooling kernels.
#pragma once

#include <algorithm>
#include <type_traits>

#include "registration.hpp"

namespace retrograd {

constexpr npy_intp LANES = 16;
constexpr bool little_endian = NPY_BYTE_ORDER == NPY_LITTLE_ENDIAN;

npy_intp round_up(npy_intp n) { return (n + LANES - 1) / LANES * LANES; }

// Reads x[0].  A loop over every second element reads it together with the next one, for contiguous loads.
struct One {};
struct OfTwo {};
template <class T, class Step>
INLINE T read(const T* x, Step) {
    return *x;
}
INLINE float read(const float* x, OfTwo) {
    uint64_t both;
    std::memcpy(&both, x, sizeof both);
    uint32_t bits = static_cast<uint32_t>(little_endian ? both : both >> 32);
    float first;
    std::memcpy(&first, &bits, sizeof first);
    return first;
}
INLINE npy_int32 read(const npy_int32* x, OfTwo) {
    uint64_t both;
    std::memcpy(&both, x, sizeof both);
    return static_cast<npy_int32>(little_endian ? both : both >> 32);
}

// The windows along one dimension: the begin of each in the image, and its number of elements there.  Regular windows
// also follow a formula: tap k of window i reads index i * stride + k * dilation - before.
struct Axis {
    npy_intp size, out, stride, dilation, before, taps;
    const npy_int64 *first, *count;
};

struct Windows {
    Axis axis[3];

    // See `Windows` in pooling_windows.py.
    explicit Windows(const npy_int64* t) {
        const npy_int64* lists = t + 18;
        for (int d = 0; d < 3; d++, t += 6) {
            axis[d] = {t[0], t[1], t[2], t[3], t[4], t[5], lists, lists + t[1]};
            lists += 2 * t[1];
        }
    }

    // Returns whether a table has the length that its counts require.
    static bool complete(const Table& t) { return t.size >= 18 && t.size == 18 + 2 * (t.at[1] + t.at[7] + t.at[13]); }

    npy_intp image_size() const { return axis[0].size * axis[1].size * axis[2].size; }
    npy_intp count() const { return axis[0].out * axis[1].out * axis[2].out; }
    npy_intp rows() const { return axis[0].out * axis[1].out; }

    // Returns the size of a row of an image with the padding of regular windows, rounded up to vectors.
    npy_intp wide() const {
        const Axis& c = axis[2];
        return c.before + std::max(round_up(c.size), round_up(c.out) * c.stride + c.taps * c.dilation) + 1;
    }

    // Calls f(begin) for each row of the image that the windows in a row of the result read.
    template <class F>
    INLINE void each_row(npy_intp row, F f) const {
        const Axis &a = axis[0], &b = axis[1];
        npy_intp i = row / b.out, j = row % b.out;
        for (npy_intp k = 0; k < a.count[i]; k++)
            for (npy_intp l = 0; l < b.count[j]; l++)
                f(((a.first[i] + k * a.dilation) * b.size + b.first[j] + l * b.dilation) * axis[2].size);
    }

    // Calls f(window, index in the row, how to read) for all elements of the windows in a row; for `n` regular windows
    // tap by tap, where n may exceed the number of windows.
    template <class F>
    INLINE void each_element(npy_intp n, F f) const {
        const Axis& c = axis[2];
        if (c.stride == 0) {
            for (npy_intp j = 0; j < c.out; j++)
                for (npy_intp k = 0; k < c.count[j]; k++) f(j, c.first[j] + k, One());
        } else if (c.stride == 1) {
            each_tap<1, One>(n, f);
        } else if (c.stride == 2) {
            each_tap<2, OfTwo>(n, f);
        } else {
            each_tap<0, One>(n, f);
        }
    }

private:
    template <npy_intp fixed_stride, class Step, class F>
    INLINE void each_tap(npy_intp n, F f) const {
        const Axis& c = axis[2];
        for (npy_intp k = 0; k < c.taps; k++) {
            npy_intp shift = k * c.dilation - c.before;
            IN_ANY_ORDER
            for (npy_intp j = 0; j < n; j++) f(j, j * (fixed_stride ? fixed_stride : c.stride) + shift, Step());
        }
    }
};

// Indices have the width of the values, so that both fit the same vectors.
template <class T>
using Index = typename std::conditional<sizeof(T) == 4, npy_int32, npy_int64>::type;

enum Mode { VALUES, INDICES, BACK };

// `out` has the largest values, or their indices, or images to which g is added there.
template <class T>
struct Maxima {
    Windows windows;
    Mode mode;
    npy_intp images;
    const T *x, *g;
    void* out;
};

}  // namespace retrograd
