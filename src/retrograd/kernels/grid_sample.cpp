// Sampling of images at the points of a grid, and its derivatives; grid_sample_reference.py says what each function computes.
//
// The code is compiled for one processor: most of the time goes into reading elements from anywhere in the images.

#include <cmath>
#include <cstring>
#include <memory>

#include "registration.hpp"

namespace retrograd {
namespace {

constexpr npy_intp BLOCK = 128;  // points whose indices and weights are computed at a time
constexpr int MOST_TAPS = 16;    // elements that a point reads

enum Mode { BILINEAR, NEAREST, BICUBIC };
enum Padding { ZEROS, BORDER, REFLECTION };

struct Settings {
    npy_int64 mode, padding, align, size[3], order[3];
};

template <class T>
struct Job {
    Settings how;
    int axes;
    npy_intp images, channels, size, points;
    const T *x, *grid, *y;
    T* out;

    const T* positions(npy_intp image, npy_intp first) const { return grid + (image * points + first) * axes; }
};

// ---------------------------------------------------------------------------------------------- along a dimension

// Positions along a dimension of the points of a block, and the factors by which they were scaled.
template <class T>
struct Positions {
    T at[BLOCK], slope[BLOCK];
};

// Rounds to the nearest integer, the even one of two: numbers from `most` on are integers.  Vectors of all processors can
// do this, not all can round by an instruction.
template <class T>
T rounded(T x) {
    const T most = sizeof(T) == 4 ? T(1 << 22) : T(npy_int64(1) << 51), shift = most * 3;
    return std::abs(x) < most ? (x + shift) - shift : x;
}
template <class T>
T floored(T x) {
    const T near = rounded(x);
    return near > x ? near - 1 : near;
}

template <class T>
void clip(Positions<T>& p, npy_intp points, npy_intp size) {
    const T last = T(size - 1);
    for (npy_intp i = 0; i < points; i++) {
        const T c = p.at[i] > 0 ? p.at[i] : T(0);  // 0 for NaN
        p.slope[i] = (c > 0) & (c < last) ? p.slope[i] : T(0);
        p.at[i] = c < last ? c : last;
    }
}

template <class T>
void reflect(Positions<T>& p, npy_intp points, npy_intp size, bool align) {
    const T low = align ? T(0) : T(-0.5), span = T(align ? size - 1 : size);
    for (npy_intp i = 0; i < points; i++) {
        const T c = p.at[i], distance = std::abs(c - low), extra = span == 0 ? c * 0 : std::fmod(distance, span);
        const bool odd = span != 0 && std::fmod(std::floor(distance / span), T(2)) == 1;
        p.at[i] = (odd ? span - extra : extra) + low;
        p.slope[i] = span == 0 ? T(0) : odd != (c < low) ? -p.slope[i] : p.slope[i];
    }
    if (span != 0) clip(p, points, size);
}

// Moves positions into the image.
template <class T>
void pad(Positions<T>& p, npy_intp points, npy_intp size, const Settings& how) {
    if (how.padding == BORDER) clip(p, points, size);
    if (how.padding == REFLECTION) reflect(p, points, size, how.align);
}

// Computes a derivative, by t, of the weights of neighbour j by Keys' cubic convolution, with a = -0.75.
template <class T>
void cubic(int j, const T* t, npy_int64 order, npy_intp points, T* value) {
    static const T near[] = {1.25, -2.25, 0, 1}, far[] = {-0.75, 3.75, -6, 3};
    static const T factors[][4] = {{1, 1, 1, 1}, {3, 2, 1}, {6, 2}, {6}, {0}};
    const npy_int64 o = std::min(order, npy_int64(4));
    const T *powers = j == 1 || j == 2 ? near : far, sign = j > 1 && order % 2 ? T(-1) : T(1);
    std::fill_n(value, points, sign * factors[o][0] * powers[0]);
    for (int k = 1; k < 4 - o; k++) {
        const T factor = sign * factors[o][k] * powers[k];
        for (npy_intp i = 0; i < points; i++) {
            const T d = j == 0 ? t[i] + 1 : j == 1 ? t[i] : j == 2 ? 1 - t[i] : 2 - t[i];
            value[i] = value[i] * d + factor;
        }
    }
}

// The elements that the points of a block read along one dimension: their indices times the distance between neighbours in
// memory, OUTSIDE the image so negative that sums with others are, too; and their weights.
template <class T>
struct Along {
    npy_intp index[4][BLOCK];
    T weight[4][BLOCK];

