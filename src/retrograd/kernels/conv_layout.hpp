// A padded image in memory in which the elements that a tap reads of a channel, for all positions, are one run.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "registration.hpp"
#include "tiles.hpp"

namespace retrograd {

// The layout of images in the grid: a view of the table of a plan; see conv_layout.py.
struct Layout {
    npy_intp parts, taps, rows, cols, run, length, step[3], pitch[3];
    const npy_int64 *part, *tap, *row;  // per part and dimension: low, high, start; per tap: part, begin; row begins

    explicit Layout(const npy_int64* t)
        : parts(t[0]), taps(t[1]), rows(t[2]), cols(t[3]), run(t[4]), length(t[5]), step{t[6], t[7], t[8]},
          pitch{t[9], t[10], t[11]}, part(t + 12), tap(part + 9 * parts), row(tap + 2 * taps) {}

    // Returns whether a table has the length that its counts require.
    static bool complete(const Table& t) { return t.size > 12 && t.size == 12 + 9 * t.at[0] + 2 * t.at[1] + t.at[2]; }

    // Returns whether images of these sizes cover all reads of the grid, and a run covers the result.
    bool fits(const npy_intp* sizes, const npy_intp* out) const {
        bool good = rows * cols == out[0] * out[1] * out[2] && (out[0] - 1) * pitch[0] + (out[1] - 1) * pitch[1] + out[2] <= run;
        for (npy_intp k = 0; k < 3 * parts; k++) {
            npy_intp count = part[3 * k + 1] - part[3 * k], start = part[3 * k + 2];
            good = good && (count <= 0 || start + (count - 1) * step[k % 3] < sizes[k % 3]);
        }
        return good;
    }

    npy_intp volume(npy_intp channels) const { return parts * channels * length; }

    // Returns the offset of the first read of each tap, for each of this many channels.
    std::vector<npy_intp> begins(npy_intp channels) const {
        std::vector<npy_intp> found;
        for (npy_intp c = 0; c < channels; c++)
            for (npy_intp t = 0; t < taps; t++) found.push_back((tap[2 * t] * channels + c) * length + tap[2 * t + 1]);
        return found;
    }
};

// The grids of some images, consecutive; or one grid in which the elements of several images are interleaved.
template <class T>
class Grid {
public:
    Grid(const Layout& layout, npy_intp channels, const npy_intp* sizes, npy_intp interleave = 1, npy_intp grids = 1)
        : layout(layout), channels(channels), sizes(sizes), interleave(interleave), pixels(sizes[0] * sizes[1] * sizes[2]),
          memory(new T[layout.volume(channels) * interleave * grids + BEYOND]()),
          side_by_side(interleave > 1 ? new T[pixels * interleave]() : nullptr) {}

    T* at(npy_intp grid) const { return memory.get() + grid * layout.volume(channels); }

    // Copies some channels of an image into a grid; the padding stays zero.
    const T* fill(const T* image, npy_intp grid = 0) {
        T* out = at(grid);
        for (npy_intp c = 0; c < channels; c++) each_part(image + c * pixels, c, out);
        return out;
    }

    // The same for interleaved images, which are `stride` elements apart in the source.
    const T* fill_interleaved(const T* image, npy_intp stride, npy_intp images) {
        for (npy_intp c = 0; c < channels; c++) {
            transposed(image + c * pixels, stride, images, pixels, side_by_side.get(), interleave);
            each_part(side_by_side.get(), c, memory.get());
        }
        return memory.get();
    }

private:
    const Layout& layout;
    npy_intp channels;
    const npy_intp* sizes;
    npy_intp interleave, pixels;
    std::unique_ptr<T[]> memory, side_by_side;

    void each_part(const T* image, npy_intp c, T* out) {
        for (npy_intp p = 0; p < layout.parts; p++)
            channel(layout.part + 9 * p, image, out + (p * channels + c) * layout.length * interleave);
    }

    void channel(const npy_int64* part, const T* image, T* out) {
        for (npy_intp i = part[0]; i < part[1]; i++)
            for (npy_intp j = part[3]; j < part[4]; j++) {
                npy_intp down = part[2] + (i - part[0]) * layout.step[0];
                npy_intp along = part[5] + (j - part[3]) * layout.step[1];
                copy(image + ((down * sizes[1] + along) * sizes[2] + part[8]) * interleave,
                     out + (i * layout.pitch[0] + j * layout.pitch[1] + part[6]) * interleave, part[7] - part[6]);
            }
    }

    void copy(const T* from, T* to, npy_intp n) {
        npy_intp step = layout.step[2];
        if (step == 1)
            for (npy_intp k = 0; k < n * interleave; k++) to[k] = from[k];
        else if (interleave == 1)
            for (npy_intp k = 0; k < n; k++) to[k] = from[k * step];
        else
            for (npy_intp k = 0; k < n; k++)
                std::copy(from + k * step * interleave, from + (k * step + 1) * interleave, to + k * interleave);
    }
};

}  // namespace retrograd
