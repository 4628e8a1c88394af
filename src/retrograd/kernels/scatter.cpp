// Gather and scatter-add by integer indices.  Additions keep the order of the indices, so that sums do not depend on
// the number of threads.

#include <atomic>
#include <memory>

#include "loops.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

constexpr npy_intp FEW = 8;     // rows of up to this many columns are added directly, without chains
constexpr npy_intp BLOCK = 64;  // columns that one thread processes
constexpr npy_intp CHECKED = 512;  // indices that are checked before the first of them is used

template <class T>
T* data(PyArrayObject* a) {
    return static_cast<T*>(PyArray_DATA(a));
}

// -------------------------------------------------------------------------------------------------------- rows

template <class T>
struct Rows {
    const T* rows;        // (batch, count, columns)
    const npy_int64* ids;  // (count)
    const T* x;           // (batch, size, columns), to which the sums are added; or null
    T* out;               // (batch, size, columns)
    npy_intp batch, count, size, columns;
};

// Sets out = x + out for n numbers.
template <class T>
INLINE void add_to_sums(const T* x, T* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = x[i] + out[i];
}

// Adds each row to its target, one after the other.
template <class T>
INLINE void add_each(const Rows<T>& all, npy_intp begin, npy_intp end) {
    npy_intp columns = all.columns;
    for (npy_intp b = begin; b < end; b++) {
        T* out = all.out + b * all.size * columns;
        const T* row = all.rows + b * all.count * columns;
        for (npy_intp i = 0; i < all.size * columns; i++) out[i] = 0;
        if (columns == 1) {
            for (npy_intp j = 0; j < all.count; j++) out[all.ids[j]] += row[j];
        } else {
            for (npy_intp j = 0; j < all.count; j++, row += columns) {
                T* target = out + all.ids[j] * columns;
                for (npy_intp c = 0; c < columns; c++) target[c] += row[c];
            }
        }
        if (all.x) add_to_sums(all.x + b * all.size * columns, out, all.size * columns);
    }
}

// Writes the rows from `begin` to `end` of all batches' results, each once, as the sum of its chain of sources.
// `first` and `next` are linked lists of indices into `ids`.
template <class T>
INLINE void add_chains(const Rows<T>& all, const npy_intp* first, const npy_intp* next, npy_intp begin, npy_intp end) {
    npy_intp columns = all.columns;
    for (npy_intp row_index = begin; row_index < end; row_index++) {
        const T* rows = all.rows + row_index / all.size * all.count * columns;
        T* out = all.out + row_index * columns;
        npy_intp j = first[row_index % all.size];
        if (j < 0) {
            for (npy_intp c = 0; c < columns; c++) out[c] = 0;
        } else {
            const T* row = rows + j * columns;
            IN_ANY_ORDER
            for (npy_intp c = 0; c < columns; c++) out[c] = T(0) + row[c];  // 0 for -0, as in sums of few columns
            for (j = next[j]; j >= 0; j = next[j]) {
                row = rows + j * columns;
                IN_ANY_ORDER
                for (npy_intp c = 0; c < columns; c++) out[c] += row[c];
            }
        }
        if (all.x) add_to_sums(all.x + row_index * columns, out, columns);
    }
}

template <class T>
void sum(const Rows<T>& all) {
    if (all.columns <= FEW) {
        npy_intp work = all.size * all.columns + all.count * all.columns;
        parallel_for(all.batch, ENOUGH / (work + 1), [&](npy_intp begin, npy_intp end) { cpu_dispatch<add_each<T>>(all, begin, end); });
        return;
    }
    std::unique_ptr<npy_intp[]> chain(new npy_intp[all.size + all.count]);
    npy_intp *first = chain.get(), *next = first + all.size;
    for (npy_intp i = 0; i < all.size; i++) first[i] = -1;
    for (npy_intp j = all.count - 1; j >= 0; j--) {
        next[j] = first[all.ids[j]];
        first[all.ids[j]] = j;
    }
    npy_intp least = ENOUGH / (all.columns * (1 + all.count / (all.size + 1)));
    parallel_for(all.batch * all.size, least, [&](npy_intp begin, npy_intp end) { cpu_dispatch<add_chains<T>>(all, first, next, begin, end); });
}

// Sets `valid` to false if an index is out of range: as unsigned numbers, negative ones are the largest.
INLINE void check_range(const npy_int64* ids, npy_intp count, npy_uint64 size, bool& valid) {
    npy_uint64 wrong = 0;
    for (npy_intp j = 0; j < count; j++) wrong |= static_cast<npy_uint64>(ids[j]) >= size;
    valid &= !wrong;
}

