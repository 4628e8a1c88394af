// Elementwise functions.

#include "ufunc_adapter.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// Defines a kernel with one output: an expression in the inputs x and y; a and b are the first two settings.
#define KERNEL_OF(name, arrays, settings, expression)                       \
    KERNEL(name, arrays, settings, 1) {                               \
        const T *in = operands.in[0], *second = operands.in[arrays - 1]; \
        const T a = operands.set[0], b = operands.set[settings > 1];     \
        T* out = operands.out[0];                                        \
        (void)a, (void)b;                                                \
        IN_ANY_ORDER                                                     \
        for (npy_intp i = 0; i < n; i++) {                               \
            T x = in[i], y = second[i];                                  \
            (void)y;                                                     \
            out[i] = expression;                                         \
        }                                                                \
    }

// The output may be an input: each element depends only on itself.
KERNEL_OF(erf, 1, 0, erf_of(x))
KERNEL_OF(gelu, 1, 0, gelu_of(x))
KERNEL_OF(gelu_grad, 2, 0, x * gelu_slope_of(y))
KERNEL_OF(gelu_tanh, 1, 0, gelu_tanh_of(x))
KERNEL_OF(gelu_tanh_grad, 2, 0, x * gelu_tanh_slope_of(y))
KERNEL_OF(sigmoid, 1, 0, sigmoid_of(x))
KERNEL_OF(sigmoid_grad, 2, 0, x * (y * (1 - y)))
KERNEL_OF(silu, 1, 0, silu_of(x))
KERNEL_OF(silu_grad, 2, 0, x * silu_slope_of(y))
KERNEL_OF(tanh_grad, 2, 0, x * (1 - y * y))
KERNEL_OF(relu, 1, 0, (x <= 0 ? 0 : x))
KERNEL_OF(relu_grad, 2, 0, (y == 0 ? 0 : x))
KERNEL_OF(softplus, 1, 2, softplus_of(x, a, b))
KERNEL_OF(softplus_grad, 2, 2, (y * a > b ? x : x * sigmoid_of(y * a)))

const Kernel kernels[] = {
    OF_NUMBERS(erf, 1, 0, 1, "TT"),
    OF_NUMBERS(gelu, 1, 0, 1, "TT"),
    OF_NUMBERS(gelu_grad, 2, 0, 1, "TTT"),
    OF_NUMBERS(gelu_tanh, 1, 0, 1, "TT"),
    OF_NUMBERS(gelu_tanh_grad, 2, 0, 1, "TTT"),
    OF_NUMBERS(sigmoid, 1, 0, 1, "TT"),
    OF_NUMBERS(sigmoid_grad, 2, 0, 1, "TTT"),
    OF_NUMBERS(silu, 1, 0, 1, "TT"),
    OF_NUMBERS(silu_grad, 2, 0, 1, "TTT"),
    OF_NUMBERS(tanh_grad, 2, 0, 1, "TTT"),
    OF_NUMBERS(relu, 1, 0, 1, "TT"),
    OF_NUMBERS(relu_grad, 2, 0, 1, "TTT"),
    OF_NUMBERS(softplus, 1, 2, 1, "TTTT"),
    OF_NUMBERS(softplus_grad, 2, 2, 1, "TTTTT"),
};

}  // namespace

const Part part_pointwise{kernels};

}  // namespace retrograd
