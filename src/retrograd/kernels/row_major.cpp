// Copies in row-major order, of arrays whose rows are columns in memory: NumPy reads those one element at a time.

#include "registration.hpp"
#include "tiles.hpp"

namespace retrograd {
namespace {

// A dimension of the copy: its size, and its strides in the array and in the copy, in elements.
struct Dimension {
    npy_intp size, from, to;
};

// The dimensions of an array, in order, without those of size 1; those that are one in memory are joined.
struct Dimensions {
    int count = 0;
    Dimension of[NPY_MAXDIMS];
    bool whole = true;  // whether all strides are numbers of elements

    explicit Dimensions(PyArrayObject* x) {
        const npy_intp bytes = PyArray_ITEMSIZE(x);
        npy_intp to = PyArray_SIZE(x);
        for (int d = 0; d < PyArray_NDIM(x); d++) {
            const npy_intp size = PyArray_DIM(x, d), from = PyArray_STRIDE(x, d) / bytes;
            if (size == 1) continue;
            whole &= PyArray_STRIDE(x, d) % bytes == 0;
            to /= size;
            Dimension* before = count ? of + count - 1 : nullptr;
            if (before && before->from == from * size)
                *before = {before->size * size, from, to};
            else
                of[count++] = {size, from, to};
        }
    }

    // Returns the dimension along which the array is contiguous; -1 if there is none.
    int contiguous() const {
        for (int d = count - 1; d >= 0; d--)
            if (of[d].from == 1) return d;
        return -1;
    }
};

constexpr npy_intp FEW = 1024;  // elements that NumPy copies in less time than it takes to look at their strides
constexpr npy_intp STRIP = 64;  // columns of a matrix that one thread transposes

// Transposes the matrices of a contiguous dimension and the last one.
template <class T>
void transpose_matrices(const T* from, T* to, const Dimensions& all, int contiguous) {
    const Dimension rows = all.of[all.count - 1], columns = all.of[contiguous];
    npy_intp matrices = 1;
    for (int d = 0; d < all.count - 1; d++) matrices *= d == contiguous ? 1 : all.of[d].size;
    const npy_intp strips = (columns.size + STRIP - 1) / STRIP;
    parallel_for(matrices * strips, std::max<npy_intp>(1, ENOUGH / (std::min(STRIP, columns.size) * rows.size)),
                 [=, &all](npy_intp begin, npy_intp end) {
                     for (npy_intp i = begin; i < end; i++) {
                         const npy_intp first = i % strips * STRIP;
                         npy_intp rest = i / strips, source = first, target = first * columns.to;
                         for (int d = all.count - 2; d >= 0; d--) {
                             if (d == contiguous) continue;
                             const npy_intp index = rest % all.of[d].size;
                             rest /= all.of[d].size;
                             source += index * all.of[d].from;
                             target += index * all.of[d].to;
                         }
                         transposed(from + source, rows.from, rows.size, std::min(STRIP, columns.size - first),
                                    to + target, columns.to);
                     }
                 });
}

// Transposes an array into a copy if its elements can be numbers of a vector, and its rows are columns in memory; returns
// false if they are not.
bool transpose_into(PyArrayObject* x, PyArrayObject* out, bool* enough) {
    const npy_intp bytes = PyArray_ITEMSIZE(x);
    if (PyArray_SIZE(x) < FEW || (bytes != 4 && bytes != 8) || PyDataType_REFCHK(PyArray_DESCR(x))) return false;
    const Dimensions dimensions(x);
    const int contiguous = dimensions.contiguous();
    const char* from = PyArray_BYTES(x);
    const bool aligned = dimensions.whole && reinterpret_cast<npy_uintp>(from) % bytes == 0;
    if (!aligned || contiguous < 0 || contiguous == dimensions.count - 1) return false;
    char* to = PyArray_BYTES(out);
    *enough = without_gil([&] {
        if (bytes == 4)
            transpose_matrices(reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to), dimensions, contiguous);
        else
            transpose_matrices(reinterpret_cast<const double*>(from), reinterpret_cast<double*>(to), dimensions, contiguous);
    });
    return true;
}

PyObject* row_major(PyObject*, PyObject* array) {
    if (!PyArray_Check(array)) return raise_mismatch("row_major");
    PyArrayObject* x = reinterpret_cast<PyArrayObject*>(array);
    PyObject* copy = PyArray_NewLikeArray(x, NPY_CORDER, nullptr, 0);
    if (!copy) return nullptr;
    PyArrayObject* out = reinterpret_cast<PyArrayObject*>(copy);
    bool enough = true;
    if (!transpose_into(x, out, &enough)) enough = PyArray_CopyInto(out, x) == 0;
    if (enough) return copy;
    Py_DECREF(copy);
    return nullptr;
}

PyMethodDef methods[] = {
    {"row_major", row_major, METH_O, "Return a copy of an array in row-major order."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_row_major{methods};

}  // namespace retrograd
