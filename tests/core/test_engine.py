"""The backward pass: sums over paths, memory, freed and changed values, depth, and which nodes run."""

import tracemalloc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import Definition, op, registry
from retrograd.testing import assert_close


def leaf(*values: float) -> rg.Tensor:
    return rg.tensor(list(values), dtype=rg.float64, requires_grad=True)


def grad(outputs, inputs, **options):
    return rg.autograd.grad(outputs, inputs, **options)


# ----------------------------------------------------------------------------------------- sums over paths


def test_a_leaf_used_twice_gets_both_cotangents():
    x = leaf(3.0, -1.0)
    (x * x).sum().backward()
    assert_close(x.grad, 2 * x.value)


def test_a_shared_expression_is_pulled_back_once_with_the_sum_of_its_cotangents():
    x = leaf(0.5, 2.0)
    y = x.exp()
    (y * y + y.sin() - y).sum().backward()
    e = np.exp(x.value)
    assert_close(x.grad, (2 * e + np.cos(e) - 1) * e)


@pytest.mark.parametrize("flip", [False, True])
def test_diamonds_agree_with_the_chain_rule_whichever_branch_is_made_first(flip):
    x = leaf(0.3, 0.7)
    first = x * 3.0
    branches = (first.sin(), first.exp())
    a, b = branches[::-1] if flip else branches
    (a * b + first).sum().backward()
    y = 3 * x.value
    assert_close(x.grad, 3 * (np.cos(y) * np.exp(y) + np.sin(y) * np.exp(y) + 1))


def test_a_ladder_of_diamonds_is_walked_once_per_node():
    x = leaf(1.0)
    y = x
    for _ in range(60):  # 2**60 paths
        y = y + y
    y.backward(rg.ones(1, dtype=rg.float64))
    assert_close(x.grad, [2.0**60])


def test_a_node_of_a_long_and_a_short_path_waits_for_both():
    x = leaf(0.4)
    y = x * 2.0
    long = y
    for _ in range(10):
        long = long.sin()
    (g,) = grad((long * y).sum(), x)
    far, slope = 0.8, 1.0
    for _ in range(10):
        slope, far = slope * np.cos(far), np.sin(far)
    assert_close(g, [2 * (slope * 0.8 + far)])


def test_several_roots_add_up_and_each_has_its_cotangent():
    x = leaf(1.0, 2.0)
    a, b = x * 3.0, x.exp()
    (g,) = grad(
        [a, b],
        x,
        grad_outputs=[rg.tensor([1.0, 10.0], dtype=rg.float64), rg.tensor([0.0, 2.0], dtype=rg.float64)],
    )
    assert_close(g, [3.0, 30 + 2 * np.exp(2.0)])


def test_one_root_may_depend_on_another_and_be_passed_twice():
    x = leaf(2.0)
    y = x * 3.0
    z = y * y
    (g,) = grad([z, y, y], x, grad_outputs=[rg.ones(1, dtype=rg.float64)] * 3)
    assert_close(g, [2 * 9 * 2 + 3.0 + 3.0])


def test_the_cotangents_of_intermediate_tensors_can_be_requested_with_those_below():
    x = leaf(2.0)
    y = x * 3.0
    z = (y * y).sum()
    gz, gy, gx = grad(z, [z, y, x])
    assert_close(gz, np.array(1.0))
    assert_close(gy, [12.0])
    assert_close(gx, [36.0])


def test_three_cotangents_for_one_node_are_all_counted():
    x, w = leaf(1.0, 2.0), leaf(5.0, 7.0)
    y = x * 2.0
    (y * w + y * w + y * w + y).sum().backward()
    assert_close(x.grad, 2 * (3 * w.value + 1))
    assert_close(w.grad, 3 * 2 * x.value)


# -------------------------------------------------------------------------------------------------- memory


def test_gradients_of_two_leaves_never_share_memory():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = a + b
    for _ in range(2):
        y.sum().backward()
    assert not np.shares_memory(a.grad.value, b.grad.value)
    assert_close(a.grad, [2.0, 2.0])
    assert_close(b.grad, [2.0, 2.0])


@pytest.fixture
def doubled():
    """An operator of a list whose rule gives every list element the same tensor."""

    @op("doubled(Tensor[] tensors) -> Tensor")
    class doubled(Definition):
        """Twice the sum."""

        def impl(xp, *tensors):
            return sum(tensors) * 2

        def vjp_tensors(g, tensors):
            return [g * 2] * len(tensors)

    yield registry["doubled"]
    del registry["doubled"]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_gradients_of_a_list_share_no_memory_and_one_that_nobody_shares_is_preserved(doubled, count, watched):
    leaves = [rg.ones(1 << 17).requires_grad_(True) for _ in range(count)]
    if watched:
        leaves[0].register_post_accumulate_grad_hook(lambda _: None)
    out, g = doubled(leaves), rg.ones(1 << 17)
    tracemalloc.start()
    out.backward(g)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count > 1 or watched or peak < 1.5 * g.value.nbytes
    for i, x in enumerate(leaves):
        assert_close(x.grad, 2 * g)
        assert not any(np.shares_memory(x.grad.value, other.grad.value) for other in leaves[:i])


