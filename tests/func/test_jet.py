"""Taylor mode: derivatives of every order compared with mathematics and nested jvp; nesting, costs, errors."""

import gc
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial, hermite

import retrograd as rg
from retrograd.core import Level, call, registry
from retrograd.core.tensor import make
from retrograd.func import grad, hessian, jacfwd, jacrev, jet, jvp, vjp, vmap
from retrograd.func.series import ConstantSeries, Series
from retrograd.func.series_rules import FORMULAS
from retrograd.levels import outputs, value_at
from retrograd.testing import assert_close, samples_of
from retrograd.testing.calculus import as_float_map, directions

from ..case_groups import group_cases
from ..functions import underived
from ..tables import ALL_SAMPLES, operators_on_arrays

pytestmark = pytest.mark.once("func/series composes operators, and is never compiled")

ORDER = 8


def f64(data):
    return rg.tensor(data, dtype=rg.float64)


def along_line(f, x, order=ORDER, slope=1.0):
    """Return f(x) and its derivatives along a straight line."""
    x = f64(x)
    out, terms = jet(f, (x,), ([rg.full_like(x, slope)] + [0] * (order - 1),))
    return [out.tolist(), *[t.tolist() for t in terms]]


# ------------------------------------------------------------------------------------------------ closed forms

X = 0.7


def of_solution(slope, y):
    """Return derivatives of y where y' = slope(y), a polynomial."""
    found, p = [y], Polynomial([0.0, 1.0])
    for _ in range(ORDER):
        p = p.deriv() * slope
        found.append(p(y))
    return found


def of_power(exponent):
    return [math.prod(exponent - i for i in range(k)) * X ** (exponent - k) for k in range(ORDER + 1)]


def of_arctan():
    """Return derivatives of arctan: 1 / (1 + x^2) is the imaginary part of 1 / (x - i)."""
    slopes = [((-1) ** k * math.factorial(k) / (X - 1j) ** (k + 1)).imag for k in range(ORDER)]
    return [math.atan(X), *slopes]


def of_erf():
    def slope(k):
        return (-1) ** k * hermite.hermval(X, [0] * k + [1]) * math.exp(-X * X) * 2 / math.sqrt(math.pi)

    return [math.erf(X), *[slope(k) for k in range(ORDER)]]


