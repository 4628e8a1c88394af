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
    with pytest.raises(RuntimeError, match="split"):
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
