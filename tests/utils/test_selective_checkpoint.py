"""Selective checkpoints: values that a policy saves are not recomputed, and nothing else changes."""

import weakref
from functools import partial

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.core import Definition, op, registry
from retrograd.utils.checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
)


class Products:
    """Count the runs of the matrix product's kernel."""

    def __init__(self, monkeypatch):
        self.runs = 0
        self.kernel = rg.matmul.kernel_for(())
        monkeypatch.setitem(rg.matmul.kernels, rg.ones(1).value.__class__, self)
        monkeypatch.setattr(rg.matmul, "kernel", self)

    def __call__(self, *arrays, **params):
        self.runs += 1
        return self.kernel(*arrays, **params)


@pytest.fixture
def products(monkeypatch):
    return Products(monkeypatch)


def matrix():
    return rg.linspace(0.0, 1.0, 9, dtype=rg.float64).reshape(3, 3).requires_grad_()


def function(x):
    y = (x @ x).sin()
    return (y @ x).exp() * y


def gradient(function, x):
    return rg.autograd.grad(function(x).sum(), x)[0].tolist()


def run(function, x, policy, **options):
    return checkpoint(
        function, x, context_fn=partial(create_selective_checkpoint_contexts, policy, **options), use_reentrant=False
    )


def save_products(ctx, op, *args, **params):
    return op is rg.matmul


@pytest.mark.parametrize("verdict", [CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, True])
def test_results_saved_by_a_policy_are_not_computed_again(verdict, products):
    y = run(function, matrix(), lambda ctx, op, *args, **params: op is rg.matmul and verdict)
    forward = products.runs
    y.sum().backward()
    again = products.runs - forward
    products.runs = 0
    y = function(matrix())
    assert forward == products.runs
    y.sum().backward()
    assert again == products.runs - forward  # the backward rules of the two products alone


@pytest.mark.parametrize("verdict", [CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE, False])
def test_operators_not_saved_by_a_policy_run_again(verdict, products):
    y = run(function, matrix(), lambda ctx, op, *args, **params: verdict)
    forward = products.runs
    y.sum().backward()
    again = products.runs - forward
    products.runs = 0
    function(matrix()).sum().backward()
    assert again - (products.runs - forward) == 2


@pytest.mark.parametrize("policy", [save_products, [rg.matmul], lambda *args, **params: True, [rg.sin, rg.exp, rg.mul]])
def test_gradients_are_those_of_the_plain_function(policy):
    assert gradient(lambda x: run(function, x, policy), matrix()) == gradient(function, matrix())


def test_saved_results_are_used_by_every_pass():
    x = matrix()
    y = run(function, x, save_products).sum()
    for _ in range(3):
        assert rg.autograd.grad(y, x, retain_graph=True)[0].tolist() == gradient(function, matrix())


def test_double_backward_through_what_was_saved():
    def second(f):
        x = matrix()
        (g,) = rg.autograd.grad(f(x).sum(), x, create_graph=True)
        return rg.autograd.grad((g * g).sum(), x)[0].tolist()

    plain = second(function)
    assert [pytest.approx(row) for row in plain] == second(lambda x: run(function, x, save_products))


def test_a_policy_sees_every_operator_with_its_arguments_in_the_forward():
    seen = []

    def policy(ctx, op, *args, **params):
        assert isinstance(ctx, SelectiveCheckpointContext)
        seen.append((op.name, ctx.is_recompute, [a.shape for a in args], params))
        return False

    run(lambda x: (x @ x).sum(dim=0).exp(), matrix(), policy).sum().backward()
    assert [entry[0] for entry in seen] == ["matmul", "sum", "exp"]
    assert seen[0][1:3] == (False, [(3, 3), (3, 3)])
    assert seen[1][3]["dim"] in (0, (0,))


@pytest.fixture
def circle():
    """Return an operator with two outputs."""

    @op("circle(Tensor x) -> (Tensor sin, Tensor cos)")
    class circle(Definition):
        impl = lambda xp, x: (xp.sin(x), xp.cos(x))  # noqa: E731

        def vjp_x(g, out):
            return g[0] * out[1] - g[1] * out[0]

    yield circle
    del registry["circle"]


def test_several_outputs_are_saved_together(circle):
    def around(x):
        sin, cos = circle(x * x)
        return (sin * cos.exp()).exp()

    assert gradient(lambda x: run(around, x, [circle]), matrix()) == gradient(around, matrix())


def test_random_numbers_stay_the_same_next_to_saved_ones():
    def noisy(x):
        a = nn.functional.dropout(x * x, 0.5, True)
        return (a * nn.functional.dropout(a.exp(), 0.5, True)).sin()

    rg.manual_seed(5)
    expected = gradient(noisy, matrix())
    rg.manual_seed(5)
    assert gradient(lambda x: run(noisy, x, lambda *args, **params: True), matrix()) == expected