    // Computes those of the positions c[0], c[step], ...
    NOT_INLINE void fill(const T* c, npy_intp step, npy_intp points, npy_intp size, npy_intp stride, npy_int64 order,
                         const Settings& how) {
        const T scale = how.align ? T((size - 1) / 2.0) : T(size * 0.5);
        for (npy_intp i = 0; i < points; i++) {
            p.at[i] = how.align ? (c[i * step] + 1) * scale : ((c[i * step] + 1) * T(size) - 1) * T(0.5);
            p.slope[i] = scale;
        }
        if (how.mode != BICUBIC) pad(p, points, size, how);
        for (npy_intp i = 0; i < points; i++) {
            low[i] = how.mode == NEAREST ? rounded(p.at[i]) : floored(p.at[i]);
            t[i] = p.at[i] - low[i];
        }
        for (int j = 0; j < taps(how); j++) weigh(j, points, order, how);
        for (int j = 0; j < taps(how); j++) {
            for (npy_intp i = 0; i < points; i++) p.at[i] = low[i] + T(how.mode == BICUBIC ? j - 1 : j);
            if (how.mode == BICUBIC) pad(p, points, size, how);
            const T last = T(size - 1);
            for (npy_intp i = 0; i < points; i++)
                index[j][i] = (p.at[i] >= 0) & (p.at[i] <= last) ? npy_intp(p.at[i]) * stride : OUTSIDE;
        }
    }
    static int taps(const Settings& how) { return how.mode == NEAREST ? 1 : how.mode == BILINEAR ? 2 : 4; }

private:
    static constexpr npy_intp OUTSIDE = NPY_MIN_INTP / 4;
    Positions<T> p;
    T low[BLOCK], t[BLOCK];

    void weigh(int j, npy_intp points, npy_int64 order, const Settings& how) {
        T* w = weight[j];
        if (how.mode == BICUBIC) cubic(j, t, order, points, w);
        else if (how.mode == NEAREST || order > 0) std::fill_n(w, points, how.mode == NEAREST ? T(order == 0) : T(order == 1) * T(2 * j - 1));
        else
            for (npy_intp i = 0; i < points; i++) w[i] = j ? t[i] : 1 - t[i];
        for (npy_int64 k = 0; k < order; k++)
            for (npy_intp i = 0; i < points; i++) w[i] *= p.slope[i];
    }
};

// ------------------------------------------------------------------------------------------------ of all dimensions

// The elements that the points of a block read, one after the other.
template <class T>
struct Taps {
    npy_intp index[MOST_TAPS][BLOCK];
    T weight[3][MOST_TAPS][BLOCK];  // the weights, or their derivatives with respect to the columns of the grid
    int count;
    bool inside;  // whether no index is negative

    Taps(const Job<T>& job) : job(job) {}

    NOT_INLINE void fill(npy_intp image, npy_intp first, npy_intp points, bool slopes) {
        const int axes = job.axes;
        const T* grid = job.positions(image, first);
        npy_intp stride = 1;
        count = 1;
        for (int a = axes - 1; a >= 0; a--) {
            const int axis = 3 - axes + a;
            const npy_int64 order = job.how.order[axis], size = job.how.size[axis];
            along[a].fill(grid + axes - 1 - a, axes, points, size, stride, order, job.how);
            if (slopes) raised[a].fill(grid + axes - 1 - a, axes, points, size, stride, order + 1, job.how);
            stride *= size, count *= along[a].taps(job.how);
        }
        inside = true;
        for (int k = 0; k < count; k++) combine(k, points, slopes);
    }

    // The element at an index; 0 outside.
    T value(const T* x, int k, npy_intp i) const { return index[k][i] < 0 ? T(0) : x[index[k][i]]; }

private:
    const Job<T>& job;
    Along<T> along[3], raised[3];

