// Max pooling with values and indices, and sums over windows of images; row by row of the result.

#include <limits>
#include <vector>

#include "maxpool_2x2.hpp"

namespace retrograd {
namespace {

// Reads rows of images in full vectors; rows whose last vector would pass the end of the images are copied.
template <class T>
class Lines {
public:
    Lines(const T* images, npy_intp n, npy_intp size) : end(images + n), size(size), copy(round_up(size)) {}
    const T* at(const T* row) {
        if (end - row >= round_up(size)) return row;
        std::copy(row, row + size, copy.begin());
        return copy.data();
    }

private:
    const T* end;
    npy_intp size;
    std::vector<T> copy;
};

// -------------------------------------------------------------------------------------------------------- maxima

// Returns whether a value replaces the best so far: the first of equal values wins, and the last NaN.
template <class T>
INLINE bool better(T x, Index<T> at, T best, Index<T> best_at) {
    bool none = x != x, had_none = best != best;
    return (none & (!had_none | (at > best_at))) | (x > best) | ((x == best) & (at < best_at));
}

// Computes the maxima of a row of the result: first of each column of the image, then of each window.
template <class T>
class Largest {
public:
    Largest(const Windows& w, Lines<T>& lines)
        : best(round_up(w.axis[2].out)), at(best.size()), w(w), lines(lines), column(w.wide(), NOTHING),
          column_at(w.wide(), NO_INDEX), first(best.size()) {
        for (npy_intp j = 0; j < w.axis[2].out; j++) {
            first[j] = Index<T>(w.axis[2].first[j]);
            if (w.axis[2].count[j] == 0) empty.push_back(j);
        }
    }

    std::vector<T> best;
    std::vector<Index<T>> at;

    INLINE void of_row(const T* image, npy_intp row) {
        Index<T> start = columns(image, row);
        npy_intp n = best.size();
        T *b = best.data(), *col = column.data() + w.axis[2].before;
        Index<T>*b_at = at.data(), *col_at = column_at.data() + w.axis[2].before, *begin = first.data();
        for (npy_intp j = 0; j < n; j++) {
            b[j] = NOTHING;
            b_at[j] = start + begin[j];
        }
        w.each_element(n, [=](npy_intp j, npy_intp index, auto step) {
            T x = read(col + index, step);
            Index<T> x_at = read(col_at + index, step);
            bool replace = better(x, x_at, b[j], b_at[j]);
            b[j] = replace ? x : b[j];
            b_at[j] = replace ? x_at : b_at[j];
        });
        if (start < 0) std::fill(at.begin(), at.end(), 0);
        for (npy_intp j : empty) at[j] = 0;
    }

private:
    static constexpr T NOTHING = -std::numeric_limits<T>::infinity();
    static constexpr Index<T> NO_INDEX = std::numeric_limits<Index<T>>::max();
    const Windows& w;
    Lines<T>& lines;
    std::vector<T> column;  // maxima of the image's columns within the windows' rows
    std::vector<Index<T>> column_at, first;
    std::vector<npy_intp> empty;  // windows without elements

