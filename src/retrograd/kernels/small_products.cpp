// Products of small matrices by the loop of NumPy's matmul, called without NumPy's checks and iterators, which take
// several times as long as the loop.  The results have the same bits.

#include "array_memory.hpp"
#include "fused_group.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// Products with at least as many multiplications are left to the wrapped function; see WORTH in backend/products.py.
constexpr npy_intp LARGE = 1 << 17;

// The loops of numpy.matmul for float and double.
struct Matmul {
    PyUFuncGenericFunction loops[2] = {nullptr, nullptr};
    void* data[2] = {nullptr, nullptr};
};

bool find(Matmul& found, PyObject* matmul) {
    if (!PyObject_TypeCheck(matmul, &PyUFunc_Type)) return false;
    PyUFuncObject* ufunc = reinterpret_cast<PyUFuncObject*>(matmul);
    const int numbers[2] = {NPY_FLOAT, NPY_DOUBLE};
    for (int k = 0; k < 2; k++) {
        const int types[3] = {numbers[k], numbers[k], numbers[k]}, i = loop_of(ufunc, types);
        if (i < 0) return false;
        found.loops[k] = ufunc->functions[i], found.data[k] = ufunc->data ? ufunc->data[i] : nullptr;
    }
    return true;
}

const Matmul& numpy_matmul() {
    static Matmul found;
    static bool initialized = false;
    if (initialized) return found;
    initialized = true;
    PyObject* numpy = PyImport_ImportModule("numpy");
    PyObject* matmul = numpy ? PyObject_GetAttrString(numpy, "matmul") : nullptr;
    if (matmul) find(found, matmul);  // else all calls are left to the wrapped function
    PyErr_Clear();
    Py_XDECREF(matmul);
    Py_XDECREF(numpy);
    return found;
}

PyArrayObject* as_array(PyObject* o, int ndim) {
    if (!PyArray_CheckExact(o)) return nullptr;
    PyArrayObject* a = reinterpret_cast<PyArrayObject*>(o);
    const int type = PyArray_TYPE(a);
    return (type == NPY_FLOAT || type == NPY_DOUBLE) && PyArray_NDIM(a) == ndim && PyArray_ISBEHAVED_RO(a) ? a : nullptr;
}

// A factor: where its elements are.  The strides of dimensions of length 1 are zero, as NumPy passes them to loops.
struct Factor {
    char* at;
    npy_intp rows, columns, row, column;
    Factor(PyArrayObject* a, npy_intp rows, npy_intp columns, npy_intp row, npy_intp column)
        : at(PyArray_BYTES(a)), rows(rows), columns(columns), row(rows == 1 ? 0 : row), column(columns == 1 ? 0 : column) {}
};

template <class T>
void add_to_rows(T* out, const char* bias, npy_intp step, npy_intp rows, npy_intp columns) {
    for (npy_intp i = 0; i < rows; i++, out += columns)
        for (npy_intp j = 0; j < columns; j++) out[j] += *reinterpret_cast<const T*>(bias + j * step);
}

// Returns a b plus a bias, which may be null, in an array of the shape: a new reference.  Returns null, perhaps without an
// error, if the wrapped function has to compute it, because it is large or because NumPy would warn.
PyObject* product(const Factor& a, const Factor& b, PyArrayObject* bias, int type, int ndim, const npy_intp* shape) {
    const npy_intp m = a.rows, k = a.columns, n = b.columns;
    // With one column and one row, products are those of single elements.
    if (b.rows != k || k < 2 || m == 0 || n == 0 || m >= LARGE || n >= LARGE || k >= LARGE || m * n >= LARGE || m * n * k >= LARGE)
        return nullptr;
    const int which = type == NPY_DOUBLE;
    const Matmul& matmul = numpy_matmul();
    if (!matmul.loops[which]) return nullptr;
    const npy_intp size = which ? sizeof(double) : sizeof(float);
    CachedMemory memory(m * n * size);
    PyObject* result = PyArray_SimpleNew(ndim, shape, type);
    if (!result) return nullptr;
    char* out = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(result));
    char* args[3] = {a.at, b.at, out};
    const npy_intp dimensions[4] = {1, m, k, n};
    const npy_intp steps[9] = {0, 0, 0, a.row, a.column, b.row, b.column, m == 1 ? 0 : n * size, n == 1 ? 0 : size};
    clear_raised();
    matmul.loops[which](args, dimensions, steps, matmul.data[which]);
    if (bias && which) add_to_rows(reinterpret_cast<double*>(out), PyArray_BYTES(bias), PyArray_STRIDE(bias, 0), m, n);
    else if (bias) add_to_rows(reinterpret_cast<float*>(out), PyArray_BYTES(bias), PyArray_STRIDE(bias, 0), m, n);
    if (!reported(raised()) && !PyErr_Occurred()) return result;
    Py_DECREF(result);
    return nullptr;
}

