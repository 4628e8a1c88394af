"""stage_backward: gradients of a stage's inputs from those of its outputs."""

import pytest

import retrograd as rg
from retrograd.pipelining import stage_backward


def test_gradients_of_inputs_come_back_and_parameters_accumulate():
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    for _ in range(2):
        x = rg.tensor([1.0, 5.0], requires_grad=True)
        (g,) = stage_backward(x * w, rg.tensor([1.0, 10.0]), [x])
        assert g.tolist() == [2.0, 30.0]
    assert w.grad.tolist() == [2.0, 100.0]


def test_outputs_nest_and_those_without_gradient_are_skipped():
    x = rg.tensor([1.0], requires_grad=True)
    outputs = {"a": (x * 2, "note"), "b": [x.detach(), x * 5]}
    grads = {"a": (rg.ones(1), None), "b": [rg.ones(1), None]}
    assert stage_backward(outputs, grads, [x, None, 3])[0].tolist() == [2.0]


def test_the_same_output_twice_counts_twice():
    x = rg.tensor([1.0], requires_grad=True)
    y = x * 2
    assert stage_backward((y, y), (rg.ones(1), rg.ones(1)), [x])[0].tolist() == [4.0]


def test_indices_choose_the_outputs_that_the_gradients_belong_to():
    x = rg.tensor([1.0], requires_grad=True)
    assert stage_backward((x * 2, x * 7), (rg.ones(1),), [x], outputs_with_grads_idxs=[1])[0].tolist() == [7.0]


def test_inputs_that_get_nothing_give_none():
    x, unused = rg.tensor([1.0], requires_grad=True), rg.tensor([1.0], requires_grad=True)
    assert stage_backward(x * 2, rg.ones(1), [unused, rg.ones(1), "text"]) == (None, None, None)


def test_a_failure_shows_outputs_gradients_and_inputs():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"(?s)outputs: float32\[2\] on cpu.*gradients: float32\[3\].*inputs: ") as e:
        stage_backward(x * 2, rg.ones(3), [x])
    assert e.value.__cause__ is not None
