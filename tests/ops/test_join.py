"""Joining and repeating: promotion, empty operands, several results, sizes that depend on values."""

import pytest

import retrograd as rg


def test_an_empty_vector_joins_anything_and_gets_an_empty_gradient():
    nothing = rg.zeros(0, requires_grad=True)
    rows = rg.ones(2, 3, requires_grad=True)
    out = rg.cat([nothing, rows, rows], dim=1)
    assert out.shape == (2, 6)
    out.sum().backward()
    assert nothing.grad.shape == (0,)
    assert rows.grad.tolist() == [[2.0] * 3] * 2
    assert rg.cat([nothing, nothing]).shape == (0,)


def test_joined_dtypes_are_promoted():
    ones, floats = rg.ones(1, dtype=rg.int64), rg.ones(1)
    for join in (rg.concat, rg.concatenate, rg.hstack, rg.vstack, rg.row_stack, rg.dstack, rg.column_stack):
        assert join((ones, floats)).dtype == rg.float32
    assert rg.block_diag(ones, floats).dtype == rg.float32


def test_one_tensor_at_least_so_wide_comes_alone_and_several_as_a_tuple():
    assert rg.atleast_2d(rg.tensor(1.0)).tolist() == [[1.0]]
    first, second = rg.atleast_1d(rg.tensor(1.0), rg.tensor([2.0]))
    assert (first.tolist(), second.tolist()) == ([1.0], [2.0])
    assert [x.shape for x in rg.atleast_3d([rg.ones(2), rg.ones(2, 3)])] == [(1, 2, 1), (2, 3, 1)]


def test_nothing_can_not_be_joined():
    for join in (rg.hstack, rg.vstack, rg.dstack, rg.column_stack, rg.cat):
        with pytest.raises(ValueError, match=r"expect(s|ed) (at least one tensor|a non-empty)"):
            join([])
    assert rg.block_diag([]).shape == (1, 0)


def test_repeat_interleave_of_counts_alone_returns_indices():
    assert rg.repeat_interleave(rg.tensor([1, 2, 0, 1])).tolist() == [0, 1, 1, 3]


def test_elements_repeated_collect_their_gradients():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    x.repeat_interleave(rg.tensor([3, 0])).sum().backward()
    assert x.grad.tolist() == [3.0, 0.0]
    assert x.repeat_interleave(2).tolist() == [1.0, 1.0, 2.0, 2.0]
    assert x.tile(2, 1).shape == (2, 2)


def test_grids_are_views_of_their_vectors_in_both_orders():
    x, y = rg.arange(2.0), rg.arange(3.0)
    assert [g.shape for g in rg.meshgrid(x, y)] == [(2, 3), (2, 3)]
    across, down = rg.meshgrid([x, y], indexing="xy")
    assert across.tolist() == [[0.0, 1.0]] * 3
    assert down.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    with pytest.raises(RuntimeError, match="meshgrid: operands must have one dtype"):
        rg.meshgrid(x, rg.arange(3))


def test_combinations_of_more_than_there_are_or_of_none_are_empty():
    assert rg.combinations(rg.arange(3), 4).shape == (0, 4)
    assert rg.combinations(rg.arange(3), 0).shape == (0,)
    assert rg.combinations(rg.arange(2), 3, with_replacement=True).shape == (4, 3)


@pytest.mark.parametrize(
    "repeat",
    [
        lambda x: x.repeat(1, 1),
        lambda x: x.repeat(1, 3),
        lambda x: x.repeat(2, 1, 1),
        lambda x: x.tile(1),
        lambda x: x.repeat_interleave(1, dim=0),
        lambda x: x.repeat_interleave(2, dim=1),
    ],
)
def test_repeat_returns_a_copy_that_can_be_written_to(repeat):
    x = rg.tensor([[1.0], [2.0]])
    repeat(x).zero_()
    assert x.tolist() == [[1.0], [2.0]]


def test_repeats_go_by_the_names_of_pytorch():
    x = rg.tensor([[1, 2]])
    assert x.repeat(repeats=(2, 1)).tolist() == [[1, 2]] * 2
    assert x.repeat_interleave(repeats=2, dim=0).tolist() == [[1, 2]] * 2
    assert rg.nn.functional.one_hot(tensor=rg.tensor([1])).tolist() == [[0, 1]]
    assert x.expand(size=(2, 2)).tolist() == rg.broadcast_to(x, size=(2, 2)).tolist() == [[1, 2]] * 2


def test_numbers_are_not_joined():
    with pytest.raises(TypeError, match="cat: expected a Tensor for 'tensors', got float"):
        rg.cat([1.0, 2.0])
