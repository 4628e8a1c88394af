// Functions of every number by itself.

#include "loops.hpp"
#include "tables.hpp"

namespace retrograd {
namespace {

constexpr npy_intp BLOCK = 512;

// What a kernel is given: arrays without gaps, and numbers that hold for all of their elements.
template <class T, int arrays, int settings, int outputs>
struct Operands {
    T* in[arrays];
    T set[settings ? settings : 1];
    T* out[outputs];
};

// A loop for NumPy over numbers anywhere in memory, by way of `kernel` on blocks of them; `settings` come after the
// other inputs and have a step of 0, else every element has a block to itself.
template <class T, int arrays, int settings, int outputs, void (*kernel)(const Operands<T, arrays, settings, outputs>&, npy_intp)>
void anywhere(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    constexpr int first_out = arrays + settings;
    Operands<T, arrays, settings, outputs> given;
    T from[arrays][BLOCK], to[outputs][BLOCK];
    bool close = true, steady = true;
    for (int k = 0; k < first_out + outputs; k++) {
        bool setting = k >= arrays && k < first_out;
        (setting ? steady : close) &= steps[k] == (setting ? 0 : npy_intp(sizeof(T)));
    }
    npy_intp n = dimensions[0], most = !steady ? 1 : close ? n : BLOCK;
    for (npy_intp start = 0; start < n; start += most) {
        npy_intp count = n - start < most ? n - start : most;
        for (int k = 0; k < settings; k++)
            given.set[k] = *reinterpret_cast<T*>(args[arrays + k] + start * steps[arrays + k]);
        for (int k = 0; k < arrays; k++) {
            char* place = args[k] + start * steps[k];
            given.in[k] = close ? reinterpret_cast<T*>(place) : from[k];
            if (!close)
                for (npy_intp i = 0; i < count; i++) from[k][i] = *reinterpret_cast<T*>(place + i * steps[k]);
        }
        for (int k = 0; k < outputs; k++)
            given.out[k] = close ? reinterpret_cast<T*>(args[first_out + k] + start * steps[first_out + k]) : to[k];
        kernel(given, count);
        if (!close)
            for (int k = 0; k < outputs; k++) {
                char* place = args[first_out + k] + start * steps[first_out + k];
                for (npy_intp i = 0; i < count; i++) *reinterpret_cast<T*>(place + i * steps[first_out + k]) = to[k][i];
            }
    }
}

#define KERNEL(name, T, arrays, settings, outputs) \
    FOR_PROCESSORS void name##_##T(const Operands<T, arrays, settings, outputs>& given, npy_intp n)

// One output, of one expression of x, the first input, and y, the second; a and b are the first two settings.
#define ONE(name, T, arrays, settings, expression)                 \
    KERNEL(name, T, arrays, settings, 1) {                         \
        const T *in = given.in[0], *second = given.in[arrays - 1]; \
        const T a = given.set[0], b = given.set[settings > 1];     \
        T* out = given.out[0];                                     \
        (void)a, (void)b;                                          \
        IN_ANY_ORDER                                               \
        for (npy_intp i = 0; i < n; i++) {                         \
            T x = in[i], y = second[i];                            \
            (void)y;                                               \
            out[i] = expression;                                   \
        }                                                          \
    }
#define BOTH(name, arrays, settings, expression)   \
    ONE(name, float, arrays, settings, expression) \
    ONE(name, double, arrays, settings, expression)

// The operands may share memory, each element with itself: the output of a step is its input.
BOTH(erf, 1, 0, erf_of(x))
BOTH(gelu, 1, 0, gelu_of(x))
BOTH(gelu_grad, 2, 0, x * gelu_slope_of(y))
BOTH(gelu_tanh, 1, 0, gelu_tanh_of(x))
BOTH(gelu_tanh_grad, 2, 0, x * gelu_tanh_slope_of(y))
BOTH(sigmoid, 1, 0, sigmoid_of(x))
BOTH(sigmoid_grad, 2, 0, x * (y * (1 - y)))
BOTH(silu, 1, 0, silu_of(x))
BOTH(silu_grad, 2, 0, x * silu_slope_of(y))
BOTH(tanh_grad, 2, 0, x * (1 - y * y))
BOTH(softplus, 1, 2, softplus_of(x, a, b))
BOTH(softplus_grad, 2, 2, (y * a > b ? x : x * sigmoid_of(y * a)))
BOTH(masked, 2, 1, (y >= a ? x * (1 / (1 - a)) : x * 0))

// ------------------------------------------------------------------------------------------ steps of optimizers

// p, g, m, v; sign and decay of the gradient, what is left of p, both betas and what they leave, eps, the step.
#define ADAM(T)                                                                                               \
    KERNEL(adam, T, 4, 9, 3) {                                                                                \
        const T *p = given.in[0], *g = given.in[1], *m = given.in[2], *v = given.in[3], *set = given.set;     \
        const T sign = set[0], decay = set[1], left = set[2], beta1 = set[3], beta2 = set[4], rest1 = set[5]; \
        const T rest2 = set[6], eps = set[7], step = set[8];                                                  \
        T *new_p = given.out[0], *new_m = given.out[1], *new_v = given.out[2];                                \
        IN_ANY_ORDER                                                                                          \
        for (npy_intp i = 0; i < n; i++) {                                                                    \
            T d = sign * g[i] + decay * p[i];                                                                 \
            T mean = m[i] * beta1 + d * rest1, square = v[i] * beta2 + d * d * rest2;                         \
            new_p[i] = p[i] * left - step * (mean / (std::sqrt(square) + eps));                               \
            new_m[i] = mean;                                                                                  \
            new_v[i] = square;                                                                                \
        }                                                                                                     \
    }
ADAM(float)
ADAM(double)

// p, g, b; sign and decay of the gradient, the momentum, how much of the gradient the sum takes, how far p goes along
// the gradient and along the sum.
#define MOMENTUM(T)                                                                                          \
    KERNEL(momentum, T, 3, 6, 2) {                                                                           \
        const T *p = given.in[0], *g = given.in[1], *b = given.in[2], *set = given.set;                      \
        const T sign = set[0], decay = set[1], kept = set[2], taken = set[3], far = set[4], further = set[5]; \
        T *new_p = given.out[0], *new_b = given.out[1];                                                      \
        IN_ANY_ORDER                                                                                         \
        for (npy_intp i = 0; i < n; i++) {                                                                   \
            T d = sign * g[i] + decay * p[i], sum = b[i] * kept + d * taken;                                 \
            new_p[i] = p[i] - (far * d + further * sum);                                                     \
            new_b[i] = sum;                                                                                  \
        }                                                                                                    \
    }
MOMENTUM(float)
MOMENTUM(double)

template <class T, int arrays, int settings, int outputs, void (*kernel)(const Operands<T, arrays, settings, outputs>&, npy_intp)>
constexpr PyUFuncGenericFunction loop =
    shared<anywhere<T, arrays, settings, outputs, kernel>, arrays + settings + outputs, false>;

#define ROW(name, arrays, settings, outputs, types)                                                              \
    {                                                                                                            \
        #name, {loop<float, arrays, settings, outputs, name##_float>, loop<double, arrays, settings, outputs, name##_double>}, \
            types, arrays + settings, nullptr                                                                    \
    }

}  // namespace

const Kernel of_numbers[] = {
    ROW(erf, 1, 0, 1, "TT"),
    ROW(gelu, 1, 0, 1, "TT"),
    ROW(gelu_grad, 2, 0, 1, "TTT"),
    ROW(gelu_tanh, 1, 0, 1, "TT"),
    ROW(gelu_tanh_grad, 2, 0, 1, "TTT"),
    ROW(sigmoid, 1, 0, 1, "TT"),
    ROW(sigmoid_grad, 2, 0, 1, "TTT"),
    ROW(silu, 1, 0, 1, "TT"),
    ROW(silu_grad, 2, 0, 1, "TTT"),
    ROW(tanh_grad, 2, 0, 1, "TTT"),
    ROW(softplus, 1, 2, 1, "TTTT"),
    ROW(softplus_grad, 2, 2, 1, "TTTTT"),
    ROW(masked, 2, 1, 1, "TTTT"),
    ROW(adam, 4, 9, 3, "TTTTTTTTTTTTTTTT"),
    ROW(momentum, 3, 6, 2, "TTTTTTTTTTT"),
};
const int count_of_numbers = sizeof of_numbers / sizeof *of_numbers;

}  // namespace retrograd
