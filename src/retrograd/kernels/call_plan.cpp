// Reads plans of calls: finds the loops of ufuncs, the dimensions over which they run, and where values are in memory.

#include "array_memory.hpp"
#include "call_plan.hpp"
#include "fused_group.hpp"

namespace retrograd {
namespace {

constexpr npy_intp SMALL = 4096;            // bytes, up to which values share one block
constexpr npy_intp HEAVY = 1 << 14;         // elements, from which on a step releases the GIL
constexpr npy_intp FROM_THREADS = 1 << 15;  // elements, from which on threads share the work of NumPy's loops

// Returns the numbers of a tuple; false with an error.
bool read_numbers(PyObject* tuple, std::vector<npy_intp>& numbers) {
    if (!PyTuple_Check(tuple)) return PyErr_SetString(PyExc_TypeError, "planned_calls: a tuple of integers expected"), false;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); k++) numbers.push_back(PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, k)));
    return !PyErr_Occurred();
}

// Reads the shape, dtype and strides of a layout.
bool read_layout(PyObject* tuple, PlannedLayout& layout) {
    PyObject *shape, *dtype, *strides;
    if (!PyArg_ParseTuple(tuple, "OO!O", &shape, &PyArrayDescr_Type, &dtype, &strides)) return false;
    layout.dtype = reinterpret_cast<PyArray_Descr*>(dtype);
    return read_numbers(shape, layout.shape) && read_numbers(strides, layout.strides) && layout.shape.size() == layout.strides.size();
}

bool read_memories(CallPlan& plan, PyObject* operands, PyObject* constants, PyObject* sizes) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(operands); k++) {
        plan.operands.emplace_back();
        if (!read_layout(PyTuple_GET_ITEM(operands, k), plan.operands.back())) return false;
        plan.memories.push_back({MemoryHome::OPERAND, 0, 0});
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(constants); k++) {
        PyObject* a = PyTuple_GET_ITEM(constants, k);
        if (!PyArray_Check(a)) return PyErr_SetString(PyExc_TypeError, "planned_calls: a constant that is no array"), false;
        plan.memories.push_back({MemoryHome::CONSTANT, 0, reinterpret_cast<npy_intp>(PyArray_BYTES(reinterpret_cast<PyArrayObject*>(a)))});
    }
    std::vector<npy_intp> bytes;
    if (!read_numbers(sizes, bytes)) return false;
    for (npy_intp n : bytes) plan.memories.push_back({n > SMALL ? MemoryHome::OWN : MemoryHome::BLOCK, n, 0});
    return true;
}

bool read_values(CallPlan& plan, PyObject* values) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(values); k++) {
        plan.values.emplace_back();
        PlannedValue& value = plan.values.back();
        PyObject* layout;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(values, k), "inO!", &value.memory, &value.offset, &PyTuple_Type, &layout)) return false;
        if (!read_layout(layout, value.layout) || value.memory < 0 || value.memory >= static_cast<int>(plan.memories.size())) return false;
    }
    return true;
}

// Results keep their memory; the first one that begins with it is the array that owns it.
bool read_results(CallPlan& plan, PyObject* results) {
    std::vector<npy_intp> numbers;
    if (!read_numbers(results, numbers)) return false;
    plan.first_results.assign(plan.memories.size(), -1);
    for (npy_intp number : numbers) {
        if (number < 0 || number >= static_cast<npy_intp>(plan.values.size())) return false;
        plan.results.push_back(static_cast<int>(number));
        const PlannedValue& value = plan.values[number];
        PlannedMemory& memory = plan.memories[value.memory];
        if (memory.home == MemoryHome::OPERAND) continue;
        if (memory.home == MemoryHome::CONSTANT) return false;
        memory.home = MemoryHome::OWN;
        const bool whole = value.offset == 0 && value.layout.size() * PyDataType_ELSIZE(value.layout.dtype) == memory.bytes;
        if (whole && plan.first_results[value.memory] < 0) plan.first_results[value.memory] = static_cast<int>(number);
    }
    return true;
}

// The dimensions of a loop with the strides of each operand, from the outermost on.
struct Dimensions {
    std::vector<npy_intp> sizes;
    std::vector<std::vector<npy_intp>> strides;  // by dimension

