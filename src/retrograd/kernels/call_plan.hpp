// Plans of calls: what planned_calls.cpp runs, and call_plan.cpp reads from a description.
#pragma once

#include <vector>

#include "registration.hpp"

namespace retrograd {

constexpr npy_intp LINE = 64;                            // bytes: the alignment of values in the block
constexpr int MOST_MEMORIES = 1024, MOST_OF_STEP = 64;  // operands of a step

struct PlannedLayout {
    std::vector<npy_intp> shape, strides;
    PyArray_Descr* dtype;  // borrowed from the description
    npy_intp size() const {
        npy_intp n = 1;
        for (npy_intp length : shape) n *= length;
        return n;
    }
};

enum class MemoryHome { OPERAND, CONSTANT, BLOCK, OWN };

// The memory of an operand or a constant, a part of the block, or memory of its own, which results have, too.
struct PlannedMemory {
    MemoryHome home;
    npy_intp bytes, offset;
    int first = -1, last = -1;  // the steps that use it
};

struct PlannedValue {
    int memory;
    npy_intp offset;
    PlannedLayout layout;
};

enum class StepKind { LOOP, COPY, GROUP };

struct PlannedStep {
    StepKind kind = StepKind::LOOP;
    bool quiet = false, heavy = false, shared = false;
    PyUFuncGenericFunction loop = nullptr;
    void* data = nullptr;
    PyObject* group = nullptr;
    npy_intp bytes = 0;  // of an element that is copied
    std::vector<int> memories;
    std::vector<npy_intp> offsets;
    std::vector<npy_intp> outer;       // the sizes of outer dimensions
    std::vector<npy_intp> jumps;       // the strides of operands in those, one dimension after the other
    std::vector<npy_intp> dimensions;  // of the inner loop
    std::vector<npy_intp> strides;
    std::vector<int> begin, end;  // memories of their own that begin before the step, and that end after it
};

struct CallPlan {
    std::vector<PlannedLayout> operands;
    std::vector<PlannedMemory> memories;
    std::vector<PlannedValue> values;
    std::vector<PlannedStep> steps;
    std::vector<int> results, first_results;  // values; for each memory, the result that is an array of its own
    npy_intp block = 0;                       // bytes
    bool loud = false;                        // whether any step may warn
};

// Reads a plan from its description, the arguments of `planned_calls` without the fallback. Returns false, perhaps without
// an error, if it cannot be run.
bool read_plan(CallPlan& plan, PyObject* description);

}  // namespace retrograd
