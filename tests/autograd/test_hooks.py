"""Hooks: their arguments, order, return values and removal."""

import sys
import weakref

import pytest

import retrograd as rg
from retrograd.autograd.graph import register_multi_grad_hook
from retrograd.core import engine


def leaf(*values):
    return rg.tensor(list(values), requires_grad=True)


# ------------------------------------------------------------------------------------------ hooks of tensors


@pytest.mark.parametrize("is_leaf", [True, False])
def test_a_hook_sees_the_sum_over_all_paths_once_per_pass(is_leaf):
    x = leaf(1.0, 2.0)
    y = x if is_leaf else x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 2 + y * 3 + y.sum()).sum().backward()
    assert seen == [[7.0, 7.0]]


@pytest.mark.parametrize("is_leaf", [True, False])
def test_results_of_hooks_replace_the_gradient(is_leaf):
    x = leaf(1.0, 2.0)
    y = x if is_leaf else x * 1
    y.register_hook(lambda g: g * 10)
    (y * 3).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]


def test_hooks_run_as_registered_and_each_sees_what_the_one_before_returned():
    x, seen = leaf(1.0), []
    x.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: seen.append(g.tolist()))
    x.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 1).sum().backward()
    assert seen == [[2.0], [20.0]]
    assert x.grad.tolist() == [20.0]


def test_a_replacement_leaves_the_other_paths_of_a_shared_gradient_alone():
    a, b = leaf(1.0), leaf(2.0)
    a.register_hook(lambda g: g * 10)
    (a + b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([10.0], [1.0])


def test_a_removed_hook_is_not_called_and_removing_it_twice_is_fine():
    x, seen = leaf(1.0), []
    handle = x.register_hook(seen.append)
    handle.remove()
    handle.remove()
    with x.register_hook(lambda g: g * 10):
        pass
    (x * 1).sum().backward()
    assert seen == []
    assert x.grad.tolist() == [1.0]


def test_a_hook_may_remove_itself_and_those_after_it_still_run():
    x, seen = leaf(1.0), []

    def once(g):
        seen.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda g: seen.append("always"))
    for _ in range(2):
        (x * 1).sum().backward()
    assert seen == ["once", "always", "always"]


def test_a_hook_that_is_registered_while_hooks_run_waits_for_the_next_pass():
    x, seen = leaf(1.0), []

    def register_another(g):
        seen.append("first")
        x.register_hook(lambda g: seen.append("second"))

    with x.register_hook(register_another):
        (x * 1).sum().backward()
        assert seen == ["first"]
    (x * 1).sum().backward()
    assert seen == ["first", "second"]


def test_a_hook_on_a_view_sees_a_gradient_of_its_shape_and_changes_only_its_part():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    view = y[1:]
    view.register_hook(lambda g: g * 10)
    (view * 2).sum().backward()
    assert x.grad.tolist() == [0.0, 20.0, 20.0]


def test_a_hook_stays_with_the_value_that_an_in_place_write_replaced():
    x, seen = leaf(1.0, 2.0), []
    y = x * 1
    y.register_hook(lambda g: seen.append(("old", g.tolist())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("new", g.tolist())))
    (y * 5).sum().backward()
    assert seen == [("new", [5.0, 5.0]), ("old", [15.0, 15.0])]


def test_a_hook_on_a_view_whose_base_was_rewritten_is_not_called_any_more():
    x, seen = leaf(1.0, 2.0), []
    y = x * 1
    view = y[:1]
    view.register_hook(seen.append)
    y.mul_(2)
    view.sum().backward()
    assert seen == []
    assert x.grad.tolist() == [2.0, 0.0]