def test_a_draw_whose_result_a_policy_saves_leaves_the_next_one_alone():
    asked = []

    def only_the_first(ctx, op, *args, **params):
        asked.append(op.definition.impure)
        return asked.count(True) == 1

    noisy = lambda x: (x * rg.rand(3, 3, dtype=rg.float64)).exp() * rg.rand(3, 3, dtype=rg.float64)  # noqa: E731
    rg.manual_seed(5)
    expected = gradient(noisy, matrix())
    rg.manual_seed(5)
    assert gradient(lambda x: run(noisy, x, only_the_first), matrix()) == expected


def test_a_graph_with_saved_results_goes_with_its_last_name(no_collector):
    made = []

    def watched(x):
        y = x @ x
        made.append(weakref.ref(y.value))
        return y.exp()

    y = run(watched, matrix(), save_products)
    assert made[0]() is not None
    del y
    assert made[0]() is None


def test_views_and_writes_happen_again():
    def writing(x):
        y = x * 2
        y[0].mul_(3.0)
        return y.exp()

    policy = lambda ctx, op, *args, **params: op is not rg.mul  # noqa: E731
    assert gradient(lambda x: run(writing, x, policy), matrix()) == gradient(writing, matrix())


def test_a_saved_result_that_was_written_to_is_an_error_unless_allowed():
    def writing(x):
        y = x @ x
        z = y.exp()
        y.add_(1.0)
        return z * z

    with pytest.raises(RuntimeError, match=r"has been mutated: the result of matmul.*version 1; expected version 0"):
        run(writing, matrix(), save_products).sum().backward()
    run(writing, matrix(), save_products, allow_cache_entry_mutation=True).sum().backward()


def test_selecting_nests_and_serves_chains():
    x = matrix()
    nested = lambda x: run(lambda x: run(function, x, save_products).sin(), x, [rg.sin])  # noqa: E731
    assert gradient(nested, x) == gradient(lambda x: function(x).sin(), matrix())
    steps = [lambda x: (x @ x).sin()] * 4
    y = checkpoint(steps, x, budget_bytes=72, context_fn=partial(create_selective_checkpoint_contexts, [rg.matmul]))
    z = x
    for step in steps:
        z = step(z)
    assert rg.autograd.grad(y.sum(), x)[0].tolist() == rg.autograd.grad(z.sum(), x)[0].tolist()


def test_objects_that_are_no_policies_are_refused():
    with pytest.raises(TypeError, match="a function or a list of ops, got int"):
        create_selective_checkpoint_contexts(3)
    with pytest.raises(ValueError, match=r"an operator such as rg\.matmul, but got: 'matmul'"):
        create_selective_checkpoint_contexts(["matmul"])
    with pytest.raises(TypeError, match="must return a CheckpointPolicy or a bool, got None for matmul"):
        run(function, matrix(), lambda *args, **params: None)
    composed = next(operator for operator in registry.values() if operator.composite)
    with pytest.raises(ValueError, match=f"{composed.name} is composed of other operators"):
        create_selective_checkpoint_contexts([composed])


def test_a_policy_gets_the_result_of_the_operator():
    seen = {}

    def policy(ctx, op, *args, **params):
        seen[op.name] = ctx.op_output.tolist(), ctx.is_recompute
        return CheckpointPolicy.MUST_CPU_OFFLOAD

    x = rg.tensor([1.0, 2.0], requires_grad=True)
    contexts = partial(create_selective_checkpoint_contexts, policy)
    checkpoint(lambda x: (x * 3).sum(), x, context_fn=contexts, use_reentrant=False).backward()
    assert seen == {"mul": ([3.0, 6.0], False), "sum": (9.0, False)}
    assert x.grad.tolist() == [3.0, 3.0]


def test_an_operator_that_only_recomputation_runs_is_refused_if_the_policy_saves_it():
    runs, seen = [], []

    def function(x):
        runs.append(1)
        return (x.sin() if len(runs) == 1 else x.cos()).exp()

    def policy(ctx, op, *args, **params):
        seen.append((op.name, ctx.is_recompute))
        return op in (rg.sin, rg.cos)

    x = rg.ones(2, requires_grad=True)
    y = checkpoint(function, x, context_fn=partial(create_selective_checkpoint_contexts, policy), use_reentrant=False)
    with pytest.raises(RuntimeError, match="cos encountered during backward but not found in storage"):
        y.sum().backward()
    assert seen == [("sin", False), ("exp", False), ("cos", True)]


def test_an_operator_in_the_set_of_ignored_ones_is_repeated_and_no_policy_sees_it(products, request):
    request.addfinalizer(SAC_IGNORED_OPS.clear)
    seen = []

    def policy(ctx, op, *args, **params):
        seen.append(op)
        return CheckpointPolicy.MUST_SAVE

    def products_of_a_backward_pass():
        y = run(function, matrix(), policy)
        forward, products.runs = products.runs, 0
        y.sum().backward()
        return forward, products.runs

    forward, backward = products_of_a_backward_pass()
    assert rg.matmul in seen
    seen.clear()
    products.runs = 0
    SAC_IGNORED_OPS.add(rg.matmul)
    assert products_of_a_backward_pass() == (forward, backward + forward)
    assert rg.matmul not in seen
    assert rg.sin in seen