sigmoid = 1 / (1 + math.exp(-X))
CLOSED_FORMS = {
    "exp": (rg.exp, [math.exp(X)] * (ORDER + 1)),
    "expm1": (rg.expm1, [math.expm1(X)] + [math.exp(X)] * ORDER),
    "sin": (rg.sin, [math.sin(X + k * math.pi / 2) for k in range(ORDER + 1)]),
    "cos": (rg.cos, [math.cos(X + k * math.pi / 2) for k in range(ORDER + 1)]),
    "sinh": (rg.sinh, [(math.sinh, math.cosh)[k % 2](X) for k in range(ORDER + 1)]),
    "log": (rg.log, [math.log(X), *[(-1) ** k * math.factorial(k) / X ** (k + 1) for k in range(ORDER)]]),
    "cube": (lambda x: x**3, of_power(3)),
    "power": (lambda x: x**2.5, of_power(2.5)),
    "sqrt": (rg.sqrt, of_power(0.5)),
    "rsqrt": (rg.rsqrt, of_power(-0.5)),
    "reciprocal": (rg.reciprocal, of_power(-1)),
    "quotient": (lambda x: 1 / x, of_power(-1)),
    "power of a number": (lambda x: 2.0**x, [math.log(2) ** k * 2**X for k in range(ORDER + 1)]),
    "tanh": (rg.tanh, of_solution(Polynomial([1, 0, -1]), math.tanh(X))),
    "tan": (rg.tan, of_solution(Polynomial([1, 0, 1]), math.tan(X))),
    "sigmoid": (rg.sigmoid, of_solution(Polynomial([0, 1, -1]), sigmoid)),
    "erf": (rg.erf, of_erf()),
    "atan": (rg.atan, of_arctan()),
    "rational": (lambda x: 1 / (1 + x * x), [*of_arctan()[1:], None]),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_derivatives_to_order_8_are_the_closed_forms(name):
    f, expected = CLOSED_FORMS[name]
    found = along_line(f, X)
    for k, e in enumerate(expected):
        assert e is None or found[k] == pytest.approx(e, rel=1e-10), k


@pytest.mark.parametrize("name", FORMULAS)
def test_an_operator_is_what_its_formula_says(name):
    op, make = registry[name], rg.Generator().manual_seed(0)
    inputs = [rg.rand(3, 4, dtype=rg.float64, generator=make) for _ in op.schema.inputs]
    assert_close(op(*inputs), FORMULAS[name](*inputs), rtol=1e-12, atol=1e-12)


def test_polynomials_of_polynomials_follow_faa_di_bruno():
    outer, inner = Polynomial([0.5, -1.0, 2.0, 0.25, 1.5]), Polynomial([0.3, 1.0, -0.7, 0.2])
    whole = outer(inner)

    def horner(p):
        return lambda x: sum((c * x**k for k, c in enumerate(p.coef[1:].tolist(), 1)), p.coef[0].item() + 0 * x)

    found = along_line(lambda x: horner(outer)(horner(inner)(x)), X, order=12)
    assert found == pytest.approx([whole.deriv(k)(X) for k in range(13)], rel=1e-10)


def test_a_curve_may_bend():
    """Along x(t) = exp(t), all derivatives of x at 0 are 1, and log x = t."""
    one = f64(1.0)
    out, terms = jet(rg.log, (one,), ([one] * ORDER,))
    assert [out.item(), *[t.item() for t in terms]] == pytest.approx([0.0, 1.0] + [0.0] * (ORDER - 1), abs=1e-9)


def test_high_orders_stay_exact():
    assert along_line(lambda x: rg.exp(rg.log(x) * 2), X, order=12) == pytest.approx(
        [X * X, 2 * X, 2.0] + [0.0] * 10,
        abs=1e-4,  # of terms up to 12! / 0.7^12 that cancel
    )
    assert along_line(rg.exp, X, order=60) == pytest.approx([math.exp(X)] * 61, rel=1e-12)


def test_the_inverse_of_a_matrix_has_the_derivatives_of_the_neumann_series():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (3, 3)) + 3 * np.eye(3), rng.uniform(-1, 1, (3, 3))
    inverse = np.linalg.inv(a)
    right = rng.uniform(-1, 1, (3, 2))
    line = ([f64(b.tolist())] + [0] * 5,)
    _, of_inverse = jet(rg.linalg.inv, (f64(a.tolist()),), line)
    _, of_solution = jet(lambda a: rg.linalg.solve(a, f64(right.tolist())), (f64(a.tolist()),), line)
    for k in range(1, 7):
        expected = math.factorial(k) * np.linalg.matrix_power(-inverse @ b, k) @ inverse
        assert np.allclose(of_inverse[k - 1].numpy(), expected, rtol=1e-10)
        assert np.allclose(of_solution[k - 1].numpy(), expected @ right, rtol=1e-10)


def test_complex_numbers():
    z, v = rg.tensor(0.5 + 0.3j, dtype=rg.complex128), rg.tensor(1.0 - 2.0j, dtype=rg.complex128)
    _, terms = jet(lambda z: rg.exp(z) / z, (z,), ([v, 0, 0],))
    z, v = 0.5 + 0.3j, 1.0 - 2.0j
    expected = np.exp(z) * (1 / z - 3 / z**2 + 6 / z**3 - 6 / z**4) * v**3
    assert terms[2].item() == pytest.approx(expected, rel=1e-12)


# -------------------------------------------------------------------------------------------------- nested jvp

UNARY = [
    rg.sin,
    rg.tanh,
    rg.sigmoid,
    rg.nn.functional.gelu,
    lambda x: rg.exp(-x * x),
    lambda x: rg.log(2 + rg.square(x)),
    lambda x: x.sum(),
    lambda x: x.softmax(0),
    lambda x: x.flip(0) if x.ndim else x,
    lambda x: rg.logcumsumexp(x, 0) if x.ndim else x,
]
BINARY = [rg.add, rg.mul, lambda a, b: a / (2 + b * b), rg.atan2, lambda a, b: rg.where(a > b, a, b * b), rg.logaddexp]
STEPS = st.lists(
    st.tuples(st.integers(0, len(UNARY) - 1), st.integers(0, len(BINARY) - 1), st.integers(0, 9)),
    min_size=1,
    max_size=5,
)


def program(steps):
    def run(x, y):
        made = [x, y]
        for unary, binary, place in steps:
            made.append(BINARY[binary](UNARY[unary](made[-1]), made[place % len(made)]))
        return rg.tanh(made[-1])

    return run


def slope(f):
    return lambda t: jvp(f, (t,), (rg.ones_like(t),))[1]


