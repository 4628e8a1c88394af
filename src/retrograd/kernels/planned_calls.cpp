// Plans of calls: the loops of ufuncs, copies and fused groups that a program runs one after the other on arrays of known
// layouts.  One call runs all of them, without making an array, or asking NumPy, for each.
//
// Views cost nothing: a value is an offset in some memory, with a shape and strides.  Memory for small values between
// steps is planned once; large ones get theirs for as long as they live, so the peak is that of the single calls.
// Where a step would warn, or an operand is not as planned, a function that runs the calls by themselves is called.

#include <atomic>
#include <memory>

#include "array_memory.hpp"
#include "call_plan.hpp"
#include "fused_group.hpp"

namespace retrograd {
namespace {

struct PlannedCalls {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    CallPlan* plan;
    PyObject* description;  // owns dtypes, constants, ufuncs and groups
    PyObject* fallback;
};

// -------------------------------------------------------------------------------------------------- running a plan

void copy_elements(char** args, npy_intp n, const npy_intp* strides, npy_intp bytes) {
    if (strides[0] == bytes && strides[1] == bytes) {
        std::memcpy(args[1], args[0], n * bytes);
        return;
    }
    const auto run = [&](auto size) {
        for (npy_intp i = 0; i < n; i++) std::memcpy(args[1] + i * strides[1], args[0] + i * strides[0], size);
    };
    if (bytes == 4) run(std::integral_constant<size_t, 4>());
    else if (bytes == 8) run(std::integral_constant<size_t, 8>());
    else run(static_cast<size_t>(bytes));
}

void run_inner(const PlannedStep& step, char** args, const npy_intp* dimensions) {
    if (step.kind == StepKind::LOOP) step.loop(args, dimensions, step.strides.data(), step.data);
    else copy_elements(args, dimensions[0], step.strides.data(), step.bytes);
}

// Runs the loop for the indices of all outer dimensions from `d` on.
void run_outer(const PlannedStep& step, char* const* at, size_t d) {
    const size_t count = step.memories.size();
    char* args[MOST_OF_STEP];
    std::copy(at, at + count, args);
    if (d == step.outer.size()) return run_inner(step, args, step.dimensions.data());
    for (npy_intp i = 0; i < step.outer[d]; i++) {
        run_outer(step, args, d + 1);
        for (size_t k = 0; k < count; k++) args[k] += step.jumps[d * count + k];
    }
}

// Runs a loop on several threads, which share its first dimension; returns the flags that it has raised on any of them.
unsigned run_shared(const PlannedStep& step, char* const* at) {
    std::atomic<unsigned> flags{0};
    const size_t count = step.memories.size();
    const bool inner = step.outer.empty();
    const npy_intp n = inner ? step.dimensions[0] : step.outer[0];
    const npy_intp each = inner ? 1 : std::max<npy_intp>(1, step.dimensions[0]);
    parallel_for(n, std::max<npy_intp>(1, ENOUGH / each), [&](npy_intp begin, npy_intp end) {
        char* args[MOST_OF_STEP];
        for (size_t k = 0; k < count; k++) args[k] = at[k] + begin * (inner ? step.strides[k] : step.jumps[k]);
        clear_raised();
        const npy_intp length = end - begin;
        if (inner) run_inner(step, args, &length);
        for (npy_intp i = begin; !inner && i < end; i++) {
            run_outer(step, args, 1);
            for (size_t k = 0; k < count; k++) args[k] += step.jumps[k];
        }
        flags |= raised();
    });
    return flags;
}

// Returns the flags that a step has raised, if it is not quiet.
unsigned run_step(const PlannedStep& step, char* const* bases) {
    char* at[MOST_OF_STEP];
    for (size_t k = 0; k < step.memories.size(); k++) at[k] = bases[step.memories[k]] + step.offsets[k];
    if (step.kind == StepKind::GROUP) return run_group(step.group, at);
    unsigned flags = 0;
    if (step.shared) without_gil([&] { flags = run_shared(step, at); });
    else if (step.heavy) without_gil([&] { run_outer(step, at, 0); });
    else run_outer(step, at, 0);
    return step.quiet ? 0 : flags | raised();
}

// Returns whether an argument has the layout of an operand.
bool fits(PyObject* object, const PlannedLayout& layout) {
    if (!PyArray_CheckExact(object)) return false;
    PyArrayObject* a = reinterpret_cast<PyArrayObject*>(object);
    const size_t ndim = layout.shape.size();
    if (PyArray_TYPE(a) != layout.dtype->type_num || static_cast<size_t>(PyArray_NDIM(a)) != ndim || !PyArray_ISBEHAVED_RO(a))
        return false;
    for (size_t d = 0; d < ndim; d++)
        if (PyArray_DIM(a, d) != layout.shape[d] || (layout.shape[d] > 1 && PyArray_STRIDE(a, d) != layout.strides[d])) return false;
    return true;
}

PyObject* make_bytes(npy_intp bytes) {
    CachedMemory memory(bytes);
    return PyArray_SimpleNew(1, &bytes, NPY_BYTE);
}

PyObject* make_array(const PlannedLayout& layout, char* data, PyObject* base) {
    Py_INCREF(layout.dtype);
    CachedMemory memory(data ? 0 : layout.size() * PyDataType_ELSIZE(layout.dtype));
    PyObject* array = PyArray_NewFromDescr(&PyArray_Type, layout.dtype, static_cast<int>(layout.shape.size()), layout.shape.data(),
                                           layout.strides.data(), data, data ? NPY_ARRAY_WRITEABLE : 0, nullptr);
    if (!array || !base) return array;
    if (PyArray_Check(base) && !PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(base)))
        PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject*>(array), NPY_ARRAY_WRITEABLE);
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), Py_NewRef(base)) == 0) return array;
    Py_DECREF(array);
    return nullptr;
}

