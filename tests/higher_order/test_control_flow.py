"""Control flow as operators: values, derivatives, batches, traces and stored programs, against plain Python."""

import optree
import pytest

import retrograd as rg
from retrograd import export, fx
from retrograd.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from retrograd.higher_order import associative_scan, scan, while_loop
from retrograd.higher_order import map as map_slices
from retrograd.testing import assert_close

from ..case_groups import group_cases

W = rg.tensor([0.5, 2.0], dtype="float64")


def branch(x):
    return rg.cond(x.sum() > 0, lambda x: {"a": x * W, "b": (x * x).sum()}, lambda x: {"a": x.sin(), "b": x[0]}, (x,))


def plain_branch(x):
    return {"a": x * W, "b": (x * x).sum()} if x.sum() > 0 else {"a": x.sin(), "b": x[0]}


def loop(x):
    return while_loop(lambda n, x: (x * x).sum() + n < 60, lambda n, x: (n + 1, x * W + x.exp() / 9), (0, x))[1]


def plain_loop(x):
    n = 0
    while (x * x).sum() + n < 60:
        n, x = n + 1, x * W + x.exp() / 9
    return x


def slices(x):
    return rg.stack([x, x * x, x.sin()])


def scanned(x):
    last, ys = scan(lambda c, a: (c * a + W, (c.sin(), a * c)), x, slices(x), reverse=True)
    return last, ys


def plain_scanned(x):
    carry, first, second = x, [], []
    for a in reversed(slices(x).unbind()):
        first.insert(0, carry.sin())
        second.insert(0, a * carry)
        carry = carry * a + W
    return carry, (rg.stack(first), rg.stack(second))


def mapped(x):
    return map_slices(lambda a, b: a * b.exp() * W, slices(x), x)


def plain_mapped(x):
    return rg.stack([a * x.exp() * W for a in slices(x).unbind()])


def prefixes(x):
    return associative_scan(lambda a, b: a * b, slices(x), 0)


def plain_prefixes(x):
    return slices(x).cumprod(0)


PAIRS = {
    "cond": (branch, plain_branch),
    "while_loop": (loop, plain_loop),
    "scan": (scanned, plain_scanned),
    "map": (mapped, plain_mapped),
    "associative_scan": (prefixes, plain_prefixes),
}
POINTS = rg.tensor([[1.0, 2.0], [-1.5, 0.25], [0.5, 3.0], [9.0, 0.1]], dtype="float64")
DIRECTION = rg.tensor([0.3, -0.7], dtype="float64")
TRANSFORMS = {
    "value": lambda f: f,
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "jvp": lambda f: lambda x: jvp(f, (x,), (DIRECTION,)),
    "jvp of vjp": lambda f: lambda x: jvp(lambda x: jacrev(f)(x), (x,), (DIRECTION,))[1],
    "hessian": hessian,
    "vjp of vjp": lambda f: jacrev(jacrev(f)),
    "autograd.grad": lambda f: lambda x: recorded_gradient(f, x),
}


def recorded_gradient(f, x):
    x = x.detach().clone().requires_grad_()
    total = sum((leaf * leaf).sum() for leaf in optree.tree_leaves(f(x)))
    (first,) = rg.autograd.grad(total, x, create_graph=True)
    return first.detach(), rg.autograd.grad((first * first).sum(), x)[0]


def assert_trees_close(found, expected):
    assert optree.tree_structure(found) == optree.tree_structure(expected)
    for a, b in zip(optree.tree_leaves(found), optree.tree_leaves(expected), strict=True):
        assert_close(a, b)


@group_cases
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", PAIRS)
def test_equals_plain_python_under_every_derivative(name, transform):
    ours, plain = map(TRANSFORMS[transform], PAIRS[name])
    for x in POINTS:
        assert_trees_close(ours(x), plain(x))


