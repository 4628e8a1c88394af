// The weight gradient of a convolution: sums in registers of the elements that a tap reads times the output cotangents.

#include "conv_layout.hpp"
#include "vectors.hpp"

namespace retrograd {
namespace {

constexpr npy_intp UNITS = 8, PIXELS = 1024, WORK = 1 << 18;
constexpr npy_intp PARTIAL = 1 << 20;  // limit of the elements in all units' sums

template <class T>
struct Weights {
    Layout layout;
    npy_intp images, groups, outs, channels;  // outs and channels of a group
    npy_intp spans, blocks;                   // numbers of parts of the images, and of the channels of a group
    npy_intp group_size;                        // images that are summed before sums leave registers
    npy_intp lanes, high;
    std::vector<npy_intp> begins;  // offsets of rows
    const npy_intp* sizes;
    const T *x, *y;
    T* out;
    std::vector<AlignedArray<T>> sums;  // one for each unit

    npy_intp each() const { return (channels + blocks - 1) / blocks; }  // channels of a unit
    npy_intp padded() const { return (each() * layout.taps + high - 1) / high * high; }
    npy_intp columns() const { return (outs + lanes - 1) / lanes * lanes; }
    npy_intp pixels() const { return layout.rows * layout.cols; }
    npy_intp units() const { return groups * spans * blocks; }
};

// Adds the products of some positions of an image to a unit's sums.
template <class T>
void conv_weight_sums(const Weights<T>& job, const T* const* taps, npy_intp row, npy_intp rows, npy_intp cols, const T* y, T* out) {
    npy_intp columns = job.columns(), lanes = job.lanes;
    for (npy_intp o = 0; o < columns; o += 2 * lanes)
        for (npy_intp k = 0; k < job.padded(); k += job.high)
            tiles<T>().from_rows[columns - o > lanes](taps + k, job.begins.data() + row, rows, cols, y + o, columns,
                                                      out + k * columns + o);
}

// Units of work: some images, one group, some of its channels.
template <class T>
void sum_weights(Weights<T>& job, npy_intp begin, npy_intp end) {
    npy_intp each = job.each(), padded = job.padded(), columns = job.columns(), pixels = job.pixels();
    npy_intp volume = job.sizes[0] * job.sizes[1] * job.sizes[2];
    Grid<T> grid(job.layout, each, job.sizes, 1, job.group_size);
    const T* filled = grid.at(0);
    const AlignedArray<T> scratch = aligned_zeros<T>(std::min(job.group_size * pixels, PIXELS) * columns);
    const std::vector<npy_intp> begins = job.layout.begins(each);
    std::vector<const T*> taps(padded);
    const npy_intp rows = job.group_size > 1 ? job.group_size * job.layout.rows : std::max<npy_intp>(1, PIXELS / job.layout.cols);
    const npy_intp cols = std::min(PIXELS, job.layout.cols);
    for (npy_intp unit = begin; unit < end; unit++) {
        npy_intp block = unit % job.blocks, span = unit / job.blocks % job.spans, group = unit / job.blocks / job.spans;
        job.sums[unit] = aligned_zeros<T>(padded * columns);
        npy_intp first = std::min(block * each, job.channels - each);  // the last block may overlap the one before
        npy_intp last = (span + 1) * job.images / job.spans, some;
        for (npy_intp n = span * job.images / job.spans; n < last; n += some) {
            some = std::min(job.group_size, last - n);
            for (npy_intp i = 0; i < some; i++)
                grid.fill(job.x + (((n + i) * job.groups + group) * job.channels + first) * volume, i);
            const T* y = job.y + (n * job.groups + group) * job.outs * pixels;
            for (npy_intp r = 0; r < some * job.layout.rows; r += rows) {
                npy_intp high = std::min(rows, some * job.layout.rows - r);
                for (npy_intp c = 0; c < job.layout.cols; c += cols) {
                    npy_intp width = std::min(cols, job.layout.cols - c), count = high * width / some;
                    for (npy_intp k = 0; k < padded; k++)
                        taps[k] = filled + c + begins[std::min<npy_intp>(k, begins.size() - 1)];
                    for (npy_intp i = 0; i < some; i++)
                        transposed(y + i * job.groups * job.outs * pixels + r * job.layout.cols + c, pixels, job.outs, count,
                                   scratch.get() + i * count * columns, columns);
                    conv_weight_sums(job, taps.data(), r, high, width, scratch.get(), job.sums[unit].get());
                }
            }
        }
    }
}

// Adds the sums of all spans of images to those of the first span.
template <class T>
void add_spans(const Weights<T>& job) {
    npy_intp padded = job.padded(), columns = job.columns();
    parallel_for(job.groups * job.blocks * padded, ENOUGH / (columns * job.spans), [&](npy_intp begin, npy_intp end) {
        for (npy_intp row = begin; row < end; row++) {
            npy_intp head = row / padded, unit = head / job.blocks * job.spans * job.blocks + head % job.blocks;
            npy_intp at = row % padded * columns;
            T* to = job.sums[unit].get() + at;
            for (npy_intp s = 1; s < job.spans; s++) {
                const T* from = job.sums[unit + s * job.blocks].get() + at;
                for (npy_intp k = 0; k < columns; k++) to[k] += from[k];
            }
        }
    });
}

// Writes the sums of all units, in their order, to the weight (groups, outs, channels, taps).
template <class T>
void collect(const Weights<T>& job) {
    npy_intp each = job.each(), taps = job.layout.taps, columns = job.columns(), one = job.channels * taps;
    if (job.spans > 1) add_spans(job);
    parallel_for(job.groups * job.blocks, ENOUGH / (job.outs * each * taps), [&](npy_intp begin, npy_intp end) {
        for (npy_intp head = begin; head < end; head++) {
            npy_intp group = head / job.blocks, block = head % job.blocks;
            npy_intp first = std::min(block * each, job.channels - each), once = (block * each - first) * taps;
            const T* from = job.sums[group * job.spans * job.blocks + block].get() + once * columns;
            transposed(from, columns, each * taps - once, job.outs, job.out + group * job.outs * one + first * taps + once, one);
        }
    });
}

template <class T>
void weights(const npy_int64* table, PyArrayObject* x, PyArrayObject* y, PyArrayObject* out, npy_intp groups) {
    Weights<T> job{Layout(table), PyArray_DIM(x, 0), groups, PyArray_DIM(y, 1) / groups, PyArray_DIM(x, 1) / groups, 1, 1, 1,
                   tiles<T>().lanes, tiles<T>().high, {}, PyArray_DIMS(x) + 2,
                   static_cast<const T*>(PyArray_DATA(x)), static_cast<const T*>(PyArray_DATA(y)),
                   static_cast<T*>(PyArray_DATA(out)), {}};
    npy_intp most = std::min<npy_intp>(UNITS, PARTIAL / (job.padded() * job.columns() * groups));
    job.spans = std::max<npy_intp>(1, std::min(job.images, most));
    job.blocks = std::max<npy_intp>(1, std::min(job.channels, UNITS / (job.spans * groups)));
    job.blocks = (job.channels + job.each() - 1) / job.each();
    job.group_size = std::max<npy_intp>(1, std::min((job.images + job.spans - 1) / job.spans, PIXELS / job.pixels()));
    for (npy_intp i = 0; i < job.group_size; i++)
        for (npy_intp r = 0; r < job.layout.rows; r++) job.begins.push_back(i * job.layout.volume(job.each()) + job.layout.row[r]);
    job.sums.resize(job.units());
    npy_intp work = job.padded() * job.columns() * job.pixels() * job.images / job.spans;
    parallel_for(job.units(), WORK / work + 1, [&](npy_intp begin, npy_intp end) { sum_weights(job, begin, end); });
    collect(job);
}

// Checks images, output cotangents, and the weight (outs, channels of a group, 3 dimensions of taps).
bool fit(const Layout& layout, PyArrayObject* x, PyArrayObject* y, PyArrayObject* out, npy_intp groups) {
    const int type = type_of(x);
    if (!is(x, type, 5) || !is(y, type, 5) || !is_writable(out, type, 5) || groups < 1) return false;
    const npy_intp *in = PyArray_DIMS(x), *y_dims = PyArray_DIMS(y), *out_dims = PyArray_DIMS(out);
    return PyArray_SIZE(x) && PyArray_SIZE(y) && PyArray_SIZE(out) && in[0] == y_dims[0] && in[1] == groups * out_dims[1] &&
           y_dims[1] == out_dims[0] && y_dims[1] % groups == 0 && layout.taps == out_dims[2] * out_dims[3] * out_dims[4] &&
           layout.fits(in + 2, y_dims + 2);
}

// conv_weight_sums(plan, x, y, out, groups): see conv_layout.py.
PyObject* conv_weight_sums(PyObject*, PyObject* args) {
    PyObject* plan;
    PyArrayObject *x, *y, *out;
    Py_ssize_t groups;
    if (!PyArg_ParseTuple(args, "OO!O!O!n", &plan, &PyArray_Type, &x, &PyArray_Type, &y, &PyArray_Type,
                          &out, &groups))
        return nullptr;
    const Table table = table_of(plan);
    if (!table.at) return nullptr;
    if (!Layout::complete(table) || !fit(Layout(table.at), x, y, out, groups)) return raise_mismatch("conv_weight_sums");
    auto fill = PyArray_TYPE(x) == NPY_FLOAT ? weights<float> : weights<double>;
    if (!without_gil([=] { fill(table.at, x, y, out, groups); })) return nullptr;
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"conv_weight_sums", separate<conv_weight_sums, 2>, METH_VARARGS, "The gradient of a convolution with respect to its weight."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_convolution_weight{methods};

}  // namespace retrograd
