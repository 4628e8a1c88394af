"""Planned calls: many calls as one, on planned memory, with the eager bits, warnings, views and peaks."""

import threading
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels, nn
from retrograd.compiler.planning import SPARE, CallsOneByOne, plan_calls
from retrograd.compiler.program import FusedCalls, PlannedCalls
from retrograd.kernels import reference

from .comparison import assert_same_runs, numbers, observe


def plans(compiled):
    """Return the instructions of the last program as they are played."""
    program = compiled.programs[-1]
    return program.played


def compiled_like_eager(f, *tensors, calls=3):
    """Check that compiled calls have the eager results; return the compiled function."""
    compiled = rg.compile(f, fullgraph=True)
    for _ in range(calls):
        assert observe(compiled(*tensors)) == observe(f(*tensors))
    return compiled


def test_products_sums_and_elementwise_operators_run_as_one_call():
    w, b = numbers(5, 7), numbers(5)
    compiled = compiled_like_eager(lambda x: ((x @ w.t() + b).relu().mT @ x).sum(0), numbers(9, 7))
    (plan,) = plans(compiled)
    assert isinstance(plan, PlannedCalls)
    assert not isinstance(plan.function, CallsOneByOne)


def test_a_step_of_an_integrator_is_one_call():
    a = numbers(6, 6)

    def f(q, p):
        for _ in range(3):
            x = q.detach().requires_grad_()
            ((x @ (a @ x)) / 2 + (x * x + 1).log().sum()).backward()
            p = p - x.grad * 0.1
            q = q + p * 0.1
        return q, p

    compiled = compiled_like_eager(f, numbers(6), numbers(6, seed=1))
    assert [type(i) for i in plans(compiled)] == [PlannedCalls]


def test_large_arrays_from_outside_do_not_end_a_plan():
    """They are in memory anyway, so a plan costs nothing by keeping them, however large they are."""
    w, x = numbers(9, SPARE // 8), numbers(6, SPARE // 8)
    compiled = compiled_like_eager(lambda x: ((x @ w.t()).relu() @ w).sum(1) + (x * 2).sum(1).sum(), x)
    assert [type(i) for i in plans(compiled)] == [PlannedCalls]


def test_a_plan_that_warns_runs_one_by_one_without_the_tensors_whose_layout_alone_matters():
    """The gradient of the weight is copied into its layout, and no call of the plan reads the weight."""
    layer = nn.Linear(3, 3)

    def step(x):
        layer.zero_grad()
        layer(x) * rg.rand(4, 3)  # ends a plan
        layer(x).mean().backward()
        return layer.weight.grad * 1

    compiled, x = rg.compile(step, fullgraph=True), numbers(4, 3)
    compiled(x)
    compiled(x)
    x[0, 0] = rg.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert observe(compiled(x)) == observe(step(x))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64", "float16"])
def test_dtypes(dtype):
    x = (numbers(6, 6) * 4).to(getattr(rg, dtype))
    compiled_like_eager(lambda x: (x.t().contiguous() @ x.t(), (x.t() * x).t() * x), x)


SHAPES = [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((1, 4), (4, 1)), ((7, 3, 4), (4, 5)),
          ((7, 1, 3, 4), (2, 4, 5)), ((2, 1, 1), (2, 1, 6))]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES)
def test_products_of_all_shapes(shapes):
    a, b = numbers(*shapes[0]), numbers(*shapes[1], seed=1)
    compiled_like_eager(lambda a, b: ((a * 2 + 1) @ (b - 1)) * 2 + 1, a, b)
    compiled_like_eager(lambda a, b: ((a.flip(-1) * 2) @ (b - 1), (a + a).sum(-1)), a, b)


@pytest.mark.parametrize("size", [1, 2, 7, 129, 8193, 70_001])
@pytest.mark.parametrize("dim", [None, 0, 1, -1, (0, 1), (0, 2)])
def test_sums_have_the_bits_of_numpy(size, dim):
    shape = (3, size, 2) if size < 8193 else (1, size, 1)
    x = numbers(*shape)
    x[0, 0, 0] = -0.0
    for f in (lambda x: (x * 1 - 0).sum(dim) * 3, lambda x: (x * 1 - 0).sum(dim, keepdim=True).neg() * 2 + 1):
        compiled_like_eager(f, x)
    compiled_like_eager(lambda x: ((x * 1 - 0).sum(dim).exp() + 1).mean(), rg.full(shape, -0.0))


