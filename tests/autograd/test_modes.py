"""Grad modes: as context managers, as decorators, nested, and per thread."""

import asyncio
import threading

import pytest

import retrograd as rg


def recorded():
    return (rg.ones(1, requires_grad=True) * 2).requires_grad


def test_no_grad_records_nothing_and_ends_with_its_block():
    with rg.no_grad():
        assert not recorded()
    assert recorded()


def test_modes_nest():
    with rg.no_grad():
        with rg.enable_grad():
            assert recorded()
        assert not recorded()


def test_a_mode_ends_when_its_block_raises():
    with pytest.raises(KeyError), rg.no_grad():
        raise KeyError
    assert rg.is_grad_enabled()


def test_modes_decorate_functions():
    @rg.no_grad()
    def quiet():
        return recorded()

    assert not quiet()
    assert recorded()


def test_one_mode_object_may_be_entered_again():
    mode = rg.no_grad()
    with mode, mode:
        assert not recorded()
    assert recorded()


def test_set_grad_enabled_acts_at_once_and_as_a_block():
    try:
        rg.set_grad_enabled(False)
        assert not recorded()
    finally:
        rg.set_grad_enabled(True)
    with rg.set_grad_enabled(False):
        assert not recorded()
    assert recorded()


def test_set_grad_enabled_as_a_decorator_concerns_the_function_alone():
    @rg.set_grad_enabled(False)
    def quiet():
        return recorded()

    assert recorded()
    assert not quiet()


def test_each_thread_has_a_mode_of_its_own():
    seen = []
    with rg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(recorded()))
        thread.start()
        thread.join()
    assert seen == [True]


def modes():
    return rg.is_grad_enabled(), rg.is_inference_mode_enabled()


@pytest.mark.parametrize("mode", [rg.no_grad, rg.enable_grad, rg.inference_mode])
def test_modes_decorate_with_and_without_parentheses_and_keep_the_functions_name(mode):
    @mode
    def bare(a, *, b):
        """Its text."""
        return a, b, modes()

    @mode()
    def called(a, *, b):
        return a, b, modes()

    with mode():
        expected = modes()
    with rg.no_grad():
        for function in (bare, called):
            assert function(1, b=2) == (1, 2, expected)
    assert (bare.__name__, bare.__doc__) == ("bare", "Its text.")
    assert modes() == (True, False)


@pytest.mark.parametrize("mode", [rg.no_grad(), rg.inference_mode(), rg.set_grad_enabled(True)])
def test_a_decorated_function_that_raises_leaves_no_mode_active(mode):
    rg.set_grad_enabled(True)

    @mode
    def fails():
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert modes() == (True, False)


def test_a_decorated_class_is_made_in_the_mode():
    class ModesAtConstruction:
        def __init__(self):
            self.modes = modes()

        def later(self):
            return modes()

    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        rg.no_grad()(ModesAtConstruction)
    made = ModesAtConstruction()
    assert (made.modes, made.later()) == ((False, False), (True, False))