def test_accumulating_leaves_the_cotangent_that_the_user_gave_alone():
    x = leaf(1.0, 2.0)
    seed = rg.tensor([1.0, 10.0], dtype=rg.float64)
    y = x + 0.0
    for _ in range(3):
        y.backward(seed, retain_graph=True)
    x.backward(seed)
    assert_close(seed, [1.0, 10.0])
    assert_close(x.grad, [4.0, 40.0])
    assert not np.shares_memory(x.grad.value, seed.value)


def test_a_sum_in_place_never_writes_into_a_cotangent_that_someone_else_holds():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    s = x + y  # the same cotangent goes to both
    total = (s + x * 5.0 + x * 7.0 + s).sum()
    gs, gx, gy = grad(total, [s, x, y])
    assert_close(gs, [2.0, 2.0])
    assert_close(gx, [14.0, 14.0])
    assert_close(gy, [2.0, 2.0])


def test_gradients_requested_are_not_changed_by_a_later_pass():
    x = leaf(1.0, 2.0)
    y = (x + x + x).sum()
    (first,) = grad(y, x, retain_graph=True)
    (second,) = grad(y, x, retain_graph=True)
    y.backward()
    assert_close(first, [3.0, 3.0])
    assert_close(second, [3.0, 3.0])


def test_a_saved_value_is_not_written_to_by_the_pass():
    x, w = leaf(1.0, 2.0), leaf(3.0, 5.0)
    p = x * w
    (p * p + x + w + p).sum().backward()
    assert_close(x.value, np.array([1.0, 2.0]))
    assert_close(w.value, np.array([3.0, 5.0]))
    assert_close(p.value, np.array([3.0, 10.0]))


# ------------------------------------------------------------------------------------------- saved values


def test_a_second_pass_needs_retain_graph_and_reports_it():
    x = leaf(1.0, 2.0)
    y = x * x
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"second time.* mul saved are freed.*retain_graph=True"):
        y.sum().backward()


def test_retain_graph_allows_a_second_pass():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert_close(x.grad, 4 * x.value)


def test_a_failed_pass_leaves_other_graphs_usable():
    x = leaf(2.0)
    y = x * x
    y.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.sum().backward()
    assert rg.is_grad_enabled()
    (x * 3.0).sum().backward()
    assert_close(x.grad, [7.0])


@pytest.mark.parametrize("fails", [False, True])
def test_a_pass_ignores_errors_of_floating_point_and_restores_their_handling(fails):
    x, seen = rg.zeros(2, requires_grad=True), []

    def hook(g):
        seen.append(np.geterr()["divide"])
        if fails:
            raise KeyError

    with np.errstate(all="raise"):
        y = x.sqrt()
        y.register_hook(hook)
        with pytest.raises(KeyError) if fails else nullcontext():
            y.sum().backward()
        assert set(np.geterr().values()) == {"raise"}
    assert seen == ["ignore"]
    assert fails or np.isinf(x.grad.numpy()).all()


def test_gradients_of_real_and_complex_leaves_are_added_to_those_that_are_there():
    for dtype in (rg.float32, rg.float64, rg.float16, rg.bfloat16, rg.complex64):
        x = rg.ones(2, 3, dtype=dtype).t().requires_grad_()
        (x * 2).backward(rg.ones(3, 2, dtype=dtype))
        first = x.grad
        assert first.stride() == x.stride()
        (x * 3).backward(rg.ones(3, 2, dtype=dtype))
        assert x.grad is first
        assert_close(first, rg.full((3, 2), 5, dtype=dtype))


def test_a_saved_input_that_was_changed_in_place_is_an_error():
    x, w = leaf(1.0, 2.0), rg.ones(2, dtype=rg.float64)
    y = x * w
    w.add_(1.0)
    with pytest.raises(
        RuntimeError, match=r"backward of mul .*modified by an inplace operation.*\(2,\).*version 1; expected version 0"
    ):
        y.sum().backward()


def test_a_change_in_place_before_the_value_is_saved_or_of_a_value_not_saved_is_none():
    x, w = leaf(1.0, 2.0), rg.ones(2, dtype=rg.float64)
    w.add_(1.0)
    y = x * w
    z = x + w
    z.detach()
    (y + z).sum().backward()
    assert_close(x.grad, [3.0, 3.0])


