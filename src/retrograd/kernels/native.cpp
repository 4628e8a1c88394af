// The module: functions of arrays that NumPy would make in many passes, as NumPy ufuncs.
//
// Each has a twin of the same name in twins.py, attention_twins.py, grids.py or windows.py, which is its definition and its
// fallback.  numbers.hpp has what is done with one number, loops.hpp and elements.hpp how that meets arrays, pool.hpp the threads.

#define RETROGRAD_MODULE
#include "loops.hpp"
#include "matrices.hpp"
#include "tables.hpp"

namespace retrograd {
namespace {

// The loop of every ufunc, which does what a kernel's own does: where there is no memory for that, Python hears of it.
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

bool add(PyObject* module, const Kernel& k) {
    // NumPy keeps the pointers: types and loops live as long as the module.
    int operands = static_cast<int>(std::strlen(k.types));
    char* types = static_cast<char*>(PyMem_Malloc(2 * operands));
    void** own = static_cast<void**>(PyMem_Malloc(2 * sizeof(void*)));
    if (!types || !own) return PyErr_NoMemory() != nullptr;
    for (int i = 0; i < operands; i++) {
        char fixed = k.types[i] == 'l' ? NPY_INT64 : NPY_BOOL;
        types[i] = k.types[i] == 'T' ? NPY_FLOAT : fixed;
        types[operands + i] = k.types[i] == 'T' ? NPY_DOUBLE : fixed;
    }
    for (int i = 0; i < 2; i++) own[i] = const_cast<PyUFuncGenericFunction*>(&k.loops[i]);
    PyObject* ufunc = PyUFunc_FromFuncAndDataAndSignature(
        loops, own, types, 2, k.inputs, operands - k.inputs, PyUFunc_None, k.name,
        "", 0, k.signature);
    return ufunc && PyModule_AddObject(module, k.name, ufunc) == 0;
}

bool add(PyObject* module, const Part& part) {
    for (int i = 0; i < part.count; i++)
        if (!add(module, part.kernels[i])) return false;
    return !part.methods || PyModule_AddFunctions(module, part.methods) == 0;
}

PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(retrograd_get_num_threads()); }

PyObject* set_num_threads(PyObject*, PyObject* most) {
    long count = PyLong_AsLong(most);
    if (count == -1 && PyErr_Occurred()) return nullptr;
    retrograd_set_num_threads(count > 1 << 20 ? 1 << 20 : count < 1 ? 1 : static_cast<int>(count));
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"get_num_threads", get_num_threads, METH_NOARGS, "How many threads work on one large array, at most."},
    {"set_num_threads", set_num_threads, METH_O, "Let at most so many threads work on one large array."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "native", "Kernels in C++; see twins.py for what they compute.", -1, methods};

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

PyObject* retrograd::refused(const char* name) {
    PyErr_Format(PyExc_ValueError, "%s: the arrays do not fit each other; see twins.py", name);
    return nullptr;
}

PyMODINIT_FUNC PyInit_native() {
    using namespace retrograd;
    import_array();
    import_umath();
    PyObject* module = PyModule_Create(&definition);
    if (!module) return nullptr;
    const Part* parts[] = {
        &part_arithmetic, &part_attention, &part_chance, &part_channels, &part_columns, &part_convolution, &part_convolution_weight, &part_gates, &part_norms,
        &part_pointwise,  &part_pooling,   &part_products, &part_rows,      &part_scatter,            &part_segments, &part_updates,
    };
    for (const Part* part : parts)
        if (!add(module, *part)) return nullptr;
    if (PyModule_AddIntConstant(module, "vector_bytes", vector_bytes()) < 0) return nullptr;
    return module;
}
