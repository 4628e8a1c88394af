"""Saved tensors: pack and unpack hooks, writes that are detected, and writes that are allowed."""

import gc
import weakref

import pytest

import retrograd as rg
from retrograd.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    increment_version,
    save_on_cpu,
    saved_tensors_hooks,
)


def leaf(*values):
    return rg.tensor(list(values), requires_grad=True)


def same(tensor):
    return tensor


# ------------------------------------------------------------------------------------ hooks of saved tensors


def test_every_saved_tensor_is_packed_once_and_unpacked_at_each_pass():
    a, b = leaf(2.0), leaf(3.0)
    packed, unpacked = [], []
    with saved_tensors_hooks(lambda t: packed.append(t.tolist()) or t, lambda t: unpacked.append(t.tolist()) or t):
        y = a * b
    assert (packed, unpacked) == ([[2.0], [3.0]], [])
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    assert packed == [[2.0], [3.0]]
    assert sorted(unpacked) == [[2.0], [2.0], [3.0], [3.0]]


def test_backward_uses_the_results_of_unpack_hooks():
    x = leaf(2.0, 3.0)
    with saved_tensors_hooks(lambda t: t.tolist(), lambda values: rg.tensor(values) * 10):
        y = (x * rg.tensor([5.0, 7.0])).sum()
    y.backward()
    assert x.grad.tolist() == [50.0, 70.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.exp(),
        lambda x: x * x * x * x,
        lambda x: x.sum() * x.sin(),
        lambda x: x.exp().cumprod(0),
        lambda x: x.softmax(0),
    ],
)
def test_unpacked_values_are_in_the_graph_again_at_every_order(function):
    x = leaf(0.5, 0.7)

    def orders():
        y, results = function(x), []
        for _ in range(3):
            (y,) = rg.autograd.grad(y.sum(), x, create_graph=True)
            results.append(y.tolist())
        return results

    with saved_tensors_hooks(lambda t: t.tolist(), rg.tensor):
        hooked = orders()
    assert hooked == [pytest.approx(order) for order in orders()]


def test_pack_hooks_see_a_tensor_outside_the_graph_and_nothing_they_do_is_recorded():
    seen = []

    def pack(t):
        seen.append((t.requires_grad, t.grad_fn, rg.is_grad_enabled()))
        return t * 2

    with saved_tensors_hooks(pack, lambda t: t / 2):
        y = leaf(2.0).exp() * leaf(3.0)
    assert set(seen) == {(False, None, False)}
    y.sum().backward()


def test_of_nested_hooks_the_innermost_counts_and_each_ends_with_its_block():
    names = []

    def named(name):
        return saved_tensors_hooks(lambda t: names.append(name) or t, same)

    x = leaf(2.0)
    with named("outer"):
        with named("inner"):
            x.exp()
        x.exp()
    x.exp()
    assert names == ["inner", "outer"]


def test_hooks_end_when_their_block_raises_and_may_be_entered_again():
    names, x = [], leaf(1.0)
    hooks = saved_tensors_hooks(lambda t: names.append("packed") or t, same)
    with pytest.raises(KeyError), hooks:
        raise KeyError
    x.exp()
    assert names == []
    with hooks, hooks:
        x.exp()
    x.exp()
    assert names == ["packed"]


def test_default_hooks_are_pushed_and_popped():
    packed, x = [], leaf(2.0)
    rg.autograd.graph._push_saved_tensors_default_hooks(lambda t: packed.append(t) or t, same)
    x.exp()
    rg.autograd.graph._pop_saved_tensors_default_hooks()
    x.exp()
    assert len(packed) == 1
    with pytest.raises(RuntimeError, match="no saved-tensor hooks are active"):
        rg.autograd.graph._pop_saved_tensors_default_hooks()


def test_hooks_that_cannot_be_called_are_refused_at_once():
    with pytest.raises(TypeError, match="incompatible function arguments: unpack_hook"), saved_tensors_hooks(same, 1):
        pass


def test_tensors_saved_in_backward_are_packed_too():
    packed, x = [], leaf(2.0)
    y = (x**3).sum()
    with saved_tensors_hooks(lambda t: packed.append(t) or t, same):
        rg.autograd.grad(y, x, create_graph=True)
    assert packed


def test_a_value_that_nobody_saves_is_not_packed():
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(t) or t, same):
        (leaf(1.0) + leaf(2.0)).sum()
        leaf(1.0) * 3.0
        with rg.no_grad():
            leaf(1.0).exp()
    assert packed == []


