"""Split backward: both parts together equal stage_backward, and each rule runs in the part that needs it."""

import tracemalloc
import weakref
from collections import Counter

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.core.state import Watcher, watching
from retrograd.pipelining import stage_backward, stage_backward_input, stage_backward_weight
from retrograd.pipelining.runtime.split_backward import input_gradients

from ..case_groups import group_cases


def values(*shape, seed=0):
    return rg.tensor(np.random.default_rng(seed).normal(size=shape))


def linear(x, w, b, u):
    return nn.functional.linear(x, w, b)


def shared(x, w, b, u):
    return ((x @ w).tanh() @ w + b) * b


def through_views(x, w, b, u):
    return x @ w.t() + (x @ w.reshape(-1).reshape(4, 4))[:, :4] + b[None, :].expand(x.shape)


def tied(x, w, b, u):
    return nn.functional.embedding(rg.tensor([1, 3, 1]), w) @ x.t()[:, :3] @ w[:3] + b


def computed_weights(x, w, b, u):
    whole = (w * u).exp()
    return x @ whole + (x.sin() @ (whole + w)) + whole.sum(0) * b


def several_outputs_of_a_node(x, w, b, u):
    left, right = (x @ w).split([1, 3], dim=1)
    low, high = w.split([2, 2])
    return rg.cat([left * 2, right, x @ low.t()], dim=1) @ rg.cat([high, w, x[:0]], dim=0) + b


def normalized(x, w, b, u):
    return nn.functional.layer_norm(x, (4,), b, u[0]) @ w


def attention(x, w, b, u):
    q, k, v = (x @ w).tanh(), x @ u, x @ w.t() + b
    return nn.functional.scaled_dot_product_attention(q, k, v)


def in_place(x, w, b, u):
    y = x @ w
    y.mul_(b)
    y[0] = u[1] * 2
    return y


def past_the_input(x, w, b, u):
    return rg.stack([x.tanh(), (w @ u)[:1].expand(5, 4) + b])


PROGRAMS = {f.__name__: f for f in list(globals().values()) if getattr(f, "__code__", None) is not None
            and f.__code__.co_varnames[:4] == ("x", "w", "b", "u")}  # fmt: skip


def operands():
    weights = values(4, 4, seed=1), values(4, seed=2), values(4, 4, seed=3)
    return values(5, 4), *(w.requires_grad_() for w in weights)


def both(program, inputs_of, grads_of=None, **kwargs):
    """Return the gradients of inputs and weights in one pass and in two."""
    found = []
    for halves in (False, True):
        x, *weights = operands()
        ins, made = inputs_of(x, weights)
        outputs = program(made, *weights)
        grads = rg.ones_like(outputs.detach()) * 0.5 + values(*outputs.shape, seed=9)
        if halves:
            given, groups = input_gradients([outputs], [grads], ins, iter(weights))
            assert all(w.grad is None for w in weights if not any(w is i for i in ins))
            stage_backward_weight(iter(weights), groups)
        else:
            given = stage_backward(outputs, grads, ins)
        found.append([None if g is None else g.numpy().tobytes() for g in (*given, *(w.grad for w in weights))])
    return found


INPUTS = {
    "a leaf": lambda x, ws: ([x.requires_grad_()], x),
    "a result": lambda x, ws: ([(y := x.requires_grad_() * 1.5)], y),
    "a result of weights": lambda x, ws: ([(y := x @ ws[0] + ws[1])], y),
    "a leaf, and what is made of it": lambda x, ws: ([x.requires_grad_(), (y := x * ws[1])], y),
    "no gradient": lambda x, ws: ([x, 3], x),
    "a weight too": lambda x, ws: ([x.requires_grad_(), ws[1]], x),
    "nothing": lambda x, ws: ([], x),
}


@group_cases
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_two_halves_equal_stage_backward_bitwise(name, kind):
    whole, halves = both(PROGRAMS[name], INPUTS[kind])
    assert whole == halves
    assert any(g is not None for g in whole)


def test_they_do_so_in_a_transformer_block():
    with rg.random.fork_rng():
        rg.manual_seed(0)
        block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    x, grads = rg.randn(2, 3, 8), rg.randn(2, 3, 8)
    found = []
    for halves in (False, True):
        block.zero_grad()
        leaf = x.clone().requires_grad_()
        if halves:
            given, groups = stage_backward_input([block(leaf)], [grads], [leaf], block.parameters())
            stage_backward_weight(block.parameters(), groups)
        else:
            given = stage_backward(block(leaf), grads, [leaf])
        found.append([g.numpy().tobytes() for g in (*given, *(p.grad for p in block.parameters()))])
    assert found[0] == found[1]


def mlp():
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
    return model, rg.ones(3, 6, requires_grad=True)


