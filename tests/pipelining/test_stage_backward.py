"""stage_backward: gradients of a stage's inputs from those of its outputs."""

from typing import NamedTuple

import pytest

import retrograd as rg
from retrograd.pipelining import stage_backward, stage_backward_input, stage_backward_weight


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
    grads = {"a": [rg.ones(1), None], "b": (rg.ones(1), rg.ones(1)), "c": Pair(rg.ones(1), None), "d": None}
    assert stage_backward(outputs, grads, [x, None, 3])[0].tolist() == [10.0]


def test_keys_pair_outputs_with_gradients_in_any_order():
    x = leaf(1.0)
    grads = {"b": rg.tensor([10.0]), "a": rg.tensor([1.0])}
    assert stage_backward({"a": x * 2, "b": x * 3}, grads, [x])[0].tolist() == [32.0]


def test_none_instead_of_a_container_is_none_for_all_in_it():
    x = leaf(1.0)
    assert stage_backward((x * 2, {"a": x * 3}), (rg.ones(1), None), [x])[0].tolist() == [2.0]
    assert stage_backward([x * 2], None, [x]) == (None,)


NESTS = {
    "bare": (lambda y: y, lambda g: g, None),
    "in a tuple": (lambda y: (y,), lambda g: (g,), None),
    "in a list in a dict": (lambda y: {"a": [y]}, lambda g: {"a": [g]}, None),
    "in a named tuple": (lambda y: Pair(y, 3), lambda g: Pair(g, None), None),
    "next to a constant": (lambda y: (y.detach(), y), lambda g: (None, g), None),
    "by its index": (lambda y: (y * 100, y), lambda g: (rg.ones(3), g), [1]),
}


@pytest.mark.parametrize("nest", NESTS)
def test_none_is_1_for_a_loss_and_refused_for_several_elements(nest):
    outputs, grads, chosen = NESTS[nest]
    x = leaf(1.0, 2.0)
    assert stage_backward(outputs((x * x).sum()), grads(None), [x], chosen)[0].tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        stage_backward(outputs(x * 2), grads(None), [x], chosen)


def test_a_loss_counts_next_to_an_output_with_a_gradient():
    x = leaf(1.0)
    assert stage_backward((x * 2, x.sum()), (rg.ones(1), None), [x])[0].tolist() == [3.0]


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


def test_an_input_may_be_the_result_of_something_which_continues_to_its_leaves():
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


@pytest.mark.parametrize("kind", ["a leaf", "a result", "unused"])
def test_an_earlier_grad_of_an_input_is_added_and_cleared(kind):
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    value = x * 1 if kind == "a result" else x
    if kind == "a result":
        value.retain_grad()
    value.grad = rg.tensor([10.0, 20.0])
    (g,) = stage_backward((y if kind == "unused" else value) * y, rg.ones(2), [value])
    assert g.tolist() == ([10.0, 20.0] if kind == "unused" else [11.0, 22.0])
    assert value.grad is None


def test_an_earlier_grad_of_an_input_stays_where_the_pass_fails():
    def hook(gradient):
        raise ZeroDivisionError

    x, y, z = leaf(1.0, 2.0), leaf(1.0, 2.0), leaf(1.0, 2.0) * 1
    x.grad = before = rg.ones(2)
    z.register_hook(hook)
    for outputs, grads in ((x * y, rg.ones(3)), (x * y, None), ((z * y, x * y), (rg.ones(2), rg.ones(2)))):
        with pytest.raises(RuntimeError, match="Failed to run stage backward: "):
            stage_backward(outputs, grads, [x, y])
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
    with pytest.raises(RuntimeError, match="Failed to run stage backward: ") as e:
        stage_backward(outputs(x), grads, [x])
    assert type(e.value.__cause__) is cause


@pytest.mark.parametrize("error", [AssertionError(), ZeroDivisionError("by a hook")])
def test_an_error_in_a_backward_pass_describes_the_stage(error):
    def hook(gradient):
        raise error

    x = rg.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(
        RuntimeError, match=r"(?s)backward: (AssertionError|by a hook).*inputs: float32\[2\] on cpu"
    ) as e:
        stage_backward(y, rg.ones(2), [x])
    assert e.value.__cause__ is error


@pytest.mark.parametrize("values", [None, rg.ones(2), {"x": rg.ones(2)}, "x"])
def test_inputs_that_are_not_several_values_are_refused_before_anything_runs(values):
    x = rg.ones(2, requires_grad=True)
    y = (x * x).sum()
    with pytest.raises(TypeError, match="stage_backward: input_values must be a tuple, list or another iterable"):
        stage_backward(y, None, values)
    assert stage_backward(y, None, [x])[0].tolist() == [2.0, 2.0]
    assert x.grad is None


@pytest.mark.parametrize("hold", [list, tuple, iter, lambda v: (x for x in v), lambda v: dict(enumerate(v)).values()])
def test_inputs_may_be_any_iterable(hold):
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    found = stage_backward((x * x * w).sum(), None, hold([x, "text", w]))
    assert [g if g is None else g.tolist() for g in found] == [[6.0, 16.0], None, [1.0, 4.0]]
    gradients, groups = stage_backward_input([(x * w).sum()], [None], hold([x, "text"]), hold([w]))
    assert [g if g is None else g.tolist() for g in gradients] == [[3.0, 4.0], None]
    assert stage_backward_weight([w], groups)[0].tolist() == [1.0, 2.0]