@group_cases
@pytest.mark.parametrize("transform", [name for name in TRANSFORMS if name != "autograd.grad"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_batch_equals_a_loop(name, transform):
    ours, plain = map(TRANSFORMS[transform], PAIRS[name])
    rows = [plain(x) for x in POINTS]
    assert_trees_close(vmap(ours)(POINTS), optree.tree_map(lambda *parts: rg.stack(parts), *rows))


@pytest.mark.parametrize("name", PAIRS)
def test_a_derivative_of_a_batch_is_the_batch_of_derivatives(name):
    ours, plain = PAIRS[name]

    def total(f):
        return lambda x: sum((leaf * leaf).sum() for leaf in optree.tree_leaves(f(x)))

    expected = rg.stack([grad(total(plain))(x) for x in POINTS])
    assert_close(grad(lambda xs: vmap(total(ours))(xs).sum())(POINTS), expected)


@pytest.mark.parametrize("name", PAIRS)
def test_a_trace_is_one_program_for_all_values(name):
    ours, plain = PAIRS[name]
    module = fx.trace(ours, POINTS[0])
    assert not module.graph.guards
    for x in POINTS:
        assert_trees_close(module(x), plain(x))
        assert_trees_close(jacrev(module)(x), jacrev(plain)(x))
    again = fx.trace(module, POINTS[1])
    assert_trees_close(again(POINTS[0]), plain(POINTS[0]))
    assert_trees_close(vmap(module)(POINTS), vmap(ours)(POINTS))


class Calling(rg.nn.Module):
    """Calls a function, and adds a parameter that a function of the operator reads."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = rg.nn.Parameter(rg.tensor([3.0, 4.0], dtype="float64"))

    def forward(self, x):
        shifted = rg.cond(x[0] > 0, lambda x: x + self.weight, lambda x: x - self.weight, (x,))
        return self.function(x), shifted


@pytest.mark.parametrize("name", PAIRS)
def test_an_exported_program_is_stored_and_loaded(name, tmp_path):
    model = Calling(PAIRS[name][0])
    program = export.export(model, (POINTS[0],))
    export.save(program, tmp_path / "program.zip")
    loaded = export.load(tmp_path / "program.zip")
    assert set(loaded.state_dict) == {"weight"}
    for x in POINTS:
        assert_trees_close(loaded.module()(x), model(x))


def test_a_stored_function_is_checked_as_it_is_read(tmp_path):
    export.save(fx.trace(branch, POINTS[0]), tmp_path / "program")
    path = tmp_path / "program" / "graph.json"
    path.write_text(path.read_text().replace('"target": "sin"', '"target": "unknown"'))
    with pytest.raises(export.StorageError, match="unknown"):
        export.load(tmp_path / "program")


def test_functions_in_functions_are_traced_stored_and_run(tmp_path):
    def f(x):
        def body(x):
            return (rg.cond(x[0] > 1, lambda: x * W, lambda: x + W) + 1,)

        return while_loop(lambda x: x.sum() < 30, body, (x,))[0]

    export.save(fx.trace(f, POINTS[0]), tmp_path / "program")
    module = export.load(tmp_path / "program")
    for x in POINTS:
        assert_close(module(x), f(x))
        assert_close(jacrev(module)(x), jacrev(f)(x))


def test_only_the_chosen_function_runs_in_eager_code():
    calls = []
    rg.cond(rg.tensor(True), lambda: calls.append("true"), lambda: calls.append("false"))
    assert calls == ["true"]
    assert rg.cond(0, lambda x: x, lambda x: -x, (2,)) == -2


def test_both_functions_run_only_if_the_examples_differ():
    calls = []

    def f(x):
        return rg.cond(x > 0, lambda x: calls.append("true") or x, lambda x: calls.append("false") or -x, (x,))

    assert vmap(f)(rg.tensor([1.0, 2.0])).tolist() == [1, 2]
    assert calls == ["true"]
    assert vmap(f)(rg.tensor([1.0, -2.0])).tolist() == [1, 2]
    assert calls == ["true", "true", "false"]


def test_a_batch_in_a_trace_selects_without_a_guard():
    module = fx.trace(vmap(branch), POINTS)
    assert not module.graph.guards
    assert_trees_close(module(-POINTS), vmap(branch)(-POINTS))


def test_results_share_no_memory_with_operands():
    x = rg.ones(3)
    same = rg.cond(rg.tensor(True), lambda x: {"all": x, "part": x[1:]}, lambda x: x, (x,))
    (carried,) = while_loop(lambda x: x[0] < 0, lambda x: (x,), (x,))
    assert carried is x  # no iteration: the input itself, as in Python
    same["all"].zero_()
    same["part"].zero_()
    assert x.tolist() == [1, 1, 1]


X = rg.ones(2)
YES = rg.tensor(True)
FAULTS = {
    "pred is a string": (lambda: rg.cond("a", X.sin, X.cos), "Expected pred to be bool or tensor"),
    "pred has two elements": (
        lambda: rg.cond(X > 0, X.sin, X.cos),
        "Expected pred to be bool or single-element tensor",
    ),
    "operands are a tensor": (lambda: rg.cond(YES, rg.sin, rg.cos, X), "Expect operands to be a tuple of possibly"),
    "an operand is a number": (lambda: rg.cond(YES, rg.sin, rg.cos, (1.0,)), "only consists of tensor leaves"),
    "a branch is no function": (lambda: rg.cond(YES, X, rg.cos, (X,)), "Expect both branches to be callable"),
    "cond writes": (
        lambda: rg.cond(YES, lambda x: x.clone().add_(1) + x.add_(0), rg.cos, (X,)),
        "might be modifying the input",
    ),
    "inputs are a tensor": (
        lambda: while_loop(lambda x: x < 1, lambda x: x, X),
        "carried_inputs must be a tuple or list",
    ),
    "a float is carried": (lambda: while_loop(lambda x: x < 1, lambda x: x, (1.0,)), "tensor or int leaves"),
    "a condition of two elements": (lambda: while_loop(lambda x: x < 2, lambda x: (x,), (X,)), "boolean scalar tensor"),
    "a body that adds a value": (lambda: while_loop(lambda x: YES, lambda x: (x, x), (X,)), "same number of outputs"),
    "a body that changes the shape": (
        lambda: while_loop(lambda x: YES, lambda x: (rg.cat([x, x]),), (X,)),
        r"Expected body_fn_output and carried_inputs to have same metadata but found:\npair\[0\] differ in 'shape: ",
    ),
    "a body that changes the dtype": (
        lambda: while_loop(lambda x: YES, lambda x: (x.double(),), (X,)),
        "differ in 'dtype",
    ),
    "a body that writes": (
        lambda: while_loop(lambda x: YES, lambda x: (x.mul_(1) + 1,), (X,)),
        "body_fn might be modifying",
    ),
    "no init": (lambda: scan(lambda c, x: (c, x), (), X), "requires init leaves"),
    "init is a number": (lambda: scan(lambda c, x: (c, x), 0.0, X), "All init leaves must be a Tensor but got 0.0"),
    "no slices": (lambda: scan(lambda c, x: (c, x), YES, rg.ones(0)), "scan dimension > 0"),
    "slices differ in number": (lambda: scan(lambda c, x: (c, x), YES, (X, rg.ones(3))), "same size along dim"),
    "no pair": (lambda: scan(lambda c, x: c + x, rg.tensor(0.0), X), "combine_fn must return a carry and an output"),
    "the carry changes": (
        lambda: scan(lambda c, x: (rg.stack([c, x]), x), rg.tensor(0.0), X),
        "Expected init and carry to have same metadata but found",
    ),
    "scan writes": (lambda: scan(lambda c, x: (c.add_(0), x), rg.tensor(0.0), X), "combine_fn might be modifying"),
    "map of nothing": (lambda: map_slices(rg.sin, rg.ones(0, 2)), "Leading dimensions of mapped xs cannot be 0"),
    "map of sizes": (lambda: map_slices(lambda x: x[0], (X, rg.ones(3))), "mapped xs must be consistent"),
    "map of a number": (lambda: map_slices(rg.sin, 3), "Mapped xs can only consist of tensors"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_mistakes_raise_with_the_words_of_pytorch(fault):
    call, words = FAULTS[fault]
    with pytest.raises(RuntimeError, match=words):
        call()
    assert X.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: associative_scan(rg.mul, X, 0, combine_mode="other"), "Combine_mode must either"),
        (lambda: associative_scan(rg.mul, (), 0), "Expected at least 1 xs leaf"),
        (lambda: associative_scan(rg.mul, rg.ones(0), 0), "scan dimension > 0"),
        (lambda: associative_scan(rg.mul, [1.0], 0), "xs leaves must be a Tensor"),
    ],
)
def test_associative_scan_raises_value_errors_with_the_words_of_pytorch(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    ("false_fn", "words"),
    [
        (lambda x: (x, x), "Unmatched output spec from torch.cond branches"),
        (lambda x: x.double(), r"When merging two branches' output in torch.cond, .*\n.*differ in 'dtype"),
        (lambda x: x[:1] + x[1:], "differ in 'shape"),
    ],
)
def test_branches_that_differ_are_refused_where_both_run(false_fn, words):
    def f(x):
        return rg.cond(x.sum() > 0, lambda x: x * 2, false_fn, (x,))

    with pytest.raises(RuntimeError, match=words):
        fx.trace(f, X)
    with pytest.raises(RuntimeError, match=words):
        vmap(f)(rg.tensor([[1.0, 2.0], [-1.0, -2.0]]))


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("operand", "true_fn might be modifying the input"),
        ("captured", "a tensor from outside .* can't be written to"),
        ("outside", "a tensor from outside .* can't be written to"),
    ],
)
def test_a_traced_function_that_writes_is_refused_before_anything_changes(written, words):
    w, x = rg.ones(2), rg.ones(2)

    def f(x):
        targets = {"captured": x * 2, "outside": w}
        return rg.cond(x.sum() > 0, lambda x: targets.get(written, x).add_(1), lambda x: x.sin(), (x,))

    with pytest.raises(RuntimeError, match=words):
        fx.trace(f, x)
    assert w.tolist() == x.tolist() == [1, 1]


def test_random_numbers_in_a_function_are_drawn_in_every_iteration():
    module = fx.trace(lambda x: while_loop(lambda x: x[0] < 5, lambda x: (x + rg.rand(2),), (x,))[0], X)
    rg.manual_seed(0)
    expected = X
    while expected[0] < 5:
        expected = expected + rg.rand(2)
    rg.manual_seed(0)
    assert_close(module(X), expected)
