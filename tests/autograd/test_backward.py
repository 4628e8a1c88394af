"""backward and grad: their gradients, and the wrong calls they refuse before anything changes."""

import threading
import weakref

import pytest

import retrograd as rg
from retrograd.autograd import GradientEdge, backward, get_gradient_edge, grad


def leaf(*values):
    return rg.tensor(list(values), requires_grad=True)


def test_a_scalar_output_gets_an_implicit_gradient_of_one():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_gradients_add_up_in_the_same_tensor():
    x = leaf(1.0)
    (3 * x).backward(rg.ones(1))
    first = x.grad
    (4 * x).backward(rg.ones(1))
    assert x.grad is first
    assert first.tolist() == [7.0]


def test_with_create_graph_gradients_add_up_in_a_new_tensor():
    x = leaf(2.0)
    with pytest.warns(UserWarning, match="create_graph=True"):
        (x**3).sum().backward(create_graph=True)
    first = x.grad
    with pytest.warns(UserWarning, match="create_graph=True"):
        (x**3).sum().backward(create_graph=True)
    assert x.grad is not first
    assert (first.tolist(), x.grad.tolist()) == ([12.0], [24.0])
    assert x.grad.requires_grad


def test_two_leaves_never_share_the_memory_of_their_gradients():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (a + b).backward(rg.ones(2))
    a.grad.mul_(5.0)
    assert b.grad.tolist() == [1.0, 1.0]


def test_the_gradient_that_was_passed_in_is_never_written_to():
    x, g = leaf(1.0, 2.0), rg.ones(2)
    for _ in range(2):
        (x + 0.0).backward(g)
    assert g.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [2.0, 2.0]


def test_several_outputs_run_in_one_pass():
    x = leaf(1.0, 2.0)
    y = x * 2
    backward([y.sum(), y], [None, rg.tensor([10.0, 20.0])])
    assert x.grad.tolist() == [22.0, 42.0]


def test_inputs_restricts_where_gradients_go():
    a, b = leaf(1.0), leaf(2.0)
    (a * b).backward(rg.ones(1), inputs=a)
    assert a.grad.tolist() == [2.0]
    assert b.grad is None


def test_inputs_may_be_no_leaves():
    x = leaf(3.0)
    y = x * 2
    (y * y).backward(rg.ones(1), inputs=[y])
    assert y._grad.tolist() == [12.0]
    assert x.grad is None


def test_grad_returns_a_tuple_and_accumulates_nothing():
    x, y = leaf(1.0, 2.0), leaf(5.0, 6.0)
    result = grad((x * y).sum(), [x, y])
    assert isinstance(result, tuple)
    assert [g.tolist() for g in result] == [[5.0, 6.0], [1.0, 2.0]]
    assert x.grad is None


def test_grad_of_an_output_with_respect_to_itself_is_its_cotangent():
    y = leaf(1.0, 2.0) * 3
    (g,) = grad(y, y, rg.tensor([4.0, 5.0]))
    assert g.tolist() == [4.0, 5.0]


