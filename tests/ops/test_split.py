"""Splitting: parts are views, their sizes as in PyTorch, and which of them may be written to."""

import pytest

import retrograd as rg


def sizes(parts):
    return [part.shape[0] for part in parts]


def test_parts_have_the_sizes_that_pytorch_gives_them():
    x = rg.arange(7)
    assert sizes(x.split(3)) == [3, 3, 1]
    assert sizes(x.chunk(4)) == [2, 2, 2, 1]
    assert sizes(x.tensor_split(3)) == [3, 2, 2]
    assert sizes(x.tensor_split((2, 9))) == [2, 5, 0]
    assert sizes(x.tensor_split((5, 2))) == [5, 0, 5]
    assert sizes(x.tensor_split(rg.tensor([2, -2]))) == [2, 3, 2]
    assert sizes(rg.zeros(0, 2).split(3)) == [0]
    assert sizes(rg.zeros(0, 2).split(0)) == [0]
    assert sizes(rg.zeros(0, 2).chunk(3)) == [0, 0, 0]


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x.hsplit(3)[1],
        lambda x: x.tensor_split(3, dim=1)[1],
        lambda x: x.split_with_sizes((1, 1, 1), dim=1)[1],
        lambda x: x.unbind(1)[1].unsqueeze(1),
        lambda x: x.unsafe_chunk(3, dim=1)[1],
    ],
)
def test_parts_show_the_memory_of_the_whole(part):
    x = rg.zeros(2, 3)
    with rg.no_grad():
        part(x).fill_(5.0)
    assert x.tolist() == [[0.0, 5.0, 0.0]] * 2


def test_recorded_writes_to_parts_are_refused_but_to_unsafe_ones():
    x = rg.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="Output 0 of Split"):
        (x * 2).split(2)[0].mul_(3)
    y = x * 2
    first, _ = y.unsafe_split(2)
    first.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0, 2.0, 2.0]


def test_narrow_counts_its_start_from_the_end_and_takes_a_tensor_for_it():
    x = rg.arange(4.0).requires_grad_()
    part = x.narrow(0, -3, 2)
    assert part.tolist() == [1.0, 2.0]
    (g,) = rg.autograd.grad(part.sum(), x)
    assert g.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert x.narrow(0, rg.tensor(2), 1).tolist() == [2.0]


@pytest.mark.parametrize("name", ["tensor_split", "hsplit", "vsplit", "dsplit"])
def test_parts_of_numpys_kinds_of_splits_may_be_written_to_in_a_graph(name):
    x = rg.ones(2, 2, 2, requires_grad=True)
    y = x * 2
    first, second = getattr(y, name)(2)
    first.mul_(3)
    second.mul_(second)
    y.sum().backward()
    parts = getattr(x.grad, name)(2)
    assert [set(part.flatten().tolist()) for part in parts] == [{6.0}, {8.0}]


@pytest.mark.parametrize(
    "parts", [lambda y: y.split(1), lambda y: y.chunk(3), lambda y: y.unbind(), lambda y: tuple(y)]
)
def test_views_returned_together_have_one_node_and_derivatives_of_every_order(parts):
    x = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    first, _, last = parts(x)
    assert first.grad_fn is last.grad_fn
    (g,) = rg.autograd.grad(first.sum() * last.sum() ** 2, x, create_graph=True)
    assert g.tolist() == [9.0, 0.0, 6.0]
    (h,) = rg.autograd.grad(g.sum(), x)
    assert h.tolist() == [6.0, 0.0, 8.0]


def test_views_returned_together_show_what_is_written_to_the_whole():
    x = rg.zeros(2, 2, requires_grad=True)
    rows = x.unbind()
    with rg.no_grad():
        x[1] = 5.0
    assert rows[1].tolist() == [5.0, 5.0]
    assert rows[1]._version == x._version == 1


def test_splits_go_by_the_names_of_pytorch():
    x = rg.arange(4)
    for named in (
        x.split(split_size=2),
        rg.split(tensor=x, split_size_or_sections=2),
        x.tensor_split(sections=2),
        x.tensor_split(indices=(2,)),
    ):
        assert [part.tolist() for part in named] == [[0, 1], [2, 3]]


def test_a_tensor_without_dimensions_is_a_size_and_an_order():
    assert [part.tolist() for part in rg.arange(3).split(rg.tensor(2))] == [[0, 1], [2]]
    assert rg.norm(rg.tensor([3.0, 4.0]), rg.tensor(1.0)).item() == 7.0
