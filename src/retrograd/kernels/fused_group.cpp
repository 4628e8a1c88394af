// Groups of elementwise steps that run tile by tile, so that results between the steps stay in the first caches.
//
// A step is the inner loop of a ufunc, NumPy's or ours, called on one tile.  No loop's result for an element depends on
// the element's position, so the results have the bits of steps that run one after the other on whole arrays.
// Where a step would warn, or an operand is not as planned, the group leaves the call to a function that runs the steps
// by themselves.

#include <atomic>
#include <cfenv>
#include <vector>

#include "array_memory.hpp"
#include "fused_group.hpp"
#include "loops.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

constexpr npy_intp TILE = 2048;  // elements: a dozen tiles of float32 fit into 128 KiB, half of a second cache
constexpr int MOST_STEP_OPERANDS = 6, MOST_VALUES = 1024;
constexpr npy_intp FROM_THREADS = 32768;  // elements, from which on the GIL is released and threads share the work

// Where values are: an operand of the call, a constant, a result, or a register, a tile of memory.
enum class Home { OPERAND, CONSTANT, RESULT, REGISTER };

struct Value {
    Home home;
    int type;
    npy_intp size;                // of an element
    npy_intp stride;              // 0 if there is one element for all
    std::vector<npy_intp> shape;  // of operands
    std::vector<npy_intp> jumps;  // of an operand that is broadcast: the bytes from one element to the next, by dimension
    char data[16];                // of a constant
};

// A loop and its operands; null is a copy.
struct Step {
    PyUFuncGenericFunction loop;
    void* data;
    int count, where[MOST_STEP_OPERANDS];
    npy_intp strides[MOST_STEP_OPERANDS];
};

struct Plan {
    std::vector<npy_intp> shape;
    npy_intp size = 1;
    std::vector<Value> values;
    std::vector<Step> steps;
    int operands = 0, results_begin = 0, results = 0;
    npy_intp tiles_of_memory = 0;  // registers, and tiles for operands that are broadcast
    bool quiet = false;
};

struct FusedGroup {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Plan* plan;
    PyObject* ufuncs;      // the ufuncs, which own the loops
    PyObject* fallback;  // runs the steps by themselves
};

// Copies n elements from the description position of an array that is broadcast.
void load(const Plan& plan, const Value& v, const char* base, npy_intp begin, npy_intp n, char* to) {
    const int ndim = static_cast<int>(plan.shape.size());
    const npy_intp width = plan.shape[ndim - 1], jump = v.jumps[ndim - 1];
    while (n > 0) {
        const char* row = base;
        npy_intp index = begin / width;
        const npy_intp first = begin % width, count = std::min(n, width - first);
        for (int d = ndim - 2; d >= 0; d--) row += index % plan.shape[d] * v.jumps[d], index /= plan.shape[d];
        row += first * jump;
        if (jump == v.size) std::memcpy(to, row, count * v.size);
        else
            for (npy_intp i = 0; i < count; i++) std::memcpy(to + i * v.size, row + i * jump, v.size);
        begin += count, n -= count, to += count * v.size;
    }
}

void copy(char** args, npy_intp n, const npy_intp* strides, npy_intp size) {
    if (strides[0]) std::memcpy(args[1], args[0], n * size);
    else
        for (npy_intp i = 0; i < n; i++) std::memcpy(args[1] + i * size, args[0], size);
}

