// Elementwise functions.

#include "ufunc_adapter.hpp"
#include "registration.hpp"
#include "sums.hpp"

namespace retrograd {
namespace {

// Elements from which on operands are in the memory of the machine rather than in a cache.
constexpr npy_intp FAR = 1 << 17;

// Defines a kernel with one output: an expression in the first and the last input, x and y; a and b are the first two
// settings.
#define KERNEL_OF(name, arrays, settings, expression) KERNEL_IN_BLOCKS(name, arrays, settings, false, expression)

// The same for an expression that is x on a condition, and 0 else: GCC makes an instruction of it that does not begin to read
// x before the condition is known.  So x is fetched before.  With 4 million numbers, a kernel takes 0.5 to 0.8 of the time.
#define SELECTION_OF(name, arrays, settings, expression) KERNEL_IN_BLOCKS(name, arrays, settings, true, expression)

#define KERNEL_IN_BLOCKS(name, arrays, settings, fetches, expression)                                      \
    KERNEL(name, arrays, settings, 1) {                                                                  \
        const T *in = operands.in[0], *second = operands.in[arrays - 1];                                 \
        const T a = operands.set[0], b = operands.set[settings > 1];                                     \
        T* out = operands.out[0];                                                                        \
        (void)a, (void)b;                                                                                \
        for (npy_intp start = 0, end; start < n; start = end) {                                          \
            end = fetches && n >= FAR ? std::min(start + BLOCK, n) : n;                                  \
            if (end < n) Prefetch<T, 1>{{reinterpret_cast<const char*>(in + start)}}.fetch(2 * BLOCK, BLOCK); \
            IN_ANY_ORDER                                                                                 \
            for (npy_intp i = start; i < end; i++) {                                                     \
                T x = in[i], y = second[i];                                                              \
                (void)y;                                                                                 \
                out[i] = expression;                                                                     \
            }                                                                                            \
        }                                                                                                \
    }

// In double precision, in which neither squares nor sums overflow.
INLINE float hypot_of(float x, float y) {
    const float found = static_cast<float>(std::sqrt(double(x) * x + double(y) * y)), most = std::numeric_limits<float>::infinity();
    return std::fabs(x) == most || std::fabs(y) == most ? most : found;
}

// The number next to x towards y: the bits of floats are in the order of their sizes.
template <class T>
INLINE T next_of(T x, T y) {
    using Bits = typename Format<T>::Bits;
    T next = from_bits<T>(bits_of(x) + ((y > x) == (x > T(0)) ? Bits(1) : ~Bits(0)));
    next = x == T(0) ? std::copysign(std::numeric_limits<T>::denorm_min(), y) : next;
    next = x == y ? y : next;
    return x == x && y == y ? next : x + y;
}

// The output may be an input: each element depends only on itself.
KERNEL_OF(erf, 1, 0, erf_of(x))
KERNEL_OF(erfc, 1, 0, erfc_of(x))
KERNEL_OF(erfinv, 1, 0, erfinv_of(x))
KERNEL_OF(hypot, 2, 0, hypot_of(x, y))
KERNEL_OF(nextafter, 2, 0, next_of(x, y))
KERNEL_OF(gelu, 1, 0, gelu_of(x))
KERNEL_OF(gelu_grad, 2, 0, x * gelu_slope_of(y))
KERNEL_OF(gelu_tanh, 1, 0, gelu_tanh_of(x))
KERNEL_OF(gelu_tanh_grad, 2, 0, x * gelu_tanh_slope_of(y))
KERNEL_OF(sigmoid, 1, 0, sigmoid_of(x))
KERNEL_OF(sigmoid_grad, 2, 0, x * (y * (1 - y)))
KERNEL_OF(silu, 1, 0, silu_of(x))
KERNEL_OF(silu_grad, 2, 0, x * silu_slope_of(y))
KERNEL_OF(tanh_grad, 2, 0, x * (1 - y * y))
KERNEL_OF(sign, 1, 0, (x > 0 ? 1 : x < 0 ? -1 : x == x ? 0 : x))
KERNEL_OF(relu, 1, 0, (x <= 0 ? 0 : x))
SELECTION_OF(relu_grad, 2, 0, (y == 0 ? 0 : x))
KERNEL_OF(softplus, 1, 2, softplus_of(x, a, b))
KERNEL_OF(softplus_grad, 2, 2, (y * a > b ? x : x * sigmoid_of(y * a)))
KERNEL_OF(scale_negative, 2, 1, (y > 0 ? x : x * a))
SELECTION_OF(between, 2, 2, (y > a && y < b ? x : 0))
SELECTION_OF(outside, 2, 2, (y < a || y > b ? x : 0))
KERNEL_OF(clip, 1, 2, clamp(x, a, b))
KERNEL_OF(hardshrink, 1, 1, (std::fabs(x) <= a ? 0 : x))
KERNEL_OF(softshrink, 1, 1, x - clamp(x, -a, a))
KERNEL_OF(hardsigmoid, 1, 0, clamp(x + 3, T(0), T(6)) / 6)
KERNEL_OF(hardswish, 1, 0, x * clamp(x + 3, T(0), T(6)) / 6)
SELECTION_OF(hardswish_grad, 2, 0, (y >= 3 ? x : y <= -3 ? 0 : x * (y / 3 + T(0.5))))
KERNEL_OF(elu, 1, 3, elu_of(x, a, b, operands.set[2]))
KERNEL_OF(elu_grad, 2, 3, x * elu_slope_of(y, a, b, operands.set[2]))
KERNEL_OF(squared_difference, 2, 0, (x - y) * (x - y))
KERNEL_OF(squared_difference_grad, 3, 0, x * (2 * (operands.in[1][i] - y)))
KERNEL_OF(huber, 2, 2, huber_of(std::fabs(x - y), a, b))
KERNEL_OF(huber_grad, 3, 2, x * (clamp(operands.in[1][i] - y, -a, a) / b))

// Exactly the second number where the weight is 1.
KERNEL(lerp, 3, 0, 1) {
    const T *first = operands.in[0], *second = operands.in[1], *weight = operands.in[2];
    T* out = operands.out[0];
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const T w = weight[i], x = first[i], y = second[i];
        out[i] = w < T(0.5) ? x + w * (y - x) : y - (y - x) * (T(1) - w);
    }
}

// ------------------------------------------------------------------------------- division with an integral quotient

// Applies `finish` to numbers a and b and the rests of their divisions.  C's function computes the rests that vector
// instructions cannot find.
template <class T, T (*finish)(T a, T b, T rest)>
INLINE void divide_blocks(const Operands<T, 2, 0, 1>& operands, npy_intp n) {
    T rests[BLOCK];
    for (npy_intp start = 0; start < n; start += BLOCK) {
        const npy_intp count = std::min(n - start, BLOCK);
        const T *a = operands.in[0] + start, *b = operands.in[1] + start;
        T* out = operands.out[0] + start;
        int missing = 0;
        IN_ANY_ORDER
        for (npy_intp i = 0; i < count; i++) {
            missing |= !has_fast_rest(a[i], b[i]);
            rests[i] = fast_rest(a[i], b[i]);
        }
        if (missing) find_rests(a, b, rests, count);
        IN_ANY_ORDER
        for (npy_intp i = 0; i < count; i++) out[i] = finish(a[i], b[i], rests[i]);
    }
}

// The same without vector instructions that fuse a product and a sum.
template <class T, T (*finish)(T a, T b, T rest)>
INLINE void divide_each(const Operands<T, 2, 0, 1>& operands, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        const T a = operands.in[0][i], b = operands.in[1][i];
        operands.out[0][i] = finish(a, b, std::fmod(a, b));
    }
}

