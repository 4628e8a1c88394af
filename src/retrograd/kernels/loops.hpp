// Kernels as NumPy ufuncs: loops over arrays of any strides, shared among threads if the arrays are large.
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

#include "cpu_dispatch.hpp"
#include "scalar_math.hpp"
#include "thread_pool.hpp"

// Loop iterations are independent: an output may be an input, but only element by element.
#if defined(__GNUC__) && !defined(__clang__)
#define IN_ANY_ORDER _Pragma("GCC ivdep")
#else
#define IN_ANY_ORDER
#endif

namespace retrograd {

// Begins to read a line of memory, which need not exist, into the caches.
INLINE void prefetch([[maybe_unused]] const void* at) {
#if defined(__GNUC__)
    __builtin_prefetch(at);
#endif
}

// A ufunc: `types` has a letter per operand: the kernel's type, 'T', or that of NumPy's letter, one of "feH?", with 'l' for
// int64.
struct Kernel {
    const char* name;
    PyUFuncGenericFunction loops[2];  // for float, for double; the second is null if no operand has the kernel's type
    const char* types;
    int inputs;
    const char* signature;  // null: elementwise
};

// From about this many elements per thread on, waking a thread costs less than it saves.
constexpr npy_intp ENOUGH = 32768;

constexpr int MOST_OPERANDS = 20, MOST_DIMENSIONS = 4;

// Runs work without the GIL; returns false, with MemoryError set, if memory runs out.
template <class F>
bool without_gil(F work) {
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

// Returns whether the result, the last operand, overlaps another operand other than element by element.  NumPy copies
// such operands, unless reads stay ahead of writes in a loop from the first element to the last.
inline bool overlaps(int operands, char** args, npy_intp n, const npy_intp* steps) {
    const int out = operands - 1;
    const auto range = [=](int k) { return std::minmax({args[k], args[k] + (n - 1) * steps[k]}); };
    const auto [first, last] = range(out);
    for (int k = 0; k < out; k++) {
        if (args[k] == args[out] && steps[k] == steps[out]) continue;
        const auto [begin, end] = range(k);
        if (begin <= last && first <= end) return true;
    }
    return false;
}

// Copy numbers from or to a strided row.  Not inlined, so that not every kernel has a copy of them for each processor.
template <class T>
NOT_INLINE void gather(const char* from, npy_intp step, npy_intp n, T* to) {
    for (npy_intp i = 0; i < n; i++) to[i] = *reinterpret_cast<const T*>(from + i * step);
}
template <class T>
NOT_INLINE void scatter(const T* from, npy_intp n, char* to, npy_intp step) {
    for (npy_intp i = 0; i < n; i++) *reinterpret_cast<T*>(to + i * step) = from[i];
}

// Shares the outer dimension of a loop among threads.  `of_rows`: each index of it has dimensions[1] elements.  It calls
// `serial` by its address: as a template, it would contain two copies of each kernel.
NOT_INLINE inline void split_loop(PyUFuncGenericFunction serial, int operands, bool of_rows, char** args,
                                  const npy_intp* dimensions, const npy_intp* steps, void* data) {
    npy_intp each = of_rows && dimensions[1] > 0 ? dimensions[1] : 1;
    if (!of_rows && may_split(dimensions[0], ENOUGH / each) && overlaps(operands, args, dimensions[0], steps)) {
        serial(args, dimensions, steps, data);
        std::feclearexcept(FE_ALL_EXCEPT);
        return;
    }
    parallel_for(dimensions[0], ENOUGH / each, [=](npy_intp begin, npy_intp end) {
        char* shifted[MOST_OPERANDS];
        npy_intp sizes[2] = {end - begin, of_rows ? dimensions[1] : 0};
        for (int k = 0; k < operands; k++) shifted[k] = args[k] + begin * steps[k];
        serial(shifted, sizes, steps, data);
    });
    std::feclearexcept(FE_ALL_EXCEPT);  // infinities and NaN are not errors here
}

// A loop for NumPy that `split_loop` shares among threads.
template <PyUFuncGenericFunction serial, int operands, bool of_rows>
void parallel_loop(char** args, const npy_intp* dimensions, const npy_intp* steps, void* data) {
    static_assert(operands <= MOST_OPERANDS, "a wider kernel needs a wider table");
    split_loop(serial, operands, of_rows, args, dimensions, steps, data);
}

}  // namespace retrograd