@settings(max_examples=60, derandomize=True)
@given(STEPS)
def test_random_programs_agree_with_nested_jvp(steps):
    f = program(steps)
    x, y, v, w = (f64(row) for row in np.random.default_rng(1).uniform(-1, 1, (4, 3)).tolist())
    out, terms = jet(f, (x, y), ([v, 2 * w, 0, 0], [w, 0, 6 * v, 0]))

    def g(t):
        return f(x + t * v + t * t * w, y + t * w + t * t * t * v)

    for term in [out, *terms]:
        expected = g(f64(0.0)).numpy()
        assert np.allclose(term.numpy(), expected, rtol=1e-8, atol=1e-8 * max(1.0, np.abs(expected).max()))
        g = slope(g)


# ----------------------------------------------------------------------------------------------------- nesting


def third(f):
    """Return the third derivative of an elementwise function."""
    return lambda x: jet(f, (x,), ([rg.ones_like(x), 0, 0],))[1][2]


def h(x):
    return rg.sin(rg.exp(x)) / x


FOURTH = along_line(h, X, order=4)[4]
NESTED = {
    "grad of jet": lambda x: grad(third(h))(x),
    "jet of grad": lambda x: third(grad(h))(x),
    "jvp of jet": lambda x: slope(third(h))(x),
    "jet of jvp": lambda x: third(slope(h))(x),
    "jacrev of jet": lambda x: jacrev(third(h))(x),
    "jet of jacrev": lambda x: third(jacrev(h))(x),
    "jacfwd of jet": lambda x: jacfwd(third(h))(x),
    "jet of jacfwd": lambda x: third(jacfwd(h))(x),
    "jet of vjp": lambda x: third(lambda x: vjp(h, x)[1](rg.ones_like(x))[0])(x),
    "jet of hessian": lambda x: jet(hessian(h), (x,), ([rg.ones_like(x), 0],))[1][1],
    "jet of jet": lambda x: jet(third(h), (x,), ([rg.ones_like(x)],))[1][0],
    "jet of vmap": lambda x: jet(vmap(h), (x.reshape(1),), ([rg.ones(1, dtype=x.dtype), 0, 0, 0],))[1][3][0],
    "vmap of jet": lambda x: vmap(grad(third(h)))(x.reshape(1))[0],
    "vmap of jet of vmap": lambda x: vmap(third(vmap(grad(h))))(x.reshape(1, 1))[0, 0],
    "backward of jet": lambda x: rg.autograd.grad(third(h)(leaf := x.clone().requires_grad_()), leaf)[0],
}


@pytest.mark.parametrize("name", NESTED)
def test_every_transform_nests_both_ways(name):
    assert NESTED[name](f64(X)).item() == pytest.approx(FOURTH, rel=1e-10)


def test_perturbations_are_not_confused():
    def f(x):
        return x * jet(lambda y: x + y, (rg.ones_like(x),), ([rg.ones_like(x)],))[1][0]

    assert along_line(f, 2.0, order=2) == [2.0, 1.0, 0.0]


def test_gradients_reach_the_series():
    v = f64(2.0)
    assert grad(lambda v: jet(rg.sin, (f64(X),), ([v, 0],))[1][1])(v).item() == pytest.approx(-4 * math.sin(X))


# ---------------------------------------------------------------------------------------------------- programs


def test_outputs_are_pytrees_with_a_list_at_each_leaf():
    x, y = f64([1.0, 2.0]), f64(3.0)
    out, terms = jet(lambda x, y: {"a": x * y, "b": (y,)}, (x, y), ([f64([1.0, 0.0]), 0], [f64(1.0), 0]))
    assert (out["a"].tolist(), out["b"][0].item()) == ([3.0, 6.0], 3.0)
    assert [t.tolist() for t in terms["a"]] == [[4.0, 2.0], [2.0, 0.0]]
    assert [t.tolist() for t in terms["b"][0]] == [1.0, 0.0]


def test_primals_are_pytrees():
    p = {"w": f64(2.0), "b": [f64(1.0)]}
    step = {"w": f64(1.0), "b": [f64(0.5)]}
    _, terms = jet(lambda p: p["w"] ** 2 * p["b"][0], (p,), ([step, {"w": 0, "b": [0]}],))
    assert [t.item() for t in terms] == pytest.approx([4 + 2, 2 + 2 * 4 * 0.5])