    // Adds the leading dimensions of operands, which broadcast; `core` has the number of the other dimensions.
    bool add(const std::vector<const PlannedValue*>& operands, const std::vector<int>& core) {
        size_t ndim = 0;
        for (size_t k = 0; k < operands.size(); k++) ndim = std::max(ndim, operands[k]->layout.shape.size() - core[k]);
        sizes.assign(ndim, 1), strides.assign(ndim, std::vector<npy_intp>(operands.size(), 0));
        for (size_t k = 0; k < operands.size(); k++) {
            const PlannedLayout& layout = operands[k]->layout;
            const size_t own = layout.shape.size() - core[k], missing = ndim - own;
            for (size_t d = 0; d < own; d++) {
                const npy_intp n = layout.shape[d];
                if (n == 1) continue;
                if (sizes[missing + d] != 1 && sizes[missing + d] != n) return false;
                sizes[missing + d] = n, strides[missing + d][k] = layout.strides[d];
            }
        }
        return true;
    }

    // Puts the dimensions into the order of the last operand's memory, unless some of them repeat it, as in a sum.
    void sort() {
        const size_t ndim = sizes.size();
        std::vector<size_t> order;
        for (size_t d = 0; d < ndim; d++) {
            if (sizes[d] > 1 && strides[d].back() == 0) return;
            order.push_back(d);
        }
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return std::abs(strides[a].back()) > std::abs(strides[b].back()); });
        const Dimensions before = *this;
        for (size_t d = 0; d < ndim; d++) sizes[d] = before.sizes[order[d]], strides[d] = before.strides[order[d]];
    }

    // Merges dimensions that are one loop for all operands.
    void coalesce() {
        Dimensions merged;
        for (size_t d = 0; d < sizes.size(); d++) {
            if (sizes[d] == 1) continue;
            bool one = !merged.sizes.empty();
            for (size_t k = 0; one && k < strides[d].size(); k++) one = merged.strides.back()[k] == strides[d][k] * sizes[d];
            if (one) merged.sizes.back() *= sizes[d], merged.strides.back() = strides[d];
            else merged.sizes.push_back(sizes[d]), merged.strides.push_back(strides[d]);
        }
        *this = merged;
    }
};

// Writes the dimensions to a step: the last one is that of the inner loop.
void set_loop(PlannedStep& step, Dimensions of, size_t operands) {
    of.coalesce();
    const bool repeats = std::any_of(of.strides.begin(), of.strides.end(), [](const auto& s) { return s.back() == 0; });
    if (of.sizes.empty()) of.sizes.push_back(1), of.strides.emplace_back(operands, 0);
    step.dimensions.assign(1, of.sizes.back());
    step.strides = of.strides.back();
    of.sizes.pop_back(), of.strides.pop_back();
    step.outer = of.sizes;
    for (const auto& strides : of.strides) step.jumps.insert(step.jumps.end(), strides.begin(), strides.end());
    npy_intp work = step.dimensions[0];
    for (npy_intp n : step.outer) work *= n;
    step.heavy = work >= HEAVY, step.shared = work >= FROM_THREADS && !repeats;
}

// Appends the core dimensions of a generalised ufunc, as NumPy passes them to its loop.
bool add_core(PlannedStep& step, PyUFuncObject* ufunc, const std::vector<const PlannedValue*>& operands, std::vector<int>& core) {
    std::vector<bool> missing(ufunc->core_num_dim_ix, false);
    for (int k = 0; k < ufunc->nin; k++) {
        if (static_cast<int>(operands[k]->layout.shape.size()) >= ufunc->core_num_dims[k]) continue;
        for (int j = 0; j < ufunc->core_num_dims[k]; j++) {
            const int dim = ufunc->core_dim_ixs[ufunc->core_offsets[k] + j];
            if (ufunc->core_dim_flags[dim] & UFUNC_CORE_DIM_CAN_IGNORE) missing[dim] = true;
        }
    }
    std::vector<npy_intp> sizes(ufunc->core_num_dim_ix, 1), strides;
    for (int k = 0; k < ufunc->nargs; k++) {
        const PlannedLayout& layout = operands[k]->layout;
        const int* dims = ufunc->core_dim_ixs + ufunc->core_offsets[k];
        core.push_back(0);
        for (int j = 0; j < ufunc->core_num_dims[k]; j++) core[k] += !missing[dims[j]];
        const int first = static_cast<int>(layout.shape.size()) - core[k];
        if (first < 0) return false;
        for (int j = 0, d = first; j < ufunc->core_num_dims[k]; j++) {
            if (missing[dims[j]]) strides.push_back(0);
            else strides.push_back(layout.shape[d] == 1 ? 0 : layout.strides[d]), sizes[dims[j]] = layout.shape[d], d++;
        }
    }
    step.dimensions = sizes, step.strides = strides;
    return true;
}