    // Computes the columns' maxima; returns the index where the first row of the windows begins.
    INLINE Index<T> columns(const T* image, npy_intp row) {
        Index<T> size = Index<T>(w.axis[2].size), n = Index<T>(round_up(size)), start = -1;
        T* col = column.data() + w.axis[2].before;
        Index<T>* col_at = column_at.data() + w.axis[2].before;
        w.each_row(row, [&](npy_intp begin) {
            const T* x = lines.at(image + begin);
            Index<T> index = Index<T>(begin);
            if (start < 0) {
                start = index;
                for (Index<T> k = 0; k < n; k++) {
                    col[k] = k < size ? x[k] : NOTHING;
                    col_at[k] = k < size ? index + k : NO_INDEX;
                }
            } else {
                IN_ANY_ORDER
                for (Index<T> k = 0; k < n; k++) {
                    bool replace = ((x[k] > col[k]) | (x[k] != x[k])) & (k < size);
                    col[k] = replace ? x[k] : col[k];
                    col_at[k] = replace ? index + k : col_at[k];
                }
            }
        });
        return start;
    }
};

template <class T>
INLINE void largest(const Maxima<T>& job, npy_intp begin, npy_intp end) {
    const Windows& w = job.windows;
    npy_intp per = w.axis[2].out, image_size = w.image_size();
    Lines<T> lines(job.x, job.images * image_size, w.axis[2].size);
    Largest<T> maxima(w, lines);
    for (npy_intp n = begin; n < end; n++) {
        T* image = static_cast<T*>(job.out) + n * image_size;
        if (job.mode == BACK) std::fill(image, image + image_size, T(0));
        for (npy_intp row = 0; row < w.rows(); row++) {
            npy_intp start = n * w.count() + row * per;
            maxima.of_row(job.x + n * image_size, row);
            if (job.mode == VALUES)
                for (npy_intp j = 0; j < per; j++) static_cast<T*>(job.out)[start + j] = maxima.best[j];
            else if (job.mode == INDICES)
                for (npy_intp j = 0; j < per; j++) static_cast<npy_int64*>(job.out)[start + j] = maxima.at[j];
            else
                for (npy_intp j = 0; j < per; j++) image[maxima.at[j]] += job.g[start + j];
        }
    }
}

// ---------------------------------------------------------------------------------------------------------- sums

template <class T>
struct Sums {
    Windows windows;
    npy_intp images;
    const T* x;
    T* out;
};

// Sums first the columns of the image, then the windows.
template <class T>
INLINE void sums(const Sums<T>& job, npy_intp begin, npy_intp end) {
    const Windows& w = job.windows;
    npy_intp per = w.axis[2].out, size = w.axis[2].size, n = round_up(size);
    Lines<T> lines(job.x, job.images * w.image_size(), size);
    std::vector<T> column(w.wide()), total(round_up(per));
    T *col = column.data() + w.axis[2].before, *sum = total.data();
    for (npy_intp unit = begin * w.rows(); unit < end * w.rows(); unit++) {
        const T* image = job.x + unit / w.rows() * w.image_size();
        for (npy_intp k = 0; k < n; k++) col[k] = 0;
        w.each_row(unit % w.rows(), [&](npy_intp start) {
            const T* x = lines.at(image + start);
            for (npy_intp k = 0; k < n; k++) col[k] += k < size ? x[k] : T(0);
        });
        for (npy_intp j = 0; j < round_up(per); j++) sum[j] = 0;
        w.each_element(round_up(per), [=](npy_intp j, npy_intp index, auto step) { sum[j] += read(col + index, step); });
        for (npy_intp j = 0; j < per; j++) job.out[unit * per + j] = sum[j];
    }
}

// The transposed map, from results x to images: a row is spread over columns, then added to rows.
template <class T>
INLINE void sums_back(const Sums<T>& job, npy_intp begin, npy_intp end) {
    const Windows& w = job.windows;
    npy_intp per = w.axis[2].out, size = w.axis[2].size;
    std::vector<T> column(w.wide());
    T* col = column.data() + w.axis[2].before;
    std::fill(job.out + begin * w.image_size(), job.out + end * w.image_size(), T(0));
    for (npy_intp unit = begin * w.rows(); unit < end * w.rows(); unit++) {
        const T* x = job.x + unit * per;
        T* image = job.out + unit / w.rows() * w.image_size();
        std::fill(col, col + size, T(0));
        w.each_element(per, [=](npy_intp j, npy_intp index, auto) { col[index] += x[j]; });
        w.each_row(unit % w.rows(), [&](npy_intp start) {
            for (npy_intp k = 0; k < size; k++) image[start + k] += col[k];
        });
    }
}

// ----------------------------------------------------------------------------------------------------- batches

template <class T>
void all_largest(const npy_int64* table, Mode mode, npy_intp images, const void* x, const void* g, void* out) {
    Maxima<T> job{Windows(table), mode, images, static_cast<const T*>(x), static_cast<const T*>(g), out};
    const bool squares = are_squares(job.windows);
    parallel_for(images, ENOUGH / (job.windows.image_size() + 1) + 1,
          [&](npy_intp begin, npy_intp end) { (squares ? largest_of_squares<T> : cpu_dispatch<largest<T>>)(job, begin, end); });
}

template <class T>
void all_sums(const npy_int64* table, bool back, npy_intp images, const void* x, void* out) {
    Sums<T> job{Windows(table), images, static_cast<const T*>(x), static_cast<T*>(out)};
    parallel_for(images, ENOUGH / (job.windows.image_size() + 1) + 1,
          [&](npy_intp begin, npy_intp end) { back ? cpu_dispatch<sums_back<T>>(job, begin, end) : cpu_dispatch<sums<T>>(job, begin, end); });
}

// The arguments of a method: a plan with a table, then contiguous arrays (images, ...).
struct Arguments {
    PyObject* plan;
    PyArrayObject *x, *y = nullptr, *out;
    Table table;