template <class T>
PyObject* sum_rows_of(PyArrayObject* rows, PyArrayObject* ids, PyArrayObject* x, PyArrayObject* out, int type) {
    if (!is(rows, type, 3) || !is(ids, NPY_INT64, 1) || !is_writable(out, type, 3)) return raise_mismatch("sum_rows");
    if (x && (!is(x, type, 3) || !PyArray_SAMESHAPE(x, out))) return raise_mismatch("add_rows");
    const npy_intp *rows_dims = PyArray_DIMS(rows), *out_dims = PyArray_DIMS(out);
    if (rows_dims[0] != out_dims[0] || rows_dims[1] != PyArray_DIM(ids, 0) || rows_dims[2] != out_dims[2])
        return raise_mismatch("sum_rows");
    Rows<T> all{data<T>(rows), data<npy_int64>(ids), x ? data<T>(x) : nullptr, data<T>(out),
                rows_dims[0],  rows_dims[1],         out_dims[1],              rows_dims[2]};
    bool valid = true;
    const auto scatter_add = [&] {
        cpu_dispatch<check_range>(all.ids, all.count, all.size, valid);
        if (valid) sum(all);
    };
    return without_gil(scatter_add) ? PyBool_FromLong(valid) : nullptr;
}

// ---------------------------------------------------------------------------------------- an index per element

// x (batch, size, columns), and an index (batch, count, columns) into the middle dimension.
template <class T>
struct Gather {
    T* x;
    const npy_int64* index;
    T* values;  // of the index's shape
    npy_intp batch, size, count, columns;
};

// Sets values[j] = x[index[j]], block by block: the indices of a block stay in the nearest cache after they were checked.
template <class T>
INLINE void take_numbers(const T* x, npy_uint64 size, const npy_int64* index, T* values, npy_intp count, bool& valid) {
    for (npy_intp first = 0; first < count && valid; first += CHECKED) {
        const npy_intp block = count - first < CHECKED ? count - first : CHECKED;
        check_range(index + first, block, size, valid);
        if (!valid) return;
        IN_ANY_ORDER
        for (npy_intp j = first; j < first + block; j++) values[j] = x[index[j]];
    }
}

// Sets picked[b, j, c] = x[b, index[b, j, c], c] for elements from `begin` to `end`; false if an index is out of range.
template <class T>
bool gather(const Gather<T>& all, npy_intp begin, npy_intp end) {
    npy_intp columns = all.columns, span = all.count * columns;
    npy_uint64 size = all.size;
    bool valid = true;
    for (npy_intp start = begin; start < end;) {
        npy_intp b = start / span, stop = (b + 1) * span < end ? (b + 1) * span : end, c = start % columns;
        const T* x = all.x + b * all.size * columns;
        if (columns == 1) cpu_dispatch<take_numbers<T>>(x, size, all.index + start, all.values + start, stop - start, valid);
        for (npy_intp i = columns == 1 ? stop : start; i < stop; i++) {
            bool good = static_cast<npy_uint64>(all.index[i]) < size;
            valid &= good;
            all.values[i] = good ? x[all.index[i] * columns + c] : T(0);
            c = c + 1 == columns ? 0 : c + 1;
        }
        start = stop;
    }
    return valid;
}

// Adds each of `count` numbers to the one of x that its index names; false if an index is out of range.
template <class T>
bool add_numbers(T* __restrict x, npy_uint64 size, const npy_int64* __restrict index, const T* __restrict values, npy_intp count) {
    bool valid = true;
    for (npy_intp j = 0; j < count; j++) {
        bool good = static_cast<npy_uint64>(index[j]) < size;
        valid &= good;
        if (good) x[index[j]] += values[j];
    }
    return valid;
}

// Sets x[b, i, c] to the sum of picked[b, j, c] with that index i, by blocks of columns; false if one is out of range.
template <class T>
bool scatter_add(const Gather<T>& all, npy_intp begin, npy_intp end) {
    npy_intp columns = all.columns, blocks = (columns + BLOCK - 1) / BLOCK;
    npy_uint64 size = all.size;
    bool valid = true;
    for (npy_intp block = begin; block < end; block++) {
        npy_intp b = block / blocks, first = block % blocks * BLOCK, most = columns - first < BLOCK ? columns - first : BLOCK;
        T* x = all.x + b * all.size * columns + first;
        npy_intp rows = blocks == 1 ? 1 : all.size;  // a single block is contiguous
        for (npy_intp i = 0; i < rows; i++) std::memset(x + i * columns, 0, most * all.size / rows * sizeof(T));
        if (columns == 1) {
            valid &= add_numbers(x, size, all.index + b * all.count, all.values + b * all.count, all.count);
            continue;
        }
        for (npy_intp j = 0; j < all.count; j++) {
            npy_intp row = (b * all.count + j) * columns + first;
            for (npy_intp c = 0; c < most; c++) {
                bool good = static_cast<npy_uint64>(all.index[row + c]) < size;
                valid &= good;
                if (good) x[all.index[row + c] * columns + c] += all.values[row + c];
            }
        }
    }
    return valid;
}

