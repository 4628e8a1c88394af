// The extension module: functions of arrays that would take NumPy many passes, as NumPy ufuncs.
//
// Each has a reference implementation of the same name, its definition and fallback, which reference.py defines or
// imports.  scalar_math.hpp has the functions of one value, loops.hpp and ufunc_adapter.hpp the loops over arrays,
// thread_pool.hpp the threads.

#define RETROGRAD_MODULE
#include "array_memory.hpp"
#include "loops.hpp"
#include "matrices.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// The loop of every ufunc: it calls the kernel's own loop, and raises MemoryError if memory runs out.
void guarded(char** args, const npy_intp* dimensions, const npy_intp* steps, void* loop) {
    try {
        (*static_cast<const PyUFuncGenericFunction*>(loop))(args, dimensions, steps, nullptr);
    } catch (const std::bad_alloc&) {
        NPY_ALLOW_C_API_DEF;
        NPY_ALLOW_C_API;
        PyErr_NoMemory();
        NPY_DISABLE_C_API;
    }
}

PyUFuncGenericFunction loops[2] = {guarded, guarded};

// Makes NumPy copy operands of a generalised ufunc that share memory with a result.  By default it assumes that an
// operand with exactly the memory of a result is read element by element, which is false for kernels of rows; NumPy's
// matmul sets these flags too.
void copy_overlap(PyUFuncObject* ufunc) {
    constexpr npy_uint32 of_results = NPY_ITER_WRITEONLY | NPY_ITER_UPDATEIFCOPY | NPY_ITER_ALIGNED | NPY_ITER_ALLOCATE |
                                      NPY_ITER_NO_BROADCAST | NPY_ITER_NO_SUBTYPE;
    for (int i = ufunc->nin; i < ufunc->nargs; i++) ufunc->op_flags[i] = of_results;
}

// Returns NumPy's type of an operand: `number` if the letter is 'T'.
char type_of(char letter, char number) {
    switch (letter) {
        case 'T': return number;
        case 'f': return NPY_FLOAT;
        case 'e': return NPY_HALF;
        case 'H': return NPY_UINT16;
        case 'l': return NPY_INT64;
        default: return NPY_BOOL;
    }
}

bool add(PyObject* module, const Kernel& k) {
    // NumPy keeps the pointers: types and loops live as long as the module.
    const int operands = static_cast<int>(std::strlen(k.types)), count = k.loops[1] ? 2 : 1;
    char* types = static_cast<char*>(PyMem_Malloc(2 * operands));
    void** own = static_cast<void**>(PyMem_Malloc(2 * sizeof(void*)));
    if (!types || !own) return PyErr_NoMemory() != nullptr;
    for (int i = 0; i < operands; i++) {
        types[i] = type_of(k.types[i], NPY_FLOAT);
        types[operands + i] = type_of(k.types[i], NPY_DOUBLE);
    }
    for (int i = 0; i < 2; i++) own[i] = const_cast<PyUFuncGenericFunction*>(&k.loops[i]);
    PyObject* ufunc = PyUFunc_FromFuncAndDataAndSignature(
        loops, own, types, count, k.inputs, operands - k.inputs, PyUFunc_None, k.name,
        "", 0, k.signature);
    if (ufunc && k.signature) copy_overlap(reinterpret_cast<PyUFuncObject*>(ufunc));
    PyObject* function = ufunc ? caching(ufunc) : nullptr;
    Py_XDECREF(ufunc);
    return function && PyModule_AddObject(module, k.name, function) == 0;
}

bool add(PyObject* module, const Part& part) {
    for (int i = 0; i < part.count; i++)
        if (!add(module, part.kernels[i])) return false;
    return !part.methods || PyModule_AddFunctions(module, part.methods) == 0;
}

PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(retrograd_get_num_threads()); }

PyObject* set_num_threads(PyObject*, PyObject* number) {
    long count = PyLong_AsLong(number);
    if (count == -1 && PyErr_Occurred()) return nullptr;
    retrograd_set_num_threads(count > 1 << 20 ? 1 << 20 : count < 1 ? 1 : static_cast<int>(count));
    Py_RETURN_NONE;
}

PyObject* get_vector_bytes(PyObject*, PyObject*) { return PyLong_FromLong(vector_bytes); }

PyObject* set_vector_bytes(PyObject*, PyObject* number) {
    long bytes = PyLong_AsLong(number);
    if (bytes == -1 && PyErr_Occurred()) return nullptr;
    const int most = supported_vector_bytes();
    vector_bytes = bytes >= 64 && most == 64 ? 64 : bytes >= 32 && most >= 32 ? 32 : 16;
    Py_RETURN_NONE;
}

PyObject* set_grain(PyObject*, PyObject* size_object) {
    Py_ssize_t size = PyLong_AsSsize_t(size_object);
    if (size == -1 && PyErr_Occurred()) return nullptr;
    set_grain_size(size);
    Py_RETURN_NONE;
}

PyObject* get_chunk_size(PyObject*, PyObject* args) {
    Py_ssize_t n, min_chunk, threads;
    if (!PyArg_ParseTuple(args, "nnn", &n, &min_chunk, &threads)) return nullptr;
    if (min_chunk < 1 || threads < 1 || n < threads * min_chunk) return PyErr_SetString(PyExc_ValueError, "get_chunk_size: too few indices"), nullptr;
    return PyLong_FromSsize_t(chunk_size(n, min_chunk, threads));
}

