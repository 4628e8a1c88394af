// How kernels become NumPy's ufuncs: loops over arrays of any strides, in clones for several generations of
// processors, shared among threads where the arrays are large.
#pragma once

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#if !defined(RETROGRAD_MODULE)
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#define PY_ARRAY_UNIQUE_SYMBOL retrograd_kernels_array
#define PY_UFUNC_UNIQUE_SYMBOL retrograd_kernels_ufunc
#include <numpy/ndarrayobject.h>
#include <numpy/ufuncobject.h>

#include <algorithm>
#include <cfenv>
#include <new>

#include "scalar_math.hpp"
#include "thread_pool.hpp"

// The processor picks one of the clones when the module is loaded.  A sanitizer's calls must not come that early.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && !defined(RETROGRAD_NO_CLONES)
#define FOR_PROCESSORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_PROCESSORS
#endif

// No element's result is another's operand, though an output may be an input.
#if defined(__GNUC__) && !defined(__clang__)
#define IN_ANY_ORDER _Pragma("GCC ivdep")
#else
#define IN_ANY_ORDER
#endif

namespace retrograd {

// A ufunc: `types` says for each operand whether it is of the kernel's type, 'T', an integer, 'l', or a boolean, '?'.
struct Kernel {
    const char* name;
    PyUFuncGenericFunction loops[2];  // of float, of double
    const char* types;
    int inputs;
    const char* signature;  // null: of every number
};

// From about so many numbers for each thread on, waking it costs less than it saves.
constexpr npy_intp ENOUGH = 32768;

constexpr int MOST_OPERANDS = 20, MOST_DIMENSIONS = 4;

// Does work without holding up other Python threads; false, with MemoryError, where there is no memory for it.
template <class F>
bool released(F work) {
    bool enough = true;
    Py_BEGIN_ALLOW_THREADS;
    try {
        work();
    } catch (const std::bad_alloc&) {
        enough = false;
    }
    Py_END_ALLOW_THREADS;
    if (!enough) PyErr_NoMemory();
    return enough;
}

// Whether the result, the last operand, shares memory with another one other than element by element.  NumPy copies such
// operands, except where reading stays ahead of writing in a loop from the first element to the last one.
template <int operands>
bool ahead(char** args, npy_intp n, const npy_intp* steps) {
    constexpr int out = operands - 1;
    const auto range = [=](int k) { return std::minmax({args[k], args[k] + (n - 1) * steps[k]}); };
    const auto [first, last] = range(out);
    for (int k = 0; k < out; k++) {
        if (args[k] == args[out] && steps[k] == steps[out]) continue;
        const auto [begin, end] = range(k);
        if (begin <= last && first <= end) return true;
    }
    return false;
}

// A loop whose outer dimension several threads share.  `of_rows`: each place of it has dimensions[1] numbers.
template <PyUFuncGenericFunction serial, int operands, bool of_rows>
void shared(char** args, const npy_intp* dimensions, const npy_intp* steps, void* data) {
    static_assert(operands <= MOST_OPERANDS, "a wider kernel needs a wider table");
    npy_intp each = of_rows && dimensions[1] > 0 ? dimensions[1] : 1;
    if (!of_rows && may_cut(dimensions[0], ENOUGH / each) && ahead<operands>(args, dimensions[0], steps)) {
        serial(args, dimensions, steps, data);
        std::feclearexcept(FE_ALL_EXCEPT);
        return;
    }
    share(dimensions[0], ENOUGH / each, [=](npy_intp begin, npy_intp end) {
        char* there[operands];
        npy_intp sizes[2] = {end - begin, of_rows ? dimensions[1] : 0};
        for (int k = 0; k < operands; k++) there[k] = args[k] + begin * steps[k];
        serial(there, sizes, steps, data);
    });
    std::feclearexcept(FE_ALL_EXCEPT);  // infinities and NaN are no accidents here
}

}  // namespace retrograd
