"""Gradcheck and gradgradcheck accept and refuse the same functions as PyTorch's."""

import pytest

from ...functions import cube, multiple
from .adapter import outcome, parity, refused, warned


def inputs(m, count=1, dtype="float64"):
    """Return vectors of three elements that require grad."""
    values = [[0.5, 1.25, 2.0], [1.5, 0.75, 3.0], [2.5, 1.0, 0.25]]
    return tuple(m.tensor(v, dtype=getattr(m, dtype), requires_grad=True) for v in values[:count])


def scaled(m, forward=1.0, backward=1.0):
    """Return a Function that multiplies by one factor, and its gradient by another."""

    class Scaled(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * forward

        @staticmethod
        def backward(ctx, g):
            return g * backward

    return Scaled.apply


CORRECT = {
    "sine": lambda m, x, y: x.sin(),
    "product": lambda m, x, y: x * y,
    "several outputs": lambda m, x, y: (x * y, x.exp(), (x + y).sum()),
    "reduction": lambda m, x, y: (x * y).sum(),
    "outer product": lambda m, x, y: x[:, None] * y,
    "views": lambda m, x, y: x[1:] * y.flip(0)[:2],
    "an unused input": lambda m, x, y: x * 2,
    "write in place": lambda m, x, y: (x * 1).mul_(y).add_(x),
    "index assignment": lambda m, x, y: assigned(m, x, y),
    "a plain output too": lambda m, x, y: (x * y, m.ones(2, dtype=m.float64)),
}


def assigned(m, x, y):
    """Build a vector by assignment."""
    out = m.zeros(4, dtype=m.float64)
    out[1:] = x
    out[0] = y[1] * y[2]
    return out


@pytest.mark.parametrize("name", CORRECT)
@parity
def test_correct_gradients_pass(m, name):
    f = CORRECT[name]
    return [outcome(lambda c=c: c(lambda x, y: f(m, x, y), inputs(m, 2))) for c in checks(m)]


def checks(m):
    """Run both checks."""
    return m.autograd.gradcheck, m.autograd.gradgradcheck


@parity
def test_a_single_input_needs_no_tuple(m):
    (x,) = inputs(m)
    return [check(lambda x: x.sin(), x) for check in checks(m)]


@parity
def test_inputs_that_are_no_tensors(m):
    (x,) = inputs(m)
    return m.autograd.gradcheck(lambda x, n, flag: x**n if flag else x, (x, 3, True))


@parity
def test_inputs_that_need_no_gradient(m):
    (x,) = inputs(m)
    return m.autograd.gradcheck(lambda x, y: x * y, (x, x.detach() + 1))


@parity
def test_inputs_of_which_none_needs_a_gradient(m):
    x = m.ones(3, dtype=m.float64)
    return outcome(lambda: m.autograd.gradcheck(lambda x: x * 2, (x,)))


@parity
def test_outputs_of_which_none_needs_a_gradient(m):
    return outcome(lambda: m.autograd.gradcheck(lambda x: x.detach(), inputs(m)))


@pytest.mark.parametrize("fast", [False, True])
@parity
def test_a_wrong_gradient_is_found(m, fast):
    f = scaled(m, 2, 3)
    facts = () if fast else ("output 0", "input 0", "numerical", "analytical")
    return outcome(lambda: m.autograd.gradcheck(f, inputs(m), fast_mode=fast), *facts)


@pytest.mark.parametrize("fast", [False, True])
@parity
def test_a_wrong_gradient_gives_false_without_raise_exception(m, fast):
    f = scaled(m, 2, 3)
    return m.autograd.gradcheck(f, inputs(m), fast_mode=fast, raise_exception=False)


@pytest.mark.parametrize("fast", [False, True])
@parity
def test_a_right_gradient_passes_in_either_mode(m, fast):
    return [check(lambda x: x.sin() * x, inputs(m), fast_mode=fast) for check in checks(m)]


@parity
def test_the_error_names_the_wrong_pair(m):
    f = scaled(m, 2, 3)
    wrong = outcome(lambda: m.autograd.gradcheck(lambda x, y: (x * y, f(y)), inputs(m, 2)), "output 1", "input 1")
    return wrong


@parity
def test_a_wrong_second_derivative_is_found(m):
    f, x = cube(m, lambda x: 3 * (x * x).detach()).apply, inputs(m)
    return outcome(lambda: m.autograd.gradcheck(f, x)), outcome(lambda: m.autograd.gradgradcheck(f, x))


@parity
def test_a_gradient_that_is_missing(m):
    class Forgetful(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2 + y

        @staticmethod
        def backward(ctx, g):
            return None, g

    return outcome(lambda: m.autograd.gradcheck(Forgetful.apply, inputs(m, 2)))


@parity
def test_tolerances(m):
    f = scaled(m, 2, 2.05)

    def check(**options):
        return m.autograd.gradcheck(f, inputs(m), raise_exception=False, **options)

    return check(), check(atol=0.1), check(rtol=0.1), check(atol=0.01, rtol=0.01), check(eps=1e-4, atol=1e-6)


@parity(known="ours checks float32 with a step and tolerances of its own", ours="[['UserWarning'], True]")
def test_single_precision_warns_and_fails(m):
    return warned(lambda: m.autograd.gradcheck(lambda x: x.exp(), inputs(m, dtype="float32")))


@parity
def test_a_backward_that_is_not_deterministic(m):
    calls = []

    class Noisy(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(None)
            return g * (2 + 1e-8 * len(calls))

    x = inputs(m)
    return outcome(lambda: m.autograd.gradcheck(Noisy.apply, x)), m.autograd.gradcheck(Noisy.apply, x, nondet_tol=1e-5)


def two_outputs(m, of_nothing):
    """Return a Function of two outputs whose backward, if both cotangents are None, returns the given value."""

    class TwoOutputs(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            parts = [p * c for p, c in ((g, 2), (h, 3)) if p is not None]
            return sum(parts) if parts else of_nothing

    return TwoOutputs.apply


@parity
def test_undefined_gradients_are_tried(m):
    good, bad = two_outputs(m, None), two_outputs(m, m.ones(3, dtype=m.float64))
    (x,) = inputs(m)
    return [warned(lambda f=f: m.autograd.gradcheck(f, (x,)))[1] for f in (good, bad)]


@parity
def test_undefined_gradients_are_not_tried_with_the_option_off(m):
    bad = two_outputs(m, m.ones(3, dtype=m.float64))
    return m.autograd.gradcheck(bad, inputs(m), check_undefined_grad=False)


@parity
def test_a_function_that_drops_digits_fails(m):
    return m.autograd.gradcheck(lambda x: x.exp().float().double(), inputs(m), raise_exception=False)


@parity
def test_an_input_whose_elements_share_memory(m):
    x = m.ones(1, dtype=m.float64).expand(3).detach().requires_grad_()
    return outcome(lambda: m.autograd.gradcheck(lambda x: x * 2, (x,)))


COMPLEX = {
    "square": lambda m, z: z * z,
    "conjugate": lambda m, z: z.conj() * 2,
    "absolute value": lambda m, z: z.abs(),
    "real part": lambda m, z: z.real,
    "imaginary part": lambda m, z: z.imag * 3,
    "exponential": lambda m, z: z.exp(),
    "quotient": lambda m, z: 1 / z,
}


@pytest.mark.parametrize("name", COMPLEX)
@parity
def test_complex_functions(m, name):
    z = m.tensor([0.5 + 1j, 2 - 0.25j], dtype=m.complex128, requires_grad=True)
    f = COMPLEX[name]
    return [outcome(lambda c=c: c(lambda z: f(m, z), (z,))) for c in checks(m)]


@parity
def test_a_wrong_complex_gradient_is_found(m):
    class Conjugate(m.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            return z.conj() * 1

        @staticmethod
        def backward(ctx, g):
            return g

    z = m.tensor([0.5 + 1j], dtype=m.complex128, requires_grad=True)
    return m.autograd.gradcheck(Conjugate.apply, (z,), raise_exception=False), outcome(
        lambda: m.autograd.gradcheck(Conjugate.apply, (z,))
    )


@parity
def test_real_inputs_and_complex_outputs(m):
    (x,) = inputs(m)
    return m.autograd.gradcheck(lambda x: x * (2 + 1j), (x,)), m.autograd.gradgradcheck(lambda x: x * x * 1j, (x,))


@parity
def test_given_gradients_of_the_outputs(m):
    (x,) = inputs(m)
    g = m.tensor([1.0, -2.0, 0.5], dtype=m.float64, requires_grad=True)
    return m.autograd.gradgradcheck(lambda x: x**3, (x,), (g,)), outcome(
        lambda: m.autograd.gradgradcheck(lambda x: x**3, (x,), g)
    )


@parity
def test_cotangents_that_are_made(m):
    (x,) = inputs(m)
    return m.autograd.gradgradcheck(lambda x: x**3, (x,), gen_non_contig_grad_outputs=True)


@parity
def test_leaves_keep_no_gradient(m):
    (x,) = inputs(m)
    results = [check(lambda x: x.exp(), (x,)) for check in checks(m)]
    return results, x.grad, x, x.requires_grad


@parity
def test_an_error_in_the_function_is_passed_on(m):
    def fail(x):
        raise KeyError("f")

    return outcome(lambda: m.autograd.gradcheck(fail, inputs(m))), outcome(
        lambda: m.autograd.gradcheck(fail, inputs(m), raise_exception=False)
    )


@parity
def test_empty_inputs(m):
    x = m.ones(0, dtype=m.float64, requires_grad=True)
    return outcome(lambda: m.autograd.gradcheck(lambda x: x * 2, (x,)))


@parity
def test_inputs_without_dimensions(m):
    x = m.tensor(1.5, dtype=m.float64, requires_grad=True)
    return [check(lambda x: x * x, (x,)) for check in checks(m)]


# --------------------------------------------------------------------------------------- forward mode, and batches

FORWARD = {"check_forward_ad": True}
loads_forward_mode = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


@loads_forward_mode
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", CORRECT)
@parity
def test_correct_derivatives_pass_in_both_modes_and_in_batches(m, name, fast):
    f = CORRECT[name]
    first, second = checks(m)
    batches = {"check_batched_grad": True, "fast_mode": fast}
    return [
        outcome(lambda: first(lambda x, y: f(m, x, y), inputs(m, 2), **FORWARD, **batches)),
        outcome(lambda: first(lambda x, y: f(m, x, y), inputs(m, 2), **FORWARD, check_backward_ad=False)),
        outcome(lambda: second(lambda x, y: f(m, x, y), inputs(m, 2), check_fwd_over_rev=True, **batches)),
    ]


def triple(m, pull=lambda g: 3 * g, push=lambda t: 3 * t):
    """Return a function that multiplies by three, with these derivatives."""
    return multiple(m, 3, pull, push).apply


@loads_forward_mode
@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("fast", [False, True])
@parity
def test_a_wrong_jvp_is_found(m, fast, only):
    options = {"fast_mode": fast, "check_backward_ad": not only, **FORWARD}
    right, wrong = triple(m), triple(m, push=lambda t: 2 * t)
    facts = () if fast else ("output 0", "input 0", "numerical", "analytical", "forward mode")
    return [
        m.autograd.gradcheck(wrong, inputs(m)) if not only else None,
        outcome(lambda: m.autograd.gradcheck(right, inputs(m), **options)),
        outcome(lambda: m.autograd.gradcheck(wrong, inputs(m), **options), *facts),
        m.autograd.gradcheck(wrong, inputs(m), raise_exception=False, **options),
    ]


@loads_forward_mode
@parity
def test_a_wrong_backward_is_not_detected_where_only_forward_mode_is_checked(m):
    wrong = triple(m, pull=lambda g: 2 * g)
    return m.autograd.gradcheck(wrong, inputs(m), check_backward_ad=False, **FORWARD)


@parity
def test_a_backward_that_reads_values_can_not_take_a_batch(m):
    f = triple(m, pull=lambda g: 3 * g if g.sum().item() < 1e9 else g)
    return [
        m.autograd.gradcheck(f, inputs(m)),
        outcome(lambda: m.autograd.gradcheck(f, inputs(m), check_batched_grad=True)),
        m.autograd.gradcheck(f, inputs(m), check_batched_grad=True, raise_exception=False),
    ]


@loads_forward_mode
@pytest.mark.parametrize("name", COMPLEX)
@parity
def test_complex_functions_in_both_modes(m, name):
    z = m.tensor([0.5 + 1j, 2 - 0.25j], dtype=m.complex128, requires_grad=True)
    f = COMPLEX[name]
    return outcome(lambda: m.autograd.gradcheck(lambda z: f(m, z), (z,), check_batched_grad=True, **FORWARD))


@parity
def test_checks_of_nothing_are_refused(m):
    return [
        refused(lambda: m.autograd.gradcheck(lambda x: x * 2, inputs(m), check_backward_ad=False)),
        refused(lambda: m.autograd.gradcheck(lambda x: x * 2, inputs(m), check_batched_forward_grad=True)),
    ]