    bool parse(PyObject* args, bool three) {
        PyTypeObject* array = &PyArray_Type;
        if (three ? !PyArg_ParseTuple(args, "OO!O!O!", &plan, array, &y, array, &x, array, &out)
                  : !PyArg_ParseTuple(args, "OO!O!", &plan, array, &x, array, &out))
            return false;
        table = table_of(plan);
        return table.at != nullptr;
    }
    bool single() const { return PyArray_TYPE(x) == NPY_FLOAT; }
    npy_intp images() const { return PyArray_DIM(x, 0); }

    // Returns whether x has the shape of images (`x_whole`) or of windows, and so has `out`, of dtype `out_type`.
    bool fit(bool x_whole, bool out_whole, int out_type) const {
        return Windows::complete(table) && is(x, type_of(x), 4) && is_writable(out, out_type, 4) && sized(x, x_whole) &&
               sized(out, out_whole) && images() == PyArray_DIM(out, 0);
    }
    bool sized(PyArrayObject* a, bool whole) const {
        bool good = PyArray_SIZE(a) > 0;
        for (int d = 0; d < 3; d++) good = good && PyArray_DIM(a, d + 1) == table.at[6 * d + !whole];
        return good;
    }
};

PyObject* find_maxima(PyObject* args, Mode mode) {
    Arguments a;
    if (!a.parse(args, mode == BACK)) return nullptr;
    bool good = a.fit(true, mode == BACK, mode == INDICES ? NPY_INT64 : type_of(a.x));
    if (good && a.y) good = is(a.y, type_of(a.x), 4) && a.sized(a.y, false) && PyArray_DIM(a.y, 0) == a.images();
    if (!good) return raise_mismatch("windows");
    const void* g = a.y ? PyArray_DATA(a.y) : nullptr;
    auto fill = a.single() ? all_largest<float> : all_largest<double>;
    if (!without_gil([=] { fill(a.table.at, mode, a.images(), PyArray_DATA(a.x), g, PyArray_DATA(a.out)); })) return nullptr;
    Py_RETURN_NONE;
}

PyObject* summed(PyObject* args, bool back) {
    Arguments a;
    if (!a.parse(args, false)) return nullptr;
    if (!a.fit(!back, back, type_of(a.x))) return raise_mismatch("windows");
    auto fill = a.single() ? all_sums<float> : all_sums<double>;
    if (!without_gil([=] { fill(a.table.at, back, a.images(), PyArray_DATA(a.x), PyArray_DATA(a.out)); })) return nullptr;
    Py_RETURN_NONE;
}

PyObject* window_maxima(PyObject*, PyObject* args) { return find_maxima(args, VALUES); }
PyObject* window_argmax(PyObject*, PyObject* args) { return find_maxima(args, INDICES); }
PyObject* window_maxima_backward(PyObject*, PyObject* args) { return find_maxima(args, BACK); }
PyObject* window_sums(PyObject*, PyObject* args) { return summed(args, false); }
PyObject* window_sums_backward(PyObject*, PyObject* args) { return summed(args, true); }

PyMethodDef methods[] = {
    {"window_maxima", separate<window_maxima, 1>, METH_VARARGS, "The maxima of windows."},
    {"window_argmax", separate<window_argmax, 1>, METH_VARARGS, "The indices of the maxima of windows."},
    {"window_maxima_backward", separate<window_maxima_backward, 1>, METH_VARARGS, "Values added at the maxima of windows."},
    {"window_sums", separate<window_sums, 1>, METH_VARARGS, "Sums over windows."},
    {"window_sums_backward", separate<window_sums_backward, 1>, METH_VARARGS, "Values added to all elements of windows."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_pooling{methods};

}  // namespace retrograd