PyObject* try_matmul(PyObject* const* args, Py_ssize_t count) {
    PyArrayObject *a = count == 2 ? as_array(args[0], 2) : nullptr, *b = a ? as_array(args[1], 2) : nullptr;
    if (!b || PyArray_TYPE(a) != PyArray_TYPE(b)) return nullptr;
    const npy_intp shape[2] = {PyArray_DIM(a, 0), PyArray_DIM(b, 1)};
    return product({a, PyArray_DIM(a, 0), PyArray_DIM(a, 1), PyArray_STRIDE(a, 0), PyArray_STRIDE(a, 1)},
                   {b, PyArray_DIM(b, 0), PyArray_DIM(b, 1), PyArray_STRIDE(b, 0), PyArray_STRIDE(b, 1)}, nullptr,
                   PyArray_TYPE(a), 2, shape);
}

// The rows of x are those of a matrix if x is one, or if it is contiguous.
PyObject* try_linear(PyObject* const* args, Py_ssize_t count) {
    if (count < 2 || count > 3 || !PyArray_CheckExact(args[0])) return nullptr;
    const int ndim = PyArray_NDIM(reinterpret_cast<PyArrayObject*>(args[0]));
    PyArrayObject *x = as_array(args[0], ndim), *weight = as_array(args[1], 2), *bias = nullptr;
    if (!x || !weight || ndim == 0 || PyArray_TYPE(x) != PyArray_TYPE(weight)) return nullptr;
    if (ndim != 2 && !PyArray_IS_C_CONTIGUOUS(x)) return nullptr;
    const npy_intp features = PyArray_DIM(x, ndim - 1), n = PyArray_DIM(weight, 0);
    if (features == 0 || ndim > NPY_MAXDIMS) return nullptr;
    if (count == 3 && args[2] != Py_None) {
        bias = as_array(args[2], 1);
        if (!bias || PyArray_TYPE(bias) != PyArray_TYPE(x) || PyArray_DIM(bias, 0) != n) return nullptr;
    }
    npy_intp shape[NPY_MAXDIMS];
    std::copy(PyArray_DIMS(x), PyArray_DIMS(x) + ndim - 1, shape);
    shape[ndim - 1] = n;
    const npy_intp row = ndim == 2 ? PyArray_STRIDE(x, 0) : features * PyArray_ITEMSIZE(x);
    return product({x, PyArray_SIZE(x) / features, features, row, PyArray_STRIDE(x, ndim - 1)},
                   {weight, PyArray_DIM(weight, 1), n, PyArray_STRIDE(weight, 1), PyArray_STRIDE(weight, 0)}, bias,
                   PyArray_TYPE(x), ndim, shape);
}

PyMethodDef methods[] = {
    {"small_matmul", wrap_method<try_matmul>, METH_O, "Return a function of two matrices that calls the wrapped one unless they are small."},
    {"small_linear", wrap_method<try_linear>, METH_O, "Return a function of x, weight and bias that calls the wrapped one unless they are small."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_small_products{methods};

}  // namespace retrograd
