// Sums, differences, products and quotients in the common cases: two contiguous arrays of one floating type and shape,
// or such an array and a number.  Small arrays take half of the time of NumPy's functions, whose choice of a loop takes
// longer than the loop; large arrays are shared among threads.
//
// Everything else is left to NumPy's function.  So are results that NumPy would warn about: it computes them again.
// Exception: underflow, which numpy.errstate(under=...) can report, is never reported here.

#include <atomic>
#include <cmath>
#include <limits>

#include "array_memory.hpp"
#include "loops.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

enum Kind { ADD, SUBTRACT, MULTIPLY, TRUE_DIVIDE, KINDS };

constexpr npy_intp SMALL = 1024;  // up to this size, checking each result is faster than reading the processor's flags
constexpr int FP_ERRORS = FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID;

template <Kind kind, class T>
INLINE T result(T a, T b) {
    return kind == ADD ? a + b : kind == SUBTRACT ? a - b : kind == MULTIPLY ? a * b : a / b;
}

// Computes n results; an operand that is `single` is one value for all.
template <Kind kind, class T>
INLINE void all(const T* a, bool single_a, const T* b, bool single_b, T* out, npy_intp n) {
    if (single_a) {
        const T x = *a;
        for (npy_intp i = 0; i < n; i++) out[i] = result<kind>(x, b[i]);
    } else if (single_b) {
        const T y = *b;
        for (npy_intp i = 0; i < n; i++) out[i] = result<kind>(a[i], y);
    } else {
        for (npy_intp i = 0; i < n; i++) out[i] = result<kind>(a[i], b[i]);
    }
}

template <class T>
INLINE bool finite(const T* x, npy_intp n) {
    int fine = 1;
    for (npy_intp i = 0; i < n; i++) fine &= std::abs(x[i]) <= std::numeric_limits<T>::max();
    return fine;
}

template <class T>
constexpr void (*loops[KINDS])(const T*, bool, const T*, bool, T*, npy_intp) = {
    cpu_dispatch<all<ADD, T>>, cpu_dispatch<all<SUBTRACT, T>>, cpu_dispatch<all<MULTIPLY, T>>, cpu_dispatch<all<TRUE_DIVIDE, T>>};

// Returns whether no error occurred that NumPy would report.
template <class T>
bool compute(Kind kind, const T* a, bool single_a, const T* b, bool single_b, T* out, npy_intp n) {
    if (n <= SMALL) {
        loops<T>[kind](a, single_a, b, single_b, out, n);
        return finite(out, n);
    }
    std::atomic<bool> fine{true};
    NPY_BEGIN_ALLOW_THREADS;
    parallel_for(n, ENOUGH, [&](npy_intp begin, npy_intp end) {
        std::feclearexcept(FP_ERRORS);
        loops<T>[kind](a + (single_a ? 0 : begin), single_a, b + (single_b ? 0 : begin), single_b, out + begin, end - begin);
        if (std::fetestexcept(FP_ERRORS)) fine = false;
    });
    NPY_END_ALLOW_THREADS;
    return fine;
}

// Returns the object as a contiguous array of floating type, or null.
PyArrayObject* as_plain_array(PyObject* o) {
    if (!PyArray_CheckExact(o)) return nullptr;
    PyArrayObject* array = reinterpret_cast<PyArrayObject*>(o);
    int type = PyArray_TYPE(array);
    bool fits = (type == NPY_FLOAT || type == NPY_DOUBLE) && PyArray_IS_C_CONTIGUOUS(array) && PyArray_ISBEHAVED_RO(array);
    return fits ? array : nullptr;
}

// Converts a Python number if the result is the same as by NumPy's conversion, for both types.
bool number_of(PyObject* o, double& value) {
    constexpr long EXACT = 1 << 24;
    if (PyFloat_CheckExact(o)) {
        value = PyFloat_AS_DOUBLE(o);
        return true;
    }
    if (!PyLong_CheckExact(o)) return false;
    int overflow = 0;
    long whole = PyLong_AsLongAndOverflow(o, &overflow);
    value = static_cast<double>(whole);
    return !overflow && -EXACT <= whole && whole <= EXACT;
}

template <class T>
PyObject* combine(Kind kind, PyArrayObject* a, PyArrayObject* b, double number, PyArrayObject* like) {
    if (!(std::abs(number) <= std::numeric_limits<T>::max())) return nullptr;
    CachedMemory memory(PyArray_NBYTES(like));
    PyObject* result_object = PyArray_SimpleNew(PyArray_NDIM(like), PyArray_DIMS(like), PyArray_TYPE(like));
    if (!result_object) return nullptr;
    PyArrayObject* out = reinterpret_cast<PyArrayObject*>(result_object);
    const T scalar = static_cast<T>(number);
    const T *x = a ? static_cast<T*>(PyArray_DATA(a)) : &scalar, *y = b ? static_cast<T*>(PyArray_DATA(b)) : &scalar;
    if (compute(kind, x, a != like && (!a || PyArray_NDIM(a) == 0), y, b != like && (!b || PyArray_NDIM(b) == 0),
                 static_cast<T*>(PyArray_DATA(out)), PyArray_SIZE(out)))
        return result_object;
    Py_DECREF(result_object);
    return nullptr;
}

// Returns the result, or null without an error to leave the call to NumPy.
PyObject* try_fast(Kind kind, PyObject* left, PyObject* right) {
    PyArrayObject *a = as_plain_array(left), *b = as_plain_array(right), *like = a ? a : b;
    double number = 0;
    if (!like || (!a && !number_of(left, number)) || (!b && !number_of(right, number))) return nullptr;
    if (a && b) {
        if (PyArray_TYPE(a) != PyArray_TYPE(b)) return nullptr;
        if (PyArray_NDIM(a) == 0) like = b;
        else if (PyArray_NDIM(b) != 0 && !PyArray_SAMESHAPE(a, b)) return nullptr;
    }
    return PyArray_TYPE(like) == NPY_FLOAT ? combine<float>(kind, a, b, number, like)
                                           : combine<double>(kind, a, b, number, like);
}

PyObject* numpy_ufunc(Kind kind) {
    static PyObject* cached[KINDS];
    if (!cached[kind]) {
        static const char* const names[KINDS] = {"add", "subtract", "multiply", "true_divide"};
        PyObject* numpy = PyImport_ImportModule("numpy");
        if (numpy) cached[kind] = PyObject_GetAttrString(numpy, names[kind]);
        Py_XDECREF(numpy);
    }
    return cached[kind];
}

template <Kind kind>
PyObject* function(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    if (count == 2 && !names) {
        PyObject* found = try_fast(kind, args[0], args[1]);
        if (found || PyErr_Occurred()) return found;
    }
    PyObject* numpy_function = numpy_ufunc(kind);
    CachedMemory memory(count ? bytes_of(args[0]) : 0);
    return numpy_function ? PyObject_Vectorcall(numpy_function, args, count, names) : nullptr;
}

#define METHOD(name, kind)                                                                                                 \
    {                                                                                                                      \
        #name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function<kind>)), METH_FASTCALL | METH_KEYWORDS, \
            "numpy." #name                                                                                                 \
    }

PyMethodDef methods[] = {
    METHOD(add, ADD),
    METHOD(subtract, SUBTRACT),
    METHOD(multiply, MULTIPLY),
    METHOD(true_divide, TRUE_DIVIDE),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_arithmetic{methods};

}  // namespace retrograd
