// One padded image in memory in which what a tap reads of a channel for all places is one run.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "tables.hpp"
#include "tiles.hpp"

namespace retrograd {

// How images lie in the grid: a view of the table of a plan, which backend/conv.py makes.
struct Layout {
    npy_intp parts, taps, rows, cols, run, length, step[3], pitch[3];
    const npy_int64 *part, *tap, *row;  // of a part and dimension: low, high, start; of a tap: part, begin; begins of rows

    explicit Layout(const npy_int64* t)
        : parts(t[0]), taps(t[1]), rows(t[2]), cols(t[3]), run(t[4]), length(t[5]), step{t[6], t[7], t[8]},
          pitch{t[9], t[10], t[11]}, part(t + 12), tap(part + 9 * parts), row(tap + 2 * taps) {}

    // Whether a table is as long as it says.
    static bool complete(const Table& t) { return t.size > 12 && t.size == 12 + 9 * t.at[0] + 2 * t.at[1] + t.at[2]; }

    // Whether images of these sizes have all that the grid takes from them, and a run all that comes out.
    bool fits(const npy_intp* sizes, const npy_intp* out) const {
        bool good = rows * cols == out[0] * out[1] * out[2] && (out[0] - 1) * pitch[0] + (out[1] - 1) * pitch[1] + out[2] <= run;
        for (npy_intp k = 0; k < 3 * parts; k++) {
            npy_intp count = part[3 * k + 1] - part[3 * k], start = part[3 * k + 2];
            good = good && (count <= 0 || start + (count - 1) * step[k % 3] < sizes[k % 3]);
        }
        return good;
    }

    // Where each tap of each of so many channels begins to read.
    std::vector<npy_intp> begins(npy_intp channels) const {
        std::vector<npy_intp> found;
        for (npy_intp c = 0; c < channels; c++)
            for (npy_intp t = 0; t < taps; t++) found.push_back((tap[2 * t] * channels + c) * length + tap[2 * t + 1]);
        return found;
    }
};

template <class T>
class Grid {
public:
    Grid(const Layout& layout, npy_intp channels, const npy_intp* sizes)
        : layout(layout), channels(channels), sizes(sizes),
          memory(new T[layout.parts * channels * layout.length + BEYOND]()) {}

    // The grid with some channels of an image in it; what no image covers stays zero.
    const T* fill(const T* image) {
        for (npy_intp p = 0; p < layout.parts; p++)
            for (npy_intp c = 0; c < channels; c++)
                channel(layout.part + 9 * p, image + c * sizes[0] * sizes[1] * sizes[2],
                        memory.get() + (p * channels + c) * layout.length);
        return memory.get();
    }

private:
    const Layout& layout;
    npy_intp channels;
    const npy_intp* sizes;
    std::unique_ptr<T[]> memory;

    void channel(const npy_int64* part, const T* image, T* out) {
        for (npy_intp i = part[0]; i < part[1]; i++)
            for (npy_intp j = part[3]; j < part[4]; j++) {
                npy_intp down = part[2] + (i - part[0]) * layout.step[0];
                npy_intp along = part[5] + (j - part[3]) * layout.step[1];
                copy(image + (down * sizes[1] + along) * sizes[2] + part[8],
                     out + i * layout.pitch[0] + j * layout.pitch[1] + part[6], part[7] - part[6]);
            }
    }

    void copy(const T* from, T* to, npy_intp n) {
        npy_intp step = layout.step[2];
        if (step == 1)
            for (npy_intp k = 0; k < n; k++) to[k] = from[k];
        else
            for (npy_intp k = 0; k < n; k++) to[k] = from[k * step];
    }
};

}  // namespace retrograd