// One call: the arrays that own memories, and where memories begin.
class Run {
    const CallPlan& plan;
    PyObject* const* args;
    PyObject* block = nullptr;
    std::unique_ptr<PyObject*[]> owners;
    char* bases[MOST_MEMORIES];

    bool begin(int memory) {
        const int result = plan.first_results[memory];
        PyObject* array = result < 0 ? make_bytes(plan.memories[memory].bytes) : make_array(plan.values[result].layout, nullptr, nullptr);
        owners[memory] = array;
        if (array) bases[memory] = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(array));
        return array != nullptr;
    }

  public:
    unsigned flags = 0;

    Run(const CallPlan& of, PyObject* const* arrays) : plan(of), args(arrays), owners(new PyObject*[of.memories.size()]()) {}
    ~Run() {
        for (size_t k = 0; k < plan.memories.size(); k++) Py_XDECREF(owners[k]);
        Py_XDECREF(block);
    }
    Run(const Run&) = delete;

    // Finds the memories that exist before the first step; returns false, without an error, if an operand is not as planned.
    bool prepare() {
        for (size_t k = 0; k < plan.operands.size(); k++)
            if (!fits(args[k], plan.operands[k])) return false;
        if (plan.block && !(block = make_bytes(plan.block + LINE))) return false;
        char* start = block ? PyArray_BYTES(reinterpret_cast<PyArrayObject*>(block)) : nullptr;
        start += (LINE - reinterpret_cast<size_t>(start) % LINE) % LINE;
        for (size_t k = 0; k < plan.memories.size(); k++) {
            const PlannedMemory& memory = plan.memories[k];
            if (memory.home == MemoryHome::OPERAND) bases[k] = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(args[k]));
            else if (memory.home == MemoryHome::CONSTANT) bases[k] = reinterpret_cast<char*>(memory.offset);
            else if (memory.home == MemoryHome::BLOCK) bases[k] = start + memory.offset;
        }
        return true;
    }

    // Runs the steps until one raises flags that NumPy may report; returns false with an error.
    bool run() {
        if (plan.loud) clear_raised();
        for (const PlannedStep& step : plan.steps) {
            for (int memory : step.begin)
                if (!begin(memory)) return false;
            const unsigned found = run_step(step, bases);
            if (!step.quiet) flags |= found;
            else if (plan.loud) clear_raised();
            if (PyErr_Occurred()) return false;
            for (int memory : step.end) Py_CLEAR(owners[memory]);
            if (flags & ~UNDERFLOWN) return true;
        }
        flags = reported(flags);
        return !PyErr_Occurred();
    }

    PyObject* results() {
        PyObject* tuple = PyTuple_New(plan.results.size());
        for (size_t k = 0; tuple && k < plan.results.size(); k++) {
            const PlannedValue& value = plan.values[plan.results[k]];
            const bool whole = plan.first_results[value.memory] == plan.results[k];
            PyObject* owner = plan.memories[value.memory].home == MemoryHome::OPERAND ? args[value.memory] : owners[value.memory];
            PyObject* array = whole ? Py_NewRef(owner) : make_array(value.layout, bases[value.memory] + value.offset, owner);
            if (!array) Py_CLEAR(tuple);
            else PyTuple_SET_ITEM(tuple, k, array);
        }
        return tuple;
    }
};

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject*) {
    PlannedCalls* calls = reinterpret_cast<PlannedCalls*>(self);
    const CallPlan& plan = *calls->plan;
    if (static_cast<size_t>(PyVectorcall_NARGS(nargsf)) == plan.operands.size()) {
        Run run(plan, args);
        if (run.prepare()) {
            if (!run.run()) return nullptr;
            if (!run.flags) return run.results();
        } else if (PyErr_Occurred()) return nullptr;
    }
    return PyObject_Vectorcall(calls->fallback, args, nargsf, nullptr);
}

