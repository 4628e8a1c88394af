// Convolutions as sums in registers over a grid that holds one padded image, without an im2col matrix.

#include "conv_layout.hpp"

namespace retrograd {
namespace {

constexpr npy_intp UNITS = 8, WORK = 1 << 18;
constexpr npy_intp SHORT = 8, NEAR = 1 << 19;  // limits for interleaving: vectors of a run, bytes of a grid

template <class T>
struct Images {
    Layout layout;
    npy_intp groups, outs, channels, sums;  // per group; products per output value
    npy_intp tall, blocks;                  // rows of a tile; blocks of a group's output channels
    npy_intp interleave;                       // number of interleaved images
    const npy_intp* sizes;
    const T *x, *bias;
    PyArrayObject* out;
    std::vector<npy_intp> begins;
    std::unique_ptr<T[]> weights;  // tile by tile; the rows of a tile are interleaved

    npy_intp tiles() const { return (outs + tall - 1) / tall; }

    // Returns the number of rows of the tile that begins at a row; rows after the last are zero.
    npy_intp height(npy_intp row) const { return outs - row > 4 ? tall : outs - row > 1 ? 4 : 1; }

    T* tile(npy_intp group, npy_intp row) const { return weights.get() + (group * tiles() * tall + row) * sums; }
};

// Computes some rows (output channels) of a run of `run` elements.
template <class T>
void sum_rows(const Images<T>& job, npy_intp tall, const T* weights, const T* grid, npy_intp run, T* out, npy_intp pitch) {
    const auto& sums = tiles<T>().from_runs[tall == 1 ? 0 : tall == 4 ? 1 : 2];
    npy_intp lanes = tiles<T>().lanes, wide;
    for (npy_intp offset = 0; offset < run; offset += wide * lanes) {
        wide = std::min<npy_intp>(3, (run - offset + lanes - 1) / lanes);
        sums[wide - 1](weights, grid + offset, job.begins.data(), job.sums, out + offset, pitch);
    }
}

// Writes a run to the result, without the elements between the rows of an image; `down` and `along` are the distances
// of rows in the run along two dimensions.
template <class T>
void emit(const Images<T>& job, const T* run, npy_intp down, npy_intp along, npy_intp image, npy_intp channel) {
    const npy_intp *size = PyArray_DIMS(job.out), *step = PyArray_STRIDES(job.out);
    char* to = static_cast<char*>(PyArray_DATA(job.out)) + image * step[0] + channel * step[1];
    T shift = job.bias ? job.bias[channel] : T(0);
    for (npy_intp i = 0; i < size[2]; i++)
        for (npy_intp j = 0; j < size[3]; j++) {
            char* row_out = to + i * step[2] + j * step[3];
            const T* row = run + i * down + j * along;
            if (step[4] == sizeof(T))
                for (npy_intp k = 0; k < size[4]; k++) reinterpret_cast<T*>(row_out)[k] = row[k] + shift;
            else
                for (npy_intp k = 0; k < size[4]; k++) *reinterpret_cast<T*>(row_out + k * step[4]) = row[k] + shift;
        }
}

// Units of work: a block of the output channels of one group, of one image.
template <class T>
void sum_images(const Images<T>& job, npy_intp begin, npy_intp end) {
    npy_intp pitch = job.layout.run + BEYOND, each = (job.tiles() + job.blocks - 1) / job.blocks * job.tall;
    Grid<T> grid(job.layout, job.channels, job.sizes);
    std::unique_ptr<T[]> rows(new T[job.tall * pitch]);
    for (npy_intp unit = begin; unit < end; unit++) {
        npy_intp image_group = unit / job.blocks, group = image_group % job.groups, first = unit % job.blocks * each;
        const T* filled = grid.fill(job.x + image_group * job.channels * job.sizes[0] * job.sizes[1] * job.sizes[2]);
        for (npy_intp o = first, tall; o < std::min(job.outs, first + each); o += tall) {
            tall = job.height(o);
            sum_rows(job, tall, job.tile(group, o), filled, job.layout.run, rows.get(), pitch);
            for (npy_intp i = 0; i < std::min(tall, job.outs - o); i++)
                emit(job, rows.get() + i * pitch, job.layout.pitch[0], job.layout.pitch[1], image_group / job.groups,
                     group * job.outs + o + i);
        }
    }
}

// Small images: a row is shorter than a vector, and most of a run is padding between rows.  With many images, a vector
// holds the same position of several of them.
template <class T>
struct Interleaved {
    const Images<T>& job;
    npy_intp images, size[3], pixels;
    Grid<T> grid;
    bool gapless;  // whether an image of the result is contiguous
    std::unique_ptr<T[]> rows, scratch;

