// Steps of optimizers: the update of a parameter and its state in one pass over memory.

#include "ufunc_adapter.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// factor * x; a factor of 0 gives 0 for infinities too.
template <class T>
INLINE T part(T factor, T x) {
    return factor == T(0) ? T(0) : factor * x;
}

// Operands: p, g; sign and decay of the gradient, step of p along it.
KERNEL(descent, 2, 3, 1) {
    const T *p = operands.in[0], *g = operands.in[1];
    const T sign = operands.set[0], decay = operands.set[1], far = operands.set[2];
    T* new_p = operands.out[0];
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) new_p[i] = p[i] - far * (sign * g[i] + part(decay, p[i]));
}

// Operands: p, g, b; sign and decay of the gradient, the momentum, the weight of the gradient in the sum, steps of p
// along the gradient and along the sum.
KERNEL(momentum, 3, 6, 2) {
    const T *p = operands.in[0], *g = operands.in[1], *b = operands.in[2], *set = operands.set;
    const T sign = set[0], decay = set[1], momentum_factor = set[2], dampened = set[3], far = set[4], further = set[5];
    T *new_p = operands.out[0], *new_b = operands.out[1];
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        T d = sign * g[i] + part(decay, p[i]), sum = b[i] * momentum_factor + d * dampened;
        new_p[i] = p[i] - (part(far, d) + further * sum);
        new_b[i] = sum;
    }
}

// Adam and AMSGrad, with operands p, g, m, v and nine scalars: sign and decay of the gradient, the factor of p, both
// betas and their complements, eps, the step.  p's step is divided by the root of `DIVISOR`; `WRITE_MORE` runs after
// all operands are read, because any result may share memory with any of them.
#define MOMENTS(DIVISOR, WRITE_MORE)                                                                                    \
    const auto *p = operands.in[0], *g = operands.in[1], *m = operands.in[2], *v = operands.in[3], *set = operands.set; \
    const auto sign = set[0], decay = set[1], left = set[2], beta1 = set[3], beta2 = set[4];                            \
    const auto rest1 = set[5], rest2 = set[6], eps = set[7], step = set[8];                                             \
    auto *new_p = operands.out[0], *new_m = operands.out[1], *new_v = operands.out[2];                                  \
    IN_ANY_ORDER                                                                                                        \
    for (npy_intp i = 0; i < n; i++) {                                                                                  \
        auto d = sign * g[i] + part(decay, p[i]);                                                                       \
        auto mean = m[i] * beta1 + d * rest1, square = v[i] * beta2 + d * d * rest2;                                    \
        auto most = DIVISOR;                                                                                            \
        new_p[i] = p[i] * left - step * (mean / (std::sqrt(most) + eps));                                               \
        new_m[i] = mean;                                                                                                \
        new_v[i] = square;                                                                                              \
        WRITE_MORE;                                                                                                     \
    }

KERNEL(adam, 4, 9, 3) { MOMENTS(square, ) }

// AMSGrad's largest square so far, the fifth array and the fourth result; NaN is the largest.
#define LARGEST                       \
    const auto* old = operands.in[4]; \
    auto* top = operands.out[3];      \
    MOMENTS((square > old[i] || square != square ? square : old[i]), top[i] = most)

KERNEL(amsgrad, 5, 9, 4) { LARGEST }

const Kernel kernels[] = {
    OF_NUMBERS(descent, 2, 3, 1, "TTTTTT"),
    OF_NUMBERS(momentum, 3, 6, 2, "TTTTTTTTTTT"),
    OF_NUMBERS(adam, 4, 9, 3, "TTTTTTTTTTTTTTTT"),
    OF_NUMBERS(amsgrad, 5, 9, 4, "TTTTTTTTTTTTTTTTTT"),
};

}  // namespace

const Part part_updates{kernels};

}  // namespace retrograd
