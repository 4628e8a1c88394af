"""Checkpoints whose recomputation differs or fails raise errors; the smaller parts of PyTorch's module."""

import warnings
from contextlib import nullcontext, suppress

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.autograd.graph import disable_saved_tensors_hooks
from retrograd.utils.checkpoint import (
    CheckpointError,
    CheckpointFunction,
    DefaultDeviceType,
    GraphExecGroup,
    check_backward_validity,
    checkpoint,
    checkpoint_sequential,
    detach_variable,
    get_device_states,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_device_states,
)


def leaf(*values):
    return rg.tensor([float(v) for v in values], dtype=rg.float64, requires_grad=True)


def deep(x):
    """Save four tensors."""
    return (x * x).sin().exp()


def gradient(function, x):
    return rg.autograd.grad(function(x).sum(), x)[0].tolist()


class Changing:
    """A function that changes at each call."""

    def __init__(self, *functions):
        self.functions = list(functions)

    def __call__(self, x):
        return self.functions.pop(0)(x)


def test_fewer_saved_tensors_are_reported_with_both_numbers():
    y = checkpoint(Changing(deep, lambda x: x.sin()), leaf(1.0), use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"different number of tensors(?s:.*)forward: 4\n.*recomputation: 1"):
        y.sum().backward()


def test_more_saved_tensors_are_reported():
    y = checkpoint(Changing(lambda x: x.sin(), deep), leaf(1.0), early_stop=False, use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"save more tensors during recomputation.*which saved 1"):
        y.sum().backward()


def test_other_shapes_are_reported_by_position():
    grow = lambda x: rg.cat([x, x])  # noqa: E731
    y = checkpoint(Changing(lambda x: x.sin(), lambda x: grow(x).sin()), leaf(1.0, 2.0), use_reentrant=False)
    pattern = r"different metadata(?s:.*)position 0: saved metadata: float64\[2\], recomputed metadata: float64\[4\]"
    with pytest.raises(CheckpointError, match=pattern):
        y.sum().backward()


def test_without_the_determinism_check_only_the_number_counts():
    y = checkpoint(
        Changing(lambda x: x.exp(), lambda x: (x * 1.0).exp()), leaf(1.0), determinism_check="none", use_reentrant=False
    )
    y.sum().backward()
    with pytest.raises(ValueError, match=r"one of \['default', 'none'\], but got strict"):
        checkpoint(deep, leaf(1.0), determinism_check="strict", use_reentrant=False)


def test_debug_lists_the_operators_of_both_runs():
    y = checkpoint(
        Changing(lambda x: x.sin().exp().sin(), lambda x: x.sin().cos()), leaf(1.0), debug=True, use_reentrant=False
    )
    with pytest.raises(CheckpointError) as error:
        y.sum().backward()
    text = str(error.value)
    assert "> exp(" in text
    assert "| cos(" in text
    assert "test_checkpoint_errors.py" in text
    assert "You are seeing this error because you passed `debug=True`" in text


def test_debug_can_be_set_for_a_block():
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(Changing(deep, lambda x: x.sin()), leaf(1.0), use_reentrant=False)
    with pytest.raises(CheckpointError, match="operators of the forward pass"):
        y.sum().backward()
    with set_checkpoint_debug_enabled(False):
        y = checkpoint(Changing(deep, lambda x: x.sin()), leaf(1.0), debug=True, use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"the operators of both runs are listed\.$"):
        y.sum().backward()


def test_debug_changes_no_gradient():
    x = leaf(0.5, 1.0)
    assert gradient(
        lambda x: checkpoint(
            lambda x: checkpoint(deep, x, use_reentrant=False).sin(), x, debug=True, use_reentrant=False
        ),
        x,
    ) == gradient(lambda x: deep(x).sin(), x)


def test_a_freed_graph_is_reported():
    y = checkpoint(deep, leaf(1.0), use_reentrant=False).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_an_argument_that_was_written_to_since_is_reported():
    x = leaf(0.5, 1.0) * 1
    y = checkpoint(deep, x, use_reentrant=False)
    x.mul_(2.0)
    with pytest.raises(RuntimeError, match=r"input of shape \(2,\) has been modified.*version 1; expected version 0"):
        y.sum().backward()


def test_an_error_in_recomputation_arrives_and_leaves_no_state():
    def broken(x):
        raise KeyError("gone")

    x = leaf(0.5, 1.0)
    f = Changing(lambda x: (x * rg.rand(2, dtype=rg.float64)).exp(), broken, broken)
    y = checkpoint(f, x, use_reentrant=False)
    before = str(rg.get_rng_state())
    for _ in range(2):
        with pytest.raises(KeyError, match="gone"):
            y.sum().backward(retain_graph=True)
    assert str(rg.get_rng_state()) == before
    assert rg.is_grad_enabled()
    assert gradient(deep, x) == gradient(lambda x: checkpoint(deep, x, use_reentrant=False), x)


