"""Checkpoints: the gradients of the plain function, for the memory of its arguments and one recomputation."""

import threading
import weakref

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks
from retrograd.utils.checkpoint import (
    checkpoint,
    set_checkpoint_early_stop,
)


def leaf(*values):
    return rg.tensor([float(v) for v in values], dtype=rg.float64, requires_grad=True)


def deep(x):
    """Save three tensors."""
    return (x * x).sin().exp()


def gradient(function, x):
    (g,) = rg.autograd.grad(function(x).sum(), x)
    return g.tolist()


class CountingFunction:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


# ------------------------------------------------------------------------------------------------------- gradients


def test_gradients_are_those_of_the_plain_function():
    x = leaf(0.5, 1.0)
    f = CountingFunction(deep)
    y = checkpoint(f, x, use_reentrant=False)
    assert f.calls == 1
    y.sum().backward()
    assert f.calls == 2
    assert x.grad.tolist() == gradient(deep, leaf(0.5, 1.0))


def test_parameters_that_the_function_closes_over_get_theirs():
    layer = nn.Linear(3, 3)
    x = rg.ones(2, 3)
    checkpoint(lambda x: layer(layer(x).tanh()), x, use_reentrant=False).sum().backward()
    got = layer.weight.grad.clone()
    layer.zero_grad()
    layer(layer(x).tanh()).sum().backward()
    assert got.tolist() == layer.weight.grad.tolist()


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_grad_and_inputs_work_whichever_kind_is_requested(use_reentrant):
    x, w = leaf(0.5, 1.0), leaf(2.0, 3.0)
    function = lambda x, w: deep(x) * w  # noqa: E731
    expected = rg.autograd.grad(function(x, w).sum(), (x, w))
    y = checkpoint(function, x, w, use_reentrant=use_reentrant)
    got = rg.autograd.grad(y.sum(), (x, w), retain_graph=True)
    assert [g.tolist() for g in got] == [g.tolist() for g in expected]
    y.sum().backward(inputs=[w])
    assert x.grad is None
    assert w.grad.tolist() == expected[1].tolist()


def test_arguments_and_results_are_any_pytrees():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def function(pair, *, scale, label):
        assert label == "as it is"
        return {"a": pair["x"] * pair["w"][0] * scale, "b": [(pair["x"] * pair["x"]).sum(), label, None]}

    out = checkpoint(function, {"x": x, "w": [w]}, scale=2.0, label="as it is", use_reentrant=False)
    assert out["b"][1:] == ["as it is", None]
    (out["a"].sum() + out["b"][0]).backward()
    assert x.grad.tolist() == [8.0, 12.0]
    assert w.grad.tolist() == [2.0, 4.0]


def test_arguments_without_gradients_and_integers_are_fine():
    x = leaf(1.0, 2.0, 3.0)
    index = rg.tensor([0, 2])
    checkpoint(
        lambda x, i, c: (x[i] * c).exp(), x, index, rg.tensor([2.0, 1.0], dtype=rg.float64), use_reentrant=False
    ).sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * 7.38905609893065, 0, 20.085536923187668])