template <class T>
INLINE T rest_itself(T, T, T rest) {
    return rest;
}

#define OF_DIVISION(name, finish)                                                                                       \
    {                                                                                                                   \
        #name,                                                                                                          \
            {loop<float, 2, 0, 1, cpu_dispatch<divide_blocks<float, finish<float>>, divide_each<float, finish<float>>>>,  \
             loop<double, 2, 0, 1, cpu_dispatch<divide_blocks<double, finish<double>>, divide_each<double, finish<double>>>>}, \
            "TTT", 2, nullptr                                                                                           \
    }

// ---------------------------------------------------------------------------------------------------------- choice

template <class T>
INLINE void choose(const npy_bool* mask, const T* x, const T* y, T* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = mask[i] ? x[i] : y[i];
}

template <class T>
void where(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    const npy_intp n = dimensions[0];
    Source<npy_bool> mask;
    Source<T> from[2];
    T to[BLOCK];
    mask.open(args[0], steps[0], n);
    for (int k = 0; k < 2; k++) from[k].open(args[k + 1], steps[k + 1], n);
    const bool direct = steps[3] == sizeof(T);
    for (npy_intp start = 0; start < n; start += BLOCK) {
        const npy_intp count = std::min(n - start, BLOCK);
        char* at = args[3] + start * steps[3];
        const T *x = from[0].elements(start, count), *y = from[1].elements(start, count);
        if (n >= FAR) Prefetch<T, 2>{{reinterpret_cast<const char*>(x), reinterpret_cast<const char*>(y)}}.fetch(2 * BLOCK, BLOCK);
        cpu_dispatch<choose<T>>(mask.elements(start, count), x, y, direct ? reinterpret_cast<T*>(at) : to, count);
        if (!direct) scatter(to, count, at, steps[3]);
    }
}