def test_second_derivatives_through_create_graph():
    x = leaf(2.0)
    (first,) = grad((x**3).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    assert second.tolist() == [12.0]


def test_gradient_edges_serve_as_inputs():
    x = leaf(3.0)
    edge = get_gradient_edge(x)
    assert isinstance(edge, GradientEdge)
    assert edge.node.name() == "torch::autograd::AccumulateGrad"
    assert grad((x * x).sum(), edge)[0].tolist() == [6.0]
    y = x * x
    assert grad((y * 2).sum(), get_gradient_edge(y))[0].tolist() == [2.0]


def test_unused_inputs():
    x, unused = leaf(1.0), leaf(1.0)
    y = (x * 2).sum()
    with pytest.raises(RuntimeError, match=r"index 1 appears to not have been used"):
        grad(y, [x, unused], retain_graph=True)
    assert grad(y, [x, unused], allow_unused=True, retain_graph=True)[1] is None
    assert grad(y, [x, unused], materialize_grads=True)[1].tolist() == [0.0]


def test_materialize_grads_contradicts_allow_unused_false():
    x = leaf(1.0)
    with pytest.raises(ValueError, match="allow_unused"):
        grad(x.sum(), x, allow_unused=False, materialize_grads=True)


def test_a_second_pass_over_freed_values_says_how_to_keep_them():
    x = leaf(1.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"mul.*retain_graph=True"):
        y.backward()


def test_a_graph_that_saved_nothing_can_be_walked_again():
    x = leaf(1.0)
    y = x + x
    y.backward(rg.ones(1))
    y.backward(rg.ones(1))
    assert x.grad.tolist() == [4.0]


def test_retain_graph_keeps_the_values():
    x = leaf(1.5)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [6.0]


@pytest.mark.parametrize(
    ("call", "error", "facts"),
    [
        (lambda x: backward(x * 2), RuntimeError, r"output 0 has shape \(2,\)"),
        (lambda x: backward(x * 2, rg.ones(3)), RuntimeError, r"a shape of \(3,\) and .* a shape of \(2,\)"),
        (lambda x: backward(x * 2, rg.ones(2, dtype=rg.complex64)), RuntimeError, "complex64.*float32"),
        (lambda x: backward(x.detach().sum()), RuntimeError, "element 0.*does not require grad"),
        (lambda x: backward([x.sum(), x.sum()], [None]), RuntimeError, "2 tensors and 1 gradients"),
        (lambda x: backward(x.sum(), inputs=[]), RuntimeError, "cannot be empty"),
        (lambda x: backward(x.sum(), inputs=[rg.ones(2)]), RuntimeError, r"does not require grad: inputs\[0\]"),
        (lambda x: backward(x * 2, 3.0), TypeError, "Tensors or None, but got float for output 0"),
        (lambda x: grad(x.sum(), [3]), TypeError, r"inputs\[0\].*int"),
        (lambda x: grad(x.sum(), x, is_grads_batched=True), RuntimeError, r"is_grads_batched.*got \[None\]"),
        (
            lambda x: grad(x * 2, x, rg.ones(3), is_grads_batched=True),
            RuntimeError,
            r"shape of \(\) without it, and output\[0\]",
        ),
    ],
)
def test_calls_that_can_not_be_done_are_refused_by_name(call, error, facts):
    x = leaf(1.0, 2.0)
    with pytest.raises(error, match=facts):
        call(x)
    assert x.grad is None


def test_the_old_name_grad_variables_warns():
    x = leaf(1.0)
    with pytest.warns(FutureWarning, match="grad_tensors"):
        backward(x * 2, grad_variables=rg.ones(1))
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="both passed"):
        backward(x * 2, rg.ones(1), grad_variables=rg.ones(1))


def test_complex_gradients_point_where_pytorch_says():
    z = rg.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (z * z.conj()).sum().abs().backward()
    assert z.grad.tolist() == [2 + 4j, 6 - 2j]


def test_dropped_tensors_free_their_graph_without_the_cycle_collector(no_collector):
    x = leaf(1.0, 2.0)
    y = rg.exp(x) * x
    node = weakref.ref(y._grad_fn)
    y.sum().backward(retain_graph=True)
    del y
    assert node() is None


@pytest.mark.once("in the plain core tests/core/test_engine.py goes deep enough")
def test_a_million_operations_deep_neither_recurse_nor_leak():
    x, y = leaf(1.0), rg.ones(1)
    w = x
    for _ in range(1_000_000):
        w = w * y
    w.backward(rg.ones(1))
    assert x.grad.tolist() == [1.0]


def test_threads_that_share_a_leaf_lose_no_gradient():
    x = leaf(0.0, 0.0)

    def work():
        for _ in range(200):
            (x * 1.0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [800.0, 800.0]


def test_a_saved_value_that_was_written_to_is_an_error_that_names_both_versions():
    x, w = leaf(1.0, 2.0), rg.tensor([3.0, 4.0])
    y = (x * w).sum()
    w.mul_(2.0)
    with pytest.raises(
        RuntimeError, match=r"mul.*version 1; expected version 0.*test_backward.py:\d+ in test_a_saved_value"
    ):
        y.backward()


def test_a_write_through_a_view_counts_as_a_write_to_its_base():
    x, w = leaf(1.0, 2.0), rg.tensor([3.0, 4.0])
    y = (x * w).sum()
    w[0:1].zero_()
    with pytest.raises(RuntimeError, match="version 1; expected version 0"):
        y.backward()


def test_only_what_a_rule_reads_is_saved():
    x, w = leaf(1.0), rg.ones(1)
    assert (x + w)._grad_fn.saved is None
    kept = (x * w)._grad_fn.saved
    assert kept[0] is None
    assert kept[1] is w


def test_the_graph_shows_its_nodes():
    x = leaf(1.0)
    y = (x * x).sum()
    assert y.grad_fn.name() == "SumBackward0"
    ((node, number),) = y.grad_fn.next_functions
    assert (node.name(), number) == ("MulBackward0", 0)
    assert [n.name() for n, _ in node.next_functions] == ["torch::autograd::AccumulateGrad"] * 2
    assert x.is_leaf
    assert not y.is_leaf


def test_requires_grad_can_be_set_on_leaves_only():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="result of mul"):
        (x * 2).requires_grad_(False)
    with pytest.raises(RuntimeError, match="int64"):
        rg.tensor([1]).requires_grad_()