void dealloc(PyObject* self) {
    PlannedCalls* calls = reinterpret_cast<PlannedCalls*>(self);
    delete calls->plan;
    Py_XDECREF(calls->description);
    Py_XDECREF(calls->fallback);
    PyObject_Free(self);
}

// Returns the bytes of the block, and those of the values in it, of values with memory of their own, and of all results.
PyObject* memory_of(PyObject* self, void*) {
    const CallPlan& plan = *reinterpret_cast<PlannedCalls*>(self)->plan;
    npy_intp inside = 0, own = 0, results = 0;
    for (size_t k = 0; k < plan.memories.size(); k++) {
        const PlannedMemory& memory = plan.memories[k];
        if (memory.home == MemoryHome::BLOCK) inside += memory.bytes;
        else if (memory.home == MemoryHome::OWN && memory.last == static_cast<int>(plan.steps.size())) results += memory.bytes;
        else if (memory.home == MemoryHome::OWN) own += memory.bytes;
    }
    return Py_BuildValue("nnnn", plan.block, inside, own, results);
}

PyTypeObject planned_type() {
    static PyGetSetDef members[] = {{"memory", memory_of, nullptr, "Bytes: of the block, of values in it, of other values, of results.", nullptr},
                                    {nullptr, nullptr, nullptr, nullptr, nullptr}};
    PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
    type.tp_name = "retrograd.kernels.native.PlannedCalls";
    type.tp_basicsize = sizeof(PlannedCalls);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
    type.tp_vectorcall_offset = offsetof(PlannedCalls, vectorcall);
    type.tp_call = PyVectorcall_Call;
    type.tp_dealloc = dealloc;
    type.tp_getset = members;
    return type;
}

PyObject* planned_calls(PyObject*, PyObject* args) {
    static PyTypeObject type = planned_type();
    if (PyTuple_GET_SIZE(args) != 7) return PyErr_SetString(PyExc_TypeError, "planned_calls: seven arguments expected"), nullptr;
    PyObject *description = PyTuple_GetSlice(args, 0, 6), *fallback = PyTuple_GET_ITEM(args, 6);
    if (!description || PyType_Ready(&type) < 0) return nullptr;
    PlannedCalls* calls = PyObject_New(PlannedCalls, &type);
    if (!calls) return Py_DECREF(description), nullptr;
    calls->vectorcall = call, calls->plan = new CallPlan, calls->description = description, calls->fallback = Py_NewRef(fallback);
    if (read_plan(*calls->plan, description) && !PyErr_Occurred()) return reinterpret_cast<PyObject*>(calls);
    Py_DECREF(calls);
    if (PyErr_Occurred()) return nullptr;
    return Py_NewRef(fallback);  // a step that has no such loop
}

PyMethodDef methods[] = {
    {"planned_calls", planned_calls, METH_VARARGS, "Return a function that runs loops one after the other; see planned_reference.py."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_planned_calls{methods};

}  // namespace retrograd
