"""gradcheck and gradgradcheck: correct gradients pass, each kind of wrong one is named, and inputs are unchanged."""

import math
import warnings
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import GradcheckError, forward_ad, gradcheck, gradgradcheck
from retrograd.core import Definition, op, registry

from ..case_groups import group_cases
from ..functions import multiple


def leaf(*values, dtype=rg.float64):
    return rg.tensor(list(values), dtype=dtype, requires_grad=True)


def scaled(x, factor):
    """x, whose gradient is `factor` times what it should be."""
    return x * factor + (x * (1 - factor)).detach()


@contextmanager
def strange(rule, impl=lambda xp, x: x.copy(), push=None):
    """Return an operator with this vjp rule, and this jvp rule if any; by default the identity."""
    parts = {"__doc__": "A map under test.", "impl": impl, "vjp_x": rule, **({"jvp_x": push} if push else {})}
    try:
        yield op("strange(Tensor x) -> Tensor")(type("strange", (Definition,), parts))
    finally:
        del registry["strange"]


def message(func, inputs, **options):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(func, inputs, **options)
    assert gradcheck(func, inputs, raise_exception=False, **options) is False
    return str(caught.value)


@pytest.fixture
def single():
    """Permit inputs of less than double precision."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "gradcheck: .* of less than double precision")
        yield


# --------------------------------------------------------------------------------------------- correct gradients

RIGHT = {
    "one input": (lambda x: x.sin(), (leaf(0.5, 2.0),)),
    "a tensor, not a sequence": (lambda x: x.sin(), leaf(0.5, 2.0)),
    "several of each": (lambda x, y: (x * y, (x * y).sum()), [leaf(0.5, 2.0), leaf(3.0, -1.0)]),
    "one that requires none": (lambda x, y: x * y, (leaf(0.5), rg.tensor([2.0], dtype=rg.float64))),
    "arguments that are no tensors": (lambda x, n, _: x**n, (leaf(0.5), 3, None)),
    "an unused input": (lambda x, y: x * 2, (leaf(0.5), leaf(2.0))),
    "the same tensor twice": (lambda x, y: x * y, (leaf(0.5, 2.0),) * 2),
    "the input itself": (lambda x: x, (leaf(0.5, 2.0),)),
    "a view of the input": (lambda x: x.reshape(2, 1), (leaf(0.5, 2.0),)),
    "no dimensions": (lambda x: x.exp(), (rg.tensor(0.5, dtype=rg.float64, requires_grad=True),)),
    "no entries": (lambda x: (x * 2, x.sum()), (rg.zeros(0, 3, dtype=rg.float64, requires_grad=True),)),
    "outputs without gradient": (lambda x: (x.argmax(), x * 2, x.detach() * 3, "text"), (leaf(0.5, 2.0),)),
    "a dict of outputs": (lambda x: {"a": x * 2, "b": [x.sin()]}, (leaf(0.5, 2.0),)),
}


@group_cases
@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_pass(name, fast_mode):
    func, inputs = RIGHT[name]
    assert gradcheck(func, inputs, fast_mode=fast_mode) is True


def test_inputs_may_have_any_memory_layout():
    base = np.random.rand(4, 6)
    for array in (base.T, base[:, ::2], base[::-1, 1:]):
        assert gradcheck(lambda x: (x * x).cumsum(0), rg.from_numpy(array).requires_grad_())
    assert (base <= 1).all()


class Pair(NamedTuple):
    left: rg.Tensor
    right: rg.Tensor


def test_inputs_may_be_nested():
    tree = {"w": [leaf(0.5), (leaf(2.0), 7)], "p": Pair(leaf(1.5), leaf(-1.0))}

    def func(tree, y):
        return tree["w"][0] * tree["w"][1][0] * tree["p"].left * tree["p"].right * y

    assert gradcheck(func, (tree, leaf(3.0)))
    assert "by input 0['w'][1][0] at" in message(lambda t: scaled(t["w"][1][0], 2.0), (tree,))


def test_a_function_may_read_its_inputs_without_its_arguments_as_modules_do():
    x, w = leaf(0.5, 2.0), leaf(3.0, -1.0)
    assert gradcheck(lambda x, _: (x * w).sin(), (x, w))
    text = message(lambda x, _: scaled((x * w).sum(), 2.0), (x, w))
    assert "by input 0 at index (0,)" in text
    assert "Wrong too: output 0 by input 1" in text


@pytest.mark.parametrize("fast_mode", [False, True])
def test_complex_gradients_are_pytorchs(fast_mode):
    z = leaf(1 + 2j, 3 - 1j, dtype=rg.complex128)
    x = leaf(0.5, 2.0)
    assert gradcheck(lambda z: z.abs(), z, fast_mode=fast_mode)  # C -> R
    assert gradcheck(lambda x: x * (1 + 2j), x, fast_mode=fast_mode)  # R -> C
    assert gradcheck(lambda z, x: (z * z * x, z.conj() * z, z.conj()), (z, x), fast_mode=fast_mode)  # C -> C


def test_a_gradient_that_is_not_conjugated_is_wrong():
    z = leaf(1 + 2j, 3 - 1j, dtype=rg.complex128)
    with strange(lambda g, x: g * x.conj() * 2, impl=lambda xp, x: x * x) as square:
        text = message(square, z)
    assert "part of complex outputs only, Jacobian mismatch for output 0 with respect to input 0,\n" in text
    assert "Wrong too: " in text


def test_gradients_that_are_switched_off_are_switched_on():
    with rg.no_grad():
        assert gradcheck(lambda x: x.sin(), leaf(0.5))


def test_functions_may_take_gradients_themselves():
    def slope(x):
        with rg.enable_grad():
            return rg.autograd.grad((x**3).sum(), x, create_graph=True)[0]

    assert gradcheck(slope, leaf(0.5, 2.0))


# -------------------------------------------------------------------------------------------- unchanged state


def test_the_inputs_memory_comes_back_to_the_bit_and_no_gradients_are_left():
    x = leaf(-0.0, 0.1, 1e5, 5e-324)
    before = x.detach().numpy().tobytes()
    for func in (lambda x: x * 2, lambda x: x.sin().detach() * 0):
        gradcheck(func, x, raise_exception=False)
        gradcheck(func, x, raise_exception=False, fast_mode=True)
    assert x.detach().numpy().tobytes() == before
    assert x.grad is None


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("dtype", [rg.float64, rg.float32])
def test_the_inputs_memory_comes_back_when_the_function_fails_on_the_way(fast_mode, dtype, single):
    x = leaf(0.1, 0.2, dtype=dtype)
    before = x.detach().numpy().copy()

    def func(x):
        if (x.detach().numpy() != before).any():
            raise ZeroDivisionError("at shifted inputs")
        return x * 2

    with pytest.raises(ZeroDivisionError, match="at shifted"):
        gradcheck(func, x, fast_mode=fast_mode)
    assert x.detach().numpy().tobytes() == before.tobytes()


def test_the_users_random_numbers_continue_as_they_would():
    def draws(run):
        rg.manual_seed(3)
        run()
        return rg.rand(2).tolist()

    x = leaf(0.5, 2.0)
    for run in (lambda: gradcheck(rg.sin, x, fast_mode=True), lambda: gradgradcheck(rg.sin, x)):
        assert draws(run) == draws(lambda: None)


# ---------------------------------------------------------------------------------------------- wrong gradients


def test_a_wrong_entry_is_named_with_both_jacobians():
    w = rg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=rg.float64, requires_grad=True)
    x = leaf(1.0, 1.0)
    error = rg.zeros(2, 3, dtype=rg.float64)
    error[1, 2] = 0.5

    def func(x, w):
        wrong = w * (1 + error) - (w * error).detach()
        return x.sum() * 2, wrong.sum(0)

    text = message(func, (x, w))
    assert "Jacobian mismatch for output 1 with respect to input 1,\nnumerical:tensor([[1." in text
    assert "\nanalytical:tensor([[1.0000, 0.0000, 0.0000]" in text
    assert "1 of 18 entries are wrong. The worst: output 1 at index (2,) by input 1 at index (1, 2): " in text
    assert "analytical 1.5; they differ by 0.5, allowed is 0.00101" in text
    assert "Wrong too" not in text
    assert "deterministic" not in text


def test_of_several_wrong_jacobians_the_worst_is_shown_and_the_others_are_named():
    def func(x, y):
        return scaled(x, 1.1), scaled(x, 1.2) + scaled(y, 3.0)

    text = message(func, (leaf(1.0), leaf(2.0)))
    assert text.startswith("Jacobian mismatch for output 1 with respect to input 1,")
    assert "Wrong too: output 0 by input 0, output 1 by input 0." in text


def test_a_gradient_that_is_no_number_is_wrong():
    with strange(lambda g: g * math.nan) as lost:
        assert "analytical nan" in message(lost, leaf(1.0))
        for func in (lambda x: (scaled(x, 2.0), lost(x)), lambda x: (lost(x), scaled(x, 2.0))):
            assert "analytical nan; they differ by nan" in message(func, leaf(1.0))
    assert not gradcheck(lambda x: x.sqrt() * 0, leaf(0.0, 1.0), raise_exception=False)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("factor", [0.0, -1.0, 0.99, 1.01])
def test_wrong_factors_are_found(factor, fast_mode):
    func = lambda x: scaled(x.sin(), factor)  # noqa: E731
    assert "Jacobian mismatch" in message(func, leaf(0.5, 2.0), fast_mode=fast_mode)


def test_the_fast_mode_finds_errors_that_cancel_in_sums():
    factors = rg.tensor([1.5, 0.5], dtype=rg.float64)
    assert "2 of 4 entries are wrong" in message(lambda x: scaled(x, factors), leaf(1.0, 1.0), fast_mode=True)


def test_the_fast_mode_finds_one_wrong_entry_among_many():
    w, error = rg.ones(50, 50, dtype=rg.float64), rg.ones(50, 50, dtype=rg.float64)
    error[17, 31] = 1.02

    def func(x):
        return (scaled(x.expand(50, 50), error) * w).sum(1)

    x = rg.rand(50, dtype=rg.float64, requires_grad=True)
    assert "The worst: output 0 at index (17,) by input 0 at index (31,)" in message(func, x, fast_mode=True)


@pytest.mark.parametrize("dtype", [rg.float64, rg.float32])
def test_the_fast_mode_takes_few_evaluations_where_nothing_is_wrong(dtype, single):
    calls = []

    def func(x):
        calls.append(1)
        return x.sin() + 1000.0, x.sum()

    assert gradcheck(func, rg.rand(100, dtype=dtype, requires_grad=True), fast_mode=True)
    assert len(calls) < 20


def test_the_fast_mode_takes_few_evaluations_in_forward_mode_and_of_complex_numbers_too():
    calls = []

    def func(z):
        calls.append(1)
        return z * z, z.abs()

    z = rg.tensor(np.linspace(1.0, 2.0, 50) * (1 - 2j), requires_grad=True)
    assert gradcheck(func, z, fast_mode=True, check_forward_ad=True)
    assert len(calls) < 20


def test_the_fast_mode_leaves_the_verdict_to_the_jacobian():
    x = rg.tensor(np.linspace(0.0, 1.0, 20) * 1e4, requires_grad=True)  # curved: directions see what entries do not
    assert gradcheck(lambda x: (x * 1e-2).sin(), x, fast_mode=True)


def test_inputs_that_do_not_require_grad_must_not_vary():
    text = message(lambda x: (rg.tensor([1.0]), x.detach() * 3.0), leaf(1.0))
    assert text.startswith(
        "Numerical gradient for function expected to be zero, because output 1 does not require grad"
    )
    assert "with respect to input 0" in text
    assert gradcheck(lambda x: x.detach().sign(), leaf(1.0))
    assert gradcheck(lambda x: x.argmax(), leaf(1.0, 2.0))


def test_random_backward_passes_are_found_beyond_the_tolerance():
    with strange(lambda g: g * (1 + 1e-6 * rg.rand(g.shape, dtype=g.dtype))) as jitter:
        text = message(jitter, leaf(1.0, 2.0))
        assert text.startswith("Backward is not reentrant: two backward passes from output 0")
        assert "gradients of input 0 that differ by" in text
        assert "nondet_tol=0" in text
        assert "not reentrant" in message(jitter, leaf(1.0, 2.0), fast_mode=True, nondet_tol=1e-9)
        assert gradcheck(jitter, leaf(1.0, 2.0), nondet_tol=1e-5)
        assert gradcheck(jitter, leaf(1.0, 2.0), nondet_tol=1e-5, fast_mode=True)


def test_a_random_function_is_distinguished_from_a_wrong_gradient():
    text = message(lambda x: x * rg.rand(2, dtype=rg.float64), leaf(1.0, 2.0))
    assert "Jacobian mismatch" in text
    assert text.endswith(
        "the function is not deterministic: at the same inputs output 0 varies by more than nondet_tol=0."
    )


def test_a_backward_that_adds_something_to_its_cotangent_is_found():
    def rule(g):
        return g + (g.abs().sum() == 0).to(g.dtype)

    with strange(rule) as offset:
        text = message(offset, leaf(1.0, 2.0))
    assert (
        "backward not multiplied by grad_output: for zero cotangents the gradient of input 0 is tensor([1., 1.]" in text
    )


def test_inputs_that_share_memory_are_pointed_out_where_something_is_wrong():
    x = leaf(1.0, 2.0)
    assert "input 0 and input 1 may share memory" in message(lambda x, y: x * y, (x, x.detach()))
    assert gradcheck(lambda x, y: x + y * 0, (x, x.detach()))
    assert "share memory" not in message(lambda x, y: scaled(x * y, 2.0), (x, x))


def test_the_dtype_of_gradients_is_checked_if_requested():
    with strange(lambda g: g.to(rg.float32)) as narrow:
        assert gradcheck(narrow, leaf(1.0, 2.0))
        text = message(narrow, leaf(1.0, 2.0), check_grad_dtypes=True)
    assert text == "Gradient has dtype mismatch: input 0 is float64, its gradient float32"


def test_the_shape_of_gradients_is_checked():
    with strange(lambda g: g[:1]) as short:
        text = message(short, leaf(1.0, 2.0))
    assert text == "Analytical gradient has incorrect size: input 0 has shape (2,), its gradient (1,)"


def test_outputs_must_be_of_the_same_kind_near_the_inputs():
    def func(x):
        return x * 2 if x[0].item() == 1.0 else (x * 2)[:1]

    text = message(func, leaf(1.0, 2.0))
    assert "but output 0 is a tensor of shape (2,) and float64, and at inputs that were shifted" in text
    assert "it is a Tensor of shape (1,) and float64" in text
    assert "it is None" in message(lambda x: x * 2 if x[0].item() == 1.0 else None, leaf(1.0))


def several(backward, factors):
    """Return a function of one input with one output per factor, whose backward gets None for missing cotangents."""

    class Several(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return tuple(x * factor for factor in factors)

        @staticmethod
        def backward(ctx, *gs):
            return backward(*gs)

    return Several.apply


@pytest.mark.parametrize("fast_mode", [False, True])
def test_missing_cotangents_mean_zero(fast_mode):
    def terms(*gs):
        found = [g * k for k, g in zip((2.0, 3.0, 4.0), gs, strict=True) if g is not None]
        return sum(found) if found else None

    func = several(terms, (2.0, 3.0, 4.0))
    assert gradcheck(func, leaf(1.0, 2.0), fast_mode=fast_mode)
    needs_all = several(lambda a, b: 2 * a + 3 * b, (2.0, 3.0))
    text = message(needs_all, leaf(1.0), fast_mode=fast_mode)
    assert text.startswith(
        "backward fails where output 0 alone has a cotangent; undefined cotangents mean zero: TypeError"
    )


def test_undefined_cotangents_of_all_outputs_mean_zero():
    x = leaf(1.0, 2.0)
    for factors in ((2.0,), (2.0, 3.0)):

        def terms(*gs, instead, factors=factors):
            found = [g * k for k, g in zip(factors, gs, strict=True) if g is not None]
            return sum(found) if found else instead

        assert gradcheck(several(partial(terms, instead=None), factors), x)
        assert gradcheck(several(partial(terms, instead=rg.zeros(2, dtype=rg.float64)), factors), x)
        nonzero = several(partial(terms, instead=rg.ones(2, dtype=rg.float64)), factors)
        assert gradcheck(nonzero, x, check_undefined_grad=False)
        text = message(nonzero, x)
        assert text.startswith("Expected all input grads to be undefined or zero when all output grads are undefined")
    text = message(several(lambda g: g * 2, (2.0,)), x)
    assert text.startswith("Expected backward function to handle undefined output grads")


def test_a_cotangent_that_is_missing_among_others_means_zero():
    def sum_of(gs):
        return sum(g for g in gs if g is not None)

    def backward(*gs):
        return sum_of(gs) * (1.5 if sum(g is None for g in gs) == 1 else 1.0)

    def fails(*gs):
        return gs[5] if sum(g is None for g in gs) == 1 else sum_of(gs)

    x = leaf(1.0, 2.0)
    text = message(several(backward, (1.0,) * 3), x)
    assert text.startswith("backward does not take an undefined cotangent for zero: without that of output 0, ")
    assert gradcheck(several(backward, (1.0,) * 3), x, check_undefined_grad=False)
    text = message(several(fails, (1.0,) * 3), x)
    assert "without that of output 0 it fails: IndexError" in text


def test_the_error_of_a_jacobian_names_other_cotangents_that_are_missing():
    drops = several(lambda a, b: None if a is None or b is None else 2 * a + 3 * b, (2.0, 3.0))
    text = message(drops, leaf(1.0))
    assert "Jacobian mismatch" in text
    assert "Perhaps the reason: backward does not take an undefined cotangent for zero" in text


def test_an_error_in_the_only_backward_is_the_users():
    with strange(lambda g: g[5, 5]) as broken, pytest.raises(IndexError):
        gradcheck(broken, leaf(1.0), raise_exception=False)


def test_writes_in_place_and_through_views_are_checked_as_any_function():
    def func(x):
        y = x * 1.0
        y[:1].mul_(x[1:])
        return y.add_(x)

    assert gradcheck(func, leaf(0.5, 2.0))
    assert gradgradcheck(func, leaf(0.5, 2.0))


# --------------------------------------------------------------------------------------------- refused calls


def test_inputs_that_share_memory_among_their_entries_are_refused():
    x = rg.zeros(1, dtype=rg.float64).expand(3).detach().requires_grad_()
    with pytest.raises(RuntimeError, match=r"entries of input 1, of shape \(3,\), share memory.*clone"):
        gradcheck(lambda x, y: x * y, (leaf(1.0), x))
    windows = np.lib.stride_tricks.sliding_window_view(np.zeros(5), 3, writeable=True)
    with pytest.raises(RuntimeError, match="share memory"):
        gradcheck(lambda x: x * 2, rg.from_numpy(windows).requires_grad_())


def test_memory_that_cannot_be_written_to_is_refused():
    array = np.ones(2)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match=r"memory of input 0 can't be written to.*clone"):
        gradcheck(lambda x: x * 2, rg.from_numpy(array).requires_grad_())


def test_some_input_must_require_grad():
    with pytest.raises(ValueError, match="none of them have requires_grad=True"):
        gradcheck(lambda x: x * 2, rg.ones(2))
    with pytest.raises(ValueError, match="none of them have requires_grad=True"):
        gradgradcheck(lambda x: x * 2, rg.ones(2))


@pytest.mark.parametrize(
    ("check", "options", "names"),
    [
        (gradcheck, {"check_backward_ad": False}, "check_forward_ad and check_backward_ad"),
        (gradgradcheck, {"check_rev_over_rev": False}, "check_fwd_over_rev and check_rev_over_rev"),
        (gradcheck, {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True}, "batched_grad"),
        (gradcheck, {"check_batched_forward_grad": True}, "needs check_forward_ad=True"),
    ],
)
def test_checks_of_nothing_are_refused_before_anything_runs(check, options, names):
    calls = []
    with pytest.raises(ValueError, match=f"{check.__name__}: .*{names}"):
        check(calls.append, leaf(1.0), **options)
    assert calls == []


def test_a_step_that_is_lost_in_rounding_is_refused(single):
    with pytest.raises(ValueError, match=r"eps=1e-20 changes nothing in an entry of size 3; take a larger"):
        gradcheck(rg.sin, leaf(3.0), eps=1e-20)


# --------------------------------------------------------------------------------------- forward mode, and batches

EVERYTHING = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}


@group_cases
@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass_in_both_modes_and_in_batches(name, fast_mode):
    func, inputs = RIGHT[name]
    assert gradcheck(func, inputs, fast_mode=fast_mode, **EVERYTHING) is True
    assert gradcheck(func, inputs, fast_mode=fast_mode, check_backward_ad=False, check_forward_ad=True) is True


def test_complex_tangents_pass_in_both_modes_and_in_batches():
    z, x = leaf(1 + 2j, 3 - 1j, dtype=rg.complex128), leaf(0.5, 2.0)
    assert gradcheck(lambda z, x: (z * z * x, z.conj() * z, z.abs(), x * 1j), (z, x), **EVERYTHING)


def doubled(pull=lambda g: 2 * g, push=lambda t: 2 * t, setup=None):
    """2 x, with user-defined derivatives."""

    Doubled = multiple(rg, 2, pull, push)

    class DoubledInBatches(Doubled):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            """Save nothing."""

    return (DoubledInBatches if setup else Doubled).apply


@pytest.mark.parametrize("setup", [False, True])
@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_wrong_jvp_is_named_with_both_jacobians(fast_mode, setup):
    wrong = doubled(push=lambda t: 3 * t, setup=setup)
    func = lambda x, y: (x * y, wrong(y))  # noqa: E731
    inputs = leaf(1.0), leaf(0.5, 2.0)
    assert gradcheck(func, inputs, fast_mode=fast_mode)
    text = message(func, inputs, fast_mode=fast_mode, check_forward_ad=True)
    assert text.startswith(
        "Jacobian computed with forward mode mismatch for output 1 with respect to input 1,\nnumerical:tensor([[2."
    )
    assert "\nanalytical:tensor([[3., 0.]" in text
    assert "output 1 at index (0,) by input 1 at index (0,): numerical 2, analytical 3; they differ by 1" in text


def test_a_wrong_imaginary_tangent_is_found():
    wrong = doubled(push=lambda t: 2 * t.conj())
    text = message(wrong, leaf(1 + 2j, dtype=rg.complex128), check_forward_ad=True)
    assert "part of complex outputs only, Jacobian computed with forward mode mismatch" in text
    assert "computed with forward mode" in text


def test_where_only_forward_mode_is_checked_backward_passes_do_not_run():
    def pull(g):
        raise AssertionError("a backward pass")

    func = doubled(pull)
    assert gradcheck(func, leaf(0.5, 2.0), check_forward_ad=True, check_backward_ad=False)
    assert gradcheck(func, leaf(0.5, 2.0), check_forward_ad=True, check_backward_ad=False, fast_mode=True)
    wrong = doubled(pull, lambda t: t)
    text = message(lambda x: (wrong(x), wrong(x)), leaf(0.5), check_forward_ad=True, check_backward_ad=False)
    assert "computed with forward mode" in text
    assert "Perhaps the reason" not in text


def test_the_error_of_functions_without_a_jvp_names_it():
    with strange(lambda g: g) as same:
        assert gradcheck(same, leaf(1.0))
        with pytest.raises(NotImplementedError, match="strange: no forward derivative"):
            gradcheck(same, leaf(1.0), check_forward_ad=True)


def test_functions_may_read_their_inputs_without_their_arguments_in_forward_mode_too():
    x, w = leaf(0.5, 2.0), leaf(3.0, -1.0)
    assert gradcheck(lambda x, _: (x * w).sin(), (x, w), **EVERYTHING)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_functions_may_read_the_tangents_of_all_inputs(fast_mode):
    def double(x, y):
        primal, tangent = forward_ad.unpack_dual(y)
        return x + (y if forward_ad._current_level < 0 else forward_ad.make_dual(primal, tangent * factor))

    factor, inputs = 1, (leaf(0.5, 2.0), leaf(3.0, -1.0))
    options = {"check_forward_ad": True, "check_undefined_grad": False, "fast_mode": fast_mode}
    assert gradcheck(double, inputs, **options)
    factor = 2
    assert not gradcheck(double, inputs, raise_exception=False, **options)


def test_functions_that_take_gradients_themselves_have_tangents():
    def slope(x):
        return rg.autograd.grad((x**3).sum(), x, create_graph=True)[0]

    assert gradcheck(slope, leaf(0.5, 2.0), **EVERYTHING)


def test_the_shape_and_dtype_of_tangents_are_checked():
    def text(push, **options):
        with strange(lambda g: g, push=push) as same:
            return message(same, leaf(1.0, 2.0), check_forward_ad=True, **options)

    assert text(lambda t: t[:1]) == "Tangent has incorrect size: output 0 has shape (2,), its tangent (1,)"
    assert text(lambda t: t * 1j) == "Tangent has dtype mismatch: output 0 is float64, its tangent complex128"
    narrow = text(lambda t: t.to(rg.float32), check_grad_dtypes=True)
    assert narrow == "Tangent has dtype mismatch: output 0 is float64, its tangent float32"
    with strange(lambda g: g, push=lambda t: t.to(rg.float32)) as same:
        assert gradcheck(same, leaf(1.0, 2.0), check_forward_ad=True)


def product(push):
    """The product of two tensors, with a jvp that sees None for missing tangents."""

    class Product(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return (None, None) if g is None else (g * y, g * x)

        @staticmethod
        def jvp(ctx, t, u):
            return push(*ctx.saved_tensors, t, u)

    return Product.apply


def test_missing_tangents_mean_zero():
    def push(x, y, t, u):
        return (0 if t is None else t * y) + (0 if u is None else x * u)

    x, w = leaf(0.5, 2.0), leaf(3.0, -1.0)
    assert gradcheck(product(push), (x, w), check_forward_ad=True)
    fails = product(lambda x, y, t, u: t * y + x * u)
    with pytest.raises(
        GradcheckError, match=r"forward mode fails where the tangent of input 0 is undefined.*: \w*TypeError"
    ):
        gradcheck(fails, (x, w), check_forward_ad=True)


def test_a_missing_tangent_among_others_means_zero():
    def push(x, y, z, t, u, v):
        terms = [(t, y * z), (u, x * z), (v, x * y)]
        there = [a * b for a, b in terms if a is not None]
        return sum(there) * (1.5 if len(there) == 2 else 1.0)

    class Three(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, z):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x, y, z)
            ctx.save_for_forward(x, y, z)
            return x * y * z

        @staticmethod
        def backward(ctx, g):
            x, y, z = ctx.saved_tensors
            return g * y * z, g * x * z, g * x * y

        @staticmethod
        def jvp(ctx, *tangents):
            return push(*ctx.saved_tensors, *tangents)

    inputs = leaf(0.5), leaf(2.0), leaf(3.0)
    text = message(Three.apply, inputs, check_forward_ad=True)
    assert text.startswith("forward mode does not take an undefined tangent for zero: without that of input 0, ")
    assert gradcheck(Three.apply, inputs, check_forward_ad=True, check_undefined_grad=False)


def test_a_backward_that_reads_values_can_not_take_a_batch():
    func = doubled(lambda g: g * 2 if g.sum().item() < 1e9 else g)
    assert gradcheck(func, leaf(1.0, 2.0))
    text = message(func, leaf(1.0, 2.0), check_batched_grad=True)
    assert text.startswith(
        "gradcheck or gradgradcheck failed while testing batched gradient computation: backward from output 0 can't "
        "take a batch of cotangents, as vmap and vectorize=True give it"
    )
    assert "NotBatchedError" in text
    assert "test_gradcheck.py" in text


def test_a_jvp_that_reads_values_can_not_take_a_batch():
    func = doubled(push=lambda t: t * 2 if t.sum().item() < 1e9 else t, setup=True)
    assert gradcheck(func, leaf(1.0, 2.0), check_forward_ad=True)
    text = message(func, leaf(1.0, 2.0), check_forward_ad=True, check_batched_forward_grad=True)
    assert "forward mode from input 0 can't take a batch of tangents, as vmap" in text


@contextmanager
def wrong_in_batches():
    """Return an operator, 2 x, whose batching rule computes 3 x for all examples except the first."""

    class Twice(Definition):
        """2 x."""

        linear = "x"

        def impl(xp, x):
            return x * 2

        def vjp_x(g):
            return twice(g)

        def batch(batched, n, x):
            factors = rg.arange(n, dtype=x.dtype).clamp(max=1) + 2
            return x * factors.reshape(n, *(1,) * (x.ndim - 1))

    try:
        twice = op("twice(Tensor x) -> Tensor")(Twice)
        yield twice
    finally:
        del registry["twice"]


def test_batches_that_differ_from_their_examples_are_shown_with_the_wrong_entry():
    with wrong_in_batches() as twice:
        x = leaf(1.0, 2.0)
        assert gradcheck(twice, x, check_forward_ad=True)
        text = message(twice, x, check_batched_grad=True)
        assert text.startswith(
            "Batched derivative mismatch: the gradient of input 0 for 2 cotangents of output 0, at once"
        )
        assert "In example 1 they are\nat once:tensor([" in text
        assert "\none by one:tensor([" in text
        assert "2 of 2 entries are wrong. The worst, at index (" in text
        text = message(twice, x, check_forward_ad=True, check_batched_forward_grad=True)
        assert text.startswith(
            "Batched derivative mismatch: the tangent of output 0 for 2 tangents of input 0, at once"
        )


def test_in_single_precision_forward_mode_is_checked_too(single):
    x = leaf(0.5, 2.0, dtype=rg.float32)
    assert gradcheck(lambda x: x.exp().log(), x, **EVERYTHING)
    assert "computed with forward mode" in message(doubled(push=lambda t: 2.1 * t), x, check_forward_ad=True)


# --------------------------------------------------------------------------------------------- low precision

SINGLE = {
    "sin": rg.sin,
    "exp of 3x": lambda x: (3 * x).exp(),
    "log": lambda x: x.abs().log(),
    "sqrt": lambda x: x.abs().sqrt(),
    "reciprocal": lambda x: 1 / x,
    "cube": lambda x: x**3,
    "a sum that cancels": lambda x: (x - x.mean()).cumsum(0),
    "softmax": lambda x: x.softmax(dim=0),
    "log_softmax": lambda x: x.log_softmax(dim=0),
    "norm": lambda x: (x * x).sum().sqrt(),
    "variance": lambda x: ((x - x.mean()) ** 2).mean(),
    "standardised": lambda x: (x - x.mean()) / ((x - x.mean()) ** 2).mean().sqrt(),
    "a layer": lambda x: (rg.eye(8) * 0.3 + 0.2).matmul(x * 0.1).tanh(),
    "a large offset": lambda x: x * 3.0 + 100.0,
}


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_in_single_precision_right_functions_pass_and_wrong_ones_fail(name, scale, rng, single):
    func = SINGLE[name]
    x = rg.tensor(rng.normal(size=8) * scale, dtype=rg.float32, requires_grad=True)
    assert gradcheck(func, x)
    assert gradcheck(func, x, fast_mode=True)
    for factor in (0.0, 0.9, 1.1, -1.0):
        assert not gradcheck(lambda x, factor=factor: scaled(func(x), factor), x, raise_exception=False)


def test_inputs_of_low_precision_are_pointed_out():
    facts = "Input #1 requires gradient .* of less than double precision, float32"
    with pytest.warns(UserWarning, match=facts) as caught:
        gradcheck(lambda x, y, z: x * y, (leaf(1.0), leaf(2.0, dtype=rg.float32), rg.ones(1)))
    assert [w.filename for w in caught] == [__file__]
    with pytest.warns(UserWarning, match="Input #0, Input #1 requires gradient .* float32") as caught:
        gradgradcheck(rg.sin, leaf(2.0, dtype=rg.float32))
    assert [w.filename for w in caught] == [__file__]


def test_single_precision_anywhere_is_detected(single):
    assert gradcheck(lambda x: x.to(rg.float32).exp(), leaf(0.5, 2.0))
    assert not gradcheck(lambda x: scaled(x.to(rg.float32).exp(), 0.9), leaf(0.5, 2.0), raise_exception=False)


def test_in_single_precision_complex_numbers_are_checked_too(single):
    z = leaf(1 + 2j, 3 - 1j, dtype=rg.complex64)
    assert gradcheck(lambda z: (z * z.conj() * z, z.abs()), z)
    assert not gradcheck(lambda z: scaled(z.abs(), 0.9), z, raise_exception=False)


def test_in_single_precision_the_users_step_and_tolerances_count(single):
    x = leaf(0.5, 2.0, dtype=rg.float32)
    assert gradcheck(lambda x: scaled(x.sin(), 0.9), x, atol=0.2)
    assert gradcheck(lambda x: scaled(x.sin(), 0.9), x, eps=1e-2, atol=0.2)
    assert not gradcheck(rg.sin, x, eps=2e-6, raise_exception=False)  # rounding alone, as in PyTorch


def test_in_single_precision_a_random_function_is_not_taken_for_a_noisy_one(single):
    text = message(lambda x: x * rg.rand(2), leaf(1.0, 2.0, dtype=rg.float32))
    assert text.startswith("the function is not deterministic")


def test_in_single_precision_a_small_input_may_vanish_in_a_large_value(single):
    assert gradcheck(lambda x: x * 3.0 + 1e4, leaf(1e-3, 2e-3, dtype=rg.float32))


def test_steps_that_leave_the_domain_are_cut(single):
    x = leaf(1e-3, 1e-4, dtype=rg.float32)
    assert gradcheck(rg.log, x)
    assert not gradcheck(lambda x: scaled(x.log(), 0.9), x, raise_exception=False)


# --------------------------------------------------------------------------------------------- gradgradcheck


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
def test_right_second_derivatives_pass(fast_mode, gaps):
    x, y = leaf(0.5, 2.0), leaf(1.0, 3.0)
    for func in (lambda x, y: (x * y).sin(), lambda x, y: (x.sum() * y**2, x), lambda x, y: x.argmax() + x):
        assert gradgradcheck(func, (x, y), fast_mode=fast_mode, gen_non_contig_grad_outputs=gaps)


def test_cotangents_may_be_given():
    x = leaf(0.5, 2.0)
    g = leaf(1.0, -1.0)
    assert gradgradcheck(rg.sin, x, g)
    assert gradgradcheck(lambda x: (x.sin(), x * 2), x, [g, rg.ones(2, dtype=rg.float64)])


def test_cotangents_with_gaps_are_in_memory_with_gaps():
    seen = []
    with strange(lambda g: (seen.append(g.detach().numpy().flags.c_contiguous), g * 1.0)[1]) as watch:
        gradgradcheck(watch, leaf(0.5, 2.0), gen_non_contig_grad_outputs=True)
    assert not all(seen)


def test_complex_second_derivatives_pass():
    z = leaf(1 + 2j, 3 - 1j, dtype=rg.complex128)
    assert gradgradcheck(lambda z: (z * z * z, z.abs()), z)


def test_a_gradient_that_is_right_but_not_differentiable_is_found():
    with strange(lambda g, x: g * (2 * x).detach(), impl=lambda xp, x: x * x) as square:
        assert gradcheck(square, leaf(1.0, 2.0))
        with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
            gradgradcheck(square, leaf(1.0, 2.0))
        assert gradgradcheck(square, leaf(1.0, 2.0), raise_exception=False) is False


@pytest.mark.parametrize("fast_mode", [False, True])
def test_second_derivatives_pass_in_forward_over_reverse_and_in_batches(fast_mode):
    x, y = leaf(0.5, 2.0), leaf(1.0, 3.0)
    z = leaf(1 + 2j, 3 - 1j, dtype=rg.complex128)
    options = {"fast_mode": fast_mode, "check_fwd_over_rev": True}
    for func, inputs in ((lambda x, y: (x.sum() * y**2, x), (x, y)), (lambda z: (z * z * z, z.abs()), z)):
        assert gradgradcheck(func, inputs, check_batched_grad=True, **options)
        assert gradgradcheck(func, inputs, check_rev_over_rev=False, **options)


def test_a_wrong_derivative_of_a_backward_in_forward_mode_is_found():
    func = doubled(doubled(push=lambda t: 3 * t))  # of 2 g forward mode makes 3 g
    assert gradgradcheck(func, leaf(1.0, 2.0))
    for options in ({}, {"check_rev_over_rev": False}, {"fast_mode": True}):
        with pytest.raises(GradcheckError, match="forward mode mismatch for output 0 with respect to input 1"):
            gradgradcheck(func, leaf(1.0, 2.0), check_fwd_over_rev=True, **options)


def test_where_only_forward_over_reverse_is_checked_wrong_backwards_of_backwards_pass():
    func = doubled(doubled(lambda g: 3 * g))
    assert not gradgradcheck(func, leaf(1.0, 2.0), check_fwd_over_rev=True, raise_exception=False)
    assert gradgradcheck(func, leaf(1.0, 2.0), check_fwd_over_rev=True, check_rev_over_rev=False)


def test_a_backward_whose_own_backward_reads_values_can_not_take_a_batch():
    func = doubled(doubled(lambda g: g * 2 if g.sum().item() < 1e9 else g))
    assert gradgradcheck(func, leaf(1.0, 2.0))
    with pytest.raises(GradcheckError, match="can't take a batch of cotangents"):
        gradgradcheck(func, leaf(1.0, 2.0), check_batched_grad=True)
