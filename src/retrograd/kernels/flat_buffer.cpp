// Many small arrays in one buffer: what optimizers need to update all of them at once.

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "registration.hpp"

namespace retrograd {
namespace {

using Span = std::pair<const char*, const char*>;  // the first byte of an array's elements, and the one after the last

Span span_of(PyArrayObject* a) {
    const char *low = PyArray_BYTES(a), *high = low;
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        if (PyArray_DIM(a, d) == 0) return {low, low};
        const npy_intp reach = (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
        (reach < 0 ? low : high) += reach;
    }
    return {low, high + PyArray_ITEMSIZE(a)};
}

// Appends the spans of a list of arrays that have elements; returns false if there is something else in it.
bool append_spans(PyObject* arrays, std::vector<Span>& spans) {
    if (!PyList_Check(arrays)) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arrays); i++) {
        PyObject* a = PyList_GET_ITEM(arrays, i);
        if (!PyArray_Check(a)) return false;
        const Span span = span_of(reinterpret_cast<PyArrayObject*>(a));
        if (span.first != span.second) spans.push_back(span);
    }
    return true;
}

PyObject* are_disjoint(PyObject*, PyObject* const* args, Py_ssize_t count) {
    std::vector<Span> written, read;
    if (count != 2 || !append_spans(args[0], written) || !append_spans(args[1], read)) return raise_mismatch("are_disjoint");
    std::sort(written.begin(), written.end());
    for (size_t i = 1; i < written.size(); i++)
        if (written[i].first < written[i - 1].second) Py_RETURN_FALSE;
    for (const Span& span : read) {
        auto after = std::lower_bound(written.begin(), written.end(), Span(span.second, nullptr));
        if (after != written.begin() && (after - 1)->second > span.first) Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

PyObject* read_flat(PyObject*, PyObject* arrays) {
    bool fits = PyList_Check(arrays) && PyList_GET_SIZE(arrays) > 0 && PyArray_Check(PyList_GET_ITEM(arrays, 0));
    const int type = fits ? type_of(reinterpret_cast<PyArrayObject*>(PyList_GET_ITEM(arrays, 0))) : NPY_DOUBLE;
    npy_intp size = 0;
    for (Py_ssize_t i = 0; fits && i < PyList_GET_SIZE(arrays); i++) {
        PyArrayObject* a = reinterpret_cast<PyArrayObject*>(PyList_GET_ITEM(arrays, i));
        fits = PyArray_Check(PyList_GET_ITEM(arrays, i)) && is(a, type, PyArray_NDIM(a));
        if (fits) size += PyArray_SIZE(a);
    }
    if (!fits) return raise_mismatch("read_flat");
    PyObject* flat = PyArray_SimpleNew(1, &size, type);
    if (!flat) return nullptr;
    char* to = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(flat));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arrays); i++) {
        PyArrayObject* a = reinterpret_cast<PyArrayObject*>(PyList_GET_ITEM(arrays, i));
        std::memcpy(to, PyArray_DATA(a), PyArray_NBYTES(a));
        to += PyArray_NBYTES(a);
    }
    return flat;
}

PyObject* write_flat(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 2 || !PyArray_Check(args[0]) || !PyList_Check(args[1])) return raise_mismatch("write_flat");
    PyArrayObject* flat = reinterpret_cast<PyArrayObject*>(args[0]);
    const int type = type_of(flat);
    bool fits = is(flat, type, 1);
    npy_intp size = 0;
    for (Py_ssize_t i = 0; fits && i < PyList_GET_SIZE(args[1]); i++) {
        PyArrayObject* a = reinterpret_cast<PyArrayObject*>(PyList_GET_ITEM(args[1], i));
        fits = PyArray_Check(PyList_GET_ITEM(args[1], i)) && is_writable(a, type, PyArray_NDIM(a));
        if (fits) size += PyArray_SIZE(a);
    }
    if (!fits || size != PyArray_SIZE(flat)) return raise_mismatch("write_flat");
    const char* from = PyArray_BYTES(flat);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); i++) {
        PyArrayObject* a = reinterpret_cast<PyArrayObject*>(PyList_GET_ITEM(args[1], i));
        std::memmove(PyArray_DATA(a), from, PyArray_NBYTES(a));
        from += PyArray_NBYTES(a);
    }
    Py_RETURN_NONE;
}

template <class F>
constexpr PyCFunction as_method(F function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"are_disjoint", as_method(are_disjoint), METH_FASTCALL, "Return whether no written array shares memory with another one, or with one read."},
    {"read_flat", read_flat, METH_O, "Return the elements of the arrays of a list, one after the other, as a vector."},
    {"write_flat", as_method(write_flat), METH_FASTCALL, "Write the elements of a vector to the arrays of a list, one after the other."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_flat_buffer{methods};

}  // namespace retrograd
