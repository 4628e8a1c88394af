// NumPy's elementwise functions, with large arrays shared among threads.
//
// Next to such a ufunc there is another one with the same loops, each called for blocks of its elements.  It runs for
// large arrays whose types are those of a loop.  All else is left to NumPy's ufunc: conversions, other objects,
// keywords.  So the results and the warnings are NumPy's, or those of our loops in place of them.

#include <atomic>
#include <vector>

#include "array_memory.hpp"
#include "elementary_functions.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// Elements: blocks begin where a loop begins a vector, so that no result depends on the number of threads.
constexpr npy_intp BLOCK_BEGINS = 1024;

struct SerialLoop {
    PyUFuncGenericFunction function;
    void* data;
    int operands, results;
};

// Returns whether every result has an element for each of the loop, and may be written while others are read.
bool is_elementwise(const SerialLoop& serial, char** args, npy_intp n, const npy_intp* steps) {
    for (int operands = serial.operands; operands > serial.operands - serial.results; operands--)
        if (steps[operands - 1] == 0 || overlaps(operands, args, n, steps)) return false;
    return true;
}

void threaded_loop(char** args, const npy_intp* dimensions, const npy_intp* steps, void* data) {
    const SerialLoop& serial = *static_cast<const SerialLoop*>(data);
    const npy_intp n = dimensions[0];
    if (!may_split(n, ENOUGH) || !is_elementwise(serial, args, n, steps))
        return serial.function(args, dimensions, steps, serial.data);
    std::atomic<int> raised{0};
    parallel_for((n + BLOCK_BEGINS - 1) / BLOCK_BEGINS, ENOUGH / BLOCK_BEGINS, [&](npy_intp begin, npy_intp end) {
        char* shifted[MOST_OPERANDS];
        const npy_intp first = begin * BLOCK_BEGINS, count = std::min(end * BLOCK_BEGINS, n) - first;
        for (int k = 0; k < serial.operands; k++) shifted[k] = args[k] + first * steps[k];
        std::feclearexcept(FE_ALL_EXCEPT);
        serial.function(shifted, &count, steps, serial.data);
        raised |= std::fetestexcept(FE_ALL_EXCEPT);
    });
    std::feclearexcept(FE_ALL_EXCEPT);
    std::feraiseexcept(raised);  // NumPy asks the caller's thread for what it warns about
}

constexpr int MOST_LOOPS = 64;

// Returns the ufunc by threads, a new reference; null without an error if there is none.
PyObject* threaded_twin(PyUFuncObject* ufunc) {
    static PyUFuncGenericFunction functions[MOST_LOOPS];
    std::fill_n(functions, MOST_LOOPS, threaded_loop);
    const int operands = ufunc->nargs;
    std::vector<char> types;
    std::vector<void*> loops;  // NumPy keeps the pointers to these and to the types: they are never freed
    for (int i = 0; i < ufunc->ntypes; i++) {
        const char* own = ufunc->types + i * operands;
        const auto is_number = [](int type) { return type <= NPY_CLONGDOUBLE || type == NPY_HALF; };
        if (!ufunc->functions[i] || !std::all_of(own, own + operands, is_number)) continue;
        types.insert(types.end(), own, own + operands);
        loops.push_back(new SerialLoop{ufunc->functions[i], ufunc->data ? ufunc->data[i] : nullptr, operands, ufunc->nout});
    }
    if (ufunc->core_enabled || operands > MOST_OPERANDS || loops.empty() || loops.size() > MOST_LOOPS) return nullptr;
    const int count = static_cast<int>(loops.size());
    return PyUFunc_FromFuncAndData(functions, (new std::vector<void*>(loops))->data(), (new std::vector<char>(types))->data(),
                                   count, ufunc->nin, ufunc->nout, PyUFunc_None, ufunc->name, "", 0);
}

// Returns whether a loop has the types of the arrays; it takes Python's numbers where its type is a floating one.
bool takes(PyUFuncObject* ufunc, PyObject* const* args) {
    for (int i = 0; i < ufunc->ntypes; i++) {
        bool fits = true;
        for (int k = 0; k < ufunc->nin && fits; k++) {
            const int type = ufunc->types[i * ufunc->nargs + k];
            if (PyArray_CheckExact(args[k])) fits = PyArray_TYPE(reinterpret_cast<PyArrayObject*>(args[k])) == type;
            else fits = PyTypeNum_ISFLOAT(type) && (PyFloat_CheckExact(args[k]) || PyLong_CheckExact(args[k]));
        }
        if (fits) return true;
    }
    return false;
}

PyObject* call_threaded(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
    const Wrapper& own = *reinterpret_cast<Wrapper*>(self);
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    const size_t bytes = count ? bytes_of(args[0]) : 0;
    if (bytes < LEAST_CACHED) return PyObject_Vectorcall(own.function, args, flags, names);
    CachedMemory memory(bytes);
    PyUFuncObject* twin = reinterpret_cast<PyUFuncObject*>(own.other);
    const bool split = twin && !names && count >= twin->nin && takes(twin, args) &&
                       may_split(PyArray_SIZE(reinterpret_cast<PyArrayObject*>(args[0])), ENOUGH);
    return PyObject_Vectorcall(split ? own.other : own.function, args, flags, names);
}

PyObject* threaded(PyObject*, PyObject* ufunc) {
    if (!PyObject_TypeCheck(ufunc, &PyUFunc_Type)) return PyErr_SetString(PyExc_TypeError, "threaded: a ufunc expected"), nullptr;
    PyObject* twin = threaded_twin(reinterpret_cast<PyUFuncObject*>(ufunc));
    if (!twin && PyErr_Occurred()) return nullptr;
    PyObject* wrapper = wrap(ufunc, call_threaded, twin);
    Py_XDECREF(twin);
    return wrapper;
}

// Returns a ufunc with NumPy's loops, some of them replaced by ours; the ufunc itself if there are none of ours.
PyObject* with_own_loops(PyObject*, PyObject* function) {
    if (!PyObject_TypeCheck(function, &PyUFunc_Type)) return PyErr_SetString(PyExc_TypeError, "with_own_loops: a ufunc expected"), nullptr;
    const PyUFuncObject* ufunc = reinterpret_cast<PyUFuncObject*>(function);
    if (ufunc->core_enabled || !ufunc->functions || !ufunc->name) return Py_NewRef(function);
    std::vector<PyUFuncGenericFunction> functions(ufunc->functions, ufunc->functions + ufunc->ntypes);
    std::vector<void*> data(ufunc->ntypes);
    if (ufunc->data) std::copy_n(ufunc->data, ufunc->ntypes, data.begin());
    bool any = false;
    for (int i = 0; i < ufunc->ntypes; i++)
        any |= functions[i] && replace_loop(ufunc->name, ufunc->types + i * ufunc->nargs, functions[i], data[i]);
    if (!any) return Py_NewRef(function);
    // NumPy keeps the pointers: they are never freed.
    return PyUFunc_FromFuncAndData((new std::vector<PyUFuncGenericFunction>(functions))->data(), (new std::vector<void*>(data))->data(),
                                   ufunc->types, ufunc->ntypes, ufunc->nin, ufunc->nout, PyUFunc_None, ufunc->name, ufunc->doc, 0);
}

PyMethodDef methods[] = {
    {"with_own_loops", with_own_loops, METH_O, "Return a ufunc with our loops in place of NumPy's, where there are any."},
    {"threaded", threaded, METH_O, "Return a ufunc that shares large arrays among threads, with its results in cached memory."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_threaded_ufuncs{methods};

}  // namespace retrograd