template <class T>
bool run(const Gather<T>& all, bool adding) {
    std::atomic<bool> valid{true};
    npy_intp each = adding ? (all.size + all.count) * (all.columns < BLOCK ? all.columns : BLOCK) : 1;
    npy_intp n = adding ? all.batch * ((all.columns + BLOCK - 1) / BLOCK) : all.batch * all.count * all.columns;
    parallel_for(n, ENOUGH / (each + 1), [&](npy_intp begin, npy_intp end) {
        if (!(adding ? scatter_add(all, begin, end) : gather(all, begin, end))) valid = false;
    });
    return valid;
}

template <class T>
PyObject* gather_or_add(const char* name, PyArrayObject* x, PyArrayObject* index, PyArrayObject* values, bool adding, int type) {
    if (!is(x, type, 3) || !is(index, NPY_INT64, 3) || !is(values, type, 3)) return raise_mismatch(name);
    if (!PyArray_ISWRITEABLE(adding ? x : values)) return raise_mismatch(name);
    const npy_intp *x_dims = PyArray_DIMS(x), *index_dims = PyArray_DIMS(index);
    if (x_dims[0] != index_dims[0] || x_dims[2] != index_dims[2] || !PyArray_SAMESHAPE(values, index)) return raise_mismatch(name);
    Gather<T> all{data<T>(x), data<npy_int64>(index), data<T>(values), x_dims[0], x_dims[1], index_dims[1], x_dims[2]};
    bool valid;
    return without_gil([&] { valid = run(all, adding); }) ? PyBool_FromLong(valid) : nullptr;
}

bool arrays(PyObject* args, PyArrayObject** a, PyArrayObject** b, PyArrayObject** c) {
    return PyArg_ParseTuple(args, "O!O!O!", &PyArray_Type, a, &PyArray_Type, b, &PyArray_Type, c);
}

PyObject* sum_rows(PyObject*, PyObject* args) {
    PyArrayObject *rows, *ids, *out;
    if (!arrays(args, &rows, &ids, &out)) return nullptr;
    if (PyArray_TYPE(rows) == NPY_FLOAT) return sum_rows_of<float>(rows, ids, nullptr, out, NPY_FLOAT);
    return sum_rows_of<double>(rows, ids, nullptr, out, NPY_DOUBLE);
}

PyObject* add_rows(PyObject*, PyObject* args) {
    PyArrayObject *rows, *ids, *x, *out;
    PyTypeObject* array = &PyArray_Type;
    if (!PyArg_ParseTuple(args, "O!O!O!O!", array, &rows, array, &ids, array, &x, array, &out)) return nullptr;
    if (PyArray_TYPE(rows) == NPY_FLOAT) return sum_rows_of<float>(rows, ids, x, out, NPY_FLOAT);
    return sum_rows_of<double>(rows, ids, x, out, NPY_DOUBLE);
}

PyObject* take_along(PyObject*, PyObject* args) {
    PyArrayObject *x, *index, *out;
    if (!arrays(args, &x, &index, &out)) return nullptr;
    if (PyArray_TYPE(x) == NPY_FLOAT) return gather_or_add<float>("take_along", x, index, out, false, NPY_FLOAT);
    return gather_or_add<double>("take_along", x, index, out, false, NPY_DOUBLE);
}

PyObject* sum_along(PyObject*, PyObject* args) {
    PyArrayObject *values, *index, *out;
    if (!arrays(args, &values, &index, &out)) return nullptr;
    if (PyArray_TYPE(out) == NPY_FLOAT) return gather_or_add<float>("sum_along", out, index, values, true, NPY_FLOAT);
    return gather_or_add<double>("sum_along", out, index, values, true, NPY_DOUBLE);
}

PyMethodDef methods[] = {
    {"sum_rows", separate<sum_rows, 1>, METH_VARARGS, "Sums of the rows with the same index."},
    {"add_rows", separate<add_rows, 1>, METH_VARARGS, "Rows, and the sums of the rows with their indices."},
    {"take_along", separate<take_along, 1>, METH_VARARGS, "The elements at indices along a dimension."},
    {"sum_along", separate<sum_along, 1>, METH_VARARGS, "Sums of the elements with the same index along a dimension."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_scatter{methods};

}  // namespace retrograd