    explicit Interleaved(const Images<T>& job)
        : job(job), images(job.interleave), size{PyArray_DIM(job.out, 2), PyArray_DIM(job.out, 3), PyArray_DIM(job.out, 4)},
          pixels(size[0] * size[1] * size[2]), grid(job.layout, job.channels, job.sizes, images),
          gapless(true), rows(new T[job.tall * pixels * images + BEYOND]), scratch(new T[pixels * images]) {
        npy_intp stride = sizeof(T);
        for (int d = 2; d >= 0; stride *= size[d--])
            if (size[d] > 1 && PyArray_STRIDE(job.out, 2 + d) != stride) gapless = false;
    }

    // Computes one group of some images.
    void sum(npy_intp first, npy_intp count, npy_intp group) {
        npy_intp volume = job.channels * job.sizes[0] * job.sizes[1] * job.sizes[2];
        const T* filled = grid.fill_interleaved(job.x + (first * job.groups + group) * volume, job.groups * volume, count);
        for (npy_intp o = 0, tall; o < job.outs; o += tall) {
            tall = job.height(o);
            T* to = rows.get();
            for (npy_intp i = 0; i < size[0]; i++)
                for (npy_intp j = 0; j < size[1]; j++)
                    for (npy_intp k = 0; k < size[2]; k++, to += images)
                        sum_rows(job, tall, job.tile(group, o),
                                 filled + (i * job.layout.pitch[0] + j * job.layout.pitch[1] + k) * images, count, to,
                                 pixels * images);
            for (npy_intp i = 0; i < std::min(tall, job.outs - o); i++)
                emit_all(rows.get() + i * pixels * images, first, count, group * job.outs + o + i);
        }
    }

