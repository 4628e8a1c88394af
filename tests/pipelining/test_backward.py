"""stage_backward: gradients of a stage's inputs from those of its outputs."""

from typing import NamedTuple

import pytest

import retrograd as rg
from retrograd.pipelining import stage_backward


class Pair(NamedTuple):
    first: object
    second: object


def leaf(*numbers):
    return rg.tensor(list(numbers), requires_grad=True)


def test_gradients_of_inputs_come_back_and_parameters_accumulate():
    w = leaf(2.0, 3.0)
    for _ in range(2):
        x = leaf(1.0, 5.0)
        (g,) = stage_backward(x * w, rg.tensor([1.0, 10.0]), [x])
        assert g.tolist() == [2.0, 30.0]
    assert w.grad.tolist() == [2.0, 100.0]


def test_outputs_nest_and_those_without_gradient_are_skipped():
    x = leaf(1.0)
    outputs = {"a": (x * 2, "note"), "b": [x.detach(), x * 5], "c": Pair(x * 3, None), "d": None}
    grads = {"a": [rg.ones(1), None], "b": (rg.ones(1), None), "c": Pair(rg.ones(1), None), "d": None}
    assert stage_backward(outputs, grads, [x, None, 3])[0].tolist() == [5.0]


def test_keys_pair_outputs_with_gradients_in_any_order():
    x = leaf(1.0)
    grads = {"b": rg.tensor([10.0]), "a": rg.tensor([1.0])}
    assert stage_backward({"a": x * 2, "b": x * 3}, grads, [x])[0].tolist() == [32.0]


def test_none_in_place_of_a_container_is_none_for_all_in_it():
    x = leaf(1.0)
    assert stage_backward((x * 2, {"a": x * 3}), (rg.ones(1), None), [x])[0].tolist() == [2.0]
    assert stage_backward([x * 2], None, [x]) == (None,)


def test_a_single_tensor_without_gradient_is_a_loss():
    x = leaf(1.0, 2.0)
    assert stage_backward((x * x).sum(), None, [x])[0].tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="can be made up only for outputs of one element"):
        stage_backward(x * 2, None, [x])


def test_an_output_of_one_element_among_others_gets_no_gradient_made_up():
    x = leaf(1.0)
    assert stage_backward((x * 2, x.sum()), (rg.ones(1), None), [x])[0].tolist() == [2.0]


def test_the_same_output_twice_counts_twice():
    x = leaf(1.0)
    y = x * 2
    assert stage_backward((y, y), (rg.ones(1), rg.ones(1)), [x])[0].tolist() == [4.0]


def test_indices_choose_the_outputs_and_gradients_that_count():
    x = leaf(1.0)
    grads = (rg.ones(1), rg.ones(1))
    assert stage_backward((x * 2, x * 7), grads, [x], outputs_with_grads_idxs=[1])[0].tolist() == [7.0]
    with pytest.raises(RuntimeError, match="index out of range"):
        stage_backward((x * 2, x * 7), grads, [x], outputs_with_grads_idxs=[2])


def test_inputs_that_get_nothing_give_none():
    x, unused = leaf(1.0), leaf(1.0)
    assert stage_backward(x * 2, rg.ones(1), [unused, rg.ones(1), "text"]) == (None, None, None)


def test_an_input_may_be_the_result_of_something_which_goes_on_to_its_leaves():
    w = leaf(3.0)
    x = w * 2
    (g,) = stage_backward(x * x, rg.ones(1), [x])
    assert (g.tolist(), w.grad.tolist()) == ([12.0], [24.0])
    assert not x.retains_grad


def test_hooks_of_inputs_have_their_say():
    x, w = leaf(1.0), leaf(3.0)
    x.register_hook(lambda g: g * 10)
    y = w * 1
    y.register_hook(lambda g: g * 100)
    assert [g.tolist() for g in stage_backward(x * y, rg.ones(1), [x, y])] == [[30.0], [100.0]]


@pytest.mark.parametrize("grads", [rg.ones(2), rg.ones(3)], ids=["works", "fails"])
def test_grad_of_inputs_stays_as_it_was(grads):
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    x.grad = before = rg.ones(2)
    try:
        assert [g.tolist() for g in stage_backward(x * y, grads, [x, y])] == [[1.0, 2.0]] * 2
    except RuntimeError:
        assert grads.shape == (3,)
    assert x.grad is before
    assert (x.grad.tolist(), y.grad) == ([1.0, 1.0], None)


def test_a_failure_shows_outputs_gradients_and_inputs():
    x = leaf(1.0, 2.0)
    shown = r"(?s)outputs: float32\[2\] on cpu.*gradients: float32\[3\] on cpu.*inputs: float32\[2\] on cpu, 7$"
    with pytest.raises(RuntimeError, match=shown) as e:
        stage_backward(x * 2, rg.ones(3), [x, 7])
    assert isinstance(e.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("outputs", "grads", "cause"),
    [
        (lambda x: (x * 2, x * 3), lambda: (rg.ones(1),), ValueError),
        (lambda x: (x * 2, x * 3), rg.ones, ValueError),
        (lambda x: {"a": x * 2}, lambda: {"b": rg.ones(1)}, ValueError),
        (lambda x: [x * 2], lambda: rg.ones(1), ValueError),
        (lambda x: [x * 2], lambda: [[rg.ones(1)]], TypeError),
        (lambda x: x * 2, lambda: 1.0, TypeError),
    ],
)
def test_gradients_that_are_not_nested_as_the_outputs_are_refused(outputs, grads, cause):
    x = leaf(1.0)
    grads = grads(2) if grads is rg.ones else grads()
    with pytest.raises(RuntimeError, match="stage_backward failed") as e:
        stage_backward(outputs(x), grads, [x])
    assert type(e.value.__cause__) is cause


@pytest.mark.parametrize("error", [AssertionError(), ZeroDivisionError("by a hook")])
def test_whatever_fails_inside_shows_the_stage(error):
    def hook(gradient):
        raise error

    x = rg.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(RuntimeError, match=r"(?s)failed: (AssertionError|by a hook).*inputs: float32\[2\] on cpu") as e:
        stage_backward(y, rg.ones(2), [x])
    assert e.value.__cause__ is error


@pytest.mark.parametrize("values", [None, rg.ones(2), iter([rg.ones(2)])])
def test_inputs_that_are_no_sequence_are_refused_before_anything_runs(values):
    x = rg.ones(2, requires_grad=True)
    y = (x * x).sum()
    with pytest.raises(TypeError, match="stage_backward: input_values must be a tuple or list, got"):
        stage_backward(y, None, values)
    assert stage_backward(y, None, [x])[0].tolist() == [2.0, 2.0]
    assert x.grad is None