def test_packed_values_need_no_version_they_are_what_was_packed():
    x = leaf(2.0)
    y = x * 1
    with saved_tensors_hooks(lambda t: t.tolist(), rg.tensor):
        z = (y * y).sum()
    y.zero_()
    z.backward()
    assert x.grad.tolist() == [4.0]


def test_errors_of_hooks_name_what_is_wrong():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t, lambda t: 3.0):
        y = x.exp()
    with pytest.raises(TypeError, match=r"unpack_hook.*Tensor.*float"):
        y.sum().backward()
    with (
        pytest.raises(RuntimeError, match="pack hook is modifying its input in place"),
        saved_tensors_hooks(lambda t: t.add_(1), same),
    ):
        x.exp()

    def fails(t):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), saved_tensors_hooks(fails, same):
        x.exp()
    assert rg.is_grad_enabled()


@pytest.mark.parametrize("options", [{}, {"pin_memory": True}, {"pin_memory": False, "device_type": "cpu"}])
def test_save_on_cpu_changes_no_gradient(options):
    x = leaf(2.0, 3.0)
    with save_on_cpu(**options):
        y = (x * x).exp().sum()
    plain = (x * x).exp().sum()
    assert rg.autograd.grad(y, x)[0].tolist() == rg.autograd.grad(plain, x)[0].tolist()


def test_disabled_hooks_refuse_with_the_message_that_was_given_and_only_inside():
    with disable_saved_tensors_hooks("not in here"):
        with pytest.raises(RuntimeError, match="not in here"), saved_tensors_hooks(same, same):
            pass
        with pytest.raises(RuntimeError, match="not in here"), save_on_cpu():
            pass
        leaf(1.0).exp().sum().backward()
    with saved_tensors_hooks(same, same):
        leaf(1.0).exp()


def test_a_function_that_disables_hooks_may_call_itself():
    @disable_saved_tensors_hooks("not in here")
    def countdown(n):
        return countdown(n - 1) if n else rg.autograd.is_grad_enabled()

    assert countdown(2)
    with saved_tensors_hooks(same, same):
        leaf(1.0).exp()


def test_hooks_in_use_can_not_be_disabled():
    with (
        saved_tensors_hooks(same, same),
        pytest.raises(RuntimeError, match="hooks are in use"),
        disable_saved_tensors_hooks("no"),
    ):
        pass


# ----------------------------------------------------------------------------------------- versions, and lines