def count_operators(run):
    """Return which operators `run` runs, and how often."""
    with rg.autograd.profiler.profile() as profile:
        run()
    return Counter(event.name for event in profile.events() if "Backward" not in event.name)


def test_each_operator_runs_in_the_half_that_needs_it():
    (model, x), g, groups = mlp(), rg.ones(3, 6), []
    y = model(x)
    first = count_operators(lambda: groups.extend(input_gradients([y], [g], [x], model.parameters())[1]))
    second = count_operators(lambda: stage_backward_weight(model.parameters(), groups))
    y = model(x)
    assert first + second == count_operators(lambda: stage_backward(y, g, [x]))
    assert first["matmul"] == 3  # by the weights
    assert second["rows_dot"] == 3  # by the inputs of the layers
    assert second["sum"] == 3  # the biases
    assert {name for name in first if name in second} == set()


class Nodes(Watcher):
    def __init__(self):
        self.names = Counter()

    def run_node(self, proceed, fn, cotangents):
        self.names[fn.name()] += 1
        return proceed(fn, cotangents)


def test_nodes_that_lead_only_to_weights_run_in_the_weight_half_alone():
    x, w = values(3, 3).requires_grad_(), values(3, 3).requires_grad_()
    y = (x.sin() @ w.exp().t()).cos()
    first, second = Nodes(), Nodes()
    with watching(first):
        _, groups = stage_backward_input([y], [rg.ones_like(y.detach())], [x], [w])
    with watching(second):
        stage_backward_weight([w], groups)
    shared_node = set(first.names) & set(second.names)
    assert len(shared_node) == 1
    assert set(first.names) - shared_node == {"SinBackward0", "CosBackward0"}
    assert "ExpBackward0" in second.names


def test_saved_values_that_only_inputs_need_are_freed_by_the_first_half():
    x, w = values(3, 3).requires_grad_(), values(3, 3).requires_grad_()
    hidden = x.sin()
    product = hidden.cos() * 2
    only_inputs, for_weights = weakref.ref(hidden), weakref.ref(product)
    y = product @ w
    del hidden, product
    assert only_inputs() is not None
    assert for_weights() is not None
    _, groups = stage_backward_input([y], [rg.ones(3, 3, dtype=rg.float64)], [x], [w])
    assert only_inputs() is None
    assert for_weights() is not None
    stage_backward_weight([w], groups)
    assert for_weights() is None


def test_a_node_saves_only_the_tensors_that_its_weight_rule_reads():
    x, w = values(3, 3).requires_grad_(), values(3, 3).requires_grad_()
    left, right = x * 2, w * 2
    for_weight, for_input = weakref.ref(left), weakref.ref(right)
    y = left * right
    del left, right
    _, groups = stage_backward_input([y], [rg.ones(3, 3, dtype=rg.float64)], [x], [w])
    assert for_weight() is not None
    assert for_input() is None
    stage_backward_weight([w], groups)


def test_inputs_that_require_no_grad_leave_all_to_the_second_half():
    x, w = values(3, 3), values(3, 3).requires_grad_()
    run = Nodes()
    with watching(run):
        given, groups = stage_backward_input([x @ w], [rg.ones(3, 3, dtype=rg.float64)], [x, None], [w])
    assert given == (None, None)
    assert not run.names
    stage_backward_weight([w], groups)
    np.testing.assert_allclose(w.grad.numpy(), x.numpy().T @ np.ones((3, 3)))


def test_outputs_nest_and_none_is_no_gradient():
    x, w = rg.ones(2, requires_grad=True), rg.ones(2, requires_grad=True)
    outputs = {"a": (x * w, 7), "b": [x * 100, (x * w).detach()], "c": w * 3}
    grads = {"a": (rg.ones(2), None), "b": None, "c": rg.ones(2)}
    (gx,), groups = stage_backward_input(outputs, grads, [x], [w])
    assert gx.tolist() == [1.0, 1.0]
    assert stage_backward_weight([w], groups)[0].tolist() == [4.0, 4.0]


def test_no_gradients_at_all_are_ones():
    x, w = rg.tensor([1.0, 2.0], requires_grad=True), rg.tensor([3.0, 4.0], requires_grad=True)
    (gx,), groups = stage_backward_input([x * w, (x * x).sum()], None, [x], [w])
    assert gx.tolist() == [5.0, 8.0]
    assert stage_backward_weight([w], groups)[0].tolist() == [1.0, 2.0]


def test_gradients_add_to_grad_in_place():
    x, w = rg.ones(2, requires_grad=True), rg.ones(2, requires_grad=True)
    x.grad, w.grad = (of_input := rg.ones(2)), (total := rg.ones(2) * 10)
    for expected in (11.0, 12.0):
        _, groups = stage_backward_input([x * w], [rg.ones(2)], [x], [w])
        stage_backward_weight([w], groups)
        assert w.grad is total
        assert total.tolist() == [expected] * 2
    assert x.grad is of_input
    assert of_input.tolist() == [3.0, 3.0]