def test_results_independent_of_the_curve_have_zeros():
    x = f64([1.0, 2.0])
    _, (constant, cut, sign) = jet(lambda x: (rg.ones(2), x.detach() * 2, x > 0), (x,), ([x, x],))
    assert [t.tolist() for t in constant + cut] == [[0.0, 0.0]] * 4
    assert [t.dtype for t in sign] == [rg.bool] * 2


def test_no_terms_give_the_output_alone():
    assert jet(rg.sin, (f64(0.0),), ([],)) == (0.0, [])


def test_taylor_coefficients_instead_of_derivatives():
    x = f64(X)
    _, terms = jet(rg.exp, (x,), ([rg.ones_like(x), 0, 0],), factorial_scaled=False)
    assert [t.item() for t in terms] == pytest.approx([math.exp(X) / math.factorial(k) for k in (1, 2, 3)])


def test_operators_with_several_outputs():
    def f(t):
        _, r = rg.linalg.qr(rg.stack([rg.stack([t, t * t]), rg.stack([rg.exp(t), rg.cos(t)])]))
        return rg.abs(r[0, 0])  # the length of the first column

    assert along_line(f, X, order=6) == pytest.approx(
        along_line(lambda t: rg.sqrt(t * t + rg.exp(2 * t)), X, order=6), rel=1e-9
    )


def test_branches_see_values():
    assert along_line(lambda x: x**2 if x > 0 else -x, -1.0, order=2) == [1.0, -1.0, 0.0]


def test_writes_in_place_through_views():
    def f(x):
        y = x * 2
        view = y[:1]
        y.mul_(rg.sin(x))
        view.add_(x[1:] ** 3)
        return y

    found = along_line(f, [0.3, 0.4], order=4)
    expected = along_line(
        lambda x: rg.cat([(2 * x * rg.sin(x))[:1] + x[1:] ** 3, (2 * x * rg.sin(x))[1:]]), [0.3, 0.4], 4
    )
    assert np.allclose(found, expected, rtol=1e-12)


def test_tensors_written_to_later_count_with_their_earlier_values():
    def f(x):
        scale = x * 0 + 2
        y = scale * rg.sin(x)
        scale.zero_()
        return y

    assert along_line(f, X, order=2) == pytest.approx([2 * math.sin(X), 2 * math.cos(X), -2 * math.sin(X)])


def test_no_grad_hides_from_outer_gradients_only():
    def f(x):
        with rg.no_grad():
            y = rg.sin(x)
        return y * x

    def second(x):
        return jet(f, (x,), ([rg.ones_like(x), 0],))[1][1]

    assert second(f64(X)).item() == pytest.approx(2 * math.cos(X) - X * math.sin(X))
    assert grad(second)(f64(X)).item() == pytest.approx(-math.sin(X))


class Cube(rg.autograd.Function):
    """A user-defined Function with a forward derivative, which writes in place in its forward."""

    @staticmethod
    def forward(x):
        return x * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        twice = x * t
        twice.mul_(2)
        return twice * x + (x * t) * x


def test_a_function_with_a_jvp_has_all_derivatives():
    assert along_line(lambda x: rg.sin(Cube.apply(x)), X, order=5) == pytest.approx(
        along_line(lambda x: rg.sin(x * x * x), X, order=5), rel=1e-12
    )


def test_a_program_of_ten_thousand_operators():
    def f(x):
        for _ in range(5000):
            x = rg.sin(x) * 1.0001
        return x

    with_two, with_one = along_line(f, 0.5, order=2), jvp(f, (f64(0.5),), (f64(1.0),))[1].item()
    assert with_two[1] == pytest.approx(with_one, rel=1e-10)
    assert math.isfinite(with_two[2])


def test_an_operator_keeps_its_coefficients_alone_and_the_run_nothing():
    def alive(kind):
        gc.collect()
        return sum(isinstance(x, kind) for x in gc.get_objects())

    def f(x):
        y = rg.sin(x) / x
        assert (alive(ConstantSeries), alive(Series)) == (2, 2)  # x and y
        return y

    assert alive(Series) == 0
    along_line(f, [0.3, 0.4])
    assert alive(Series) == 0


# ------------------------------------------------------------------------------------------------------- costs


class Counting(Level):
    """Count the operators that run, and record the size of the largest result."""

    own_mode = False

    def __init__(self):
        self.counts = Counter()
        self.largest = 1

    def process(self, op, args, params):
        self.counts[op.name] += 1
        return outputs(call(op, tuple(value_at(self, a) for a in args), params), self.record_size)

    def record_size(self, out):
        self.largest = max(self.largest, out.numel())
        return make(out, self, None)


