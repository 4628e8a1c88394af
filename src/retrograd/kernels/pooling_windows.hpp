// Windows of images, and what the kernels of pooling are given.
#pragma once

#include <algorithm>
#include <type_traits>

#include "registration.hpp"

namespace retrograd {

constexpr npy_intp LANES = 16;
constexpr bool little_endian = NPY_BYTE_ORDER == NPY_LITTLE_ENDIAN;

npy_intp whole(npy_intp n) { return (n + LANES - 1) / LANES * LANES; }

// x[0]; where a loop takes every second number, it is read with its neighbour, so that memory is read without gaps.
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

// The windows along one dimension: where in the image each begins, and how many places it has there.  Regular ones are
// known by a formula too: tap k of window i reads place i * stride + k * dilation - before.
struct Axis {
    npy_intp size, out, stride, dilation, before, taps;
    const npy_int64 *first, *count;
};

struct Windows {
    Axis axis[3];

    // See `Windows` in windows.py.
    explicit Windows(const npy_int64* t) {
        const npy_int64* lists = t + 18;
        for (int d = 0; d < 3; d++, t += 6) {
            axis[d] = {t[0], t[1], t[2], t[3], t[4], t[5], lists, lists + t[1]};
            lists += 2 * t[1];
        }
    }

    // Whether a table is as long as it says.
    static bool complete(const Table& t) { return t.size >= 18 && t.size == 18 + 2 * (t.at[1] + t.at[7] + t.at[13]); }

    npy_intp places() const { return axis[0].size * axis[1].size * axis[2].size; }
    npy_intp count() const { return axis[0].out * axis[1].out * axis[2].out; }
    npy_intp rows() const { return axis[0].out * axis[1].out; }

    // A row of an image with what regular windows see on both sides of it, and what makes vectors whole.
    npy_intp wide() const {
        const Axis& c = axis[2];
        return c.before + std::max(whole(c.size), whole(c.out) * c.stride + c.taps * c.dilation) + 1;
    }

    // Calls f(place where it begins) for each row of the image that windows in a row of the result see.
    template <class F>
    INLINE void each_row(npy_intp row, F f) const {
        const Axis &a = axis[0], &b = axis[1];
        npy_intp i = row / b.out, j = row % b.out;
        for (npy_intp k = 0; k < a.count[i]; k++)
            for (npy_intp l = 0; l < b.count[j]; l++)
                f(((a.first[i] + k * a.dilation) * b.size + b.first[j] + l * b.dilation) * axis[2].size);
    }

    // Calls f(window, place in the row, how to read) for all that windows in a row see: for `n` regular ones, more than there are
    // perhaps, tap after tap.
    template <class F>
    INLINE void each_place(npy_intp n, F f) const {
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
    template <npy_intp known, class Step, class F>
    INLINE void each_tap(npy_intp n, F f) const {
        const Axis& c = axis[2];
        for (npy_intp k = 0; k < c.taps; k++) {
            npy_intp shift = k * c.dilation - c.before;
            IN_ANY_ORDER
            for (npy_intp j = 0; j < n; j++) f(j, j * (known ? known : c.stride) + shift, Step());
        }
    }
};

// What counts places is as wide as what is there.
template <class T>
using Place = typename std::conditional<sizeof(T) == 4, npy_int32, npy_int64>::type;

enum Wanted { VALUES, PLACES, BACK };

// `out`: the largest numbers; or where they are; or images in which g is added there.
template <class T>
struct Maxima {
    Windows windows;
    Wanted wanted;
    npy_intp images;
    const T *x, *g;
    void* out;
};

}  // namespace retrograd
