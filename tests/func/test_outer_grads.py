"""`.grad` of tensors from outside a transform: each example sees its own, the outer program the result of a loop."""

import random

import pytest

import retrograd as rg
from retrograd.func import grad, jacobian_sparsity, jet, jvp, linearize, vmap
from retrograd.testing import assert_close

from ..case_groups import group_cases

SIZE = 3
X = rg.tensor([[0.3, -1.2, 0.5], [1.1, 0.4, -0.7], [-0.2, 0.9, 1.3], [0.8, -0.1, 0.6]], dtype=rg.float64)
T = rg.tensor([0.5, -1.0, 2.0], dtype=rg.float64)


class Leaves:
    """Two leaves, and a result that retains its gradient; `loop` is the reference implementation of `vmap`."""

    def __init__(self, with_grads):
        self.p = rg.tensor([0.4, -0.9, 1.5], dtype=rg.float64, requires_grad=True)
        self.q = rg.tensor([1.2, 0.3, -0.6], dtype=rg.float64, requires_grad=True)
        if with_grads:
            self.p.grad, self.q.grad = rg.full((3,), 0.25, dtype=rg.float64), T.clone()
        self.h = (self.p * self.q).tanh()
        self.h.retain_grad()
        self.assigned = set()

    def named(self):
        return {"p": self.p, "q": self.q, "h": self.h}

    def state(self):
        return {name: None if t.grad is None else t.grad.clone() for name, t in self.named().items()}

    def set(self, state):
        for name, t in self.named().items():
            t.grad = None if state[name] is None else state[name].clone()

    def loop(self, f, xs):
        """Run each example from the initial gradients; finally add what all have added, or set the last one's."""
        before, outs, states = self.state(), [], []
        assigned, self.assigned = self.assigned, set()
        for x in xs:
            self.set(before)
            outs.append(f(x))
            states.append(self.state())
        self.set({name: self._after(name, before[name], [s[name] for s in states]) for name in before})
        self.assigned |= assigned
        return rg.stack(outs)

    def _after(self, name, before, states):
        if name in self.assigned or all(s is None for s in states):
            return states[-1]
        zero = rg.zeros(SIZE, dtype=rg.float64)
        start = zero if before is None else before
        return start + sum((zero if s is None else s) - start for s in states)


def read(leaves, name, x, found):
    g = leaves.named()[name].grad
    found.append(rg.ones_like(x) if g is None else g * 1)


def hold(leaves, name, x, found):
    g = leaves.named()[name].grad
    if g is not None:
        found.append(g)  # which later passes add to


def backward_of_sine(leaves, name, x, found):
    rg.sin(leaves.named()[name] * x).sum().backward(retain_graph=True)


def back_all(leaves, name, x, found):
    (leaves.p * x + rg.cos(leaves.q * x) * leaves.h).sum().backward(retain_graph=True)


def back_of_all_but(leaves, name, x, found):
    others = [t for other, t in leaves.named().items() if other != name]
    (leaves.p * x * leaves.q * leaves.h).sum().backward(inputs=others, retain_graph=True)


def back_of_what_is_shared(leaves, name, x, found):
    (leaves.named()[name] ** 2).sum().backward(retain_graph=True)


def back_of_a_leaf_inside(leaves, name, x, found):
    v = (x * x).requires_grad_()
    (leaves.named()[name] * v).exp().sum().backward(retain_graph=True)
    found.append(v.grad * 1)


def back_of_what_was_read(leaves, name, x, found):
    scale = sum(found[-2:], x)
    (leaves.named()[name] * rg.tanh(scale)).sum().backward(retain_graph=True)


def pull(leaves, name, x, found):
    found.append(rg.autograd.grad((leaves.p * x * leaves.h).sum(), leaves.p, retain_graph=True)[0])


def reset(leaves, name, x, found):
    leaves.named()[name].grad = None
    leaves.assigned.add(name)