def test_grad_refuses_what_does_not_fit():
    x = leaf(1.0, 2.0)
    for wrong, error in ((3.0, TypeError), (x, RuntimeError), (rg.ones(3), RuntimeError)):
        with pytest.raises(error):
            x.grad = wrong
    x.grad = rg.ones(2)
    del x.grad
    assert x.grad is None


def test_writing_to_a_leaf_that_requires_grad_is_refused_before_it_changes():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="no_grad"):
        x.add_(1.0)
    assert x.tolist() == [1.0, 2.0]
    with rg.no_grad():
        x.add_(1.0)
    assert x.tolist() == [2.0, 3.0]


def test_a_gradient_has_the_dtype_of_its_tensor():
    x = leaf(1.0, 2.0)
    for dtype in (rg.float64, rg.int64, rg.bool):
        (x * 2).backward(rg.ones(2, dtype=dtype))
        assert x.grad.dtype == rg.float32
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="grad_output\\[0\\] has a dtype of complex64"):
        (x * 2).backward(rg.ones(2, dtype=rg.complex64))


def test_inputs_may_come_from_an_iterator():
    a, b = leaf(1.0), leaf(2.0)
    (a * b).backward(rg.ones(1), inputs=iter([b]))
    assert (a.grad, b.grad.tolist()) == (None, [1.0])


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda x: (x + x).backward(x.grad), 6.0),
        (lambda x: ((x * x.grad).sum() + (x * x.grad).sum()).backward(), 6.0),
        (lambda x: (x.view(2, 1) + x.view(2, 1)).backward(x.grad.view(2, 1)), 6.0),
    ],
)
def test_a_pass_may_read_the_gradient_that_it_adds_to(program, expected):
    x = leaf(1.0, 1.0)
    x.grad = rg.full_like(x, 2.0)
    program(x)
    assert x.grad.tolist() == [expected, expected]


def test_a_hook_that_clears_the_gradient_of_a_leaf_loses_nothing_of_this_pass():
    x = leaf(1.0)
    x.grad = rg.ones_like(x)
    y = x * 2
    y.register_hook(lambda g: (x.grad.zero_(), None)[1])
    (y.sum() + (x * 3).sum()).backward()
    assert x.grad.tolist() == [5.0]


def test_a_hook_that_writes_to_its_gradient_changes_no_other_leaf():
    x, w = leaf(1.0), leaf(1.0)
    y = x * 1
    y.register_hook(lambda g: g.clamp_(-0.5, 0.5))
    ((y + w) ** 2).sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([0.5], [4.0])


def test_a_pass_that_fails_adds_nothing_to_small_gradients():
    x = leaf(1.0)
    x.grad = rg.zeros_like(x)
    y = x * 1
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (y.sum() + x.sum()).backward()
    assert x.grad.tolist() == [0.0]


def test_large_gradients_are_added_after_the_last_of_each_leaf():
    x, w = rg.ones(200, 100, requires_grad=True), rg.ones(200, 100, requires_grad=True)
    for _ in range(3):
        ((x * 2 + w).sum() + (x * 3).sum() + (x.grad * x if x.grad is not None else x * 0).sum()).backward()
    assert x.grad[0, 0].item() == 5.0 + (5.0 + 5.0) + (5.0 + 15.0)
    assert w.grad[0, 0].item() == 3.0


def test_a_leaf_that_requires_no_gradient_any_more_gets_none():
    x = leaf(1.0)
    y = (x * x).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None


# ------------------------------------------------------------------------------------------- batches of cotangents


def test_a_batch_of_cotangents_is_pulled_back_as_each_of_them_is():
    x = leaf(1.0, 2.0)
    y, z = x**2, (x * 3).sum()
    rows, column = rg.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 5.0]]), rg.tensor([1.0, 2.0, 3.0])
    (found,) = grad([y, z], x, [rows, column], is_grads_batched=True, retain_graph=True)
    alone = [grad([y, z], x, [row, c], retain_graph=True)[0] for row, c in zip(rows, column, strict=True)]
    assert found.tolist() == rg.stack(alone).tolist()
    (found,) = grad([y, z], x, [rows, None], is_grads_batched=True)
    assert found.tolist() == (rows * 2 * rg.tensor([1.0, 2.0]) + 3).tolist()