bool set_ufunc(PlannedStep& step, PyUFuncObject* ufunc, const std::vector<const PlannedValue*>& operands) {
    if (static_cast<size_t>(ufunc->nargs) != operands.size()) return false;
    std::vector<int> types;
    for (const PlannedValue* value : operands) types.push_back(value->layout.dtype->type_num);
    const int i = loop_of(ufunc, types.data());
    if (i < 0 || !ufunc->functions[i]) return false;
    step.loop = ufunc->functions[i], step.data = ufunc->data ? ufunc->data[i] : nullptr;
    std::vector<int> core;
    PlannedStep of_core;
    if (!ufunc->core_enabled) core.assign(operands.size(), 0);
    else if (!add_core(of_core, ufunc, operands, core)) return false;
    Dimensions of;
    if (!of.add(operands, core)) return false;
    if (!ufunc->core_enabled) of.sort();
    set_loop(step, of, operands.size());
    step.dimensions.insert(step.dimensions.end(), of_core.dimensions.begin(), of_core.dimensions.end());
    step.strides.insert(step.strides.end(), of_core.strides.begin(), of_core.strides.end());
    if (ufunc->core_enabled) {
        npy_intp work = 1;
        for (npy_intp n : step.dimensions) work *= n;
        for (npy_intp n : step.outer) work *= n;
        step.heavy = work >= HEAVY, step.shared = false;
    }
    return true;
}

// Without -O3, loops are not vectorized.  The rest of the file is compiled with -O1 (setup.py): it reads each plan once, but
// conversions run at every call.
#if defined(__GNUC__) && !defined(__clang__)
#define AT_EVERY_CALL __attribute__((optimize("O3")))
#else
#define AT_EVERY_CALL
#endif

template <class From, class To>
AT_EVERY_CALL void convert(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    for (npy_intp i = 0; i < dimensions[0]; i++)
        *reinterpret_cast<To*>(args[1] + i * steps[1]) = static_cast<To>(*reinterpret_cast<const From*>(args[0] + i * steps[0]));
}

template <class From>
PyUFuncGenericFunction conversion_from(int to) {
    if (to == NPY_FLOAT) return convert<From, npy_float>;
    if (to == NPY_DOUBLE) return convert<From, npy_double>;
    if (to == NPY_INT64 && std::is_integral_v<From>) return convert<From, npy_int64>;
    return nullptr;  // of a float to an integer: the result depends on the processor, and NumPy may warn
}

// Returns the loop of a conversion; null if there is none.
PyUFuncGenericFunction conversion(int from, int to) {
    if (from == NPY_BOOL) return conversion_from<npy_bool>(to);
    if (from == NPY_INT32) return conversion_from<npy_int32>(to);
    if (from == NPY_INT64) return conversion_from<npy_int64>(to);
    if (from == NPY_FLOAT) return conversion_from<npy_float>(to);
    return from == NPY_DOUBLE ? conversion_from<npy_double>(to) : nullptr;
}

// Reads a copy, or a conversion.
bool set_copy(PlannedStep& step, const std::vector<const PlannedValue*>& operands) {
    if (operands.size() != 2) return false;
    const int from = operands[0]->layout.dtype->type_num, to = operands[1]->layout.dtype->type_num;
    if (from != to) step.loop = conversion(from, to);
    else step.kind = StepKind::COPY, step.quiet = true, step.bytes = PyDataType_ELSIZE(operands[1]->layout.dtype);
    if (from != to && !step.loop) return false;
    Dimensions of;
    if (!of.add(operands, {0, 0})) return false;
    of.sort();
    set_loop(step, of, 2);
    return true;
}