WRITES = {
    "add_": lambda t: t.add_(1),
    "zero_": lambda t: t.zero_(),
    "exp_": lambda t: t.exp_(),
    "copy_": lambda t: t.copy_(rg.zeros(2)),
    "item": lambda t: t.__setitem__(0, 5.0),
    "items by tensor": lambda t: t.__setitem__(rg.tensor([0, 1]), 5.0),
    "a view": lambda t: t[1:].mul_(2),
    "a view of a view": lambda t: t.view(2, 1)[0].fill_(3),
    "detached": lambda t: t.detach().mul_(2),
    "data of no graph": lambda t: increment_version(t),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_to_a_saved_value_names_operator_type_versions_and_line(name):
    x, w = leaf(1.0, 2.0), rg.tensor([3.0, 4.0])
    y = (x * w).sum()
    WRITES[name](w)
    with pytest.raises(
        RuntimeError,
        match=r"backward of mul \(MulBackward0\).*float32 tensor of shape \(2,\).*version 1; expected version 0"
        r".*test_saving.py:\d+ in .*clone",
    ):
        y.backward()
    assert x.grad is None


def test_the_line_is_that_of_the_first_write_after_saving():
    x, w = leaf(1.0), rg.tensor([3.0])
    w.add_(1)
    y = (x * w).sum()

    def guilty():
        w.add_(1)

    def later():
        w.add_(1)

    guilty()
    later()
    with pytest.raises(RuntimeError, match=r"version 3; expected version 1.* in guilty") as caught:
        y.backward()
    assert "in later" not in str(caught.value)


@pytest.mark.parametrize("saved", ["input", "output", "other"])
def test_a_changed_value_is_detected_wherever_a_node_keeps_it(saved):
    x = leaf(1.0, 2.0)
    if saved == "input":
        y = x * 1
        z = y.sin()
    elif saved == "output":
        y = z = x.exp()
        z = z * 1
    else:
        y = x * 1
        w = leaf(3.0, 4.0)
        z = (y * w) + y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_write_before_saving_after_the_pass_or_to_what_nobody_saved_is_fine():
    x, w = leaf(1.0, 2.0), rg.ones(2)
    w.add_(1)
    y = x * w
    z = x + w
    y.sum().backward()
    w.add_(1)
    z.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_an_optimiser_step_between_two_passes_over_one_graph_is_detected():
    w = leaf(2.0)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    with rg.no_grad():
        w -= 0.1 * w.grad
    with pytest.raises(RuntimeError, match="in test_an_optimiser_step"):
        loss.backward()


def test_base_views_and_detached_tensors_share_one_version():
    x = rg.ones(2, 3)
    tensors = [x, x[0], x.T, x.view(-1), x.detach(), x[0][1:]]
    for count, tensor in enumerate(tensors, start=1):
        tensor.add_(1)
        assert [t._version for t in tensors] == [count] * len(tensors)
    assert x.clone()._version == 0


def test_a_write_under_no_grad_counts_too():
    x = leaf(1.0)
    with rg.no_grad():
        x.add_(1)
    assert x._version == 1


def test_a_preserved_version_counter_hides_a_write():
    x, w = leaf(1.0), rg.tensor([3.0])
    y = (x * w).sum()
    with rg.autograd._unsafe_preserve_version_counter(w):
        w.mul_(2)
    assert w._version == 0
    y.backward()
    assert x.grad.tolist() == [6.0]


# -------------------------------------------------------------------------------------------- allowed mutation


@pytest.mark.parametrize("name", [n for n in WRITES if n != "data of no graph"])
def test_allowed_writes_leave_backward_with_what_was_saved(name):
    x = leaf(1.0, 2.0)
    with allow_mutation_on_saved_tensors():
        w = rg.tensor([3.0, 4.0])
        y = (x * w).sum()
        WRITES[name](w)
        y.backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_allowed_writes_that_are_part_of_the_graph_are_differentiated():
    x = leaf(1.0, 2.0)
    with allow_mutation_on_saved_tensors():
        y = x * 1
        z = y.sin()
        y.mul_(3)
        w = y.sin()
        y.mul_(5)
        (z + w + y).sum().backward()
    expected = x.detach().cos() + 3 * (3 * x.detach()).cos() + 15
    assert x.grad.tolist() == pytest.approx(expected.tolist())


def test_a_copy_is_made_by_the_first_write_only_and_only_of_what_is_still_needed():
    with allow_mutation_on_saved_tensors() as kept:
        x, w = leaf(1.0), rg.tensor([3.0])
        y = (x * w).sum()
        z = (x * w).sum()
        del z
        for _ in range(3):
            w.add_(1)
        y.backward()
    assert x.grad.tolist() == [3.0]
    assert kept is not None


def test_writes_are_allowed_inside_a_transform():
    def doubled_and_overwritten(x):
        y = x * 2
        z = (y * y).sum()
        y.zero_()
        return z

    with allow_mutation_on_saved_tensors():
        assert rg.func.grad(doubled_and_overwritten)(rg.tensor([1.0, 3.0])).tolist() == [8.0, 24.0]


def test_nothing_is_remembered_of_graphs_that_are_gone():
    w = leaf(1.0, 2.0)
    with allow_mutation_on_saved_tensors():
        (w * w).sum().backward()
        before = weak_references()
        for _ in range(50):
            (w * w).sum().backward()
        assert weak_references() <= before


def weak_references():
    """Return weak references to retrograd's objects, or to dead ones."""
    gc.collect()
    referents = [thing() for thing in gc.get_objects() if type(thing) is weakref.ref]
    return sum(x is None or str(type(x).__module__).startswith("retrograd") for x in referents)


def test_contexts_that_allow_writes_are_not_nested():
    with (
        allow_mutation_on_saved_tensors(),
        pytest.raises(RuntimeError, match="cannot be nested"),
        allow_mutation_on_saved_tensors(),
    ):
        pass
    with allow_mutation_on_saved_tensors():
        pass


def test_outside_the_context_writes_are_detected_again():
    x, w = leaf(1.0), rg.tensor([3.0])
    with allow_mutation_on_saved_tensors():
        pass
    y = (x * w).sum()
    w.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.backward()


@pytest.mark.parametrize("action", ["enter", "leave"])
def test_a_context_that_its_own_unpack_hook_enters_or_leaves_stays_inside_the_pass(action):
    packed, others = [], []

    def unpack(t):
        if action == "leave":
            hooks.__exit__(None, None, None)
        else:
            others.append(rg.autograd.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t))
            others[-1].__enter__()
        return t

    hooks = rg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, unpack)
    x = leaf(2.0)
    with hooks:
        x.exp().backward()
        x.exp()
    assert len(packed) == 2
    x.exp()
    for other in others:
        other.__exit__(None, None, None)
    x.exp()
    assert len(packed) == 2
    assert rg.core.current().saving is None


