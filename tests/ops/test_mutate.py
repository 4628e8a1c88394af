"""Writing in place: into the memory that the tensor shows, counted, and refused where it would go wrong."""

import pytest

import retrograd as rg
from retrograd.core.tensor import count_of

WRITES = {
    "copy_": (lambda x: x.copy_(rg.tensor([7.0, 8.0])), [7.0, 8.0]),
    "copy_ of a number": (lambda x: x.copy_(3), [3.0, 3.0]),
    "zero_": (lambda x: x.zero_(), [0.0, 0.0]),
    "fill_": (lambda x: x.fill_(2.5), [2.5, 2.5]),
    "add_": (lambda x: x.add_(rg.tensor([1.0, 2.0]), alpha=10), [14.0, 29.0]),
    "sub_": (lambda x: x.sub_(1), [3.0, 8.0]),
    "mul_": (lambda x: x.mul_(rg.tensor(2.0)), [8.0, 18.0]),
    "div_": (lambda x: x.div_(2), [2.0, 4.5]),
    "clamp_": (lambda x: x.clamp_(min=5), [5.0, 9.0]),
    "a promoted operand": (lambda x: x.add_(rg.tensor([1.0, 1.0], dtype=rg.float64)), [5.0, 10.0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_changes_the_memory_of_the_tensor_returns_it_and_is_counted(name):
    write, expected = WRITES[name]
    x = rg.tensor([4.0, 9.0])
    memory = x.numpy()
    assert write(x) is x
    assert memory.tolist() == expected
    assert x.dtype == rg.float32
    assert count_of(x) == 1


def test_augmented_assignment_writes_in_place():
    x = alias = rg.tensor([1.0, 2.0])
    x += 1
    x *= 3
    x -= rg.ones(2)
    x /= 5
    assert x is alias
    assert x.tolist() == pytest.approx([1.0, 1.6])


def test_a_training_step_written_with_augmented_assignment_trains():
    w = rg.tensor([1.0], requires_grad=True)
    (w * w).sum().backward()
    with rg.no_grad():
        w -= 0.25 * w.grad
    assert w.tolist() == [0.5]
    assert w.is_leaf


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ((1, 0), [[1.0, 1.0], [9.0, 1.0], [1.0, 1.0]]),
        (2, [[1.0, 1.0], [1.0, 1.0], [9.0, 9.0]]),
        (slice(None, 2), [[9.0, 9.0], [9.0, 9.0], [1.0, 1.0]]),
        ((Ellipsis, -1), [[1.0, 9.0], [1.0, 9.0], [1.0, 9.0]]),
    ],
)
def test_item_assignment_writes_where_the_key_points(key, expected):
    x = rg.ones(3, 2)
    x[key] = 9.0
    assert x.tolist() == expected


def test_writes_through_views_reach_the_base():
    x = rg.zeros(2, 3)
    x[0, 1].fill_(1.0)
    x.select(0, 1).add_(2.0)
    x.T[2].mul_(5.0)
    for number, part in enumerate(x.unbind()):
        part[0] = float(number + 7)
    assert x.tolist() == [[7.0, 1.0, 0.0], [8.0, 2.0, 10.0]]


@pytest.mark.parametrize(
    ("write", "error", "facts"),
    [
        (lambda x: x.copy_(rg.ones(3)), ValueError, r"\(2,\) and \(3,\) do not broadcast"),
        (lambda x: x.expand(4, 2).zero_(), RuntimeError, "read-only"),
        (lambda x: x.detach().long().add_(1.5), RuntimeError, "float32.*int64"),
        (lambda x: rg.func.grad(lambda y: x.add_(1).sum())(x), RuntimeError, "from outside a function transform"),
        (lambda x: x.add_(rg.ones(3, 2)), RuntimeError, r"\(2,\) doesn't match the broadcast shape \(3, 2\)"),
    ],
)
def test_what_can_not_be_written_is_refused_before_anything_changes(write, error, facts):
    x = rg.tensor([4.0, 9.0])
    with pytest.raises(error, match=facts):
        write(x)
    assert x.tolist() == [4.0, 9.0]