// Runs the steps on the elements from `begin` to `end`; `bases` has the arrays.  Returns the flags that were raised.
unsigned run(const Plan& plan, char* const* bases, npy_intp begin, npy_intp end) {
    static thread_local std::vector<char> memory;
    const npy_intp tile = std::min(TILE, (end - begin + 7) / 8 * 8) * 8;  // bytes
    if (static_cast<npy_intp>(memory.size()) < plan.tiles_of_memory * tile + 64) memory.resize(plan.tiles_of_memory * tile + 64);
    char* const start = memory.data() + (64 - reinterpret_cast<size_t>(memory.data()) % 64) % 64;
    char* at[MOST_VALUES];
    unsigned flags = 0;
    if (!plan.quiet) clear_raised();
    for (npy_intp i = begin; i < end; i += TILE) {
        npy_intp n = std::min(TILE, end - i);
        char* next = start;
        const int count = static_cast<int>(plan.values.size());
        for (int k = 0; k < count; k++) {
            const Value& v = plan.values[k];
            if (v.home == Home::REGISTER || !v.jumps.empty()) at[k] = next, next += tile;
            else at[k] = v.home == Home::CONSTANT ? const_cast<char*>(v.data) : bases[k] + i * v.stride;
            if (!v.jumps.empty()) load(plan, v, bases[k], i, n, at[k]);
        }
        for (const Step& step : plan.steps) {
            char* args[MOST_STEP_OPERANDS];
            for (int k = 0; k < step.count; k++) args[k] = at[step.where[k]];
            if (step.loop) step.loop(args, &n, step.strides, step.data);
            else copy(args, n, step.strides, plan.values[step.where[1]].size);
            if (!plan.quiet) flags |= raised();  // the next loop may clear them
        }
    }
    return flags;
}

// Returns whether NumPy reports underflow; -1 with an error.
int reports_underflow() {
    static PyObject* geterr;
    if (!geterr) {
        PyObject* numpy = PyImport_ImportModule("numpy");
        geterr = numpy ? PyObject_GetAttrString(numpy, "geterr") : nullptr;
        Py_XDECREF(numpy);
    }
    PyObject* settings = geterr ? PyObject_CallNoArgs(geterr) : nullptr;
    PyObject* under = settings ? PyDict_GetItemString(settings, "under") : nullptr;
    const int answer = under ? PyUnicode_CompareWithASCIIString(under, "ignore") != 0 : -1;
    Py_XDECREF(settings);
    return answer;
}

// Returns whether the arguments are arrays as planned, and takes their memory.
bool fit(const Plan& plan, PyObject* const* args, npy_intp count, char** bases) {
    if (count != plan.operands) return false;
    for (int k = 0; k < plan.operands; k++) {
        const Value& v = plan.values[k];
        if (!PyArray_CheckExact(args[k])) return false;
        PyArrayObject* a = reinterpret_cast<PyArrayObject*>(args[k]);
        const int ndim = static_cast<int>(v.shape.size());
        if (PyArray_TYPE(a) != v.type || PyArray_NDIM(a) != ndim || !PyArray_IS_C_CONTIGUOUS(a) || !PyArray_ISBEHAVED_RO(a))
            return false;
        if (!std::equal(v.shape.begin(), v.shape.end(), PyArray_DIMS(a))) return false;
        bases[k] = PyArray_BYTES(a);
    }
    return true;
}

unsigned run_all(const Plan& plan, char* const* bases) {
    if (plan.size < FROM_THREADS) return run(plan, bases, 0, plan.size);
    std::atomic<unsigned> flags{0};
    const npy_intp tiles = (plan.size + TILE - 1) / TILE, work = TILE * static_cast<npy_intp>(plan.steps.size());
    without_gil([&] {
        parallel_for(tiles, std::max<npy_intp>(1, ENOUGH / work), [&](npy_intp begin, npy_intp end) {
            flags |= run(plan, bases, begin * TILE, std::min(plan.size, end * TILE));
        });
    });
    return flags;
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject*) {
    FusedGroup* group = reinterpret_cast<FusedGroup*>(self);
    const Plan& plan = *group->plan;
    char* bases[MOST_VALUES];
    if (!fit(plan, args, PyVectorcall_NARGS(nargsf), bases)) return PyObject_Vectorcall(group->fallback, args, nargsf, nullptr);
    PyObject* results = PyTuple_New(plan.results);
    for (int k = 0; results && k < plan.results; k++) {
        const Value& v = plan.values[plan.results_begin + k];
        CachedMemory memory(plan.size * v.size);
        PyObject* array = PyArray_SimpleNew(plan.shape.size(), const_cast<npy_intp*>(plan.shape.data()), v.type);
        if (!array) return Py_DECREF(results), nullptr;
        PyTuple_SET_ITEM(results, k, array);
        bases[plan.results_begin + k] = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(array));
    }
    if (!results) return nullptr;
    unsigned flags = 0;
    try {
        flags = run_all(plan, bases);
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    }
    if (!PyErr_Occurred()) flags = reported(flags);
    if (!flags && !PyErr_Occurred()) return results;
    Py_DECREF(results);
    return PyErr_Occurred() ? nullptr : PyObject_Vectorcall(group->fallback, args, nargsf, nullptr);
}