def delete(leaves, name, x, found):
    del leaves.named()[name].grad
    leaves.assigned.add(name)


def assign(leaves, name, x, found):
    leaves.named()[name].grad = rg.tanh(x)
    leaves.assigned.add(name)


def zero(leaves, name, x, found):
    if leaves.named()[name].grad is not None:
        leaves.named()[name].grad.zero_()
        leaves.assigned.add(name)


def scale(leaves, name, x, found):
    if leaves.named()[name].grad is not None:
        leaves.named()[name].grad.mul_(x)
        leaves.assigned.add(name)


READING = [
    read,
    read,
    hold,
    backward_of_sine,
    back_all,
    back_of_all_but,
    back_of_what_is_shared,
    back_of_a_leaf_inside,
    pull,
]
ASSIGNING = [reset, delete, assign, back_of_what_was_read]
WRITING = [*ASSIGNING, zero, scale]


def program(seed, writes=True):
    """Return random statements, the last of which read all gradients."""
    r = random.Random(seed)
    statements = READING if seed % 3 == 0 else READING + (WRITING if writes else ASSIGNING)
    steps = [(r.choice(statements), r.choice("pqh")) for _ in range(r.randint(2, 7))]
    steps += [(read, name) for name in "pqh"]

    def body(leaves, x):
        found = []
        for step, name in steps:
            step(leaves, name, x, found)
        return sum(found[1:], found[0])

    body.__doc__ = ", ".join(f"{step.__name__} {name}" for step, name in steps)
    return body


def both(seed):
    """Return the same leaves twice."""
    return Leaves(seed % 2), Leaves(seed % 2)


def check(out, expected, leaves, others, told):
    print(told)  # shown if this fails
    assert_close(out, expected)
    for name, t in leaves.named().items():
        g, other = t.grad, others.named()[name].grad
        assert (g is None) == (other is None), f"{name}.grad: {told}"
        if g is not None:
            assert g.level is None, told
            assert_close(g, other)


SEEDS = range(36)


@group_cases
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("chunk", [None, 3, 1])
def test_each_example_sees_its_own_gradients_and_the_program_around_what_a_loop_leaves(seed, chunk):
    body = program(seed)
    leaves, others = both(seed)
    out = vmap(lambda x: body(leaves, x), chunk_size=chunk)(X)
    check(out, others.loop(lambda x: body(others, x), X), leaves, others, body.__doc__)


@group_cases
@pytest.mark.parametrize("seed", SEEDS)
def test_so_it_is_in_batches_of_batches(seed):
    body, around = program(seed), program(seed + 1000)

    def nested(leaves, batched):
        def f(xs):
            found = [around(leaves, xs[0])]
            found.append(batched(lambda x: body(leaves, x), xs).sum(0))
            found.append(around(leaves, xs[1]))
            return rg.stack(found)

        return f

    leaves, others = both(seed)
    xs = rg.stack([X[:2], X[2:], X[1:3]])
    out = vmap(nested(leaves, lambda f, rows: vmap(f)(rows)))(xs)
    check(out, others.loop(nested(others, others.loop), xs), leaves, others, f"{around.__doc__}; {body.__doc__}")


def along(leaves, f, x, step=1e-6):
    """Return the value of f at x and its derivative along T, by differences; gradients are those of the run at x."""
    before = leaves.state()
    values = []
    for k in (step, -step, 0.0):
        leaves.set(before)
        values.append(f(x + k * T))
    return values[2], (values[0] - values[1]) / (2 * step)


@group_cases
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("batched", [False, True])
def test_forward_mode_carries_the_tangents_of_gradients(seed, batched):
    body = program(seed)
    leaves, others = both(seed)
    if batched:
        out = vmap(lambda x: rg.stack(jvp(lambda x: body(leaves, x), (x,), (T,))))(X)
        expected = others.loop(lambda x: rg.stack(along(others, lambda x: body(others, x), x)), X)
    else:
        out = rg.stack(jvp(lambda x: body(leaves, x), (X[0],), (T,)))
        expected = rg.stack(along(others, lambda x: body(others, x), X[0]))
    print(body.__doc__)
    assert_close(out, expected, rtol=1e-5, atol=1e-6)
    check(rg.ones(1), rg.ones(1), leaves, others, body.__doc__)