def test_no_grad_cuts_results_off_and_leaves_requires_grad_of_leaves_alone():
    x = rg.ones(2, requires_grad=True)
    with rg.no_grad():
        y = x * 2
        assert (y.requires_grad, y.grad_fn, y.is_leaf) == (False, None, True)
        made = rg.ones(2, requires_grad=True)
        assert made.requires_grad
        view = x[:1]
        assert not view.requires_grad
    (y * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# -------------------------------------------------------------------------------------------- inference mode


def test_inference_tensors_have_a_flag_and_no_version():
    with rg.inference_mode():
        made = [rg.ones(2), rg.ones(2) * 2, rg.ones(2).exp(), rg.ones(2)[:1], rg.ones(2).max(dim=0)[0]]
        made[0].add_(1)
        assert modes() == (False, True)
    assert all(t.is_inference() for t in made)
    assert not rg.ones(2).is_inference()
    with pytest.raises(RuntimeError, match="version counter"):
        made[1]._version  # noqa: B018


def test_views_of_normal_tensors_are_normal_in_inference_mode():
    x = rg.ones(2, requires_grad=True)
    with rg.inference_mode():
        view, clone = x[:1], x.clone()
    assert (view.is_inference(), clone.is_inference()) == (False, True)
    assert view._base is x


def test_inference_mode_switched_off_inside_records_again():
    with rg.inference_mode(), rg.inference_mode(False):
        assert modes() == (True, False)
        assert recorded()
    assert modes() == (True, False)


@pytest.mark.parametrize(
    ("use", "facts"),
    [
        (lambda t: rg.ones(2, requires_grad=True) * t, "mul.*Inference tensors cannot be saved"),
        (lambda t: t.add_(1), "add_.*Inplace update to inference tensor"),
        (lambda t: t.zero_(), "zero_.*inference tensor"),
        (lambda t: t.__setitem__(0, 1.0), "inference tensor"),
        (lambda t: t.requires_grad_(), "requires_grad=True on inference tensor"),
        (lambda t: rg.add(rg.ones(2), 1.0, out=t), "inference tensor"),
    ],
)
def test_inference_tensors_take_no_part_in_graphs_and_say_what_to_do(use, facts):
    with rg.inference_mode():
        t = rg.ones(2)
    with pytest.raises(RuntimeError, match=facts):
        use(t)
    assert t.tolist() == [1.0, 1.0]


def test_inference_tensors_may_be_read_where_nobody_saves_them_and_cloned():
    x = rg.ones(2, requires_grad=True)
    with rg.inference_mode():
        t = rg.ones(2) * 3
    (x + t).sum().backward()
    normal = t.clone()
    assert not normal.is_inference()
    (x * normal).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_set_grad_enabled_and_multithreading_act_at_once_and_are_restored_by_a_block():
    assert rg.autograd.is_multithreading_enabled()
    with rg.autograd.set_multithreading_enabled(False):
        assert not rg.autograd.is_multithreading_enabled()
    assert rg.autograd.is_multithreading_enabled()
    try:
        rg.autograd.set_multithreading_enabled(False)
        assert not rg.autograd.is_multithreading_enabled()
    finally:
        rg.autograd.set_multithreading_enabled(True)
    with rg.autograd._force_original_view_tracking(True):
        assert rg.autograd.is_view_replay_enabled()


def test_blocks_that_end_in_another_order_leave_the_mode_as_it_was():
    async def waits(turns):
        with rg.no_grad():
            for _ in range(turns):
                await asyncio.sleep(0)

    async def both():
        await asyncio.gather(waits(1), waits(3))

    asyncio.run(both())
    assert rg.is_grad_enabled()

    def generator(mode):
        with mode:
            yield rg.is_grad_enabled()

    first, second, third = generator(rg.no_grad()), generator(rg.enable_grad()), generator(rg.inference_mode())
    assert [next(g) for g in (first, second, third)] == [False, True, False]
    first.close()
    assert not rg.is_grad_enabled()  # the last that was entered is still on
    third.close()
    assert rg.is_grad_enabled()
    second.close()
    assert rg.is_grad_enabled()


def test_function_transforms_differentiate_in_inference_mode_and_restore_it():
    with rg.inference_mode():
        assert rg.func.grad(lambda x: (x * x).sum())(rg.ones(2)).tolist() == [2.0, 2.0]
        assert (rg.is_inference_mode_enabled(), rg.is_grad_enabled()) == (True, False)
        with pytest.raises(ZeroDivisionError):
            rg.func.grad(lambda x: x / (1 // 0))(rg.ones(()))
        assert (rg.is_inference_mode_enabled(), rg.is_grad_enabled()) == (True, False)


def test_a_view_made_in_inference_mode_is_a_leaf_that_requires_grad():
    x = rg.ones(3, requires_grad=True)
    with rg.inference_mode():
        v, detached = x[1:], x.detach()
    assert (v.requires_grad, v.is_leaf, v.is_inference()) == (True, True, False)
    assert (detached.requires_grad, detached.is_inference(), detached._version) == (False, False, 0)
    (v * 2).sum().backward()
    assert (v.grad.tolist(), x.grad) == ([2.0, 2.0], None)


def test_an_input_that_a_function_returns_without_recording_may_be_written_to():
    class Same(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    x = rg.ones(2, requires_grad=True)
    with rg.no_grad():
        y = Same.apply(x)
    y += 1
    assert not y.requires_grad
    assert x.tolist() == [2.0, 2.0]


def test_requires_grad_is_not_set_for_results():
    y = rg.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf variables"):
        y.requires_grad = True
    assert y.requires_grad_() is y