def test_two_passes_with_retain_graph_recompute_twice_and_agree():
    x = leaf(0.5, 1.0)
    f = CountingFunction(deep)
    y = checkpoint(f, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    once = x.grad.tolist()
    y.backward()
    assert x.grad.tolist() == [2 * g for g in once]
    assert f.calls == 3


def test_a_value_that_two_rules_read_is_recomputed_once_per_pass():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    f = CountingFunction(lambda x, w: (x * w) / (w * w))
    checkpoint(f, x, w, use_reentrant=False).sum().backward()
    assert f.calls == 2


def test_double_backward():
    x = leaf(0.5, 1.0)
    plain = rg.autograd.grad(deep(x).sum(), x, create_graph=True)[0]
    expected = rg.autograd.grad((plain * plain).sum(), x)[0]
    first = rg.autograd.grad(checkpoint(deep, x, use_reentrant=False).sum(), x, create_graph=True)[0]
    assert first.tolist() == plain.tolist()
    assert rg.autograd.grad((first * first).sum(), x)[0].tolist() == pytest.approx(expected.tolist())


def test_gradients_inside_the_function():
    x = leaf(0.5, 1.0)

    def penalised(x):
        y = (x * x).sin()
        (g,) = rg.autograd.grad(y.sum(), x, create_graph=True)
        return y + (g * g).exp()

    expected = gradient(penalised, x)
    for early_stop in (True, False):
        assert (
            gradient(lambda x, e=early_stop: checkpoint(penalised, x, early_stop=e, use_reentrant=False), x) == expected
        )


def test_backward_inside_the_function():
    w = leaf(1.0, 2.0)

    def function(x):
        (x * w).exp().sum().backward(inputs=[w])
        return (x * x).sin()

    x = leaf(0.5, 1.0)
    y = checkpoint(function, x, use_reentrant=False)
    inside = w.grad.tolist()
    y.sum().backward()
    assert x.grad.tolist() == gradient(lambda x: (x * x).sin(), x)
    assert w.grad[0].item() in (inside[0], 2 * inside[0])


def test_hooks_see_the_gradients_and_saved_outputs_their_nodes():
    x = leaf(0.5, 1.0)
    seen = []

    def function(x):
        y = x * x
        y.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
        return y.exp()

    y = checkpoint(function, x, use_reentrant=False)
    y.sum().backward()
    assert len(seen) == 1
    assert x.grad.tolist() == [10 * g for g in gradient(lambda x: (x * x).exp(), x)]


def test_function_transforms_go_through():
    x = rg.tensor([0.5, 1.0], dtype=rg.float64)
    assert rg.func.grad(lambda x: checkpoint(deep, x, use_reentrant=False).sum())(x).tolist() == gradient(
        deep, leaf(0.5, 1.0)
    )
    second = rg.func.grad(lambda x: rg.func.grad(lambda x: checkpoint(deep, x, use_reentrant=False).sum())(x).sum())
    plain = rg.func.grad(lambda x: rg.func.grad(lambda x: deep(x).sum())(x).sum())
    assert second(x).tolist() == pytest.approx(plain(x).tolist())


TRANSFORMS = {
    "grad": lambda f: rg.func.grad(lambda x: f(x).sum()),
    "vjp": lambda f: lambda x: rg.func.vjp(f, x)[1](f(x))[0],
    "jvp": lambda f: lambda x: rg.func.jvp(f, (x,), (x,))[1],
    "vmap": lambda f: lambda x: rg.func.vmap(f)(rg.stack([x, 2 * x])).sum(0),
    "jacrev": lambda f: lambda x: rg.func.jacrev(f)(x).sum(0),
    "jacfwd": lambda f: lambda x: rg.func.jacfwd(f)(x).sum(0),
    "nothing": lambda f: f,
}


@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
def test_transforms_and_checkpoints_nest_in_any_order(outer, inner):
    def again(f):
        return lambda x: checkpoint(f, x, use_reentrant=False)

    first, second = TRANSFORMS[inner], TRANSFORMS[outer]
    x = leaf(0.5, 1.0)
    found = second(first(deep))(x)
    expected = found.tolist(), rg.autograd.grad(found.sum(), x)[0].tolist()
    nestings = again(second(first(deep))), second(again(first(deep))), again(second(again(first(again(deep)))))
    for function in nestings:
        found = function(x)
        assert found.tolist() == pytest.approx(expected[0], rel=1e-12)
        assert rg.autograd.grad(found.sum(), x)[0].tolist() == pytest.approx(expected[1], rel=1e-12)


# ------------------------------------------------------------------------------------------------ modes and nesting


def test_under_no_grad_the_function_just_runs():
    x = leaf(1.0)
    with rg.no_grad():
        y = checkpoint(CountingFunction(deep), x, use_reentrant=False)
    assert not y.requires_grad
    with rg.inference_mode():
        assert checkpoint(deep, x, use_reentrant=False).item() == y.item()


def test_no_grad_inside_the_function_holds_in_recomputation_too():
    x = leaf(0.5, 1.0)

    def function(x):
        with rg.no_grad():
            scale = (x * x).exp()
        return (x * scale).sin()

    assert gradient(lambda x: checkpoint(function, x, use_reentrant=False), x) == gradient(function, x)


def nest(function, depth):
    if depth == 0:
        return function
    inner = nest(function, depth - 1)
    return lambda x: checkpoint(lambda x: inner((x * 1.1).sin()), x, use_reentrant=False).cos()


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_nested_checkpoints(depth, monkeypatch):
    x = leaf(0.5, 1.0)
    f = CountingFunction(deep)
    got = gradient(nest(f, depth), x)
    assert f.calls <= depth + 1
    plain = nest(deep, depth)
    monkeypatch.setitem(globals(), "checkpoint", lambda function, x, use_reentrant: function(x))
    assert got == gradient(plain, x)


def test_nested_checkpoints_twice_over_one_graph():
    x = leaf(0.5, 1.0)
    y = nest(deep, 3)(x).sum()
    first = rg.autograd.grad(y, x, retain_graph=True)[0].tolist()
    assert rg.autograd.grad(y, x)[0].tolist() == first


def test_hooks_around_the_checkpoint_get_its_arguments_alone():
    x = leaf(0.5, 1.0)
    z = x * 1
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(t) or len(packed) - 1, packed.__getitem__):
        y = checkpoint(lambda z: (z * z).sin(), z, use_reentrant=False)
    assert [t.tolist() for t in packed] == [[0.5, 1.0]]
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx(gradient(lambda x: (x * x).sin(), leaf(0.5, 1.0)))