@group_cases
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("batched", [False, True])
def test_for_a_gradient_around_it_they_are_constants(seed, batched):
    body = program(seed, writes=False)
    leaves, others = both(seed)

    def slope(x):
        return grad(lambda x: (body(leaves, x.detach()) * x).sum())(x)

    out = vmap(slope)(X) if batched else slope(X[0])
    expected = others.loop(lambda x: body(others, x), X) if batched else body(others, X[0])
    check(out, expected, leaves, others, body.__doc__)


@group_cases
@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_inside_forward_mode(seed):
    body = program(seed)
    leaves, others = both(seed)

    def f(leaves, batched):
        return lambda x: batched(lambda row: body(leaves, row * x), X[:2])

    out = rg.stack(jvp(f(leaves, lambda f, xs: vmap(f)(xs)), (X[2],), (T,)))
    expected = rg.stack(along(others, f(others, others.loop), X[2]))
    print(body.__doc__)
    assert_close(out, expected, rtol=1e-5, atol=1e-6)
    check(rg.ones(1), rg.ones(1), leaves, others, body.__doc__)


def one(with_grad=False):
    w = rg.tensor([0.4, -0.9, 1.5], dtype=rg.float64, requires_grad=True)
    if with_grad:
        w.grad = T.clone()
    return w


def step(w):
    def f(x):
        rg.sin(w * x).sum().backward()
        return w.grad

    return f


def rows(w):
    return (X * rg.cos(w * X)).detach()


def test_a_gradient_that_is_not_read_takes_one_pass():
    passes = []

    class CountingIdentity(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            passes.append(1)
            return g

    w = one()
    y = CountingIdentity.apply(w)
    vmap(lambda x: (y * x).sum().backward(retain_graph=True) or x)(X)
    assert len(passes) == 1
    assert_close(w.grad, X.sum(0))


def test_hooks_on_what_examples_share_see_the_gradient_of_each():
    def clipped(w, run):
        w.register_hook(lambda g: g.clamp(-0.5, 0.5))
        run(lambda x: (w * x * x).sum().backward() or x)
        return w.grad

    expected = clipped(one(), lambda f: [f(x) for x in X])
    assert_close(clipped(one(), lambda f: vmap(f)(X)), expected)
    w = one()
    w.register_hook(lambda g: g.clamp(-0.5, 0.5))
    assert_close(vmap(step(w))(X), rows(w).clamp(-0.5, 0.5))


def test_hooks_after_accumulation_run_for_each_example_and_what_they_leave_is_not_guessed():
    w, seen = one(), []
    w.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))

    def f(x):
        (w * x).sum().backward()
        return x

    vmap(f)(X)
    assert_close(rg.stack(seen), X.cumsum(0))
    with pytest.raises(RuntimeError, match="hooks run when it is accumulated"):
        vmap(step(w))(X)


def test_hooks_that_would_not_see_tangents_are_refused():
    w = one()
    w.register_hook(lambda g: g * g)
    with pytest.raises(NotImplementedError, match="would not see the tangents"):
        jvp(step(w), (X[0],), (T,))
    with pytest.raises(NotImplementedError, match="would not see the tangents"):
        jvp(lambda x: rg.autograd.grad((w * x).sum(), w)[0], (X[0],), (T,))


@pytest.mark.parametrize(
    "run",
    [
        lambda f: jet(f, (X[0],), ([T],)),
        lambda f: linearize(f, X[0]),
        lambda f: jacobian_sparsity(f)(X[0]),
    ],
)
def test_a_transform_that_does_not_know_a_grad_refuses_to_read_it(run):
    pytest.importorskip("scipy")
    w = one()
    with pytest.raises(NotImplementedError, match="grad: the inputs must belong to the program that runs"):
        run(step(w))


