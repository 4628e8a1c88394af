// Sums, differences, products and quotients in the common cases: two contiguous arrays of one floating type, or such an
// array and a number.  Small arrays take half of the time of NumPy's functions, whose choice of a loop takes
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
        IN_ANY_ORDER
        for (npy_intp i = 0; i < n; i++) out[i] = result<kind>(x, b[i]);
    } else if (single_b) {
        const T y = *b;
        IN_ANY_ORDER
        for (npy_intp i = 0; i < n; i++) out[i] = result<kind>(a[i], y);
    } else {
        IN_ANY_ORDER
        for (npy_intp i = 0; i < n; i++) out[i] = result<kind>(a[i], b[i]);
    }
}

// Computes m rows of n results each; the steps between rows of an operand are in elements.
template <Kind kind, class T>
INLINE void all_rows(const T* a, npy_intp step_a, bool single_a, const T* b, npy_intp step_b, bool single_b, T* out, npy_intp m,
                     npy_intp n) {
    for (npy_intp i = 0; i < m; i++) all<kind>(a + i * step_a, single_a, b + i * step_b, single_b, out + i * n, n);
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

template <class T>
constexpr void (*row_loops[KINDS])(const T*, npy_intp, bool, const T*, npy_intp, bool, T*, npy_intp, npy_intp) = {
    cpu_dispatch<all_rows<ADD, T>>, cpu_dispatch<all_rows<SUBTRACT, T>>, cpu_dispatch<all_rows<MULTIPLY, T>>,
    cpu_dispatch<all_rows<TRUE_DIVIDE, T>>};

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

constexpr int MOST_DIMENSIONS_OF_ROWS = 8;
constexpr npy_intp LEAST_ROW = 8;  // elements; NumPy's loops over shorter rows, which join dimensions, are not slower

// The shape of a result of operands that broadcast, without the dimensions that can be joined to others, and the steps of
// each operand in elements, 0 where it is repeated.
struct Broadcast {
    int ndim = 0;
    npy_intp shape[NPY_MAXDIMS], joined[MOST_DIMENSIONS_OF_ROWS], steps[2][MOST_DIMENSIONS_OF_ROWS];

    // Returns whether rows of the result are long enough, and none is empty; joined dimensions come last first.
    bool find(PyArrayObject* const (&operands)[2]) {
        const int all = std::max(PyArray_NDIM(operands[0]), PyArray_NDIM(operands[1]));
        npy_intp sizes[2], step[2], whole[2] = {1, 1};
        for (int d = all - 1; d >= 0; d--) {
            for (int k = 0; k < 2; k++) {
                const int own = d - all + PyArray_NDIM(operands[k]);
                sizes[k] = own < 0 ? 1 : PyArray_DIM(operands[k], own);
                step[k] = sizes[k] == 1 ? 0 : whole[k];
                whole[k] *= sizes[k];
            }
            if (sizes[0] != sizes[1] && sizes[0] != 1 && sizes[1] != 1) return false;
            const npy_intp size = shape[d] = sizes[0] == 1 ? sizes[1] : sizes[0];
            if (size == 0 || (d == all - 1 && size < LEAST_ROW)) return false;
            if (size == 1) continue;
            if (!join(size, step) && !append(size, step)) return false;
        }
        return true;
    }

private:
    bool join(npy_intp size, const npy_intp* step) {
        const int last = ndim - 1;
        if (last < 1 || steps[0][last] * joined[last] != step[0] || steps[1][last] * joined[last] != step[1]) return false;
        joined[last] *= size;
        return true;
    }
    bool append(npy_intp size, const npy_intp* step) {
        if (ndim == MOST_DIMENSIONS_OF_ROWS) return false;
        joined[ndim] = size, steps[0][ndim] = step[0], steps[1][ndim] = step[1];
        ndim++;
        return true;
    }
};

// Computes some rows of the result; returns whether no error occurred that NumPy would report.
template <class T>
bool compute_rows(Kind kind, const Broadcast& of, const T* a, const T* b, T* out, npy_intp begin, npy_intp end) {
    const npy_intp n = of.joined[0], m = of.ndim > 1 ? of.joined[1] : 1;
    const npy_intp step_a = of.ndim > 1 ? of.steps[0][1] : 0, step_b = of.ndim > 1 ? of.steps[1][1] : 0;
    std::feclearexcept(FP_ERRORS);
    for (npy_intp i = begin, count; i < end; i += count) {
        const T *x = a + i % m * step_a, *y = b + i % m * step_b;
        npy_intp rest = i / m;
        for (int d = 2; d < of.ndim; d++) {
            x += rest % of.joined[d] * of.steps[0][d], y += rest % of.joined[d] * of.steps[1][d];
            rest /= of.joined[d];
        }
        count = std::min(end - i, m - i % m);
        row_loops<T>[kind](x, step_a, of.steps[0][0] == 0, y, step_b, of.steps[1][0] == 0, out + i * n, count, n);
    }
    return !std::fetestexcept(FP_ERRORS);
}

// Returns the result of arrays of different shapes, or null without an error to leave the call to NumPy.
template <class T>
PyObject* combine_rows(Kind kind, PyArrayObject* a, PyArrayObject* b) {
    Broadcast of;
    if (!of.find({a, b})) return nullptr;
    npy_intp rows = 1;
    for (int d = 1; d < of.ndim; d++) rows *= of.joined[d];
    CachedMemory memory(rows * of.joined[0] * npy_intp(sizeof(T)));
    PyObject* result_object = PyArray_SimpleNew(std::max(PyArray_NDIM(a), PyArray_NDIM(b)), of.shape, PyArray_TYPE(a));
    if (!result_object) return nullptr;
    const T *x = static_cast<T*>(PyArray_DATA(a)), *y = static_cast<T*>(PyArray_DATA(b));
    T* out = static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(result_object)));
    std::atomic<bool> fine{true};
    NPY_BEGIN_ALLOW_THREADS;
    parallel_for(rows, std::max<npy_intp>(1, ENOUGH / of.joined[0]), [&](npy_intp begin, npy_intp end) {
        if (!compute_rows(kind, of, x, y, out, begin, end)) fine = false;
    });
    NPY_END_ALLOW_THREADS;
    if (fine) return result_object;
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
        else if (PyArray_NDIM(b) != 0 && !PyArray_SAMESHAPE(a, b))
            return PyArray_TYPE(a) == NPY_FLOAT ? combine_rows<float>(kind, a, b) : combine_rows<double>(kind, a, b);
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