def test_leaves_that_are_no_weights_and_frozen_weights_get_nothing():
    x, w, other, frozen = (rg.ones(2, requires_grad=i < 3) for i in range(4))
    _, groups = stage_backward_input([x * w * other * frozen], [rg.ones(2)], [x], [w, frozen, w])
    assert stage_backward_weight([w, frozen], groups)[1] is None
    assert (w.grad.tolist(), other.grad) == ([1.0, 1.0], None)


def test_hooks_run_once_each_in_their_half():
    x, w = rg.ones(2, requires_grad=True), rg.ones(2, requires_grad=True)
    seen = []
    y = x * w
    z = y * 2
    y.register_hook(lambda g: seen.append("inside") or g * 10)
    w.register_hook(lambda g: seen.append("weight") or g * 100)
    w.register_post_accumulate_grad_hook(lambda w: seen.append("accumulated"))
    (gx,), groups = stage_backward_input([z], [rg.ones(2)], [x], [w])
    assert (seen, gx.tolist()) == (["inside"], [20.0, 20.0])
    assert stage_backward_weight([w], groups)[0].tolist() == [2000.0, 2000.0]
    assert seen == ["inside", "weight", "accumulated"]


def test_hooks_of_a_node_get_the_gradients_of_their_half():
    x, w = rg.ones(2, requires_grad=True), rg.ones(2, requires_grad=True)
    y = x * w
    seen = []
    y.grad_fn.register_hook(
        lambda ins, outs: seen.append([g is not None for g in ins]) or tuple(g if g is None else g * 3 for g in ins)
    )
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 5,))
    (gx,), groups = stage_backward_input([y], [rg.ones(2)], [x], [w])
    stage_backward_weight([w], groups)
    assert seen == [[True, False], [False, True]]
    assert (gx.tolist(), w.grad.tolist()) == ([15.0, 15.0], [15.0, 15.0])


class Scaled(rg.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        out = x * w
        ctx.save_for_backward(x, w, out)
        return out

    @staticmethod
    def backward(ctx, g):
        x, w, out = ctx.saved_tensors
        return g * out / x, g * out / w


def test_a_users_function_keeps_its_tensors_for_the_second_half():
    x, w = rg.tensor([2.0], requires_grad=True), rg.tensor([3.0], requires_grad=True)
    (gx,), groups = stage_backward_input([Scaled.apply(x, w) * 2], [rg.ones(1)], [x], [w])
    assert gx.tolist() == [6.0]
    assert stage_backward_weight([w], groups)[0].tolist() == [4.0]


def test_saved_tensors_that_hooks_have_packed_are_unpacked_when_they_are_read():
    x, w = rg.tensor([2.0], requires_grad=True), rg.tensor([3.0], requires_grad=True)
    read = []
    with rg.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda p: read.append(p) or rg.tensor(p)):
        y = x * w
    _, groups = stage_backward_input([y], [rg.ones(1)], [x], [w])
    assert read == [[3.0]]
    stage_backward_weight([w], groups)
    assert read == [[3.0], [2.0]]


def test_complex_gradients_are_those_of_the_whole_pass():
    found = []
    for halves in (True, False):
        x, w = (rg.tensor([1.0 + 2j, 3j], requires_grad=True) for _ in range(2))
        y, g = (x * w).exp() * w, rg.tensor([1j, 2.0 + 0j])
        if halves:
            (gx,), groups = stage_backward_input([y], [g], [x], [w])
            stage_backward_weight([w], groups)
        else:
            (gx,) = stage_backward(y, g, [x])
        found.append((gx.tolist(), w.grad.tolist()))
    assert found[0] == found[1]


def chain():
    x, ws = rg.ones(2, requires_grad=True), [rg.ones(2, requires_grad=True) for _ in range(3)]
    return x, ws, (x * ws[0] * ws[1]).exp() * ws[2] + ws[1] * ws[0]


def test_groups_are_independent_and_run_one_by_one():
    x, ws, y = chain()
    _, groups = stage_backward_input([y], [rg.ones(2)], [x], ws)
    numbers = [[next(i for i in range(3) if ws[i] is weight) for weight in group["params"]] for group in groups]
    assert sorted(numbers) == [[0, 1], [2]]
    for group in groups:
        stage_backward_weight(ws, [group])
    halves = [w.grad.tolist() for w in ws]
    x, ws, y = chain()
    stage_backward(y, rg.ones(2), [x])
    assert halves == [w.grad.tolist() for w in ws]


