"""The step of each kind of recurrent cell with its first and second derivatives, for those of whole layers.

`x` and `z` are the terms of the gates from the input and from the state; h and c are the states, c None except for an
LSTM. Derivatives of `x` and `z` are those of these terms.
"""

from typing import Any

from retrograd.core import registry
from retrograd.ops.pointwise import gt, relu, tanh, where
from retrograd.ops.recurrent import (
    gru_jvp,
    gru_step,
    gru_step_grad,
    gru_vjp_jvp,
    lstm_jvp,
    lstm_step,
    lstm_step_grad,
    lstm_vjp_jvp,
)


class LSTM:
    """The cell of an LSTM."""

    gates = 4

    @staticmethod
    def step(x, z, h, c):
        """Return the states after the step."""
        return lstm_step([x, z, c])

    @staticmethod
    def jvp(x, z, h, c, t_x, t_z, t_h, t_c):
        """Return the tangents of the states after the step."""
        return lstm_jvp(x + z, c, t_x + t_z, t_c)

    @staticmethod
    def grad(gh, gc, x, z, h, c):
        """Return the cotangents of x, z, h and c; that of h without its part through z, None if there is no other."""
        gates, before = lstm_step_grad([gh, gc, x, z, c])
        return gates, gates, None, before

    @staticmethod
    def grad_jvp(gh, gc, x, z, h, c, t_x, t_z, t_h, t_c):
        """Return the derivatives of `grad` along tangents of x, z, h and c."""
        gates, before = lstm_vjp_jvp(gh, gc, x + z, c, t_x + t_z, t_c)
        return gates, gates, None, before


class GRU:
    """The cell of a GRU; its methods are those of `LSTM`, without c."""

    gates = 3

    @staticmethod
    def step(x, z, h, c):
        """Return the state after the step."""
        return gru_step([x, z, h]), None

    @staticmethod
    def jvp(x, z, h, c, t_x, t_z, t_h, t_c):
        """Return the tangent of the state after the step."""
        return gru_jvp(x, z, h, t_x, t_z, t_h), None

    @staticmethod
    def grad(gh, gc, x, z, h, c):
        """Return the cotangents of x, z and h."""
        return *gru_step_grad([gh, x, z, h]), None

    @staticmethod
    def grad_jvp(gh, gc, x, z, h, c, t_x, t_z, t_h, t_c):
        """Return the derivatives of `grad`."""
        return *gru_vjp_jvp(gh, x, z, h, t_x, t_z, t_h), None


class _RNN:
    """Base of the cells without gates, whose new state is a function of x + z."""

    gates = 1
    function: Any
    first: Any
    second: Any

    @classmethod
    def step(cls, x, z, h, c):
        """Return the state after the step."""
        return cls.function(x + z), None

    @classmethod
    def jvp(cls, x, z, h, c, t_x, t_z, t_h, t_c):
        """Return the tangent of the state after the step."""
        return cls.first(x + z, t_x + t_z), None

    @classmethod
    def grad(cls, gh, gc, x, z, h, c):
        """Return the cotangents of x and z."""
        d = cls.first(x + z, gh)
        return d, d, None, None

    @classmethod
    def grad_jvp(cls, gh, gc, x, z, h, c, t_x, t_z, t_h, t_c):
        """Return the derivatives of `grad`."""
        d = cls.second(x + z, gh, t_x + t_z)
        return d, d, None, None


class Tanh(_RNN):
    """The cell of an RNN with tanh."""

    function = tanh

    @staticmethod
    def first(x, t):
        """Return the derivative times t."""
        y = tanh(x)
        return t * (1 - y * y)

    @staticmethod
    def second(x, s, t):
        """Return the second derivative times s t."""
        y = tanh(x)
        return -2 * y * (1 - y * y) * s * t


class ReLU(_RNN):
    """The cell of an RNN with relu."""

    function = relu

    @staticmethod
    def first(x, t):
        """Return the derivative times t."""
        return where(gt(x, 0), t, 0)

    @staticmethod
    def second(x, s, t):
        """Return zeros."""
        return registry["zeros_like"](t)


CELLS: dict[str, Any] = {"lstm": LSTM, "gru": GRU, "rnn_tanh": Tanh, "rnn_relu": ReLU}