def test_each_output_of_a_node_has_hooks_of_its_own():
    class Both(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            return 2 * first + 3 * second

    x, seen = leaf(1.0), []
    first, second = Both.apply(x)
    second.register_hook(lambda g: seen.append(("second", g.tolist())))
    first.register_hook(lambda g: seen.append(("first", g.tolist())) or g * 10)
    (first * 5 + second * 7).sum().backward()
    assert sorted(seen) == [("first", [5.0]), ("second", [7.0])]
    assert x.grad.tolist() == [2 * 50.0 + 3 * 7.0]


def test_hooks_of_complex_tensors_see_and_give_gradients_as_users_do():
    z, seen = leaf(1 + 2j), []
    w = z * 1
    w.register_hook(lambda g: seen.append(g.tolist()))
    w.register_hook(lambda g: g * 1j)
    (w * (3 - 4j)).backward(rg.tensor([1 + 0j]))
    assert seen == [[3 + 4j]]  # conj(3 - 4j)
    assert z.grad.tolist() == [1j * (3 + 4j)]


def test_operations_in_hooks_are_differentiated_with_create_graph():
    x = leaf(2.0)
    y = x * 1
    y.register_hook(lambda g: g * y)
    (first,) = rg.autograd.grad((y**2).sum(), x, create_graph=True)
    (second,) = rg.autograd.grad(first.sum(), x)
    assert first.tolist() == [8.0]  # 2 y * y
    assert second.tolist() == [4 * 2.0 * 2.0]  # the hook multiplies this pass's gradient, 4 y, by y too


def test_a_hook_may_run_a_backward_pass_of_its_own():
    x, other = leaf(1.0), leaf(3.0)

    def nested(g):
        with rg.enable_grad():
            (other * other).sum().backward()
        return g * other.grad

    x.register_hook(nested)
    (x * 2).sum().backward()
    assert other.grad.tolist() == [6.0]
    assert x.grad.tolist() == [12.0]


def test_a_hook_that_raises_stops_the_pass_and_leaves_no_state():
    x, other = leaf(1.0), leaf(1.0)
    y = x * 1

    def fails(g):
        raise KeyError("mine")

    with y.register_hook(fails), pytest.raises(KeyError, match="mine"):
        (y * 2).sum().backward()
    assert x.grad is None
    assert rg.is_grad_enabled()
    with pytest.raises(RuntimeError, match="during backward"):
        rg.autograd.Variable._execution_engine.queue_callback(print)
    (other * 2).sum().backward()
    assert other.grad.tolist() == [2.0]


@pytest.mark.parametrize(
    ("replacement", "error", "facts"),
    [
        (lambda g: 3.0, TypeError, "'float': 'wrong'"),
        (lambda g: g.double(), RuntimeError, "'wrong'.*type.*float32.*float64"),
        (lambda g: g.sum(), RuntimeError, r"'wrong'.*size.*\(2,\).*\(\)"),
    ],
)
def test_a_replacement_that_does_not_fit_names_the_hook_and_both_sides(replacement, error, facts):
    x = leaf(1.0, 2.0)

    def wrong(g):
        return replacement(g)

    x.register_hook(wrong)
    with pytest.raises(error, match=facts):
        (x * 2).sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_need_a_gradient_to_come_and_a_function_to_call(register):
    with pytest.raises(RuntimeError, match="doesn't require grad"):
        getattr(rg.ones(2), register)(print)
    with pytest.raises(TypeError, match="hook must be a function, got 3"):
        getattr(leaf(1.0), register)(3)


# --------------------------------------------------------------------------------- order, at nodes and leaves


def test_tensor_hooks_run_before_the_nodes_prehooks_whatever_was_registered_first():
    x, order = leaf(1.0), []
    y = x * 2
    y.grad_fn.register_hook(lambda gx, gy: order.append("after"))
    y.grad_fn.register_prehook(lambda gy: order.append("before"))
    y.register_hook(lambda g: order.append("tensor"))
    y.sum().backward()
    assert order == ["tensor", "before", "after"]


def test_at_a_leaf_the_order_is_tensor_prehook_accumulation_post_accumulate_posthook():
    x, order = leaf(1.0), []
    (node,) = [n for n, _ in (x * 2).grad_fn.next_functions if n is not None]

    def note(name):
        return lambda *_: order.append((name, None if x.grad is None else x.grad.tolist()))

    node.register_hook(note("accumulator post"))
    x.register_post_accumulate_grad_hook(note("post-accumulate"))
    node.register_prehook(note("accumulator pre"))
    x.register_hook(note("tensor"))
    (x * 2).sum().backward()
    assert order == [
        ("tensor", None),
        ("accumulator pre", None),
        ("post-accumulate", [2.0]),
        ("accumulator post", [2.0]),
    ]


def test_grad_runs_a_leafs_tensor_hooks_and_none_of_its_accumulator():
    x, order = leaf(1.0), []
    (node,) = [n for n, _ in (x * 2).grad_fn.next_functions if n is not None]
    x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda _: order.append("post-accumulate"))
    node.register_prehook(lambda _: order.append("pre"))
    node.register_hook(lambda *_: order.append("post"))
    assert rg.autograd.grad((x * 2).sum(), x)[0].tolist() == [20.0]
    assert order == []
    (x * 2).sum().backward(inputs=x)
    assert order == ["pre", "post-accumulate", "post"]
    assert x.grad.tolist() == [20.0]