def test_broadcast_views_and_copies():
    x, y = numbers(4, 1, 6), numbers(5, 1, seed=1)

    def f(x, y):
        z = (x * 2 + y).transpose(0, 2)
        return z.reshape(-1, 4) * 2, z.sum(1).expand(3, 6, 4) + 1, rg.cat([z, z * 2], 1)[:, 1:3], z[::2, 1] - 1

    compiled_like_eager(f, x, y)


def test_results_that_share_memory_share_it():
    def f(x):
        y = x * 2 + 1
        z = (y * y).t()
        return z, z[0], y[1:], y

    compiled = compiled_like_eager(f, numbers(4, 4))
    z, row, rest, y = compiled(numbers(4, 4))
    z[0, 0] = 7.0
    y[1, 0] = 9.0
    assert (row[0].item(), rest[0, 0].item()) == (7.0, 9.0)


def test_results_are_in_memory_of_their_own():
    compiled = rg.compile(lambda x: ((x @ x) * 2).sum(0))
    x = numbers(5, 5)
    compiled(x)
    first, second = compiled(x), compiled(x)
    first.zero_()
    assert second.tolist() == ((x @ x) * 2).sum(0).tolist()


def test_writes_are_between_the_calls_around_them():
    def f(x, y):
        a = x @ y
        x.add_(y)
        b = x @ y + a
        a.mul_(y)
        return a @ b, x.t() * 2

    assert_same_runs(lambda: (f, []), lambda i: (numbers(4, 4, seed=i), numbers(4, 4, seed=i + 9)))


def test_gradients_of_layers():
    def make():
        rg.manual_seed(0)
        model = nn.Sequential(nn.Linear(7, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 5), nn.Softmax(-1))

        def f(x):
            model.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss.detach()

        return f, [*model.parameters()]

    assert_same_runs(make, lambda i: (numbers(8, 7, seed=i),))


def test_warnings_and_errors_of_numpy_are_those_of_the_eager_call():
    def f(x):
        return (x @ x) / (x.sum() - 4) + (x - 3).t()

    compiled = rg.compile(f)
    compiled(rg.full((2, 2), 4.0))
    x = rg.ones(2, 2)
    with warnings.catch_warnings(record=True) as eager:
        warnings.simplefilter("always")
        expected = f(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert observe(compiled(x)) == observe(expected)
    assert [str(w.message) for w in caught] == [str(w.message) for w in eager] != []
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled(x)


def test_calls_on_several_threads_do_not_share_memory():
    w = numbers(40, 40)
    compiled = rg.compile(lambda x: ((x @ w).relu() @ w).sum(0))
    inputs = [numbers(30, 40, seed=i) for i in range(4)]
    compiled(inputs[0])
    expected = [compiled(x).tolist() for x in inputs]
    found = [[] for _ in inputs]

    def work(i):
        for _ in range(50):
            found[i].append(compiled(inputs[i]).tolist())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == expected[i] for i in range(4) for result in found[i])


def test_large_arrays_are_shared_among_threads_with_the_same_bits():
    x, row = numbers(600, 300), numbers(300)
    compiled_like_eager(lambda x: (((x + row).t() * 2).t() - row, (x + row).sum(0) * 2, rg.cat([x, x + 1]) * 2), x)


def test_the_order_of_calls_stays_and_short_runs_stay_as_they_are():
    compiled = rg.compile(lambda x: (x @ x, x.cumsum(0)))
    compiled(numbers(3, 3))
    instructions = compiled.programs[-1].plan
    layouts = {}
    assert plan_calls([], layouts, []) == []
    assert not any(isinstance(i, PlannedCalls | FusedCalls) for i in instructions)


@pytest.mark.parametrize("make", [kernels.planned_calls, reference.planned_calls], ids=["chosen", "reference"])
def test_a_plan_leaves_unexpected_operands_to_the_fallback(make):
    shape, like = ((3, 4), np.dtype("f"), (16, 4)), np.ones((3, 4), np.float32)
    values = ((0, 0, shape), (1, 0, shape), (2, 0, shape))
    plan = make(
        (shape, shape), (), (48,), values, ((np.add, False, 1, 0, 1, 2), (np.sin, False, 1, 2, 2)), (2,), lambda *a: a
    )
    assert plan(like, like)[0].tobytes() == np.sin(like + like).tobytes()
    for other in (like.astype(float), like.reshape(4, 3).T, like[:2], like[:, ::2], np.ones((4, 3), np.float32), 1.0):
        assert plan(like, other)[1] is other
    assert plan(like) == (like,)
    huge = like * np.float32(3e38)
    assert plan(huge, huge)[1] is huge  # which NumPy warns about
