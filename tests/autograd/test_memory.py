"""Memory, with the cycle collector off: dropped objects are freed at once, and nothing accumulates."""

import gc
import tracemalloc
import weakref

import pytest

import retrograd as rg
from retrograd.autograd import Function
from retrograd.autograd.graph import (
    allow_mutation_on_saved_tensors,
    get_gradient_edge,
    register_multi_grad_hook,
    saved_tensors_hooks,
)
from retrograd.autograd.node_views import record_of

from ..case_groups import group_cases

pytestmark = pytest.mark.usefixtures("no_collector")


def leaf(*values):
    return rg.tensor(list(values), requires_grad=True)


class SavesBoth(Function):
    """Save the input and the output."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y + 0 * x


class SavesForForward(Function):
    """Save one output for jvp, and mark another as not differentiable."""

    @staticmethod
    def forward(ctx, x):
        y, fixed = x * 2, x * 3
        ctx.save_for_forward(x, y)
        ctx.mark_non_differentiable(fixed)
        return y, fixed

    @staticmethod
    def backward(ctx, g, _):
        return 2 * g


class WritesInput(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


# Each gets a leaf and returns the tensors that it creates; the last is the loss.


def plain(x):
    y = x.exp()
    z = y.softmax(dim=0) * y
    return [y, z, z.sum()]


def written(x):
    y = x * 1
    y.mul_(2)
    y[0] = x[1]
    y.add_(y.detach().clone())
    y.exp_()
    return [y, y.sum()]


def views(x):
    y = x * 1
    top, whole = y[:1], y.view(-1)
    inner = whole[1:]
    top.mul_(3)
    y.add_(1)
    return [y, top, whole, inner, inner.sum() + top.sum() + whole.sum()]


def unbound(x):
    y = x.exp()
    parts = y.unbind(0)
    return [y, *parts, parts[0] * parts[1]]


def several_outputs(x):
    y = x * 1
    values, places = y.max(dim=0)
    return [y, values, places, values.sum()]


def hooked(x):
    y = x.exp()
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    z = y * 2
    z.grad_fn.register_hook(lambda gx, gy: None)
    z.grad_fn.register_prehook(lambda gy: None)
    z.grad_fn.metadata["note"] = "note"
    return [y, z, z.sum()]


def hooked_together(x):
    y = x.exp()
    z = y * 2
    register_multi_grad_hook((y, z), lambda gs: None)
    register_multi_grad_hook((y, z), lambda g: None, mode="any")
    return [y, z, z.sum()]


def edged(x):
    y = x.exp()
    edge = get_gradient_edge(y)
    leaf_edge = get_gradient_edge(x)
    assert edge.node is y.grad_fn
    assert leaf_edge.node.variable is x
    return [y, y.sum()]


def in_function(x):
    y = SavesBoth.apply(x)
    z, fixed = SavesForForward.apply(y)
    return [y, z, fixed, z.sum()]


def in_writing_function(x):
    y = x * 1
    z = WritesInput.apply(y * 1)
    return [y, z, WritesInput.apply((y * 1)[:1]), z.sum()]


def packed(x):
    with saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        y = x.exp()
        return [y, (y * y).sum()]


def mutated(x):
    with allow_mutation_on_saved_tensors():
        y = x * 1
        z = (y * y).sum()
        y.zero_()
    return [y, z]


def created_graph(x):
    y = (x**3).exp()
    (g,) = rg.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = rg.autograd.grad(g.sum(), x, create_graph=True)
    return [y, g, h, h.sum()]


def linear(x):
    w, b = rg.ones(3, 2, requires_grad=True), rg.zeros(3, requires_grad=True)
    y = rg.nn.functional.linear(x.view(1, 2), w, b)
    return [w, b, y, rg.nn.functional.gelu(y).sum()]


PROGRAMS = [
    plain,
    written,
    views,
    unbound,
    several_outputs,
    hooked,
    hooked_together,
    edged,
    in_function,
    in_writing_function,
]
PROGRAMS += [packed, mutated, created_graph, linear]


def nodes_of(tensor):
    """Return every node of a tensor's graph, including those of leaves."""
    found, stack = {}, [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and id(node) not in found:
            found[id(node)] = node
            stack.extend(n for n, _ in node.next_functions)
    return list(found.values())


@group_cases
@pytest.mark.parametrize("walk", ["not walked", "walked", "walked twice", "grad", "failed"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_tensor_and_no_node_of_a_dropped_graph_survives(program, walk):
    x = leaf(1.0, 2.0)
    made = program(x)
    alive = [weakref.ref(o) for o in (*made, *nodes_of(made[-1]))]
    if walk == "walked":
        made[-1].backward()
    elif walk == "walked twice":
        made[-1].backward(retain_graph=True)
        made[-1].backward(retain_graph=True)
    elif walk == "grad":
        rg.autograd.grad(made[-1], x, retain_graph=True)
    elif walk == "failed":
        fail(made[-1])
    del made
    assert all(r() is None for r in alive)
    kept = weakref.ref(x)
    del x
    assert kept() is None


def fail(loss):
    def fails(gx, gy):
        raise KeyError

    loss.grad_fn.register_hook(fails)
    try:
        loss.backward()
    except KeyError:
        pass
    else:
        raise AssertionError("the hook did not run")


def test_hooks_die_with_what_they_hang_on():
    class Hook:
        def __call__(self, *args):
            return None

    hooks = [Hook() for _ in range(4)]
    x = leaf(1.0)
    y = x * 2
    x.register_hook(hooks[0])
    x.register_post_accumulate_grad_hook(hooks[1])
    y.register_hook(hooks[2])
    y.grad_fn.register_hook(hooks[3])
    y.sum().backward()
    alive = [weakref.ref(h) for h in hooks]
    del hooks, x, y
    assert [r() for r in alive] == [None] * 4


def test_a_multi_grad_hook_keeps_no_leaf_alive():
    x = leaf(1.0)
    register_multi_grad_hook((x,), print)
    kept = weakref.ref(x)
    del x
    assert kept() is None


@pytest.mark.parametrize(
    "hang",
    [
        lambda x: x.register_hook(lambda g: g * x.detach()),
        lambda x: x.register_post_accumulate_grad_hook(lambda t: t is x),
        lambda x: get_gradient_edge(x).node.register_prehook(lambda gs: x),
        lambda x: get_gradient_edge(x).node.metadata.update(leaf=x),
    ],
)
def test_a_leaf_whose_hook_mentions_it_is_a_cycle_that_the_collector_frees(hang):
    def make():
        x = leaf(1.0)
        hang(x)
        return weakref.ref(x)

    kept = make()
    gc.collect()
    assert kept() is None


def test_a_detached_tensor_a_gradient_and_an_edge_keep_only_what_they_need():
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y * 2
    value, node = weakref.ref(y), weakref.ref(y._grad_fn)
    kept = z.detach()
    edge = get_gradient_edge(y)
    z.sum().backward()
    del y, z
    assert value() is None  # the edge names the position in the graph, not the activation
    assert node() is record_of(edge.node)
    del edge
    assert node() is None
    assert kept.tolist() == (2 * x.detach().exp()).tolist()
    assert x.grad is not None


def test_a_view_keeps_its_base_and_the_base_not_its_view():
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y[:1]
    base, shown = weakref.ref(y), weakref.ref(view)
    view.mul_(2)
    del y
    assert base() is not None
    del view
    assert (base(), shown()) == (None, None)


# ------------------------------------------------------------------------------------ freed as the pass goes


@pytest.mark.parametrize("function", [lambda t: t.exp(), lambda t: t * t.detach(), lambda t: SavesBoth.apply(t)])
def test_saved_values_are_freed_as_the_pass_goes(function):
    x = leaf(0.1, 0.2)
    tensors = [x]
    for _ in range(6):
        tensors.append(function(tensors[-1]) * 0.1)
    seen = []
    middle = tensors[3]
    nodes = [t._grad_fn for t in tensors[1:]]
    middle.register_hook(lambda g: seen.extend(not saves(n) for n in nodes))
    tensors[-1].sum().backward()
    assert seen == [False, False, False, True, True, True]
    assert all(not saves(n) for n in nodes)


def saves(node):
    """Return whether the operator before the factor still holds its saved tensor."""
    return node.edges[0].saved is not None


def test_a_hook_in_the_middle_finds_the_values_of_later_nodes_gone():
    x, dead = leaf(0.1, 0.2), []
    early = x * 1
    middle = early * early
    late = middle * 1
    end = late * late
    alive = {"early": weakref.ref(early), "late": weakref.ref(late)}
    middle.register_hook(lambda g: dead.extend(name for name, r in alive.items() if r() is None))
    loss = end.sum()
    del early, late, end, middle
    assert all(r() is not None for r in alive.values())
    loss.backward()
    assert dead == ["late"]
    assert alive["early"]() is None


def test_gradients_on_their_way_are_freed_as_the_pass_goes():
    x, passed, dead = leaf(0.1, 0.2), [], []
    y = x * 1
    late = (y * 2).exp() * 3
    late.register_hook(lambda g: passed.append(weakref.ref(g)))
    y.register_hook(lambda g: dead.extend(r() is None for r in passed))
    (late * 5).sum().backward()
    assert dead == [True]


def test_retain_graph_keeps_them():
    x = leaf(0.1)
    late = x * 1
    loss = (late * late).sum()
    kept = weakref.ref(late)
    del late
    loss.backward(retain_graph=True)
    assert kept() is not None
    loss.backward()
    assert kept() is None


# --------------------------------------------------------------------------------------------- nothing piles up


def training_step(x, w):
    y = rg.tanh(x * w) * 1
    y[:1].mul_(w[1:])
    loss = (y * y).sum()
    loss.backward()
    with rg.no_grad():
        w -= 0.01 * w.grad
    w.grad = None


def hooked_step(x, w):
    y = x * w
    with y.register_hook(lambda g: g * 2), w.register_hook(lambda g: g):
        SavesBoth.apply(y * 0.1).sum().backward()
    w.grad.zero_()


def double_step(x, w):
    (g,) = rg.autograd.grad((x * w).sin().sum(), w, create_graph=True)
    (g * g).sum().backward()
    w.grad.zero_()


@pytest.mark.parametrize(
    ("step", "count"), [(training_step, 10_000), (hooked_step, 2_000), (double_step, 2_000)], ids=lambda v: str(v)[:20]
)
def test_objects_and_memory_are_flat_over_thousands_of_steps(step, count):
    x, w = rg.tensor([0.5, 0.25]), leaf(0.3, 0.7)
    for _ in range(20):
        step(x, w)
    objects = len(gc.get_objects())
    for _ in range(count):
        step(x, w)
    assert len(gc.get_objects()) - objects < 50
    tracemalloc.start()
    try:
        for _ in range(20):
            step(x, w)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            step(x, w)
        assert tracemalloc.get_traced_memory()[0] - before < 200 * 16
    finally:
        tracemalloc.stop()


def test_registering_and_removing_hooks_leaves_no_state():
    x = leaf(1.0)
    y = x * 2

    def round_trip():
        for t in (x, y):
            t.register_hook(print).remove()
        x.register_post_accumulate_grad_hook(print).remove()
        y.grad_fn.register_hook(print).remove()
        register_multi_grad_hook((x, y), print).remove()
        leaf(1.0).register_hook(print)

    round_trip()
    objects = len(gc.get_objects())
    for _ in range(500):
        round_trip()
    assert len(gc.get_objects()) - objects < 50


# ---------------------------------------------------------------------------------------- cycles of create_graph


def test_the_cycle_of_backward_with_create_graph_breaks_when_grad_is_set_to_none():
    x = leaf(1.0, 2.0)
    y = x.exp()
    with pytest.warns(UserWarning, match=r"set \.grad to None"):
        y.sum().backward(create_graph=True)
    node, kept = weakref.ref(y._grad_fn), weakref.ref(x)
    del y
    assert node() is not None  # held by the graph of x.grad
    x.grad = None
    assert node() is None
    del x
    assert kept() is None


def test_grad_with_create_graph_makes_no_cycle():
    x = leaf(1.0, 2.0)
    y = x.exp()
    (g,) = rg.autograd.grad(y.sum(), x, create_graph=True)
    node, kept = weakref.ref(y._grad_fn), weakref.ref(x)
    del y, g, x
    assert (node(), kept()) == (None, None)