// ------------------------------------------------------------------------------------------------------ plans

void dealloc(PyObject* self) {
    FusedGroup* group = reinterpret_cast<FusedGroup*>(self);
    delete group->plan;
    Py_XDECREF(group->ufuncs);
    Py_XDECREF(group->fallback);
    PyObject_Free(self);
}

PyTypeObject group_type() {
    PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
    type.tp_name = "retrograd.kernels.native.FusedGroup";
    type.tp_basicsize = sizeof(FusedGroup);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
    type.tp_vectorcall_offset = offsetof(FusedGroup, vectorcall);
    type.tp_call = PyVectorcall_Call;
    type.tp_dealloc = dealloc;
    return type;
}

Value value_of(PyArrayObject* like, Home home, bool full) {
    Value v{home, PyArray_TYPE(like), PyArray_ITEMSIZE(like), full ? PyArray_ITEMSIZE(like) : 0, {}, {}, {}};
    v.shape.assign(PyArray_DIMS(like), PyArray_DIMS(like) + PyArray_NDIM(like));
    return v;
}

// Adds the arrays of a sequence, each an example of a value, whose elements matter only if it is a constant.
bool add_values(Plan& plan, PyObject* examples, Home home) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(examples); k++) {
        PyObject* object = PyTuple_GET_ITEM(examples, k);
        if (!PyArray_Check(object) || plan.values.size() >= MOST_VALUES) return false;
        PyArrayObject* like = reinterpret_cast<PyArrayObject*>(object);
        const bool single = PyArray_SIZE(like) == 1 && home == Home::OPERAND && plan.size != 1;
        Value v = value_of(like, home, home != Home::CONSTANT && !single);
        if (v.size > 8 || PyDataType_REFCHK(PyArray_DESCR(like))) return false;
        if (home == Home::CONSTANT) std::memcpy(v.data, PyArray_DATA(like), v.size);
        if (home == Home::OPERAND && !single && v.shape != plan.shape && PyArray_SIZE(like) != plan.size) {
            const int ndim = static_cast<int>(plan.shape.size()), missing = ndim - static_cast<int>(v.shape.size());
            if (missing < 0) return false;
            v.jumps.assign(ndim, 0);
            npy_intp jump = v.size;
            for (int d = ndim - 1; d >= missing; d--) {
                const npy_intp n = v.shape[d - missing];
                if (n != 1 && n != plan.shape[d]) return false;
                v.jumps[d] = n == 1 ? 0 : jump, jump *= n;
            }
        }
        if (home == Home::REGISTER || !v.jumps.empty()) plan.tiles_of_memory++;
        plan.values.push_back(v);
    }
    return true;
}

// Finds the loop of a ufunc for these types.
bool find_loop(PyObject* object, const Plan& plan, Step& step) {
    if (object == Py_None) return step.count == 2;
    if (!PyObject_TypeCheck(object, &PyUFunc_Type)) return false;
    PyUFuncObject* ufunc = reinterpret_cast<PyUFuncObject*>(object);
    if (ufunc->nargs != step.count || ufunc->core_enabled) return false;
    int types[MOST_STEP_OPERANDS];
    for (int k = 0; k < step.count; k++) types[k] = plan.values[step.where[k]].type;
    const int i = loop_of(ufunc, types);
    if (i < 0) return false;
    step.loop = ufunc->functions[i], step.data = ufunc->data ? ufunc->data[i] : nullptr;
    return step.loop != nullptr;
}

