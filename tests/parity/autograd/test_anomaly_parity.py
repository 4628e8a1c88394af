"""Anomaly mode names the node that made a NaN, and the line that made the node, as in PyTorch."""

import warnings

import numpy as np
import pytest
import torch

import retrograd as rg

from .adapter import leaf, outcome, parity, warned


@pytest.fixture(autouse=True)
def _quiet_numpy():
    """Silence NumPy, which warns of the root of a negative number; PyTorch does not."""
    with np.errstate(all="ignore"):
        yield


def bad_square_root(m):
    """Return a vector whose gradient is NaN: the root of a negative number."""
    x = leaf(m, -1, 4)
    return x, (x.sqrt() * m.tensor([0.0, 1.0])).sum()


def quiet(action, *facts):
    """Return the outcome of a call, ignoring its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return outcome(action, *facts)


FACTS = ("SqrtBackward0", "nan", "0th output")


@parity
def test_without_it_nans_pass(m):
    x, y = bad_square_root(m)
    y.backward()
    return str(x.grad[0].item()), x.grad[1]


@parity
def test_a_nan_in_backward_is_an_error(m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with m.autograd.detect_anomaly():
            x, y = bad_square_root(m)
            return outcome(y.backward, *FACTS), x.grad


@parity
def test_the_error_is_raised_by_grad_too(m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with m.autograd.detect_anomaly():
            x, y = bad_square_root(m)
            return outcome(lambda: m.autograd.grad(y, x), *FACTS)


@parity
def test_entering_warns(m):
    def enter():
        with m.autograd.detect_anomaly():
            pass

    return warned(enter), warned(lambda: m.autograd.set_detect_anomaly(True).__exit__(None, None, None))


@parity
def test_the_forward_line_is_shown_by_a_warning(m):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with m.autograd.detect_anomaly():
            _, y = bad_square_root(m)
            result = outcome(y.backward)
    texts = [str(w.message) for w in caught]
    return result, any("SqrtBackward0" in t and "bad_square_root" in t for t in texts)


@parity
def test_without_the_forward_the_warning_names_it(m):
    _, y = bad_square_root(m)
    with m.autograd.set_detect_anomaly(True):
        return warned(y.backward)


@parity
def test_nans_are_not_checked_with_check_nan_false(m):
    with m.autograd.set_detect_anomaly(True, check_nan=False):
        x, y = bad_square_root(m)
        return outcome(y.backward), str(x.grad[0].item())


@parity
def test_an_error_in_backward_shows_the_forward_line(m):
    class Failing(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError("made by hand")

    def run():
        with m.autograd.set_detect_anomaly(True, check_nan=False):
            Failing.apply(leaf(m, 1)).backward()

    return warned(run)


@parity
def test_the_mode_is_readable_and_restored(m):
    seen = [m.is_anomaly_enabled()]
    with m.autograd.set_detect_anomaly(True, check_nan=False):
        seen += [m.is_anomaly_enabled(), m.is_anomaly_check_nan_enabled()]
        with m.autograd.set_detect_anomaly(False):
            seen += [m.is_anomaly_enabled()]
        seen += [m.is_anomaly_enabled(), m.is_anomaly_check_nan_enabled()]
    return seen, m.is_anomaly_enabled()


@parity
def test_set_as_a_function_stays(m):
    m.autograd.set_detect_anomaly(True)
    try:
        _, y = bad_square_root(m)
        return m.is_anomaly_enabled(), quiet(y.backward, *FACTS)
    finally:
        m.autograd.set_detect_anomaly(False)


@parity
def test_it_ends_with_an_exception(m):
    def fail():
        with m.autograd.set_detect_anomaly(True):
            raise KeyError("inside")

    return outcome(fail), m.is_anomaly_enabled()


@parity
def test_a_function_that_returns_nan_is_named(m):
    class Broken(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, g * float("nan")

    with m.autograd.set_detect_anomaly(True):
        y = Broken.apply(leaf(m, 1), leaf(m, 2))
        return quiet(y.backward, "BrokenBackward", "1th output")


@parity
def test_a_nan_at_the_root_is_not_made_by_a_node(m):
    x = leaf(m, 1)
    with m.autograd.set_detect_anomaly(True):
        return quiet(lambda: (x * 2).backward(m.tensor([float("nan")])), "MulBackward0", "0th output")


@parity
def test_infinities_pass(m):
    x = leaf(m, 0, 4)
    with m.autograd.set_detect_anomaly(True):
        x.sqrt().sum().backward()
    return x.grad


@parity
def test_a_nan_in_forward_alone_passes(m):
    x = leaf(m, -1, 4)
    with m.autograd.set_detect_anomaly(True):
        y = (x * float("nan")).detach() + x
        y.sum().backward()
    return x.grad


@parity
def test_a_nan_in_a_second_backward(m):
    x = leaf(m, 0)
    with m.autograd.set_detect_anomaly(True):
        (g,) = m.autograd.grad(x**1.5, x, create_graph=True)
        (h,) = m.autograd.grad(g, x, create_graph=True)
        return g, h, quiet(lambda: m.autograd.grad(h * 0, x), "0th output")


@pytest.mark.parametrize("values", [(1, 2), (3, 4)])
@parity
def test_healthy_programs_run_as_ever(m, values):
    x = leaf(m, *values)
    with m.autograd.set_detect_anomaly(True):
        y = x.exp() * x
        y[0] = y[1].clone()
        y.sum().backward()
    return x.grad


@parity
def test_it_works_as_a_decorator_of_a_block_in_a_function(m):
    def step():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with m.autograd.detect_anomaly(check_nan=False):
                x, y = bad_square_root(m)
                y.backward()
                return str(x.grad[0].item())

    return step(), m.is_anomaly_enabled()


def texts_of(m, error_in):
    """Return the text of the warnings with which a backward pass fails: ours is one, PyTorch's are several."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome(lambda: error_in(m))
    return "".join(str(w.message) for w in caught)