// Reads a step: a ufunc, None or a group, whether it is quiet, the number of its results, and the numbers of its values.
bool read_step(CallPlan& plan, PyObject* tuple) {
    const Py_ssize_t count = PyTuple_GET_SIZE(tuple) - 3;
    if (count < 1 || count > MOST_OF_STEP) return false;
    PlannedStep step;
    std::vector<const PlannedValue*> operands;
    for (Py_ssize_t k = 0; k < count; k++) {
        const long number = PyLong_AsLong(PyTuple_GET_ITEM(tuple, k + 3));
        if (number < 0 || number >= static_cast<long>(plan.values.size())) return false;
        const PlannedValue& value = plan.values[number];
        operands.push_back(&value);
        step.memories.push_back(value.memory), step.offsets.push_back(value.offset);
    }
    PyObject* function = ufunc_of(PyTuple_GET_ITEM(tuple, 0));
    const int results = static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(tuple, 2)));
    step.quiet = PyObject_IsTrue(PyTuple_GET_ITEM(tuple, 1)) == 1;
    bool fit;
    if (function == Py_None) fit = set_copy(step, operands);
    else if (PyObject_TypeCheck(function, &PyUFunc_Type)) fit = set_ufunc(step, reinterpret_cast<PyUFuncObject*>(function), operands);
    else {
        step.kind = StepKind::GROUP, step.group = function;
        fit = is_group(function, static_cast<int>(count) - results, results);
    }
    plan.loud |= !step.quiet;
    plan.steps.push_back(step);
    return fit;
}

// Finds the steps between which each memory is used, and where those in the block lie: at the first free position.
void assign_memory(CallPlan& plan) {
    for (size_t i = 0; i < plan.steps.size(); i++)
        for (int k : plan.steps[i].memories) {
            PlannedMemory& memory = plan.memories[k];
            memory.first = memory.first < 0 ? static_cast<int>(i) : memory.first, memory.last = static_cast<int>(i);
        }
    for (const int number : plan.results) plan.memories[plan.values[number].memory].last = static_cast<int>(plan.steps.size());
    std::vector<const PlannedMemory*> placed;  // by their offsets
    for (size_t k = 0; k < plan.memories.size(); k++) {
        PlannedMemory& memory = plan.memories[k];
        if (memory.first < 0) continue;
        if (memory.home == MemoryHome::OWN) {
            plan.steps[memory.first].begin.push_back(static_cast<int>(k));
            if (memory.last < static_cast<int>(plan.steps.size())) plan.steps[memory.last].end.push_back(static_cast<int>(k));
        }
        if (memory.home != MemoryHome::BLOCK) continue;
        npy_intp offset = 0;
        for (const PlannedMemory* other : placed)
            if (other->first <= memory.last && memory.first <= other->last && other->offset < offset + memory.bytes)
                offset = std::max(offset, (other->offset + other->bytes + LINE - 1) / LINE * LINE);
        memory.offset = offset;
        plan.block = std::max(plan.block, offset + memory.bytes);
        placed.insert(std::upper_bound(placed.begin(), placed.end(), &memory,
                                       [](const PlannedMemory* a, const PlannedMemory* b) { return a->offset < b->offset; }),
                      &memory);
    }
}

}  // namespace

bool read_plan(CallPlan& plan, PyObject* description) {
    PyObject *operands, *constants, *sizes, *values, *steps, *results;
    if (!PyArg_ParseTuple(description, "O!O!O!O!O!O!", &PyTuple_Type, &operands, &PyTuple_Type, &constants, &PyTuple_Type, &sizes,
                          &PyTuple_Type, &values, &PyTuple_Type, &steps, &PyTuple_Type, &results))
        return false;
    if (!read_memories(plan, operands, constants, sizes) || plan.memories.size() > MOST_MEMORIES) return false;
    if (!read_values(plan, values) || !read_results(plan, results)) return false;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(steps); k++)
        if (!read_step(plan, PyTuple_GET_ITEM(steps, k))) return false;
    assign_memory(plan);
    for (const PlannedValue& value : plan.values)  // a result that no step makes
        if (plan.memories[value.memory].home == MemoryHome::OWN && plan.memories[value.memory].first < 0) return false;
    return true;
}

}  // namespace retrograd
