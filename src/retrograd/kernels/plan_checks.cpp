// Checks of values in plans of calls.  A plan has no branches: where a kernel would raise an error, or choose another
// formula, a check raises the flag of invalid operations, and the plan leaves the call to its fallback.

#include "loops.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

template <class T>
const T& element(char* const* args, const npy_intp* steps, int k, npy_intp i) {
    return *reinterpret_cast<const T*>(args[k] + i * steps[k]);
}

// Writes whether each check fails, and raises the flag if any does.
template <class F>
void check(char** args, const npy_intp* dimensions, const npy_intp* steps, int out, F fails) {
    bool any = false;
    for (npy_intp i = 0; i < dimensions[0]; i++) {
        const bool failed = fails(i);
        *reinterpret_cast<npy_bool*>(args[out] + i * steps[out]) = failed;
        any |= failed;
    }
    if (any) std::feraiseexcept(FE_INVALID);
}

// Operands: classes, the ignored class, and the number of classes.
void flag_classes(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    check(args, dimensions, steps, 3, [=](npy_intp i) {
        const npy_int64 id = element<npy_int64>(args, steps, 0, i), ignored = element<npy_int64>(args, steps, 1, i);
        return id != ignored && (id < 0 || id >= element<npy_int64>(args, steps, 2, i));
    });
}

template <class T>
void flag_zeros(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    check(args, dimensions, steps, 1, [=](npy_intp i) { return element<T>(args, steps, 0, i) == T(0); });
}

const Kernel kernels[] = {
    {"flag_classes", {flag_classes, nullptr}, "lll?", 3, nullptr},
    {"flag_zeros", {flag_zeros<float>, flag_zeros<double>}, "T?", 1, nullptr},
};

}  // namespace

const Part part_plan_checks{kernels};

}  // namespace retrograd