def test_an_error_in_the_forward_arrives_and_leaves_no_hooks():
    def broken(x):
        x.exp()
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        checkpoint(broken, leaf(1.0), use_reentrant=False)
    with disable_saved_tensors_hooks("none are entered, so this does not raise"):
        pass


# ------------------------------------------------------------------------------------------------ the smaller parts


def test_the_reentrant_kind_warns_where_no_argument_requires_a_gradient():
    layer = nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(layer, rg.ones(1, 2), use_reentrant=True).requires_grad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpoint(layer, rg.ones(1, 2), use_reentrant=False).requires_grad


def test_the_smaller_parts():
    x = leaf(1.0)
    fresh, same = detach_variable((x * 2, 3))
    assert fresh.requires_grad
    assert fresh.is_leaf
    assert same == 3
    with pytest.raises(RuntimeError, match=r"Only tuple of tensors is supported\. Got Unsupported input type: list"):
        detach_variable([x])
    assert check_backward_validity((1, x))
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not check_backward_validity((1,))
    assert get_device_states(x) == ([], [])
    set_device_states([], [])
    with pytest.raises(ValueError, match="no devices except the CPU"):
        set_device_states([0], [None])
    assert DefaultDeviceType.get_device_type() == "cpu"
    with pytest.raises(ValueError, match="'cuda'"):
        DefaultDeviceType.set_device_type("cuda")
    with noop_context_fn()[0], noop_context_fn()[1]:
        pass


def test_debug_with_contexts_of_the_user_is_refused_before_the_function_runs():
    runs = []
    with pytest.raises(ValueError, match="debug=True is incompatible with non-default context_fn"):
        checkpoint(
            runs.append, rg.ones(2), debug=True, context_fn=lambda: (nullcontext(), nullcontext()), use_reentrant=False
        )
    with set_checkpoint_debug_enabled(True), pytest.raises(ValueError, match="non-default context_fn"):
        checkpoint(runs.append, rg.ones(2), context_fn=lambda: (nullcontext(), nullcontext()), use_reentrant=False)
    assert not runs


@pytest.mark.parametrize("option", [{"debug": True}, {"context_fn": lambda: (nullcontext(), nullcontext())}])
def test_the_reentrant_kind_refuses_debug_and_contexts_before_the_function_runs(option):
    runs = []
    with pytest.raises(ValueError, match="Passing `context_fn` or `debug` is only supported when use_reentrant=False"):
        checkpoint(runs.append, leaf(1.0), use_reentrant=True, **option)
    assert not runs


def test_a_context_that_suppresses_an_exception_of_the_function_is_an_error():
    contexts = suppress(ZeroDivisionError), nullcontext()
    with pytest.raises(RuntimeError, match="context_fn suppressed an exception"):
        checkpoint(lambda x: 1 // 0, leaf(1.0), use_reentrant=False, context_fn=lambda: contexts)


def test_a_kind_that_is_not_chosen_warns_in_the_callers_line_and_is_the_reentrant_one():
    with pytest.warns(UserWarning, match="use_reentrant|requires_grad") as caught:
        assert not checkpoint(nn.Linear(2, 2), rg.ones(1, 2)).requires_grad
    assert [w.filename for w in caught] == [__file__] * 2
    assert "the use_reentrant parameter should be passed explicitly" in str(caught[0].message)
    assert "None of the inputs have requires_grad=True" in str(caught[1].message)
    with pytest.warns(UserWarning, match="checkpoint_sequential: the use_reentrant parameter") as caught:
        checkpoint_sequential([rg.sin, rg.exp, rg.sin], 2, leaf(1.0))
    assert [w.filename for w in caught] == [__file__]


def test_keyword_arguments_of_a_sequence_are_refused_by_name():
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale,n"):
        checkpoint_sequential([rg.sin], 1, leaf(1.0), use_reentrant=False, scale=2.0, n=1)


def test_checkpoint_function_runs_the_function_again():
    runs, x = [], leaf(1.0)

    def function(x):
        runs.append(1)
        return deep(x)

    CheckpointFunction.apply(function, True, x).sum().backward()
    assert x.grad.tolist() == gradient(deep, leaf(1.0))
    assert len(runs) == 2


def test_passes_of_a_group_recompute_once_and_keep_nothing():
    runs, x = [], leaf(0.5, 1.0)

    def function(x):
        runs.append(1)
        return deep(x), (x * 3).cos()

    a, b = checkpoint(function, x, use_reentrant=False, early_stop=False)
    with GraphExecGroup() as group:
        a.sum().backward()
        b.sum().backward()
        assert len(runs) == 2
    assert not group.values
    y = leaf(0.5, 1.0)
    deep(y).sum().backward()
    (y * 3).cos().sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_groups_are_not_nested_and_may_follow_one_another():
    with GraphExecGroup() as group, pytest.raises(RuntimeError, match="GraphExecGroup contexts cannot be nested"):
        group.__enter__()
    with group:
        pass