def test_a_list_of_functions_without_a_budget_is_no_function():
    with pytest.raises(TypeError, match="expected a function, got list; a list needs budget_bytes"):
        checkpoint([deep], leaf(1.0), use_reentrant=False)


def test_where_hooks_are_disabled_the_message_says_why():
    with disable_saved_tensors_hooks("not in here"), pytest.raises(RuntimeError, match="not in here"):
        checkpoint(deep, leaf(1.0), use_reentrant=False)


# -------------------------------------------------------------------------------------------------- random numbers


def test_dropout_is_that_of_the_plain_run_and_of_recomputation():
    x = rg.ones(100, dtype=rg.float64, requires_grad=True)
    function = lambda x: nn.functional.dropout(x * x, 0.5, True).exp()  # noqa: E731
    rg.manual_seed(3)
    plain = function(x)
    expected = rg.autograd.grad(plain.sum(), x)[0].tolist()
    after = rg.get_rng_state()
    rg.manual_seed(3)
    y = checkpoint(function, x, use_reentrant=False)
    assert y.tolist() == plain.tolist()
    assert str(rg.get_rng_state()) == str(after)
    rg.rand(7)
    before = str(rg.get_rng_state())
    assert rg.autograd.grad(y.sum(), x)[0].tolist() == expected
    assert str(rg.get_rng_state()) == before


def test_generators_among_the_arguments_are_wound_back_too():
    x = rg.ones(50, dtype=rg.float64, requires_grad=True)
    generator = rg.Generator(5)
    y = checkpoint(
        lambda x, g: (x * rg.rand(50, generator=g, dtype=rg.float64)).exp(), x, generator, use_reentrant=False
    )
    after = generator.get_state()
    (g,) = rg.autograd.grad(y.sum(), x)
    assert g.tolist() == pytest.approx((y.log() * y).tolist())
    assert str(generator.get_state()) == str(after)


def test_a_function_that_draws_nothing_leaves_the_generator_alone_in_recomputation():
    states = []

    def function(x):
        states.append(str(rg.get_rng_state()))
        return deep(x)

    y = checkpoint(function, leaf(1.0), use_reentrant=False)
    rg.rand(3)
    y.sum().backward()
    assert states[1] == str(rg.get_rng_state()) != states[0]


def test_without_preserve_rng_state_recomputation_draws_on():
    x = rg.ones(4, requires_grad=True)
    drawn = []

    def function(x):
        drawn.append(rg.rand(4))
        return (x * drawn[-1]).exp()

    checkpoint(function, x, preserve_rng_state=False, use_reentrant=False).sum().backward()
    assert drawn[0].tolist() != drawn[1].tolist()


# ----------------------------------------------------------------------------------------------------- early stop


def tail(calls):
    def function(x):
        y = (x * x).exp()
        calls.append("tail")
        return y + 1

    return function


def test_recomputation_stops_when_it_has_all_that_is_needed():
    calls = []
    checkpoint(tail(calls), leaf(1.0), use_reentrant=False).sum().backward()
    assert calls == ["tail"]
    checkpoint(tail(calls), leaf(1.0), early_stop=False, use_reentrant=False).sum().backward()
    assert calls == ["tail"] * 3


