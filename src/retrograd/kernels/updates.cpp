// Steps of optimizers: all that happens to a parameter and what is kept for it, in one pass over memory.

#include "elements.hpp"
#include "tables.hpp"

namespace retrograd {
namespace {

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

}  // namespace

const Kernel of_updates[] = {
    OF_NUMBERS(adam, 4, 9, 3, "TTTTTTTTTTTTTTTT"),
    OF_NUMBERS(momentum, 3, 6, 2, "TTTTTTTTTTT"),
};
const int count_of_updates = sizeof of_updates / sizeof *of_updates;

}  // namespace retrograd