def test_a_captured_gradient_has_passed_the_tensor_hooks_and_not_the_prehooks():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 100,))
    gy, gx = rg.autograd.grad((y * 3).sum(), [y, x])
    assert (gy.tolist(), gx.tolist()) == ([30.0], [6000.0])


def test_node_hooks_replace_what_goes_in_and_what_comes_out():
    a, b = leaf(2.0), leaf(3.0)
    y = a * b
    seen = []
    y.grad_fn.register_prehook(lambda gs: (gs[0] + 1,))

    def after(grad_inputs, grad_outputs):
        seen.append(([g.tolist() for g in grad_inputs], [g.tolist() for g in grad_outputs]))
        return grad_inputs[0] * 10, grad_inputs[1]

    y.grad_fn.register_hook(after)
    y.sum().backward()
    assert seen == [([[6.0], [4.0]], [[2.0]])]
    assert (a.grad.tolist(), b.grad.tolist()) == ([60.0], [4.0])


def test_node_hooks_must_keep_the_number_of_gradients():
    y = leaf(2.0) * leaf(3.0)

    def short(grad_inputs, grad_outputs):
        return grad_inputs[:1]

    y.grad_fn.register_hook(short)
    with pytest.raises(RuntimeError, match=r"'short'.*incorrect number of values \(got 1, but expected 2\)"):
        y.sum().backward()


def test_removed_node_hooks_are_not_called():
    y, seen = leaf(2.0) * 1, []
    y.grad_fn.register_hook(lambda *_: seen.append("after")).remove()
    y.grad_fn.register_prehook(lambda *_: seen.append("before")).remove()
    y.sum().backward()
    assert seen == []


# ----------------------------------------------------------------------------- post-accumulate, retain_grad


def test_a_post_accumulate_hook_runs_once_with_all_of_the_gradient_and_may_take_it_away():
    x, seen = leaf(1.0), []

    def step(t):
        assert t is x
        seen.append(t.grad.tolist())
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    for _ in range(2):
        (x * 2 + x * 3).sum().backward()
    assert seen == [[5.0], [5.0]]
    assert x.grad is None


@pytest.mark.parametrize(("register", "copies"), [("register_post_accumulate_grad_hook", 0), ("register_hook", 1)])
def test_a_gradient_is_copied_only_for_hooks_that_may_keep_it(monkeypatch, register, copies):
    x, found = leaf(1.0), []

    def match_layout(g, like, owned):
        found.append(owned)
        return engine.match_layout(g, like, owned)

    monkeypatch.setattr(sys.modules["retrograd.autograd.backward"], "match_layout", match_layout)
    getattr(x, register)(lambda _: None)
    (x * 2 + x * 3).sum().backward()
    assert found.count(False) == copies
    assert len(found) == 1


def test_post_accumulate_hooks_are_for_leaves_and_return_none():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)
    x.register_post_accumulate_grad_hook(lambda t: t)  # which PyTorch accepts too
    (x * 2).sum().backward()
    for result, error, match in ((x.grad, RuntimeError, "should return None"), (1, TypeError, "returned 'int'")):
        with (
            x.register_post_accumulate_grad_hook(lambda t, result=result: result),
            pytest.raises(error, match=match),
        ):
            (x * 2).sum().backward()


def test_retain_grad_shows_what_the_hooks_made_of_the_gradient():
    x = leaf(1.0)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * 3).sum().backward()
    assert y.grad.tolist() == [30.0]


def test_retained_gradients_add_up_and_only_where_requested():
    x = leaf(1.0)
    y = x * 1
    z = y * 2
    z.retain_grad()
    z.retain_grad()
    assert (x.retains_grad, y.retains_grad, z.retains_grad) == (False, False, True)
    for _ in range(2):
        (z * 3).sum().backward(retain_graph=True)
    assert z.grad.tolist() == [6.0]
    assert y._grad is None


def test_retain_grad_moves_to_the_new_value_after_an_in_place_write():
    x = leaf(1.0, 2.0)
    y = x * 1
    y.retain_grad()
    y.mul_(3)
    assert y.retains_grad
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]  # 15 would be that of the old value


def test_a_retained_gradient_shares_no_memory_with_those_of_leaves():
    a, b = leaf(1.0), leaf(1.0)
    y = a + b
    y.retain_grad()
    y.sum().backward()
    y.grad.mul_(5)
    assert (a.grad.tolist(), b.grad.tolist()) == ([1.0], [1.0])


def test_a_result_that_retains_its_gradient_gets_it_once_if_it_is_requested_too():
    x = rg.tensor(2.0, requires_grad=True)
    y = x * 3
    y.retain_grad()
    for total in (12.0, 24.0):
        (y * y).backward(inputs=[x, y], retain_graph=True)
        assert y.grad == total


