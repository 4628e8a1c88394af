"""Errors of frequent mistakes name the values, what is wanted, and the way out."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F

MISTAKES = {
    "class numbers as floats": (
        lambda: F.cross_entropy(rg.ones(3, 5), rg.tensor([0.0, 1.0, 2.0])),
        ["(3, 5)", "(3,)", "float32", "probability for each class", ".to('int64')"],
    ),
    "class numbers in a column": (
        lambda: nn.CrossEntropyLoss()(rg.ones(3, 5), rg.tensor([[0], [1], [2]])),
        ["(3, 5)", "(3, 1)", "target.squeeze(1)"],
    ),
    "a class out of range": (
        lambda: F.cross_entropy(rg.ones(3, 5), rg.tensor([0, 1, 7])),
        ["Target 7 is out of bounds", "0 to 4", "at least 8"],
    ),
    "a class out of range in a batch of pixels": (
        lambda: F.cross_entropy(rg.ones(2, 3, 4), rg.tensor([[0, 1, 2, 0], [0, 0, 7, 0]])),
        ["Target 7 is out of bounds", "the target at index [1, 2]", "there are 3 classes"],
    ),
    "classes in the last dimension": (
        lambda: F.cross_entropy(rg.ones(4, 7, 10), rg.zeros(4, 7, dtype="int64")),
        ["(4, 7, 10)", "(4, 7)", "input.movedim(-1, 1)"],
    ),
    "input and target in the wrong order": (
        lambda: F.cross_entropy(rg.tensor([0, 1]), rg.ones(2, 3)),
        ["(2,)", "(2, 3)", "the input comes first, then the target"],
    ),
    "classes and scores in the wrong order": (
        lambda: F.nll_loss(rg.tensor([0, 1]), rg.ones(2, 3)),
        ["(2,)", "(2, 3)", "the input comes first, then the target"],
    ),
    "dtypes in the order of the operands": (
        lambda: F.linear(rg.ones(2, 3, dtype="float64"), rg.ones(2, 3)),
        ["got float64 and float32"],
    ),
    "an embedding out of range": (
        lambda: nn.Embedding(10, 3)(rg.tensor([1, 12])),
        ["embedding: index 12", "size 10", "0 to 9", "at least 13"],
    ),
    "a negative embedding": (
        lambda: nn.Embedding(10, 3)(rg.tensor([1, -3])),
        ["embedding: index -3", "size 10", "0 to 9"],
    ),
    "an embedding of floats": (
        lambda: nn.Embedding(10, 3)(rg.tensor([1.0])),
        ["integers", "float32", ".to('int64')"],
    ),
    "a module on a GPU": (lambda: nn.Linear(2, 3).cuda(), ["CPU", "'cuda'", "rg.cuda.is_available()"]),
    "a module moved to a GPU": (lambda: nn.Linear(2, 3).to("cuda:0"), ["CPU", "'cuda:0'", "rg.cuda.is_available()"]),
    "a tensor on a GPU": (lambda: rg.ones(2, device="cuda"), ["CPU", "'cuda'", "rg.cuda.is_available()"]),
    "ragged lists": (
        lambda: rg.tensor([[1, 2], [3]]),
        ["expected sequence of length 2 at dim 1 (got 1)", "nested_tensor", "pad_sequence"],
    ),
    "tensors of different lengths": (lambda: rg.tensor([rg.ones(2), rg.ones(3)]), ["nested_tensor", "pad_sequence"]),
    "factors that fit transposed": (
        lambda: rg.ones(2, 3) @ rg.ones(4, 3),
        ["(2, 3)", "(4, 3)", "3, must be the last but one of the second, 4", ".mT, would fit"],
    ),
    "factors that do not fit": (lambda: rg.ones(2, 3) @ rg.ones(4, 5), ["(2, 3)", "(4, 5)", "must be"]),
    "too many features": (
        lambda: nn.Linear(4, 2)(rg.ones(3, 5)),
        ["(3, 5)", "(2, 4)", "last size of x is 5", "takes 4 features"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_frequent_mistake_is_answered_by_values_and_the_way_out(mistake):
    call, words = MISTAKES[mistake]
    with pytest.raises((ValueError, TypeError, IndexError, RuntimeError)) as caught:
        call()
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, str(caught.value)


def test_no_hint_is_given_where_it_would_be_wrong():
    with pytest.raises(ValueError, match="matmul") as caught:
        rg.ones(2, 3) @ rg.ones(4, 5)
    assert "mT" not in str(caught.value)
    with pytest.raises(ValueError, match="cross_entropy") as caught:
        F.cross_entropy(rg.ones(3, 5), rg.tensor([0, 1]))
    assert "squeeze" not in str(caught.value)
    with pytest.raises(ValueError, match="linear") as caught:
        F.linear(rg.ones(3, 4), rg.ones(2, 4), rg.ones(3))
    assert "features" not in str(caught.value)