MODES = {
    "saved_tensors_hooks": lambda: rg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "disable_saved_tensors_hooks": lambda: rg.autograd.graph.disable_saved_tensors_hooks("no"),
    "inference_mode": lambda: rg.inference_mode(),
    "no_grad": lambda: rg.no_grad(),
    "enable_grad": lambda: rg.enable_grad(),
    "set_multithreading_enabled": lambda: rg.autograd.set_multithreading_enabled(False),
    "dual_level": lambda: rg.autograd.forward_ad.dual_level(),
}


def state():
    known = rg.core.current()
    return (
        known.level,
        known.grad_enabled,
        known.inference,
        known.saving,
        known.saving_refused,
        known.multithreading,
        known.watchers,
        known.running,
        known.depth,
    )


@pytest.mark.parametrize("name", MODES)
def test_a_mode_that_a_hook_enters_is_over_with_the_pass(name):
    before, x, entered = state(), leaf(2.0), []

    def enter(g):
        entered.append(MODES[name]())
        entered[-1].__enter__()

    x.register_hook(enter)
    (x * x).backward()
    assert state() == before


@pytest.mark.parametrize("name", ["saved_tensors_hooks", "disable_saved_tensors_hooks", "set_multithreading_enabled"])
def test_a_mode_that_a_hook_leaves_holds_on_after_the_pass_until_its_block_ends(name):
    before, x, mode = state(), leaf(2.0), MODES[name]()
    x.register_hook(lambda g: mode.__exit__(None, None, None))
    y = x * x
    with mode:
        inside = state()
        y.backward()
        assert state() == inside
    assert state() == before


def test_a_context_that_was_never_entered_can_not_be_left():
    with pytest.raises(RuntimeError, match="no_grad: left without having been entered"):
        rg.no_grad().__exit__(None, None, None)


def test_hooks_whose_blocks_end_in_another_order_end_by_themselves():
    packed = []
    first, second = (
        rg.autograd.graph.saved_tensors_hooks(lambda t, name=name: packed.append(name) or t, lambda t: t)
        for name in ("first", "second")
    )
    x = leaf(2.0)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    x.exp()
    second.__exit__(None, None, None)
    x.exp()
    assert packed == ["second"]


def test_the_block_lists_the_saved_tensors_by_handles_copied_and_not():
    with allow_mutation_on_saved_tensors() as block:
        b = leaf(2.0, 3.0) * 1
        square, sine = (b * b).sum(), b.sin().sum()
        assert [t.tolist() for t in block.original.values()].count([2.0, 3.0]) == 1
        assert not block.cloned
        b.zero_()
        assert [t.tolist() for t in block.cloned.values()] == [[2.0, 3.0]]
        cosine = b.cos().sum()
        b.add_(1.0)
        assert sorted(t.tolist() for t in block.cloned.values()) == [[0.0, 0.0], [2.0, 3.0]]
        del square, cosine
        assert [t.tolist() for t in block.cloned.values()] == [[2.0, 3.0]]
        handles = list(block.tid_to_weakhandle.values())
        assert set(block.cloned) <= set(handles)
        del sine, handles
        assert not block.cloned


def test_the_end_of_the_block_and_clear_forget_the_handles_but_the_graph_keeps_them():
    with allow_mutation_on_saved_tensors() as block:
        x = leaf(2.0, 3.0)
        b = x * 1
        square = (b * b).sum()
        b.zero_()
        block.clear()
        assert not block.cloned
        assert not block.tid_to_weakhandle
        sine = b.sin().sum()
        b.add_(1.0)
        assert len(block.cloned) == 1
    assert not block.cloned
    (square + sine).backward()
    assert x.grad.tolist() == [4.0, 6.0]
