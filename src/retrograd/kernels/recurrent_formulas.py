"""The formulas of a step of an LSTM and of a GRU.

They use arithmetic, and the functions `sigmoid` and `tanh` that they are given: NumPy's in the references of the
kernels, operators where tensors have a dtype that the kernels do not know.
"""


def lstm_step(i, f, g, o, c, sigmoid, tanh):
    """Return the states h and c after a step from the arguments of its gates, and the previous c."""
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def gru_step(r, z, new, memory, h, sigmoid, tanh):
    """Return the state after a step from the arguments of its gates r and z, both terms of n, and the previous state.

    n is the tanh of `new` plus r times `memory`.
    """
    n = tanh(new + sigmoid(r) * memory)
    return n + sigmoid(z) * (h - n)