const Kernel kernels[] = {
    OF_NUMBERS(erf, 1, 0, 1, "TT"),
    OF_NUMBERS(erfc, 1, 0, 1, "TT"),
    {"erfinv", {loop<float, 1, 0, 1, cpu_dispatch<erfinv<float>>>, nullptr}, "ff", 1, nullptr},
    {"hypot", {loop<float, 2, 0, 1, cpu_dispatch<hypot<float>>>, nullptr}, "fff", 2, nullptr},
    OF_NUMBERS(nextafter, 2, 0, 1, "TTT"),
    OF_NUMBERS(sign, 1, 0, 1, "TT"),
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
    OF_NUMBERS(scale_negative, 2, 1, 1, "TTTT"),
    OF_NUMBERS(between, 2, 2, 1, "TTTTT"),
    OF_NUMBERS(lerp, 3, 0, 1, "TTTT"),
    OF_NUMBERS(outside, 2, 2, 1, "TTTTT"),
    OF_NUMBERS(clip, 1, 2, 1, "TTTT"),
    OF_NUMBERS(hardshrink, 1, 1, 1, "TTT"),
    OF_NUMBERS(softshrink, 1, 1, 1, "TTT"),
    OF_NUMBERS(hardsigmoid, 1, 0, 1, "TT"),
    OF_NUMBERS(hardswish, 1, 0, 1, "TT"),
    OF_NUMBERS(hardswish_grad, 2, 0, 1, "TTT"),
    OF_NUMBERS(elu, 1, 3, 1, "TTTTT"),
    OF_NUMBERS(elu_grad, 2, 3, 1, "TTTTTT"),
    OF_NUMBERS(squared_difference, 2, 0, 1, "TTT"),
    OF_NUMBERS(squared_difference_grad, 3, 0, 1, "TTTT"),
    OF_NUMBERS(huber, 2, 2, 1, "TTTTT"),
    OF_NUMBERS(huber_grad, 3, 2, 1, "TTTTTT"),
    OF_DIVISION(fmod, rest_itself),
    OF_DIVISION(remainder, remainder_of),
    OF_DIVISION(floor_divide, floor_quotient_of),
    {"where", {parallel_loop<where<float>, 4, false>, parallel_loop<where<double>, 4, false>}, "?TTT", 3, nullptr},
};

}  // namespace

const Part part_pointwise{kernels};

}  // namespace retrograd