def test_early_stop_is_fixed_by_the_block_around_the_forward():
    calls = []
    with set_checkpoint_early_stop(False):
        y = checkpoint(tail(calls), leaf(1.0), use_reentrant=False).sum()
    y.backward()
    assert calls == ["tail"] * 2
    y = checkpoint(tail(calls), leaf(1.0), use_reentrant=False).sum()
    with set_checkpoint_early_stop(False):
        y.backward()
    assert calls == ["tail"] * 3


def test_the_function_cannot_swallow_the_early_stop():
    calls = []

    def function(x):
        try:
            y = (x * x).exp()
        except Exception:
            calls.append("caught")
            raise
        return y + 1

    checkpoint(function, leaf(1.0), use_reentrant=False).sum().backward()
    assert calls == []


def test_each_read_outside_of_backward_recomputes():
    f = CountingFunction(lambda x: x.exp())
    y = checkpoint(f, leaf(1.0), use_reentrant=False)
    assert y.grad_fn._saved_result.item() == y.item()
    assert y.grad_fn._saved_result.item() == y.item()
    assert f.calls == 3


# --------------------------------------------------------------------------------------------------------- memory


def watched(alive):
    """Return a function whose intermediate values are tracked as long as their memory is alive."""

    def function(x):
        for _ in range(4):
            x = (x * x).sin()
            alive.add(x.value)
        return x

    return function


class Alive:
    """Weak references to arrays."""

    def __init__(self):
        self.references = []

    def add(self, array):
        self.references.append(weakref.ref(array))

    def __len__(self):
        return sum(reference() is not None for reference in self.references)


def test_tensors_saved_by_the_function_are_freed_after_the_forward_and_after_the_pass(no_collector):
    alive = Alive()
    x = leaf(0.5, 1.0)
    y = checkpoint(watched(alive), x, use_reentrant=False).sum()
    assert len(alive) <= 1  # the result, which the sum does not need, may go or stay
    y.backward(retain_graph=True)
    assert len(alive) <= 1
    del y
    assert len(alive) == 0


def test_a_result_that_a_recomputed_function_saves_is_freed_after_the_pass(no_collector):
    references = []

    class Doubled(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            references.append(weakref.ref(y))
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g + ctx.saved_tensors[0]

    checkpoint(Doubled.apply, leaf(0.5), use_reentrant=False).backward()
    assert [reference() for reference in references] == [None, None]


def test_a_recomputed_value_is_freed_with_the_node_that_reads_it():
    alive, left = Alive(), []
    rest = watched(alive)

    def function(x):
        y = x * x
        y.register_hook(lambda g: left.append(len(alive)))
        return rest(y)

    checkpoint(function, leaf(0.5, 1.0), use_reentrant=False).sum().backward()
    assert left == [0]


def test_with_retain_graph_only_one_checkpoint_at_a_time_has_its_values():
    alive, most = Alive(), []
    function = watched(alive)

    def block(x):
        most.append(len(alive))
        return function(x)

    x = leaf(0.5, 1.0)
    y = x
    for _ in range(6):
        y = checkpoint(block, y, use_reentrant=False)
    y.sum().backward(retain_graph=True)
    assert max(most) <= 6 + 4 + 1  # the boundaries, and the saved tensors of one block


def test_a_graph_that_is_never_walked_goes_with_its_last_name(no_collector):
    x = leaf(0.5, 1.0)
    z = x * 1
    kept = weakref.ref(z)
    y = checkpoint(lambda z: nest(deep, 2)(z), z, use_reentrant=False)
    del z
    assert kept() is not None
    del y
    assert kept() is None


# -------------------------------------------------------------------------------------------------------- threads


def test_threads_do_not_mix_their_recomputations():
    w = leaf(0.5, 1.0)
    expected = gradient(nest(deep, 2), w)
    found = []

    def work():
        found.extend(gradient(nest(deep, 2), w) for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 40


def test_a_graph_may_be_walked_by_another_thread():
    x = leaf(0.5, 1.0)
    y = checkpoint(deep, x, use_reentrant=False).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    assert x.grad.tolist() == gradient(deep, leaf(0.5, 1.0))