def test_a_group_runs_once_unless_it_is_retained():
    x, w = rg.ones(2, requires_grad=True), rg.ones(2, requires_grad=True)
    _, groups = stage_backward_input([x * w.exp()], [rg.ones(2)], [x], [w])
    stage_backward_weight([w], groups, retain_graph=True)
    first = w.grad.tolist()
    assert stage_backward_weight([w], groups)[0].tolist() == [2 * g for g in first]
    with pytest.raises(RuntimeError, match="played once; retain_graph=True"):
        stage_backward_weight([w], groups)


def test_a_graph_that_is_freed_can_not_be_walked_again():
    x, w = rg.ones(2, requires_grad=True), rg.ones(2, requires_grad=True)
    y = x * w
    stage_backward_input([y], [rg.ones(2)], [x], [w])
    with pytest.raises(
        RuntimeError, match="Failed to run stage backward input: Trying to backward through the graph a second"
    ):
        stage_backward_input([y], [rg.ones(2)], [x], [w])


def test_a_gradient_that_is_written_to_in_between_is_refused():
    x, w, g = rg.ones(2, requires_grad=True), rg.ones(2, requires_grad=True), rg.ones(2)
    _, groups = stage_backward_input([x * w], [g], [x], [w])
    g.zero_()
    with pytest.raises(RuntimeError, match=r"gradient of shape \(2,\) that waits .* modified in place"):
        stage_backward_weight([w], groups)


def test_a_value_that_is_written_to_in_between_is_refused_if_a_weight_needs_it():
    x, w = rg.ones(2, requires_grad=True), rg.ones(2, requires_grad=True)
    y = x * 2
    out = y * w
    _, groups = stage_backward_input([out], [rg.ones(2)], [x], [w])
    with rg.no_grad():
        w.zero_()  # only the rule of the input reads it
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        stage_backward_weight([w], groups)


def test_an_optimizer_may_write_to_weights_that_only_inputs_need():
    x, w = rg.tensor([2.0], requires_grad=True), rg.tensor([3.0], requires_grad=True)
    _, groups = stage_backward_input([x * w], [rg.ones(1)], [x], [w])
    with rg.no_grad():
        w.zero_()
    assert stage_backward_weight([w], groups)[0].tolist() == [2.0]


def test_groups_of_other_weights_are_refused():
    x, w = rg.ones(2, requires_grad=True), rg.ones(2, requires_grad=True)
    _, groups = stage_backward_input([x * w], [rg.ones(2)], [x], [w])
    with pytest.raises(ValueError, match=r"for 1 weights that are not among the 0 given, the first of shape \(2,\)"):
        stage_backward_weight([], groups)
    with pytest.raises(TypeError, match="stage_backward_weight: param_groups are those that stage_backward_input"):
        stage_backward_weight([w], [w])


@pytest.mark.parametrize(
    ("inputs", "weights", "message"),
    [
        (lambda x: [x], lambda w: ["w"], "weights must be tensors, got str"),
        (lambda x: [x], lambda w: w, r"weights must be several tensors, got one of shape \(2,\); pass \[weight\]"),
        (
            lambda x: x,
            lambda w: [w],
            "input_values must be a tuple, list or another iterable of the .*, got Tensor",
        ),
    ],
)
def test_a_tensor_instead_of_several_is_refused_before_anything_runs(inputs, weights, message):
    x, w = rg.ones(2, requires_grad=True), rg.ones(2, requires_grad=True)
    y = x * w
    with pytest.raises(TypeError, match=f"stage_backward_input: {message}"):
        stage_backward_input([y], [rg.ones(2)], inputs(x), weights(w))
    stage_backward(y, rg.ones(2), [x])  # the graph is complete


def test_memory_shrinks_between_the_halves_and_after_them():
    size = 1 << 16
    x, w = values(size).requires_grad_(), values(size).requires_grad_()
    grads = [rg.ones(size, dtype=rg.float64)]
    held = []
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        h = x * w
        for _ in range(8):
            h = h.sin()
        outputs = [h]
        del h
        held.append(tracemalloc.get_traced_memory()[0] - before)
        given, groups = input_gradients(outputs, grads, [x], [w])
        del outputs, given
        held.append(tracemalloc.get_traced_memory()[0] - before)
        stage_backward_weight([w], groups)
        w.grad = None
        held.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
    arrays = [round(count / (8 * size), 1) for count in held]
    assert arrays == [9.0, 1.0, 0.0]  # of the weight's half there is only the gradient that waits


def test_a_failure_shows_outputs_gradients_and_inputs():
    x = rg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"(?s)backward input: .*outputs: float32\[2\] on cpu.*float32\[3\] on") as e:
        stage_backward_input([x * 2], [rg.ones(3)], [x], [])
    assert e.value.__cause__ is not None


def test_inside_a_transform_it_is_refused():
    def run(x):
        stage_backward_input([x * 2], [rg.ones(2)], [x], [])
        return x.sum()

    with pytest.raises(RuntimeError, match="does not run inside a function transform"):
        rg.func.grad(run)(rg.ones(2))