def made_inside(m):
    with m.autograd.detect_anomaly():
        bad_square_root(m)[1].backward()


def made_before(m):
    y = bad_square_root(m)[1]
    with m.autograd.detect_anomaly():
        y.backward()


def made_by_a_backward_pass(m):
    x = leaf(m, 0)
    with m.autograd.detect_anomaly():
        (slope,) = m.autograd.grad((x**1.5).sum(), x, create_graph=True)
        (slope * 0.0).sum().backward()


WORDS = {
    made_inside: ("Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n",),
    made_before: (
        "Error detected in SqrtBackward0. No forward pass information available",
        "Enable detect anomaly during forward pass for more information.",
    ),
    made_by_a_backward_pass: (
        "Error detected in PowBackward0. Traceback of forward call that caused the error:\n",
        "Previous calculation was induced by PowBackward0. "
        "Traceback of forward call that induced the previous calculation:\n",
    ),
}


@pytest.mark.parametrize("program", WORDS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("m", [rg, torch], ids=["retrograd", "torch"])
def test_warnings_have_the_words(program, m):
    for words in WORDS[program]:
        assert words in texts_of(m, program)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@parity
def test_metadata_has_the_traceback_and_the_node_whose_backward_made_it(m):
    x = leaf(m, 1, 2)
    with m.autograd.detect_anomaly(check_nan=False):
        y = x.exp() * 2
        (g,) = m.autograd.grad(y.sum(), x, create_graph=True)
    made, parent = y.grad_fn.metadata, g.grad_fn.metadata["parent_"]
    own = [line for line in made["traceback_"] if "y = x.exp() * 2" in line]
    return sorted(made), len(own), sorted(g.grad_fn.metadata), parent.name(), sorted(x.exp().grad_fn.metadata)
