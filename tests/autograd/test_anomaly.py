"""Anomaly mode: errors in backward name the forward line; results, graphs and modes are unchanged."""

import inspect
import math
import threading
import warnings
import weakref

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd.anomaly_mode import (
    detect_anomaly,
    has_nan,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from retrograd.core import current


def root_of(x):
    return x.sqrt()


pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
ROOT_LINE = f"{__file__}:{inspect.getsourcelines(root_of)[1] + 1} in root_of"


def zero():
    return rg.tensor([0.0, 1.0], requires_grad=True)


def nan_after_root(x):
    """Return a loss whose gradient is 0 * inf at the root."""
    return (root_of(x) * 0.0).sum()


@pytest.fixture(autouse=True)
def the_mode_is_off_again():
    yield
    assert not current().watchers
    assert not is_anomaly_enabled()


def failure(loss, **how):
    """Return the error of a backward pass and the text of its warning."""
    with (
        pytest.warns(UserWarning, match="Error detected in|Previous calculation") as caught,
        pytest.raises(RuntimeError) as info,
    ):
        loss.backward(**how)
    return info.value, "".join([str(warning.message) for warning in caught])


# ------------------------------------------------------------------------------------------------------------ NaN


def test_a_nan_is_an_error_that_names_node_output_and_forward_line():
    with detect_anomaly():
        error, _ = failure(nan_after_root(zero()))
    assert str(error) == (
        f"Function 'SqrtBackward0' returned nan values in its 0th output. That is the gradient for input 0. It was "
        f"made at {ROOT_LINE}."
    )


def test_a_warning_carries_the_traceback_of_the_forward_call():
    with detect_anomaly():
        _, text = failure(nan_after_root(zero()))
    assert text.startswith("Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n")
    assert text.endswith(", in root_of\n    return x.sqrt()\n")
    assert ", in nan_after_root\n    return (root_of(x) * 0.0).sum()\n" in text
    assert "retrograd/autograd" not in text.replace("tests/autograd", "")


def test_the_output_with_the_nan_is_counted_among_the_inputs_of_the_operator():
    a, b = rg.tensor([1.0], requires_grad=True), rg.tensor([math.inf], requires_grad=True)
    with detect_anomaly():
        error, _ = failure(a * b, gradient=rg.zeros(1))
        assert "MulBackward0' returned nan values in its 0th output. That is the gradient for input 0" in str(error)
        error, _ = failure(b * a, gradient=rg.zeros(1))
        assert "MulBackward0' returned nan values in its 1th output. That is the gradient for input 1" in str(error)


def test_a_nan_that_came_in_is_distinguished():
    x = rg.ones(2, requires_grad=True)
    with detect_anomaly():
        error, _ = failure(x * 2, gradient=rg.tensor([1.0, math.nan]))
    assert str(error).endswith("The gradient that it was given had nan values already.")


def test_without_check_nan_a_nan_passes():
    x = zero()
    with detect_anomaly(check_nan=False):
        nan_after_root(x).backward()
    assert math.isnan(x.grad[0].item())


def test_without_the_mode_a_nan_passes():
    x = zero()
    nan_after_root(x).backward()
    assert math.isnan(x.grad[0].item())


def test_gradients_are_those_without_the_mode():
    def run():
        x = rg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = (x @ x).exp()
        ((y * y).mean() + x.max(dim=1)[0].sum() + rg.cat([x, y]).sum()).backward()
        return x.grad.tolist()

    plain = run()
    with detect_anomaly():
        assert run() == plain


@pytest.fixture
def as_in_a_pass():
    """Suppress NumPy's warnings, as the engine does while it runs."""
    with np.errstate(all="ignore"):
        yield


VALUES = [[1.0, 2.0], [math.inf, -math.inf], [1e38, -1e38], [], 3.0, [[1.0, math.inf], [0.0, -0.0]]]


@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_infinities_and_large_numbers_are_not_nan(values, dtype, as_in_a_pass):
    assert not has_nan(rg.tensor(values, dtype=getattr(rg, dtype)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_one_nan_is_found_wherever_it_is(dtype):
    for place in range(6):
        x = rg.zeros(6, dtype=getattr(rg, dtype))
        x[place] = math.nan
        x = x.reshape(2, 3)
        assert has_nan(x)
        assert has_nan(x.transpose(0, 1))
        assert has_nan(x[:, place % 3 :: 3])
        assert not has_nan(x[:, (place + 1) % 3 :: 3])
    assert has_nan(rg.tensor(math.nan, dtype=getattr(rg, dtype)))


def test_complex_numbers_with_infinite_parts_are_not_nan(as_in_a_pass):
    assert not has_nan(rg.tensor([complex(math.inf, 1.0), complex(0, -math.inf), 1j]))
    assert has_nan(rg.tensor([complex(0.0, math.nan), 1j]))
    assert has_nan(rg.tensor([complex(math.nan, 0.0), 1j]))


def test_an_expanded_gradient_is_looked_at_once():
    vast = rg.ones(1).expand(10**6, 10**6)  # more than any memory
    assert not has_nan(vast)
    assert has_nan((rg.ones(1) * math.nan).expand(10**6, 10**6))
    assert has_nan(rg.tensor([[0.0], [math.nan]]).expand(2, 10**12))


# ------------------------------------------------------------------------------------------------- other failures


def failing_node(x):
    """Return a node whose backward pass raises, because its saved tensor is written to."""
    y = x.exp()
    loss = (y * y).sum()
    with rg.no_grad():
        y.mul_(2)
    return loss


def test_any_error_gets_the_forward_line_as_a_note():
    x = rg.ones(2, requires_grad=True)
    with detect_anomaly():
        error, text = failure(failing_node(x))
    assert "version" in str(error)
    (note,) = error.__notes__
    line = inspect.getsourcelines(failing_node)[1] + 3
    assert note == f"In the backward of MulBackward0. It was made at {__file__}:{line} in failing_node."
    assert text.startswith("Error detected in MulBackward0. Traceback of forward call that caused the error:\n")
    assert "loss = (y * y).sum()" in text


def test_without_the_mode_errors_have_no_notes():
    with pytest.raises(RuntimeError) as info:
        failing_node(rg.ones(2, requires_grad=True)).backward()
    assert not hasattr(info.value, "__notes__")


def test_where_warnings_are_errors_the_error_stays_and_takes_the_text_along():
    x = zero()
    with set_detect_anomaly(True), warnings.catch_warnings(action="error"):
        loss = nan_after_root(x)
        with pytest.raises(RuntimeError, match="SqrtBackward0' returned nan") as info:
            loss.backward()
    (note,) = info.value.__notes__
    assert note.startswith("Error detected in SqrtBackward0. Traceback")


def test_a_node_from_before_the_mode_has_no_forward_line():
    loss = nan_after_root(zero())
    with detect_anomaly():
        error, text = failure(loss)
    assert str(error).endswith("Its forward line is unknown: it was made while anomaly mode was off.")
    assert text == (
        "Error detected in SqrtBackward0. No forward pass information available: anomaly mode was off then. "
        "Enable detect anomaly during forward pass for more information."
    )


def test_a_node_from_before_the_end_of_the_mode_fails_as_without_it():
    x = zero()
    with detect_anomaly():
        loss = nan_after_root(x)
    loss.backward()
    assert math.isnan(x.grad[0].item())


# ---------------------------------------------------------------------------------------- graphs made in backward


def slope_of_power(x):
    return rg.autograd.grad((x**1.5).sum(), x, create_graph=True)


def test_a_node_made_in_a_backward_pass_names_the_node_that_made_it():
    with detect_anomaly():
        (slope,) = slope_of_power(zero())
        error, text = failure((slope * 0.0).sum())
    assert "PowBackward0' returned nan values in its 0th output. That is the gradient for input 0" in str(error)
    first, second = text.split("\n\nPrevious calculation was induced by PowBackward0. ")
    assert first.startswith("Error detected in PowBackward0. Traceback of forward call that caused the error:\n")
    assert second.startswith("Traceback of forward call that induced the previous calculation:\n")
    assert second.endswith(", in slope_of_power\n    return rg.autograd.grad((x**1.5).sum(), x, create_graph=True)\n")


def test_the_node_that_made_another_may_be_from_before_the_mode():
    x = zero()
    y = (x**1.5).sum()
    with detect_anomaly():
        (slope,) = rg.autograd.grad(y, x, create_graph=True)
        _, text = failure((slope * 0.0).sum())
    _, second = text.split("\n\nPrevious calculation was induced by PowBackward0. ")
    assert second.startswith("No forward pass information available: anomaly mode was off")


def test_a_node_made_after_a_backward_pass_was_not_induced_by_it():
    with detect_anomaly():
        x = zero()
        (x * 2).sum().backward()
        _, text = failure(nan_after_root(x))
    assert "previous calculation" not in text


def test_nodes_that_made_others_are_not_kept_alive(no_collector):
    with detect_anomaly():
        x = zero()
        y = (x * x).sum()
        (slope,) = rg.autograd.grad(y, x, create_graph=True)
        node = weakref.ref(y._grad_fn)
        del y
    assert node() is None
    assert slope.grad_fn is not None


# -------------------------------------------------------------------------------------------------- the mode itself


def test_the_mode_is_on_inside_only():
    with detect_anomaly():
        assert is_anomaly_enabled()
        assert is_anomaly_check_nan_enabled()
    assert is_anomaly_check_nan_enabled()  # as in PyTorch, where the mode is off


def test_the_innermost_mode_counts():
    with detect_anomaly():
        with detect_anomaly(check_nan=False):
            assert is_anomaly_enabled()
            assert not is_anomaly_check_nan_enabled()
            with set_detect_anomaly(False):
                assert not is_anomaly_enabled()
        assert is_anomaly_check_nan_enabled()


def test_one_object_may_be_entered_again():
    mode = detect_anomaly()
    with mode, mode:
        pass
    with mode:
        assert is_anomaly_enabled()


def test_set_detect_anomaly_acts_at_once_and_as_a_block():
    try:
        set_detect_anomaly(True, check_nan=False)
        assert is_anomaly_enabled()
        assert not is_anomaly_check_nan_enabled()
    finally:
        set_detect_anomaly(False)
    with set_detect_anomaly(True):
        assert is_anomaly_check_nan_enabled()


def test_the_mode_ends_when_its_block_raises():
    with pytest.raises(KeyError), detect_anomaly():
        raise KeyError


def test_each_thread_has_a_mode_of_its_own():
    seen = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: seen.append(is_anomaly_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_entering_warns_that_the_mode_slows_down_the_program():
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), detect_anomaly():
        pass
    with warnings.catch_warnings(action="error"), set_detect_anomaly(True):
        pass
