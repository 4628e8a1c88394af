// Memory for arrays; see array_memory.cpp.
#pragma once

#include "loops.hpp"

namespace retrograd {

constexpr size_t LEAST_CACHED = 1 << 16;  // bytes: smaller arrays use NumPy's memory, whose pages stay in the process

// While it exists, arrays of this thread use the cached memory for an array of this many bytes.
class CachedMemory {
    PyObject* before = nullptr;

  public:
    explicit CachedMemory(size_t bytes);
    ~CachedMemory();
    CachedMemory(const CachedMemory&) = delete;
};

// Returns the size of an array; 0 for other objects.
inline size_t bytes_of(PyObject* o) {
    return PyArray_Check(o) ? static_cast<size_t>(PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(o))) : 0;
}

// A function around another one, with the attributes of that; `call` runs it, or a second one, which may be null.
struct Wrapper {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function, *other;
};
PyObject* wrap(PyObject* function, vectorcallfunc call, PyObject* other = nullptr);

// Calls the wrapped function if `attempt` of the arguments returns null without an error.
template <PyObject* (*attempt)(PyObject* const*, Py_ssize_t)>
PyObject* call_unless(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
    PyObject* found = names ? nullptr : attempt(args, PyVectorcall_NARGS(flags));
    if (found || PyErr_Occurred()) return found;
    return PyObject_Vectorcall(reinterpret_cast<Wrapper*>(self)->function, args, flags, names);
}

// A method that wraps a function so.
template <PyObject* (*attempt)(PyObject* const*, Py_ssize_t)>
PyObject* wrap_method(PyObject*, PyObject* function) {
    return wrap(function, call_unless<attempt>);
}

// Returns a function that calls `function`, with CachedMemory if the first operand is large: a new reference.
PyObject* caching(PyObject* function);

// Returns the function in a wrapper, or the object itself if it is none: a borrowed reference.
PyObject* ufunc_of(PyObject* object);

}  // namespace retrograd
