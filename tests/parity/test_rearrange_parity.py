"""func.rearrange gives PyTorch's values, and refuses what PyTorch refuses with its words."""

import math
import re

import pytest
import torch

import retrograd as rg

from .programs import assert_agreement

ACCEPTED = [
    ((2, 3, 4), "... c -> c (...)", {}),
    ((2, 3, 4), "... c -> (... c)", {}),
    ((2, 3, 4), "a ... -> ... a", {}),
    ((2, 3, 4), "a b ... c -> c b a ...", {}),
    ((2, 3), "(a) b -> (b) a", {}),
    ((2, 3), "a b -> a (b)", {}),
    ((6, 3), "(a c) b->b a c", {"a": 2}),
    ((6, 3), "(a c) b -> b (c a)", {"c": 2}),
    ((0, 3), "(a c) b -> a (b c)", {"a": 2}),
    ((), "->", {}),
    ((2, 1), "a 1 -> a", {}),
    ((2, 1, 3), "a () b -> b a", {}),
]
REFUSED = [
    ((2, 3, 4), "(...) ->", {}, "Ellipsis is parenthesis in the left side is not allowed"),
    ((2, 3, 4), "a b c -> (...)", {}, "Ellipsis found in right side, but not left side of a pattern"),
    ((2, 3), "a b", {}, "Pattern must contain a single '->' separator"),
    ((2, 3), "a b-> a", {}, r"Identifiers only on one side of rearrange expression \(should be on both\): {'b'}"),
    ((2, 3), "a a-> a", {}, "Indexing expression contains duplicate dimension 'a'"),
    ((2, 3), "((a) b)-> a b", {}, r"Axis composition is one-level \(brackets inside brackets not allowed\)"),
    ((2, 3), "a b)-> a b", {}, "Brackets are not balanced"),
    ((2, 3), "(a b-> a b", {}, r"Imbalanced parentheses in expression: '\(a b'"),
    ((2, 3), "a . -> a .", {}, r"Expression may contain dots only inside ellipsis \(...\)"),
    ((2, 3), "a % -> a %", {}, "Unknown character '%'"),
    ((2, 3), "a _b-> a _b", {}, "axis name should should not start or end with underscore"),
    ((2, 3), "a 2b-> a 2b", {}, "Invalid axis identifier: 2b"),
    ((2, 3), "a 3-> a 3", {}, "rearrange only supports unnamed axes of size 1"),
    ((2, 3), "a b->b a", {"c": 1}, "Identifiers not found in rearrange expression: {'c'}"),
    ((2, 3), "a b->b a", {"a": 1.0}, "rearrange axis lengths must be integers"),
    ((2, 3), "a b c->b a c", {}, r"Number of dimensions in pattern \(3\) must be equal to the number of dimensions"),
    ((2, 3), "a b ... d->b a ... d", {}, r"Number of dimensions in pattern \(3\) must be less than or equal"),
]
# PyTorch raises DimensionBindError, a class of its first-class dimensions; ours is a ValueError.
WRONG_SIZES = [
    ((2, 3), "a b->b a", {"a": 5}),
    ((6, 3), "(a c) b->b a c", {}),
    ((6, 3), "(a c) b->b a c", {"a": 4}),
    ((6, 3), "(a c) b->b a c", {"a": 0}),
]


def rearranged(m, shape, pattern, lengths):
    return m.func.rearrange(m.arange(math.prod(shape)).reshape(shape), pattern, **lengths)


@pytest.mark.parametrize(("shape", "pattern", "lengths"), ACCEPTED)
def test_values_are_pytorchs(shape, pattern, lengths):
    assert_agreement(lambda m: rearranged(m, shape, pattern, lengths))


@pytest.mark.parametrize(("shape", "pattern", "lengths", "words"), REFUSED)
def test_refusals_have_pytorchs_class_and_words(shape, pattern, lengths, words):
    with pytest.raises((ValueError, TypeError), match=words) as peer:
        rearranged(torch, shape, pattern, lengths)
    with pytest.raises(peer.type, match=words):
        rearranged(rg, shape, pattern, lengths)


@pytest.mark.parametrize(("shape", "pattern", "lengths"), WRONG_SIZES)
def test_both_refuse_sizes_that_do_not_fit(shape, pattern, lengths):
    with pytest.raises(Exception, match=re.compile("dimension|zero")):
        rearranged(torch, shape, pattern, lengths)
    with pytest.raises(ValueError, match="rearrange: "):
        rearranged(rg, shape, pattern, lengths)


def test_a_size_other_than_one_at_an_unnamed_axis_is_refused_where_pytorch_sums():
    assert rearranged(torch, (2, 3), "a 1 -> a", {}).tolist() == [3, 12]
    with pytest.raises(ValueError, match="dimension of size 3 can't be split"):
        rearranged(rg, (2, 3), "a 1 -> a", {})


def test_a_list_is_stacked():
    assert_agreement(lambda m: m.func.rearrange([m.arange(3), m.arange(3) * 2], "n a -> a n"))


def test_gradients_and_batches_are_pytorchs():
    def program(m):
        x = m.arange(24.0).reshape(2, 3, 4)
        w = m.arange(24.0).reshape(2, 4, 3).sin()
        f = m.func.vmap(lambda v, u: (m.func.rearrange(v.exp(), "a b -> b a") * u).sum())
        return m.func.grad(lambda v: f(v, w).sum())(x * 0.1)

    assert_agreement(program)