def count_operators(f, xs, order):
    """Count the operators of all derivatives along a curve."""
    with Counting() as level:
        primals = [make(x, level, None) for x in xs]
        jet(f, primals, [[v * 0.5**k for k in range(order)] for v in directions(tuple(xs), 1)])
    return level


def operators(f, xs, order):
    """Return how many operators they take."""
    return count_operators(f, xs, order).counts.total()


# The orders of neighbours, v - 1 and v + 1, are new tensors each time: nobody sees that two of them are equal.
# The derivative of logm is a block of the logarithm of a matrix of twice the size.
EXPONENTIAL = {("logm", 0), *(("special." + name, 1) for name in ("iv", "ive", "jv", "kv", "kve", "yv"))}
# Products with columns of a grid, as often as weights have a derivative: from order 7 on, there are no more of them.
EXPONENTIAL |= {("grid_sample", 5), ("grid_sample", 6), ("sample_points", 2)}
EXPONENTIAL |= {(name, i) for name in ("sample_points_backward", "sample_slopes") for i in range(4)}
# The rule of an operator is the same for all samples, so `make test` counts on the first. The nightly run has all.
CASES = [name for name in operators_on_arrays() if registry[name].differentiable or registry[name].composite]


def growth(name):
    """Yield the cost of doubling the order, from 4 to 8, for the chosen samples."""
    for i, (args, params) in enumerate(samples_of(registry[name])):
        if i > 0 and not ALL_SAMPLES and (name, i) not in EXPONENTIAL:
            continue
        f, xs = as_float_map(registry[name], args, params)
        if xs and f(*xs):
            few, many = (count_operators(f, xs, order) for order in (4, 8))
            yield i, max(many.counts.total() / max(few.counts.total(), 1), many.largest / few.largest)


@group_cases
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_the_cost_is_a_polynomial_in_the_order(name):
    """The degree is at most 3: if every further order doubled the cost, it would be 16 times as much."""
    for i, times in growth(name):
        assert times < 8 if (name, i) not in EXPONENTIAL else times > 8, f"sample {i}"


def test_the_operators_of_sin_and_exp_are_counted():
    """Two series, of sine and cosine, each with 1 + ... + 8 products, sums of these, and numbers."""
    assert operators(rg.sin, [f64(X)], 8) < 200
    assert operators(rg.exp, [f64(X)], 8) < 110
    assert operators(rg.tanh, [f64(X)], 8) < 200
    assert operators(rg.sigmoid, [f64(X)], 8) < 200


# ------------------------------------------------------------------------------------------------------ errors

x = f64([1.0, 2.0])
ERRORS = [
    (((x, x), ([x], [x, x])), ValueError, "as many terms, got 1, 2"),
    (((x, x), ([x],)), ValueError, "a list for each of the 2 primals, got 1 entries"),
    (((x,), x), ValueError, "a list for each of the 1 primals, got Tensor"),
    (((x,), (1.0,)), ValueError, "series 0 must be a list of derivatives, got float"),
    (((x,), ([x, f64(1.0)],)), ValueError, r"order 2 has shape \(\), but its primal \(2,\)"),
    (((x,), ([rg.ones(2)],)), TypeError, "order 1 is float32, but its primal float64"),
    (((rg.tensor([1]),), ([rg.tensor([1])],)), TypeError, r"primals must be floating, got int64\[1\]"),
    ((x, [x]), ValueError, "primals must be a tuple"),
    ((({"a": x},), ([x],)), ValueError, "order 1 must be trees like the primals"),
]


@pytest.mark.parametrize(("args", "exception", "pattern"), ERRORS)
def test_wrong_calls_say_what_is_wrong(args, exception, pattern):
    with pytest.raises(exception, match=f"jet: .*{pattern}"):
        jet(lambda *xs: xs[0], *args)


def test_an_output_that_is_no_tensor_is_refused():
    with pytest.raises(RuntimeError, match=r"jet: .* must return tensors only, got float"):
        jet(lambda x: 1.0, (x,), ([x],))


def test_an_escaped_tensor_is_an_error():
    kept = []
    along_line(lambda x: kept.append(x) or x * x, X, order=2)
    with pytest.raises(RuntimeError, match="escaped"):
        kept[0] * 2


def test_an_operator_without_a_rule_is_refused_at_its_line():
    with pytest.raises(NotImplementedError, match=r"Opaque: .*jvp"):
        along_line(lambda x: underived("Opaque").apply(x), X, order=2)