def test_a_saved_output_leads_back_into_the_graph():
    x = leaf(0.3, 0.9)
    y = x.exp().tanh()  # both save their outputs
    (first,) = grad(y.sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    e, t = np.exp(x.value), np.tanh(np.exp(x.value))
    assert_close(second, (1 - t * t) * e * (1 - 2 * t * e))


def test_third_order_of_a_saved_output():
    x = leaf(0.5)
    y = x.exp()
    for _ in range(3):
        (y,) = grad(y.sum(), x, create_graph=True)
    assert_close(y, np.exp(x.value))


# ---------------------------------------------------------------------------------------- depth and lifetime


@pytest.mark.parametrize("wanted", [None, "leaf"])
def test_a_chain_of_200_000_operators_needs_no_recursion(wanted):
    x = leaf(1.0)
    y = x
    for _ in range(200_000):
        y = y * 1.0
    if wanted is None:
        y.sum().backward()
        g = x.grad
    else:
        (g,) = grad(y.sum(), x)
    assert_close(g, [1.0])


def test_a_long_chain_that_is_never_walked_is_freed_without_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(200_000):
        y = y * 1.0
    del y
    assert x.grad is None


@pytest.mark.parametrize("walked", [False, True])
def test_the_graph_holds_no_reference_cycle(no_collector, walked):
    x = leaf(1.0, 2.0)
    y = x.exp()  # saves its output
    z = y.softmax(dim=0) * y
    loss = z.sum()
    alive = [weakref.ref(t) for t in (y, z, loss, y._grad_fn, loss._grad_fn)]
    if walked:
        loss.backward()
    del y, z, loss
    assert [r() for r in alive] == [None] * len(alive)


def test_saved_values_are_freed_as_the_pass_goes(no_collector):
    x = leaf(1.0, 2.0)
    w = rg.ones(2, dtype=rg.float64)
    y = x * w
    saved = weakref.ref(w)
    loss = y.sum()
    loss.backward()
    del w
    assert saved() is None
    assert y.grad_fn is not None


# ------------------------------------------------------------------------------- which nodes a pass runs


@pytest.fixture
def watched():
    """Return an operator that counts how often its rule runs."""

    @op("watched(Tensor x) -> Tensor")
    class watched(Definition):
        """Return the input, and count the calls of the rule."""

        runs = 0

        def impl(xp, x):
            return x.copy()

        def vjp_x(g):
            registry["watched"].definition.runs += 1
            return g * 1.0

    yield registry["watched"]
    del registry["watched"]


def test_nodes_that_lead_to_no_requested_input_are_not_run(watched):
    x, w = leaf(1.0), leaf(2.0)
    y = watched(x) * watched(watched(w))
    (g,) = grad(y.sum(), w)
    assert_close(g, [1.0])
    assert watched.definition.runs == 2


def test_nodes_beyond_a_requested_intermediate_tensor_are_not_run(watched):
    x = leaf(1.0)
    y = watched(x)
    (g,) = grad((y * y).sum(), y)
    assert_close(g, [2.0])
    assert watched.definition.runs == 0


def test_backward_with_inputs_reaches_these_leaves_alone(watched):
    x, w = leaf(1.0), leaf(2.0)
    (watched(x) * w).sum().backward(inputs=[w])
    assert x.grad is None
    assert_close(w.grad, [1.0])
    assert watched.definition.runs == 0


def test_every_node_runs_once(watched):
    x = leaf(1.0)
    y = watched(x)
    (y * y + y).sum().backward()
    assert watched.definition.runs == 1
    assert_close(x.grad, [3.0])


def test_an_unused_input_is_an_error_that_names_the_way_out():
    x, w = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        grad((x * 2.0).sum(), [x, w])
    gx, gw = grad((x * 2.0).sum(), [x, w], allow_unused=True)
    assert_close(gx, [2.0])
    assert gw is None


def test_a_leaf_may_be_its_own_root():
    x = leaf(1.0, 2.0)
    (g,) = grad(x, x, grad_outputs=rg.tensor([3.0, 4.0], dtype=rg.float64))
    assert_close(g, [3.0, 4.0])


# ----------------------------------------------------------------------------------------- several outputs


@pytest.fixture
def halves():
    """Return an operator of two outputs, of different size."""

    @op("halves(Tensor x) -> (Tensor first, Tensor rest)")
    class halves(Definition):
        """Return the first element, and the others squared."""

        def impl(xp, x):
            return x[:1].copy(), x[1:] ** 2

        def vjp_x(g, x):
            first, rest = g
            return rg.cat([first, rest * 2 * x[1:]])

    yield registry["halves"]
    del registry["halves"]


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_outputs_without_cotangents_count_as_zero(halves, used):
    x = leaf(1.0, 2.0, 3.0)
    outs = halves(x)
    sum((outs[i] * (10.0 + i) for i in used[1:]), outs[used[0]] * (10.0 + used[0])).sum().backward()
    weights = [10.0 * len([0 for i in used if i == 0]), 0.0, 0.0]
    if used == (0, 1):  # the first output broadcasts against the rest
        weights[0] *= 2
    if 1 in used:
        weights[1:] = [11 * 4.0, 11 * 6.0]
    assert_close(x.grad, weights)


def test_each_output_of_a_node_has_its_own_cotangent(halves):
    x = leaf(1.0, 2.0, 3.0)
    first, rest = halves(x)
    g_first, g_rest = grad((rest * 5.0).sum() + (first * 7.0).sum() + first.sum(), [first, rest])
    assert_close(g_first, [8.0])
    assert_close(g_rest, [5.0, 5.0])


def test_a_node_of_several_outputs_differentiates_twice(halves):
    x = leaf(1.0, 2.0, 3.0)
    first, rest = halves(x)
    (g,) = grad((rest * rest).sum() + first.sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert_close(h, 12 * x.value**2 * [0, 1, 1])
