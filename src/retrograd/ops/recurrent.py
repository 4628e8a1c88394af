"""Fused steps of recurrent networks; forward and backward take one pass over memory each.

S. Hochreiter and J. Schmidhuber, Long short-term memory, Neural Computation 9 (1997); K. Cho et al., Learning phrase
representations using RNN encoder-decoder, arXiv 1406.1078.
"""

from retrograd.core import Aval, Internal, op, registry
from retrograd.kernels import recurrent_formulas
from retrograd.ops.batching import batch_all
from retrograd.ops.family import kernels_support
from retrograd.ops.pointwise import sigmoid, tanh
from retrograd.ops.split import chunk
from retrograd.ops.view import cat


class Step(Internal):
    """Base of steps with tensors x and h (..., gates n), the gates' terms from input and state, and state (..., n).

    Both modes need one second derivative: the directional derivative of the backward pass.  By symmetry it also gives
    the derivative of a tangent, multiplied by the cotangents.  Each step defines it as its `bend`.
    """

    gates = 4
    kernel = ""  # the kernel on arrays

    @classmethod
    def impl(cls, xp, *tensors):
        cls.check(*tensors)
        return getattr(xp, cls.kernel)(*tensors)

    @classmethod
    def batch(cls, batched, n, *tensors):
        return registry[cls.__name__](list(batch_all(tensors, batched, n)))

    @classmethod
    def check(cls, *tensors):
        """Check shapes and dtypes of cotangents, which match the state, and of x, h and the state, the last three."""
        *cotangents, x, h, state = tensors
        name, expected = cls.__name__, (*state.shape[:-1], cls.gates * state.shape[-1])
        if not kernels_support(*tensors):
            dtypes = ", ".join(str(t.dtype) for t in tensors)
            raise TypeError(f"{name}: expected float32 or float64, all alike, got {dtypes}")
        if x.shape != expected or h.shape != expected or any(g.shape != state.shape for g in cotangents):
            raise ValueError(f"{name}: gates {x.shape} and {h.shape} must be {expected}, for a state {state.shape}")


def zeros_for_none(tangents, primals):
    """Return the tangents, with zeros for those that are None."""
    return [registry["zeros_like"](p) if t is None else t for t, p in zip(tangents, primals, strict=True)]


def _sigmoid_derivatives(s):
    """The first and second derivative of the sigmoid, from its output s."""
    first = s * (1 - s)
    return first, first * (1 - 2 * s)


def _tanh_derivatives(t):
    first = 1 - t * t
    return first, -2 * t * first


# ------------------------------------------------------------------------------------------------------- LSTM


def lstm_jvp(gates, c, t_gates, t_c_before):
    """Return the tangents of h and c after the step, from those of the gates and of c before."""
    i, f, g, o = _lstm_gates(gates)
    after = f * c + i * g
    mi, mf, mg, mo = chunk(t_gates, 4, -1)
    top = tanh(after)
    dc = f * t_c_before + c * f * (1 - f) * mf + g * i * (1 - i) * mi + i * (1 - g * g) * mg
    return o * (1 - o) * mo * top + o * (1 - top * top) * dc, dc


def _lstm_gates(gates):
    i, f, g, o = chunk(gates, 4, -1)
    return sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)


def lstm_vjp_jvp(gh, gc, gates, c, t_gates, t_c_before):
    """Return the derivative of the cotangents of gates and c along tangents of gates and c."""
    i, f, g, o = _lstm_gates(gates)
    top = tanh(f * c + i * g)
    (i1, i2), (f1, f2), (o1, o2) = map(_sigmoid_derivatives, (i, f, o))
    (g1, g2), (top1, top2) = map(_tanh_derivatives, (g, top))
    mi, mf, mg, mo = chunk(t_gates, 4, -1)
    dc = f * t_c_before + c * f1 * mf + g * i1 * mi + i * g1 * mg
    flow = gc + gh * o * top1  # the cotangent of c after the step
    t_flow = gh * (o1 * mo * top1 + o * top2 * dc)  # how that changes
    of_i = t_flow * i1 * g + flow * (i2 * mi * g + i1 * g1 * mg)
    of_f = t_flow * f1 * c + flow * (f2 * mf * c + f1 * t_c_before)
    of_g = t_flow * i * g1 + flow * (i1 * mi * g1 + i * g2 * mg)
    of_o = gh * (o2 * mo * top + o1 * top1 * dc)
    return cat([of_i, of_f, of_g, of_o], -1), t_flow * f + flow * f1 * mf


@op("lstm_step(Tensor[] tensors) -> (Tensor h, Tensor c)")
class lstm_step(Step):
    """The states h and c after an LSTM step, of the tensors x, h and c before, with gates i, f, g, o."""

    kernel = "lstm"

    @classmethod
    def shape(cls, *tensors):
        cls.check(*tensors)
        return tensors[2], tensors[2]

    def vjp_tensors(g, tensors):
        gates, c = lstm_step_grad([*g, *tensors])
        return [gates, gates, c]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        x, h, c = primals
        t_x, t_h, t_c = zeros_for_none(tangents, primals)
        return lstm_jvp(x + h, c, t_x + t_h, t_c)

    oracle = "retrograd.testing.references.recurrent.lstm_step"

    def samples(r):
        yield (r(3, 8), r(3, 8), r(3, 2)), {}
        yield (r(4), r(4), r(1)), {}

    def errors(r):
        yield (r(3, 8), r(3, 8), r(3, 4)), {}, ValueError, r"must be \(3, 16\), for a state \(3, 4\)"