def test_retain_grad_is_nothing_to_a_leaf_and_an_error_without_gradient():
    x = leaf(1.0)
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        rg.ones(1).retain_grad()


# ---------------------------------------------------------------------------------------- hooks of several


def test_a_multi_grad_hook_runs_once_per_pass_with_none_for_what_is_not_reached():
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    y, seen = b * 1, []
    register_multi_grad_hook((a, y, c), lambda gs: seen.append([None if g is None else g.tolist() for g in gs]))
    (a * 2 + y * 3).sum().backward(retain_graph=True)
    assert seen == [[[2.0], [3.0], None]]
    (a * c + y).sum().backward()
    assert seen[1:] == [[[3.0], [1.0], [1.0]]]


def test_a_multi_grad_hook_of_mode_any_runs_with_the_first_gradient_of_each_pass():
    a = leaf(1.0)
    b = a * 2
    c, seen = b * 3, []
    register_multi_grad_hook((a, b, c), lambda g: seen.append(g.tolist()), mode="any")
    for _ in range(2):
        (c * 5).sum().backward(retain_graph=True)
    assert seen == [[5.0], [5.0]]


def test_a_multi_grad_hook_knows_which_gradients_a_pass_with_inputs_brings():
    a, b, seen = leaf(1.0), leaf(2.0), []
    register_multi_grad_hook((a, b), lambda gs: seen.append([g is not None for g in gs]))
    (a * b).sum().backward(inputs=[a])
    assert seen == [[True, False]]


def test_a_multi_grad_hook_restarts_its_count_after_a_pass_that_failed():
    a, b, seen = leaf(1.0), leaf(2.0), []
    register_multi_grad_hook((a, b), lambda gs: seen.append(len(gs)))

    def fails(g):
        raise KeyError

    with b.register_hook(fails), pytest.raises(KeyError):
        (a + b).sum().backward()
    del seen[:]
    (a + b).sum().backward()
    assert seen == [2]


def test_a_multi_grad_hook_is_removed_from_all_of_its_tensors():
    a, b, seen = leaf(1.0), leaf(2.0), []
    register_multi_grad_hook((a, b), seen.append).remove()
    with register_multi_grad_hook((a, b), seen.append, mode="any"):
        pass
    (a + b).sum().backward()
    assert seen == []


def test_a_multi_grad_hook_of_another_mode_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'all', 'any'.*some"):
        register_multi_grad_hook((leaf(1.0),), print, mode="some")


def test_a_multi_grad_hook_that_is_refused_hangs_on_none_of_its_tensors():
    a, seen = leaf(1.0), []
    with pytest.raises(RuntimeError, match="doesn't require grad"):
        register_multi_grad_hook((a, rg.ones(1)), seen.append, mode="any")
    a.sum().backward()
    assert seen == []


def test_hooks_of_a_function_get_none_in_the_place_of_results_that_are_no_tensors():
    class Pair(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, 3, x * 4

        @staticmethod
        def backward(ctx, g, _, h):
            return g * 2 + h * 4

    seen = []
    x = rg.ones(2, requires_grad=True)
    a, _, b = Pair.apply(x)
    a.grad_fn.register_prehook(lambda gs: (gs[0] * 10, None, gs[2]))
    a.grad_fn.register_hook(lambda grad_inputs, gs: seen.append([g is None for g in gs]))
    (a + b).sum().backward()
    assert x.grad.tolist() == [24.0, 24.0]
    assert seen == [[False, True, False]]
    a, _, b = Pair.apply(x)
    a.grad_fn.register_prehook(lambda gs: gs[:2])
    with pytest.raises(RuntimeError, match=r"incorrect number of values \(got 2, but expected 3\)"):
        a.sum().backward()


def test_a_multi_grad_hook_expects_no_gradient_of_a_requested_input_that_the_pass_does_not_reach():
    x, y, other = (rg.ones(2, requires_grad=True) for _ in range(3))
    seen = []
    rg.autograd.graph.register_multi_grad_hook((x, other), lambda gs: seen.append([g is None for g in gs]))
    (x * y).sum().backward(inputs=[x, other])
    assert seen == [[False, True]]


def test_a_node_of_a_function_with_hooks_is_freed_without_the_collector(no_collector):
    class Double(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = rg.ones(2, requires_grad=True) * 1
    kept = weakref.ref(y)
    z = Double.apply(y)
    z.grad_fn.register_prehook(lambda gs: None)
    z.grad_fn.register_hook(lambda grad_inputs, gs: None)
    del y, z
    assert kept() is None
