// Max pooling of adjacent 2x2 windows, which most networks use.  All four elements are read at once, and the choice
// needs no branch, because it would be unpredictable.
#pragma once

#include <vector>

#include "pooling_windows.hpp"

namespace retrograd {

// Returns whether windows are adjacent 2x2 squares.
inline bool are_squares(const Windows& w) {
    auto halves = [](const Axis& a) {
        return a.taps == 2 && a.stride == 2 && a.dilation == 1 && a.before == 0 && 2 * a.out <= a.size;
    };
    return w.axis[0].size == 1 && w.axis[0].out == 1 && halves(w.axis[1]) && halves(w.axis[2]);
}

// Selects values by masks with all bits set or none: the compiler does not vectorize loops that combine conditions in
// other ways.
template <class T>
INLINE Index<T> bits(T x) {
    Index<T> found;
    std::memcpy(&found, &x, sizeof x);
    return found;
}
template <class T>
INLINE T number(Index<T> bits) {
    T found;
    std::memcpy(&found, &bits, sizeof bits);
    return found;
}
template <class T>
INLINE T select(Index<T> second, T a, T b) {
    return number<T>((bits(a) & ~second) | (bits(b) & second));
}

// Returns a mask: whether the second value is larger.  The first of equal values wins, and the last NaN.
template <class T>
INLINE Index<T> second_larger(T first, T second) {
    return (second > first ? Index<T>(-1) : Index<T>(0)) | (second != second ? Index<T>(-1) : Index<T>(0));
}

// The elements of n windows, two rows with the windows one after the other, and the results: the largest values, their
// indices, or rows with g at the largest values and zeros elsewhere.
template <class T>
struct WindowRows {
    npy_intp n, size;  // number of windows, and the row stride of the image
    const T *top, *low, *g;
    const Index<T>* begins;  // indices of the windows' begins in their images
    T *values, *back, *low_back;
    npy_int64* indices;
};

template <Mode mode, class T>
INLINE void max_of_windows(const WindowRows<T>& of) {
    const T *top = of.top, *low = of.low, *g = of.g;
    T *values = of.values, *back = of.back, *low_back = of.low_back;
    const Index<T>* begins = of.begins;
    npy_int64* indices = of.indices;
    const Index<T> size = Index<T>(of.size);
    IN_ANY_ORDER
    for (npy_intp j = 0; j < of.n; j++) {
        const T a = top[2 * j], b = top[2 * j + 1], c = low[2 * j], d = low[2 * j + 1];
        const Index<T> right = second_larger(a, b), low_right = second_larger(c, d);
        const T high = select(right, a, b), other = select(low_right, c, d);
        const Index<T> below = second_larger(high, other);
        if (mode == VALUES) values[j] = select(below, high, other);
        if (mode == INDICES) indices[j] = begins[j] + (size & below) - ((right & ~below) | (low_right & below));
        if (mode == BACK) {
            const Index<T> here = bits(g[j]), to_high = here & ~below, to_low = here & below;
            back[2 * j] = number<T>(to_high & ~right);
            back[2 * j + 1] = number<T>(to_high & right);
            low_back[2 * j] = number<T>(to_low & ~low_right);
            low_back[2 * j + 1] = number<T>(to_low & low_right);
        }
    }
}

// Rows of narrow images are too short for vectors, so several are concatenated.
template <Mode mode, class T>
class Squares {
public:
    explicit Squares(const Maxima<T>& job)
        : job(job), per(job.windows.axis[2].out), size(job.windows.axis[2].size), most(per < FEW ? BATCHED / per : 1),
          from(most), begins(most * per), rows(8 * most * per) {}

    // Processes the windows of these images, row after row.
    void of_images(npy_intp begin, npy_intp end) {
        const npy_intp down = job.windows.axis[1].out, image_size = job.windows.image_size();
        done = begin * down * per;
        for (npy_intp n = begin; n < end; n++)
            for (npy_intp row = 0; row < down; row++) {
                most > 1 ? add(n * image_size, 2 * row * size) : direct(n * image_size, 2 * row * size);
                if (count == most) finish();
            }
        finish();
    }

private:
    static constexpr npy_intp FEW = 16, BATCHED = 128;  // windows
    const Maxima<T>& job;
    const npy_intp per, size, most;
    npy_intp count = 0, done = 0;  // collected rows; windows before them
    std::vector<npy_intp> from;    // offsets of the rows
    std::vector<Index<T>> begins;
    std::vector<T> rows;  // upper and lower rows of the windows, and their gradients

    // Only this loop has vectors, so it alone is compiled for each processor.
    static void find(const WindowRows<T>& of) { cpu_dispatch<max_of_windows<mode, T>>(of); }

    T* side(int which) { return rows.data() + 2 * which * most * per; }

    void copy(const T* row, T* to) const {
        switch (per) {
            case 2: std::memcpy(to, row, 4 * sizeof(T)); break;
            case 4: std::memcpy(to, row, 8 * sizeof(T)); break;
            default: std::copy(row, row + 2 * per, to);
        }
    }

    void add(npy_intp image, npy_intp row) {
        copy(job.x + image + row, side(0) + 2 * count * per);
        copy(job.x + image + row + size, side(1) + 2 * count * per);
        begin_at(row);
        from[count++] = image + row;
    }

    void begin_at(npy_intp row) {
        if (mode == INDICES)
            for (npy_intp j = 0; j < per; j++) begins[count * per + j] = Index<T>(row + 2 * j);
    }

    // Processes a row that is long enough, without a copy.
    void direct(npy_intp image, npy_intp row) {
        const T* top = job.x + image + row;
        T *out = static_cast<T*>(job.out), *back = out + image + row;
        begin_at(row);
        find({per, size, top, top + size, job.g + done, begins.data(), out + done, back, back + size,
              static_cast<npy_int64*>(job.out) + done});
        done += per;
    }

    void finish() {
        if (count == 0) return;
        T* out = static_cast<T*>(job.out);
        find({count * per, size, side(0), side(1), job.g + done, begins.data(), out + done, side(2), side(3),
              static_cast<npy_int64*>(job.out) + done});
        if (mode == BACK)
            for (npy_intp i = 0; i < count; i++) {
                copy(side(2) + 2 * i * per, out + from[i]);
                copy(side(3) + 2 * i * per, out + from[i] + size);
            }
        done += count * per;
        count = 0;
    }
};

template <class T>
void largest_of_squares(const Maxima<T>& job, npy_intp begin, npy_intp end) {
    const npy_intp image_size = job.windows.image_size();
    const bool covers_image = image_size == 4 * job.windows.count();
    T* out = static_cast<T*>(job.out);
    if (job.mode == BACK && !covers_image) std::fill(out + begin * image_size, out + end * image_size, T(0));
    switch (job.mode) {
        case VALUES: return Squares<VALUES, T>(job).of_images(begin, end);
        case INDICES: return Squares<INDICES, T>(job).of_images(begin, end);
        case BACK: return Squares<BACK, T>(job).of_images(begin, end);
    }
}

}  // namespace retrograd
