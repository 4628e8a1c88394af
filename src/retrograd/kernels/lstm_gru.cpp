// Steps of LSTM and GRU cells, forward and backward.

#include "ufunc_adapter.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// The operands are the input parts of the gates i, f, g, o, then their state parts.
#define LSTM_GATES(at)                                                                                      \
    const T i = sigmoid_of(in[at][k] + in[at + 4][k]), f = sigmoid_of(in[at + 1][k] + in[at + 5][k]);       \
    const T g = tanh_of(in[at + 2][k] + in[at + 6][k]), o = sigmoid_of(in[at + 3][k] + in[at + 7][k]);      \
    const T before = in[at + 8][k], after = f * before + i * g, top = tanh_of(after);

template <class T>
INLINE void lstm_of(const T* const* in, T* const* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp k = 0; k < n; k++) {
        LSTM_GATES(0)
        out[0][k] = o * top;
        out[1][k] = after;
    }
}

// The first operands are the cotangents of h and c.
template <class T>
INLINE void lstm_grad_of(const T* const* in, T* const* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp k = 0; k < n; k++) {
        LSTM_GATES(2)
        const T gh = in[0][k], gc = in[1][k] + gh * o * (1 - top * top);
        out[0][k] = gc * g * (i * (1 - i));
        out[1][k] = gc * before * (f * (1 - f));
        out[2][k] = gc * i * (1 - g * g);
        out[3][k] = gh * top * (o * (1 - o));
        out[4][k] = gc * f;
    }
}

// The operands are the input parts of the gates r, z, n, their state parts, and the state.
#define GRU_GATES(at)                                                                                   \
    const T r = sigmoid_of(in[at][k] + in[at + 3][k]), z = sigmoid_of(in[at + 1][k] + in[at + 4][k]);   \
    const T memory = in[at + 5][k], n = tanh_of(in[at + 2][k] + r * memory), h = in[at + 6][k];

template <class T>
INLINE void gru_of(const T* const* in, T* const* out, npy_intp count) {
    IN_ANY_ORDER
    for (npy_intp k = 0; k < count; k++) {
        GRU_GATES(0)
        out[0][k] = n + z * (h - n);
    }
}

template <class T>
INLINE void gru_grad_of(const T* const* in, T* const* out, npy_intp count) {
    IN_ANY_ORDER
    for (npy_intp k = 0; k < count; k++) {
        GRU_GATES(1)
        const T g = in[0][k], of_new = g * (1 - z) * (1 - n * n);
        out[0][k] = of_new * memory * (r * (1 - r));
        out[1][k] = g * (h - n) * (z * (1 - z));
        out[2][k] = of_new;
        out[3][k] = of_new * r;
        out[4][k] = g * z;
    }
}

KERNEL(lstm, 9, 0, 2) { lstm_of(operands.in, operands.out, n); }
KERNEL(lstm_grad, 11, 0, 5) { lstm_grad_of(operands.in, operands.out, n); }
KERNEL(gru, 7, 0, 1) { gru_of(operands.in, operands.out, n); }
KERNEL(gru_grad, 8, 0, 5) { gru_grad_of(operands.in, operands.out, n); }

const Kernel kernels[] = {
    OF_NUMBERS(lstm, 9, 0, 2, "TTTTTTTTTTT"),
    OF_NUMBERS(lstm_grad, 11, 0, 5, "TTTTTTTTTTTTTTTT"),
    OF_NUMBERS(gru, 7, 0, 1, "TTTTTTTT"),
    OF_NUMBERS(gru_grad, 8, 0, 5, "TTTTTTTTTTTTT"),
};

}  // namespace

const Part part_lstm_gru{kernels};

}  // namespace retrograd