    // Writes one channel of all images; directly to the result if its images are contiguous.
    void emit_all(T* from, npy_intp first, npy_intp count, npy_intp channel) {
        if (!gapless) {
            transposed(from, images, pixels, count, scratch.get(), pixels);
            for (npy_intp n = 0; n < count; n++)
                emit(job, scratch.get() + n * pixels, size[1] * size[2], size[2], first + n, channel);
            return;
        }
        const T shift = job.bias ? job.bias[channel] : T(0);
        for (npy_intp k = 0; job.bias && k < pixels * images; k++) from[k] += shift;
        const npy_intp* step = PyArray_STRIDES(job.out);
        char* to = static_cast<char*>(PyArray_DATA(job.out)) + first * step[0] + channel * step[1];
        transposed(from, images, pixels, count, reinterpret_cast<T*>(to), step[0] / npy_intp(sizeof(T)));
    }
};

// Units of work: one group of a set of interleaved images.
template <class T>
void sum_interleaved(const Images<T>& job, npy_intp begin, npy_intp end) {
    Interleaved<T> interleaved(job);
    for (npy_intp unit = begin; unit < end; unit++) {
        npy_intp first = unit / job.groups * job.interleave;
        interleaved.sum(first, std::min(job.interleave, PyArray_DIM(job.out, 0) - first), unit % job.groups);
    }
}

// Returns how many images to interleave: two vectors of them, or one if there are no more; 1 if the cache is too small.
template <class T>
npy_intp interleave(const Images<T>& job, npy_intp images) {
    npy_intp lanes = tiles<T>().lanes, count = images < 2 * lanes ? lanes : 2 * lanes;
    bool fits = job.layout.volume(job.channels) * count * npy_intp(sizeof(T)) <= NEAR;
    return fits && job.layout.run <= SHORT * lanes && images >= lanes ? count : 1;
}

// Copies weights of any strides, (groups, outs, channels, 3 dimensions of taps), into tiles.
template <class T>
void pack(Images<T>& job, PyArrayObject* w) {
    const npy_intp *size = PyArray_DIMS(w), *step = PyArray_STRIDES(w);
    npy_intp tiles = job.tiles();
    job.weights.reset(new T[job.groups * tiles * job.tall * job.sums]());
    std::vector<npy_intp> offsets;  // offsets of the weights of one output value
    for (npy_intp c = 0; c < size[2]; c++)
        for (npy_intp t = 0; t < job.layout.taps; t++)
            offsets.push_back(c * step[2] + t / (size[4] * size[5]) * step[3] + t / size[5] % size[4] * step[4] +
                             t % size[5] * step[5]);
    parallel_for(job.groups * tiles, ENOUGH / (job.tall * job.sums), [&](npy_intp begin, npy_intp end) {
        for (npy_intp unit = begin; unit < end; unit++) {
            npy_intp group = unit / tiles, row = unit % tiles * job.tall, tall = job.height(row);
            const char* from = static_cast<const char*>(PyArray_DATA(w)) + group * step[0] + row * step[1];
            T* to = job.tile(group, row);
            for (npy_intp k = 0; k < job.sums; k++)
                for (npy_intp i = 0; i < std::min(tall, job.outs - row); i++)
                    to[k * tall + i] = *reinterpret_cast<const T*>(from + i * step[1] + offsets[k]);
        }
    });
}

template <class T>
void images(const npy_int64* table, PyArrayObject* x, PyArrayObject* w, const void* bias, PyArrayObject* out) {
    const npy_intp* w_dims = PyArray_DIMS(w);
    Images<T> job{Layout(table), w_dims[0], w_dims[1], w_dims[2], 0, tiles<T>().tall, 1, 1,
                  PyArray_DIMS(x) + 2, static_cast<const T*>(PyArray_DATA(x)), static_cast<const T*>(bias), out, {}, {}};
    job.sums = job.channels * job.layout.taps;
    job.begins = job.layout.begins(job.channels);
    npy_intp images = PyArray_DIM(x, 0), units = images * job.groups;
    job.interleave = interleave(job, images);
    for (npy_intp& begin : job.begins) begin *= job.interleave;
    pack(job, w);
    npy_intp work = job.sums * job.layout.run * job.outs;
    if (job.interleave > 1) {
        units = (images + job.interleave - 1) / job.interleave * job.groups;
        parallel_for(units, WORK / (work * job.interleave) + 1, [&](npy_intp begin, npy_intp end) { sum_interleaved(job, begin, end); });
    } else {
        job.blocks = std::max<npy_intp>(1, std::min(job.tiles(), UNITS / units));
        parallel_for(units * job.blocks, WORK * job.blocks / work + 1, [&](npy_intp begin, npy_intp end) { sum_images(job, begin, end); });
    }
}

// Checks images, weights (groups, outs, channels, 3 dimensions of taps), a bias or null, and the result.
bool fit(const Layout& layout, PyArrayObject* x, PyArrayObject* w, PyArrayObject* bias, PyArrayObject* out) {
    const int type = type_of(x);
    if (!is(x, type, 5) || PyArray_TYPE(w) != type || PyArray_NDIM(w) != 6 || !PyArray_ISBEHAVED_RO(w)) return false;
    if (PyArray_TYPE(out) != type || PyArray_NDIM(out) != 5 || !PyArray_ISBEHAVED(out)) return false;
    const npy_intp *in = PyArray_DIMS(x), *w_dims = PyArray_DIMS(w), *out_dims = PyArray_DIMS(out);
    if (bias && !(is(bias, type, 1) && PyArray_DIM(bias, 0) == out_dims[1])) return false;
    return PyArray_SIZE(x) && PyArray_SIZE(w) && PyArray_SIZE(out) && in[0] == out_dims[0] && in[1] == w_dims[0] * w_dims[2] &&
           out_dims[1] == w_dims[0] * w_dims[1] && layout.taps == w_dims[3] * w_dims[4] * w_dims[5] && layout.fits(in + 2, out_dims + 2);
}

// sum_windows(plan, x, w, bias, out): see conv_layout.py.
PyObject* sum_windows(PyObject*, PyObject* args) {
    PyObject *plan, *bias_object;
    PyArrayObject *x, *w, *out;
    if (!PyArg_ParseTuple(args, "OO!O!OO!", &plan, &PyArray_Type, &x, &PyArray_Type, &w, &bias_object, &PyArray_Type, &out))
        return nullptr;
    const Table table = table_of(plan);
    if (!table.at) return nullptr;
    PyArrayObject* bias = PyArray_Check(bias_object) ? reinterpret_cast<PyArrayObject*>(bias_object) : nullptr;
    const bool valid = (bias || bias_object == Py_None) && Layout::complete(table);
    if (!valid || !fit(Layout(table.at), x, w, bias, out)) return raise_mismatch("sum_windows");
    const void* added = bias ? PyArray_DATA(bias) : nullptr;
    auto fill = PyArray_TYPE(x) == NPY_FLOAT ? images<float> : images<double>;
    if (!without_gil([=] { fill(table.at, x, w, added, out); })) return nullptr;
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"sum_windows", separate<sum_windows, 1>, METH_VARARGS, "The sums over the windows of a convolution."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_convolution{methods};

}  // namespace retrograd