PyMethodDef methods[] = {
    {"get_chunk_size", get_chunk_size, METH_VARARGS, "Return the size of the chunks in which threads take indices, for tests."},
    {"get_num_threads", get_num_threads, METH_NOARGS, "Return the maximal number of threads for one array."},
    {"set_num_threads", set_num_threads, METH_O, "Set the maximal number of threads for one array."},
    {"get_vector_bytes", get_vector_bytes, METH_NOARGS, "Return the width of the vectors that kernels use, in bytes."},
    {"set_vector_bytes", set_vector_bytes, METH_O, "Set the largest width of vectors, in bytes; the processor may have less."},
    {"set_grain_size", set_grain, METH_O, "Set the minimal size of a chunk of work, for tests; see thread_pool.hpp."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "native", "Kernels in C++; see reference.py for what they compute.", -1, methods};

}  // namespace
}  // namespace retrograd

retrograd::Table retrograd::table_of(PyObject* plan) {
    PyObject* table = PyObject_GetAttrString(plan, "table");
    if (!table) return {nullptr, 0};
    Py_DECREF(table);
    PyArrayObject* array = reinterpret_cast<PyArrayObject*>(table);
    if (PyArray_Check(table) && is(array, NPY_INT64, 1)) return {static_cast<npy_int64*>(PyArray_DATA(array)), PyArray_SIZE(array)};
    PyErr_SetString(PyExc_ValueError, "a plan with a table expected");
    return {nullptr, 0};
}

namespace {

// The range of memory from the first to the last byte of an array.
struct Extent {
    const char *begin = nullptr, *end = nullptr;

    explicit Extent(PyObject* object) {
        if (!PyArray_Check(object)) return;
        PyArrayObject* array = reinterpret_cast<PyArrayObject*>(object);
        if (PyArray_SIZE(array) == 0) return;
        begin = PyArray_BYTES(array), end = begin + PyArray_ITEMSIZE(array);
        for (int d = 0; d < PyArray_NDIM(array); d++) {
            const npy_intp reach = (PyArray_DIM(array, d) - 1) * PyArray_STRIDE(array, d);
            (reach < 0 ? begin : end) += reach;
        }
    }
    bool meets(const Extent& other) const { return begin < other.end && other.begin < end; }
};

// Returns whether two arrays share an element: 1 or 0, or -1 with an error. NumPy decides if their extents overlap.
int share_memory(PyObject* a, PyObject* b) {
    if (!Extent(a).meets(Extent(b))) return 0;
    PyObject* numpy = PyImport_ImportModule("numpy");
    PyObject* answer = numpy ? PyObject_CallMethod(numpy, "shares_memory", "OO", a, b) : nullptr;
    const int shared = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(numpy);
    return shared;
}

// Replaces an array in a tuple by a copy.
bool copy_item(PyObject* items, Py_ssize_t k) {
    PyObject* copy = PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(PyTuple_GET_ITEM(items, k)), NPY_KEEPORDER);
    return copy && PyTuple_SetItem(items, k, copy) == 0;
}

// Replaces operands in a tuple that share memory with results, the last items, by copies.
bool copy_overlapping(PyObject* items, Py_ssize_t first) {
    for (Py_ssize_t j = first; j < PyTuple_GET_SIZE(items); j++)
        for (Py_ssize_t k = 0; k < j; k++) {
            const int shared = share_memory(PyTuple_GET_ITEM(items, k), PyTuple_GET_ITEM(items, j));
            if (shared == 1 && k >= first) PyErr_SetString(PyExc_ValueError, "the results share memory with each other");
            if (shared < 0 || (shared == 1 && (k >= first || !copy_item(items, k)))) return false;
        }
    return true;
}

// Returns whether the extent of one of the results, the last items, overlaps that of an item before it.
bool any_meet(PyObject* items, Py_ssize_t first) {
    for (Py_ssize_t j = first; j < PyTuple_GET_SIZE(items); j++) {
        const Extent result(PyTuple_GET_ITEM(items, j));
        for (Py_ssize_t k = 0; result.begin && k < j; k++)
            if (Extent(PyTuple_GET_ITEM(items, k)).meets(result)) return true;
    }
    return false;
}

}  // namespace

PyObject* retrograd::without_overlap(PyObject* args, int results) {
    const Py_ssize_t count = PyTuple_GET_SIZE(args), first = std::max<Py_ssize_t>(0, count - results);
    Py_INCREF(args);
    if (!any_meet(args, first)) return args;
    PyObject* own = PyTuple_New(count);
    for (Py_ssize_t k = 0; own && k < count; k++) {
        Py_INCREF(PyTuple_GET_ITEM(args, k));
        PyTuple_SET_ITEM(own, k, PyTuple_GET_ITEM(args, k));
    }
    Py_DECREF(args);
    if (own && copy_overlapping(own, first)) return own;
    Py_XDECREF(own);
    return nullptr;
}

PyObject* retrograd::raise_mismatch(const char* name) {
    PyErr_Format(PyExc_ValueError, "%s: the arrays do not fit each other; see reference.py", name);
    return nullptr;
}

PyMODINIT_FUNC PyInit_native() {
    using namespace retrograd;
    import_array();
    import_umath();
    PyObject* module = PyModule_Create(&definition);
    if (!module) return nullptr;
    const Part* parts[] = {
        &part_arithmetic, &part_array_memory, &part_attention, &part_casts, &part_channels, &part_checksum,
        &part_column_softmax, &part_column_sums, &part_convolution, &part_convolution_weight, &part_scans,
        &part_dropout_rng, &part_flat_buffer, &part_fused_group, &part_grid_sample, &part_lstm_gru, &part_norms, &part_plan_checks, &part_planned_calls,
        &part_pointwise, &part_pooling, &part_products, &part_recurrence, &part_row_major, &part_rows, &part_scatter,
        &part_segments, &part_small_products, &part_threaded_ufuncs, &part_updates,
    };
    for (const Part* part : parts)
        if (!add(module, *part)) return nullptr;
    return module;
}
