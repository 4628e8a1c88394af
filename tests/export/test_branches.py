"""Programs that hold several branches of code that decides by values."""

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.export import Dim, export, load, save, unflatten
from retrograd.export.branches import COND, merge_branches
from retrograd.testing import assert_close


class Gated(nn.Module):
    """A model of three branches, with a parameter and a dropout that only one of them uses each."""

    def __init__(self):
        super().__init__()
        self.first, self.hidden, self.last = nn.Linear(2, 3), nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x, scale=1.0):
        h = self.first(x) * scale
        if x.sum() > 1:
            h = self.hidden(h).tanh() + rg.tensor([1.0, 2.0, 3.0])
        elif x.max() > 0:
            h = nn.functional.dropout(h, 0.5, self.training) * h
        return self.last(h.sin())


class Counting(nn.Module):
    """A model that writes to another buffer in each branch, and to its argument in one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("above", rg.zeros(()))
        self.register_buffer("below", rg.zeros(()))

    def forward(self, x):
        if x.sum() > 0:
            self.above += x.sum()
            return x * self.above
        self.below += 1
        x.mul_(2)
        return x * self.below


class Scaled(nn.Linear):
    """A model that computes with a Python number that it has read."""

    def forward(self, x):
        return super().forward(x) * x.max().item()


SIGNS = [rg.tensor([[1.0, 2.0]]), rg.tensor([[-3.0, 0.5]]), rg.tensor([[-1.0, -2.0]])]


def values(program, *args, **kwargs):
    rg.manual_seed(3)
    return program(*args, **kwargs)


def check_alike(found, model, inputs):
    """Compare results and all gradients for each input."""
    for x in inputs:
        results = []
        for program in (found, model):
            leaf = x.clone().requires_grad_()
            out = values(program, leaf)
            wanted = [leaf, *model.parameters()]
            results.append([out, *rg.autograd.grad(out.square().sum(), wanted, materialize_grads=True)])
        for actual, expected in zip(*results, strict=True):
            assert_close(actual, expected, rtol=0.0, atol=0.0)


def rows(n):
    return [x.expand(n, 2).clone() for x in SIGNS]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0, 1)])
def test_a_program_takes_the_branch_of_each_input_and_has_its_gradients(order):
    model = Gated()
    first, *others = [SIGNS[i] for i in order]
    program = export(model, (first,), branches=[(x,) for x in others])
    program.validate()
    check_alike(program.module(), model, [*SIGNS, *[x * 0.5 for x in SIGNS]])
    assert not program.graph.guards
    assert program.graph_signature.parameters == [name for name, _ in model.named_parameters()]


def test_operators_of_all_branches_stay_outside_of_the_choice():
    program = export(Gated(), (SIGNS[0],), branches=[(x,) for x in SIGNS[1:]])
    names = [node.target.name for node in program.graph.find_nodes(op="call_function")]
    assert names == ["linear", "mul", "sum", "gt", "higher_order.cond", "pick", "sin", "linear"]
    [outer] = program.graph.find_nodes(op="call_function", target=COND)
    inner = [n.target.name for n in outer.kwargs["false_fn"].graph.find_nodes(op="call_function")]
    assert inner == ["amax", "gt", "higher_order.cond", "pick"]
    assert all("val" in node.meta for node in program.graph.nodes if node.op != "output")


def test_a_branch_without_an_example_is_refused_with_the_users_line():
    program = export(Gated(), (SIGNS[0],), branches=[(SIGNS[1],)]).module()
    with pytest.raises(RuntimeError, match=r"test_branches\.py:\d+ in forward read the value True"):
        program(SIGNS[2])
    with pytest.raises(RuntimeError, match="in forward read the value True"):
        export(Gated(), (SIGNS[0],)).module()(SIGNS[1])


def test_numbers_that_the_code_reads_are_chosen_among_those_of_the_examples():
    model = Scaled(2, 2)
    examples = [rg.full((1, 2), value) for value in (1.0, 2.0, 5.0)]
    program = export(model, (examples[0],), branches=[(x,) for x in examples[1:]]).module()
    check_alike(program, model, examples)
    with pytest.raises(RuntimeError, match=r"in forward read the value 5\.0"):
        program(rg.full((1, 2), 3.0))


def test_sizes_vary_in_all_branches():
    class Sized(Gated):
        def forward(self, x):
            return super().forward(x).reshape(x.shape[0]) * x.shape[0]

    model = Sized()
    program = export(model, (rows(4)[0],), dynamic_shapes=({0: Dim("n", max=9)},), branches=[(x,) for x in rows(4)[1:]])
    for n in (1, 2, 7):
        check_alike(program.module(), model, rows(n))
    with pytest.raises(ValueError, match=r"n must be in \[1, 9\], got 10"):
        program.module()(rg.ones(10, 2))


def test_every_branch_makes_its_own_writes():
    found, expected = Counting(), Counting()
    program = export(found, (rg.ones(3),), branches=[(-rg.ones(3),)])
    assert set(program.graph_signature.buffers_to_mutate.values()) == {"above", "below"}
    module = program.module()
    for value in (2.0, -1.0, -3.0, 1.0):
        ours, theirs = rg.full((3,), value), rg.full((3,), value)
        assert module(ours).tolist() == expected(theirs).tolist()
        assert ours.tolist() == theirs.tolist()
        assert [found.above.item(), found.below.item()] == [expected.above.item(), expected.below.item()]


def test_stored_programs_keep_their_branches(tmp_path):
    model = Gated()
    program = export(model, (rows(3)[0],), dynamic_shapes=({0: Dim("n")},), branches=[(x,) for x in rows(3)[1:]])
    save(program, tmp_path / "gated.zip")
    loaded = load(tmp_path / "gated.zip")
    assert str(loaded.graph) == str(program.graph)
    for x in [*rows(3), *rows(5)]:
        assert values(loaded.module(), x).tolist() == values(model, x).tolist()


def test_programs_with_branches_are_batched_and_unflattened():
    model = Gated().eval()
    program = export(model, (SIGNS[0],), branches=[(x,) for x in SIGNS[1:]])
    chosen = rg.stack(SIGNS)
    expected = rg.stack([model(x) for x in chosen])
    assert_close(rg.func.vmap(program.module())(chosen), expected)
    net = unflatten(program)
    assert_close(rg.stack([net(x) for x in chosen]), expected)


def test_examples_of_one_branch_make_one_graph():
    program = export(Gated(), (SIGNS[0],), branches=[(SIGNS[0] * 2,)])
    assert len(program.graph.guards) == 1
    assert not program.graph.find_nodes(op="call_function", target=COND)


class ByCalls(nn.Module):
    """A model whose code depends on how often it was called."""

    calls = 0

    def forward(self, x):
        type(self).calls += 1
        return x * 2 if self.calls % 2 else x.exp()


@pytest.mark.parametrize(
    ("function", "first", "second", "message"),
    [
        (lambda x: x[:1] if x.sum() > 0 else x, 1.0, -1.0, r"same shape and dtype.*float32\[1\].*float32\[3\]"),
        (lambda x: (x,) if x.sum() > 0 else x, 1.0, -1.0, "one returns the structure"),
        (
            lambda x: (x, 1) if x.sum() > 0 else (x, 2),
            1.0,
            -1.0,
            r"no tensor must be the same in all branches, got \(1, 2\)",
        ),
        (lambda x: (x, 1) if x.sum() > 0 else (x, x), 1.0, -1.0, "no tensor must be the same in all branches"),
        (ByCalls(), 1.0, -1.0, "though it has read the same values before"),
    ],
)
def test_branches_that_do_not_fit_each_other_are_refused(function, first, second, message):
    with pytest.raises(ValueError, match=message):
        merge_branches([fx.trace(function, rg.full((3,), value)) for value in (first, second)])


def test_examples_must_have_the_structure_and_the_sizes_of_the_first():
    with pytest.raises(ValueError, match=r"branches: x is float32\[1, 2\] in one example, and float32\[2, 2\]"):
        export(Gated(), (SIGNS[0],), branches=[(rows(2)[2],)])
    with pytest.raises(ValueError, match=r"branches: scale is 1\.0 in one example, and 2\.0 in another"):
        export(Gated(), (SIGNS[0],), branches=[(SIGNS[2], 2.0)])