// Adds a step, a tuple of a ufunc, or None, and the numbers of its operands' values.
bool add_step(Plan& plan, PyObject* description) {
    Step step{};
    step.count = static_cast<int>(PyTuple_GET_SIZE(description)) - 1;
    if (step.count < 1 || step.count > MOST_STEP_OPERANDS) return false;
    for (int k = 0; k < step.count; k++) {
        const long number = PyLong_AsLong(PyTuple_GET_ITEM(description, k + 1));
        if (number < 0 || number >= static_cast<long>(plan.values.size())) return false;
        const Value& v = plan.values[number];
        step.where[k] = static_cast<int>(number), step.strides[k] = v.jumps.empty() ? v.stride : v.size;
    }
    if (!find_loop(ufunc_of(PyTuple_GET_ITEM(description, 0)), plan, step)) return false;
    plan.steps.push_back(step);
    return true;
}

bool fill(Plan& plan, PyObject* shape, PyObject* const* values, PyObject* steps) {
    constexpr Home homes[] = {Home::OPERAND, Home::CONSTANT, Home::RESULT, Home::REGISTER};
    for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape); d++) {
        plan.shape.push_back(PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d)));
        plan.size *= plan.shape.back();
    }
    for (int k = 0; k < 4; k++)
        if (!add_values(plan, values[k], homes[k])) return false;
    plan.operands = static_cast<int>(PyTuple_GET_SIZE(values[0]));
    plan.results_begin = plan.operands + static_cast<int>(PyTuple_GET_SIZE(values[1]));
    plan.results = static_cast<int>(PyTuple_GET_SIZE(values[2]));
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(steps); k++)
        if (!add_step(plan, PyTuple_GET_ITEM(steps, k))) return false;
    return true;
}

PyObject* fused_group(PyObject*, PyObject* args) {
    static PyTypeObject type = group_type();
    PyObject *shape, *values[4], *steps, *fallback;
    int quiet;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!pO", &PyTuple_Type, &shape, &PyTuple_Type, &values[0], &PyTuple_Type, &values[1],
                          &PyTuple_Type, &values[2], &PyTuple_Type, &values[3], &PyTuple_Type, &steps, &quiet, &fallback))
        return nullptr;
    if (PyType_Ready(&type) < 0) return nullptr;
    FusedGroup* group = PyObject_New(FusedGroup, &type);
    if (!group) return nullptr;
    group->vectorcall = call, group->plan = new Plan, group->ufuncs = Py_NewRef(steps), group->fallback = Py_NewRef(fallback);
    group->plan->quiet = quiet;
    if (fill(*group->plan, shape, values, steps) && !PyErr_Occurred()) return reinterpret_cast<PyObject*>(group);
    Py_DECREF(group);
    if (PyErr_Occurred()) return nullptr;
    return Py_NewRef(fallback);  // a step that has no such loop
}

PyMethodDef methods[] = {
    {"fused_group", fused_group, METH_VARARGS, "Return a function that runs elementwise steps tile by tile; see fused_reference.py."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_fused_group{methods};

unsigned reported(unsigned flags) { return flags == UNDERFLOWN && reports_underflow() == 0 ? 0 : flags; }

int loop_of(PyUFuncObject* ufunc, const int* types) {
    for (int i = 0; i < ufunc->ntypes; i++) {
        bool fits = true;
        for (int k = 0; k < ufunc->nargs; k++) fits &= ufunc->types[i * ufunc->nargs + k] == types[k];
        if (fits) return i;
    }
    return -1;
}

bool is_group(PyObject* object, int operands, int results) {
    if (Py_TYPE(object)->tp_dealloc != dealloc) return false;
    const Plan& plan = *reinterpret_cast<FusedGroup*>(object)->plan;
    return plan.operands == operands && plan.results == results;
}

unsigned run_group(PyObject* group, char* const* arrays) {
    const Plan& plan = *reinterpret_cast<FusedGroup*>(group)->plan;
    char* bases[MOST_VALUES];
    std::copy(arrays, arrays + plan.operands, bases);
    std::copy(arrays + plan.operands, arrays + plan.operands + plan.results, bases + plan.results_begin);
    return run_all(plan, bases);
}

}  // namespace retrograd