def test_batched_gradients_are_in_the_graph_if_requested():
    x = leaf(1.0, 2.0)
    (found,) = grad(x**3, x, rg.eye(2), is_grads_batched=True, create_graph=True)
    (second,) = grad(found.sum(), x)
    assert second.tolist() == [6.0, 12.0]


def test_an_input_that_is_not_reached_has_a_batch_of_zeros_if_requested():
    x, y = leaf(1.0, 2.0), leaf(1.0)
    found = grad(x * 2, [x, y], rg.ones(3, 2), is_grads_batched=True, materialize_grads=True)
    assert [g.shape for g in found] == [(3, 2), (3, 1)]
    assert found[1].tolist() == [[0.0]] * 3


def test_hooks_and_user_functions_see_the_batch_as_one_cotangent():
    class Double(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert g.shape == (2,)
            return g * 2

    x, shapes = leaf(1.0, 2.0), []
    y = Double.apply(x)
    y.register_hook(lambda g: shapes.append(g.shape))
    (found,) = grad(y, x, rg.eye(2), is_grads_batched=True)
    assert (found.tolist(), shapes) == ((2 * rg.eye(2)).tolist(), [(2,)])


F = rg.nn.functional
PIECEWISE_LINEAR = {
    "leaky_relu": F.leaky_relu,
    "hardtanh": F.hardtanh,
    "relu": F.relu,
    "relu6": F.relu6,
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "hardsigmoid": F.hardsigmoid,
    "threshold": lambda x: F.threshold(x, 0.1, 2.0),
    "prelu": lambda x: F.prelu(x, rg.tensor([0.2])),
    "rrelu": F.rrelu,
    "rrelu, training": lambda x: F.rrelu(x, training=True),
    "abs": rg.abs,
    "clamp": lambda x: rg.clamp(x, -0.5, 0.5),
    "max": lambda x: x.max(),
}


@pytest.mark.parametrize("name", PIECEWISE_LINEAR)
def test_second_derivatives_of_piecewise_linear_functions_are_zeros(name):
    x = rg.tensor([-7.0, -1.0, 0.2, 3.0, 8.0], requires_grad=True)
    (g,) = grad(PIECEWISE_LINEAR[name](x * 1).sum(), x, create_graph=True)
    assert grad(g.sum(), x)[0].tolist() == [0.0] * 5


def test_a_penalty_on_gradients_through_a_piecewise_linear_network_reaches_its_weights():
    x = rg.tensor([0.5, -1.0], requires_grad=True)
    w = rg.tensor([[1.0, 2.0], [-3.0, 0.5]], requires_grad=True)
    (g,) = grad(F.leaky_relu(x @ w, 0.5).sum(), x, create_graph=True)  # x @ w is positive, so g = w.sum(1)
    of_x, of_w = grad((g * g).sum(), [x, w])
    assert of_x.tolist() == [0.0, 0.0]
    assert of_w.tolist() == [[6.0, 6.0], [-5.0, -5.0]]


def test_without_create_graph_a_gradient_depends_on_nothing():
    x = rg.ones(2, requires_grad=True)
    assert not grad(F.leaky_relu(x).sum(), x)[0].requires_grad


def test_hooks_of_an_output_run_once_where_an_input_is_unused():
    x, unused, calls = leaf(1.0), leaf(2.0), []
    y = (x * x).sum()
    y.register_hook(calls.append)
    with pytest.raises(RuntimeError, match="index 0 appears to not have been used"):
        grad(y, unused)
    assert len(calls) == 1
    assert grad(y, [unused, x], allow_unused=True)[0] is None


@pytest.mark.parametrize("inputs", [1, 2])
def test_a_simple_pass_gives_the_gradients_of_one_with_a_given_cotangent(inputs):
    x, y = leaf(0.3, 0.7), leaf(0.2, 0.4)
    leaves = [x, y][:inputs]
    out = ((x * y).sin() * x).sum()
    simple = grad(out, leaves if inputs > 1 else x, retain_graph=True)
    for found, expected in zip(simple, grad(out, leaves, rg.ones(())), strict=True):
        assert found.tolist() == expected.tolist()
    with pytest.raises(RuntimeError, match="a second time"):
        grad(out, x)