    void combine(int k, npy_intp points, bool slopes) {
        const int axes = job.axes;
        int neighbor[3] = {};
        for (int a = axes - 1, rest = k; a >= 0; a--) neighbor[a] = rest % along[a].taps(job.how), rest /= along[a].taps(job.how);
        npy_intp* at = index[k];
        std::copy_n(along[0].index[neighbor[0]], points, at);
        for (int a = 1; a < axes; a++) {
            const npy_intp* next = along[a].index[neighbor[a]];
            for (npy_intp i = 0; i < points; i++) at[i] += next[i];
        }
        npy_intp any = 0;
        for (npy_intp i = 0; i < points; i++) any |= at[i];
        inside &= any >= 0;
        for (int column = 0; column < (slopes ? axes : 1); column++) {
            const auto factor = [&](int a) { return (slopes && a == axes - 1 - column ? raised : along)[a].weight[neighbor[a]]; };
            T* product = weight[column][k];
            std::copy_n(factor(0), points, product);
            for (int a = 1; a < axes; a++) {
                const T* next = factor(a);
                for (npy_intp i = 0; i < points; i++) product[i] *= next[i];
            }
        }
    }
};

// Calls `body(image, first, points)` for blocks of points, on several threads.
template <class T, class F>
void each_block(const Job<T>& job, F body) {
    const npy_intp blocks = (job.points + BLOCK - 1) / BLOCK;
    parallel_for(job.images * blocks, ENOUGH / (BLOCK * (job.channels + 1)) + 1, [&](npy_intp begin, npy_intp end) {
        std::unique_ptr<Taps<T>> taps(new Taps<T>(job));
        for (npy_intp b = begin; b < end; b++) {
            const npy_intp first = b % blocks * BLOCK;
            body(*taps, b / blocks, first, std::min(BLOCK, job.points - first));
        }
    });
}

// Sets out to the products of an image with `taps_at_once` taps from k on, or adds them one after the other.
template <int taps_at_once, class T, class F>
void weighted_sum(const Taps<T>& taps, int k, npy_intp points, F value, T* out) {
    for (npy_intp i = 0; i < points; i++) {
        T sum = value(k, i) * taps.weight[0][k][i];
        if (k) sum = out[i] + sum;
        for (int j = 1; j < taps_at_once; j++) sum += value(k + j, i) * taps.weight[0][k + j][i];
        out[i] = sum;
    }
}

template <class T>
void samples(const Job<T>& job) {
    each_block(job, [&](Taps<T>& taps, npy_intp image, npy_intp first, npy_intp points) {
        taps.fill(image, first, points, false);
        for (npy_intp c = image * job.channels; c < (image + 1) * job.channels; c++) {
            const T* x = job.x + c * job.size;
            T* out = job.out + c * job.points + first;
            const auto inside = [&](int k, npy_intp i) { return x[taps.index[k][i]]; };
            const auto anywhere = [&](int k, npy_intp i) { return taps.value(x, k, i); };
            if (taps.count == 1) weighted_sum<1>(taps, 0, points, anywhere, out);
            for (int k = 0; k + 4 <= taps.count; k += 4)
                taps.inside ? weighted_sum<4>(taps, k, points, inside, out) : weighted_sum<4>(taps, k, points, anywhere, out);
        }
    });
}

template <class T>
void slopes(const Job<T>& job) {
    each_block(job, [&](Taps<T>& taps, npy_intp image, npy_intp first, npy_intp points) {
        taps.fill(image, first, points, true);
        T product[BLOCK], sums[3][BLOCK] = {};
        for (npy_intp c = image * job.channels; c < (image + 1) * job.channels; c++) {
            const T *x = job.x + c * job.size, *y = job.y + c * job.points + first;
            for (int k = 0; k < taps.count; k++) {
                for (npy_intp i = 0; i < points; i++) product[i] = y[i] * taps.value(x, k, i);
                for (int column = 0; column < job.axes; column++)
                    for (npy_intp i = 0; i < points; i++) sums[column][i] += product[i] * taps.weight[column][k][i];
            }
        }
        T* out = job.out + (image * job.points + first) * job.axes;
        for (npy_intp i = 0; i < points; i++)
            for (int column = 0; column < job.axes; column++) out[i * job.axes + column] = sums[column][i];
    });
}

// An image of a channel is written by one thread, so that sums do not depend on the number of threads.
template <class T>
void sums_of_points(const Job<T>& job) {
    parallel_for(job.images * job.channels, ENOUGH / (job.size + job.points + 1) + 1, [&](npy_intp begin, npy_intp end) {
        std::unique_ptr<Taps<T>> taps(new Taps<T>(job));
        std::fill(job.out + begin * job.size, job.out + end * job.size, T(0));
        while (begin < end) {
            const npy_intp image = begin / job.channels, stop = std::min(end, (image + 1) * job.channels);
            for (npy_intp first = 0; first < job.points; first += BLOCK) {
                const npy_intp points = std::min(BLOCK, job.points - first);
                taps->fill(image, first, points, false);
                for (npy_intp c = begin; c < stop; c++) {
                    const T* y = job.y + c * job.points + first;
                    T* out = job.out + c * job.size;
                    for (int k = 0; k < taps->count; k++)
                        for (npy_intp i = 0; i < points; i++)
                            if (taps->index[k][i] >= 0) out[taps->index[k][i]] += y[i] * taps->weight[0][k][i];
                }
            }
            begin = stop;
        }
    });
}

// ------------------------------------------------------------------------------------------------------ arguments

bool read(PyObject* numbers, Settings& how) {
    npy_int64 found[9];
    if (PyTuple_GET_SIZE(numbers) != 9) return false;
    for (int k = 0; k < 9; k++) found[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, k));
    if (PyErr_Occurred()) return PyErr_Clear(), false;
    std::memcpy(&how, found, sizeof how);
    bool good = how.mode >= BILINEAR && how.mode <= BICUBIC && how.padding >= ZEROS && how.padding <= REFLECTION;
    for (int k = 0; k < 3; k++) good = good && how.size[k] >= 1 && how.order[k] >= 0;
    good = good && double(how.size[0]) * double(how.size[1]) * double(how.size[2]) < 0x1p60;
    return good;
}

// Returns whether images or points (n, c, count) fit those of the job, which the first of them determines.
template <class T>
bool fits(const Job<T>& job, PyArrayObject* a, int type, npy_intp count) {
    return is(a, type, 3) && PyArray_DIM(a, 0) == job.images && PyArray_DIM(a, 1) == job.channels && PyArray_DIM(a, 2) == count;
}

template <class T>
PyObject* run(const char* name, PyObject* settings, PyArrayObject* y, PyArrayObject* x, PyArrayObject* grid, PyArrayObject* out,
              int type) {
    Job<T> job{};
    PyArrayObject* first = x ? x : y;
    if (!read(settings, job.how) || !is(grid, type, 3) || !is(first, type, 3) || !is_writable(out, type, 3))
        return raise_mismatch(name);
    job.axes = int(PyArray_DIM(grid, 2));
    job.images = PyArray_DIM(first, 0), job.channels = PyArray_DIM(first, 1);
    job.points = PyArray_DIM(grid, 1), job.size = job.how.size[0] * job.how.size[1] * job.how.size[2];
    bool good = PyArray_DIM(grid, 0) == job.images && (job.axes == 3 || (job.axes == 2 && job.how.size[0] == 1));
    good = good && !(job.axes == 3 && job.how.mode == BICUBIC);
    good = good && (!x || fits(job, x, type, job.size)) && (!y || fits(job, y, type, job.points));
    if (x && y) good = good && PyArray_SAMESHAPE(out, grid);
    else good = good && fits(job, out, type, x ? job.points : job.size);
    if (!good) return raise_mismatch(name);
    job.x = x ? static_cast<T*>(PyArray_DATA(x)) : nullptr;
    job.y = y ? static_cast<T*>(PyArray_DATA(y)) : nullptr;
    job.grid = static_cast<T*>(PyArray_DATA(grid)), job.out = static_cast<T*>(PyArray_DATA(out));
    const auto fill = x && y ? slopes<T> : x ? samples<T> : sums_of_points<T>;
    if (!without_gil([&] { fill(job); })) return nullptr;
    Py_RETURN_NONE;
}

PyObject* run_any(const char* name, PyObject* settings, PyArrayObject* y, PyArrayObject* x, PyArrayObject* grid, PyArrayObject* out) {
    if (PyArray_TYPE(grid) == NPY_FLOAT) return run<float>(name, settings, y, x, grid, out, NPY_FLOAT);
    return run<double>(name, settings, y, x, grid, out, NPY_DOUBLE);
}

PyObject* sample_points(PyObject*, PyObject* args) {
    PyObject* settings;
    PyArrayObject *x, *grid, *out;
    PyTypeObject* array = &PyArray_Type;
    if (!PyArg_ParseTuple(args, "O!O!O!O!", &PyTuple_Type, &settings, array, &x, array, &grid, array, &out)) return nullptr;
    return run_any("sample_points", settings, nullptr, x, grid, out);
}

PyObject* sample_points_backward(PyObject*, PyObject* args) {
    PyObject* settings;
    PyArrayObject *y, *grid, *out;
    PyTypeObject* array = &PyArray_Type;
    if (!PyArg_ParseTuple(args, "O!O!O!O!", &PyTuple_Type, &settings, array, &y, array, &grid, array, &out)) return nullptr;
    return run_any("sample_points_backward", settings, y, nullptr, grid, out);
}

PyObject* sample_slopes(PyObject*, PyObject* args) {
    PyObject* settings;
    PyArrayObject *y, *x, *grid, *out;
    PyTypeObject* array = &PyArray_Type;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!", &PyTuple_Type, &settings, array, &y, array, &x, array, &grid, array, &out)) return nullptr;
    return run_any("sample_slopes", settings, y, x, grid, out);
}

PyMethodDef methods[] = {
    {"sample_points", separate<sample_points, 1>, METH_VARARGS, "Images at the points of a grid."},
    {"sample_points_backward", separate<sample_points_backward, 1>, METH_VARARGS, "Numbers at points, added to images."},
    {"sample_slopes", separate<sample_slopes, 1>, METH_VARARGS, "Derivatives of samples by the grid."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_grid_sample{methods};

}  // namespace retrograd