@op("lstm_step_grad(Tensor[] tensors) -> (Tensor gates, Tensor c)")
class lstm_step_grad(Step):
    """The cotangents of the gates and of c before, from those of h and c after; then come x, h and c before."""

    kernel = "lstm_grad"

    @classmethod
    def shape(cls, *tensors):
        cls.check(*tensors)
        return tensors[2], tensors[4]

    def vjp_tensors(g, tensors):
        gh, gc, x, h, c = tensors
        gates, of_c = lstm_vjp_jvp(gh, gc, x + h, c, *g)
        return [*lstm_jvp(x + h, c, *g), gates, gates, of_c]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        gh, gc, x, h, c = primals
        t_gh, t_gc, t_x, t_h, t_c = zeros_for_none(tangents, primals)
        along = lstm_step_grad([t_gh, t_gc, x, h, c])
        t_flow = lstm_vjp_jvp(gh, gc, x + h, c, t_x + t_h, t_c)
        return along[0] + t_flow[0], along[1] + t_flow[1]

    oracle = "retrograd.testing.references.recurrent.lstm_step_grad"

    def samples(r):
        yield (r(3, 2), r(3, 2), r(3, 8), r(3, 8), r(3, 2)), {}


def lstm(by_input, by_state, c):
    """Return the states h and c after a step, from the gates' terms from input and state, in one dtype or several."""
    if kernels_support(by_input, by_state, c):
        return lstm_step([by_input, by_state, c])
    i, f, g, o = chunk(by_input + by_state, 4, -1)
    return recurrent_formulas.lstm_step(i, f, g, o, c, sigmoid, tanh)


# -------------------------------------------------------------------------------------------------------- GRU


def _gru_gates(x, h):
    """The gates r, z and n, and the term that r multiplies."""
    (xr, xz, xn), (hr, hz, hn) = chunk(x, 3, -1), chunk(h, 3, -1)
    r = sigmoid(xr + hr)
    return r, sigmoid(xz + hz), tanh(xn + r * hn), hn


def gru_jvp(x, h, state, t_x, t_h, t_state):
    """Return the tangent of the new state, from those of the gates and the old state."""
    r, z, n, hn = _gru_gates(x, h)
    (ar, az, an), (br, bz, bn) = chunk(t_x, 3, -1), chunk(t_h, 3, -1)
    inner = an + r * (1 - r) * (ar + br) * hn + r * bn
    return (1 - z) * (1 - n * n) * inner + z * (1 - z) * (az + bz) * (state - n) + z * t_state


def gru_vjp_jvp(g, x, h, state, t_x, t_h, t_state):
    """Return the derivative of the cotangents of x, h and the state along tangents of these."""
    r, z, n, hn = _gru_gates(x, h)
    (ar, az, an), (br, bz, bn) = chunk(t_x, 3, -1), chunk(t_h, 3, -1)
    (r1, r2), (z1, z2), (n1, n2) = _sigmoid_derivatives(r), _sigmoid_derivatives(z), _tanh_derivatives(n)
    mr, mz = ar + br, az + bz
    inner = an + r1 * mr * hn + r * bn
    flow = g * (1 - z) * n1  # the cotangent of the argument of tanh in n
    t_flow = g * ((1 - z) * n2 * inner - z1 * mz * n1)  # how that changes
    of_r = t_flow * r1 * hn + flow * (r2 * mr * hn + r1 * bn)
    of_z = g * (z2 * mz * (state - n) + z1 * (t_state - n1 * inner))
    return cat([of_r, of_z, t_flow], -1), cat([of_r, of_z, t_flow * r + flow * r1 * mr], -1), g * z1 * mz


@op("gru_step(Tensor[] tensors) -> Tensor")
class gru_step(Step):
    """The state after a GRU step, of the tensors x, h and the old state, with gates r, z, n; n takes r h."""

    gates = 3
    kernel = "gru"

    @classmethod
    def shape(cls, *tensors):
        cls.check(*tensors)
        return Aval(tensors[2].shape, tensors[2].dtype)

    def vjp_tensors(g, tensors):
        return list(gru_step_grad([g, *tensors]))

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        return gru_jvp(*primals, *zeros_for_none(tangents, primals))

    oracle = "retrograd.testing.references.recurrent.gru_step"

    def samples(r):
        yield (r(3, 6), r(3, 6), r(3, 2)), {}
        yield (r(3), r(3), r(1)), {}

    def errors(r):
        yield (r(3, 8), r(3, 8), r(3, 4)), {}, ValueError, r"must be \(3, 12\), for a state \(3, 4\)"


@op("gru_step_grad(Tensor[] tensors) -> (Tensor x, Tensor h, Tensor state)")
class gru_step_grad(Step):
    """The cotangents of x, h and the old state, from that of the new state; then come these three."""

    gates = 3
    kernel = "gru_grad"

    @classmethod
    def shape(cls, *tensors):
        cls.check(*tensors)
        return tensors[1:]

    def vjp_tensors(g, tensors):
        return [gru_jvp(*tensors[1:], *g), *gru_vjp_jvp(*tensors, *g)]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        t_g, *t_tensors = zeros_for_none(tangents, primals)
        along, t_flow = gru_step_grad([t_g, *primals[1:]]), gru_vjp_jvp(*primals, *t_tensors)
        return tuple(a + b for a, b in zip(along, t_flow, strict=True))

    oracle = "retrograd.testing.references.recurrent.gru_step_grad"

    def samples(r):
        yield (r(3, 2), r(3, 6), r(3, 6), r(3, 2)), {}


def gru(by_input, by_state, h):
    """Return the state after a step, from the gates' terms from input and state, in one dtype or several."""
    if kernels_support(by_input, by_state, h):
        return gru_step([by_input, by_state, h])
    (xr, xz, xn), (hr, hz, hn) = chunk(by_input, 3, -1), chunk(by_state, 3, -1)
    return recurrent_formulas.gru_step(xr + hr, xz + hz, xn, hn, h, sigmoid, tanh)