def test_a_gradient_with_a_graph_that_would_be_cut_is_refused_where_it_is_read():
    def f(w, reads):
        def inside(x):
            with pytest.warns(UserWarning, match="reference cycle"):
                (w * x).sin().sum().backward(create_graph=True)
            return (x * x).sum() + (w.grad.sum() if reads else 0)

        return inside

    assert_close(grad(f(one(), False))(X[0]), 2 * X[0])
    with pytest.raises(RuntimeError, match="Pass that input to the function as an argument"):
        grad(f(one(), True))(X[0])


def test_a_gradient_with_a_outer_graph_is_differentiated_there():
    w = one()

    def f(x):
        with pytest.warns(UserWarning, match="reference cycle"):
            (w * w * x).sum().backward(create_graph=True)
        return w.grad

    out = vmap(f)(X)
    (found,) = rg.autograd.grad(out.sum(), w)
    assert_close(found, 2 * X.sum(0))
    w.grad = None


def test_a_gradient_without_a_graph_is_a_constant_around_a_gradient_too():
    w = one()

    def f(x):
        v = x.detach().requires_grad_()
        (w * v).sum().backward()
        return (v.grad * x).sum()

    assert not grad(f)(X[0]).requires_grad


def test_objects_that_others_hold_are_left_as_they_are():
    w = one(with_grad=True)
    before = w.grad

    def f(x):
        w.grad = None
        return step(w)(x)

    vmap(f)(X)
    assert_close(before, T)
    assert_close(w.grad, rows(w)[-1])
    before = w.grad
    vmap(step(w))(X)
    assert w.grad is before


def test_an_example_that_runs_again_in_a_loop_adds_its_gradient_once():
    for with_grad in (False, True):
        w = one(with_grad)

        def f(x, w=w):
            (w * x).sum().backward()
            return x * 2 if x.sum() > 0 else x

        with pytest.warns(rg.func.batch.PerformanceWarning):
            vmap(f, fallback="loop")(X)
        assert_close(w.grad, X.sum(0) + (T if with_grad else 0))
        with pytest.raises(rg.core.NotBatchedError):
            vmap(f)(X)
        assert_close(w.grad, X.sum(0) + (T if with_grad else 0))


def test_an_argument_that_is_written_in_chunks_is_written_once_when_examples_run_again():
    xs = X.clone()

    def f(x):
        x.add_(1)
        return x * (2 if x.detach()[0] > 0 else 1) if calls.append(1) or len(calls) > 1 else x

    calls = []
    with pytest.warns(rg.func.batch.PerformanceWarning):
        vmap(f, chunk_size=2, fallback="loop")(xs)
    assert_close(xs, X + 1)


def test_a_batch_without_examples_adds_nothing():
    w = one()
    assert vmap(step(w))(X[:0]).shape == (0, 3)
    assert w.grad is None


def test_an_error_inside_leaves_gradients_of_the_ground():
    w = one()

    def f(x):
        step(w)(x)
        w.grad = x
        raise KeyError("stop")

    with pytest.raises(KeyError):
        vmap(f)(X)
    assert w.grad is None or w.grad.level is None
    w.grad = None
    step(w)(X[0])
    assert_close(w.grad, rows(w)[0])


def test_per_example_gradients_of_a_module():
    model = rg.nn.Sequential(rg.nn.Linear(3, 4), rg.nn.Tanh(), rg.nn.Linear(4, 1))
    x = X.to(rg.float32)

    def gradients(x):
        model.zero_grad()
        model(x).sum().backward()
        return [p.grad for p in model.parameters()]

    found = vmap(gradients)(x)
    alone = [gradients(row) for row in x]
    for i, g in enumerate(found):
        assert_close(g, rg.stack([row[i] for row in alone]))
    assert_close(model[0].weight.grad, alone[-1][0])
