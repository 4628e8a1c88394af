"""Losses with margins: ties, invalid targets, non-positive variances, impossible sequences."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F
from retrograd.testing import assert_close


def test_targets_other_than_one_and_minus_one_count_as_in_pytorch():
    x = rg.tensor([0.2, 0.2, 0.2])
    target = rg.tensor([1, -1, 0])
    assert_close(rg.hinge_embedding_loss(x, target, reduction="none").numpy(), np.array([0.2, 0.8, 1.0], "float32"))
    a = rg.tensor([[1.0, 0.0]] * 3)
    assert rg.cosine_embedding_loss(a, a, target, reduction="none").tolist() == [0.0, 1.0, 0.0]


def test_the_cosine_of_zero_vectors_is_zero_with_finite_gradient():
    x = rg.zeros(1, 3, requires_grad=True)
    loss = rg.cosine_embedding_loss(x, rg.ones(1, 3), rg.ones(1))
    assert loss.item() == 1.0
    assert np.isfinite(rg.autograd.grad(loss, x)[0].numpy()).all()


def test_soft_margins_do_not_overflow():
    x = rg.tensor([-1e3, 1e3])
    assert F.soft_margin_loss(x, rg.ones(2), reduction="none").tolist() == [1e3, 0.0]


def test_labels_end_at_the_first_minus_one():
    x = rg.tensor([0.1, 0.2, 0.4, 0.8])
    expected = ((1 - 0.8 + 0.1) + (1 - 0.8 + 0.2) + (1 - 0.8 + 0.4)) / 4
    for target in ([3, -1, 0, 1], [3, -1, -1, -1]):
        assert F.multilabel_margin_loss(x, rg.tensor(target)).item() == pytest.approx(expected)


def test_swapping_takes_the_nearer_of_the_two():
    anchor, positive, negative = rg.tensor([0.0]), rg.tensor([1.0]), rg.tensor([2.0])
    plain = rg.triplet_margin_loss(anchor, positive, negative, margin=2.0)
    swapped = rg.triplet_margin_loss(anchor, positive, negative, margin=2.0, swap=True)
    assert plain.item() == pytest.approx(1.0, abs=1e-5)
    assert swapped.item() == pytest.approx(2.0, abs=1e-5)


def test_a_user_defined_distance_is_called():
    x = [rg.tensor([v], requires_grad=True) for v in (0.0, 1.0, 5.0)]
    loss = F.triplet_margin_with_distance_loss(*x, distance_function=lambda a, b: (a - b).square().sum(), margin=30.0)
    assert loss.item() == 30 + 1 - 25


def test_counts_of_zero_and_one_have_no_stirling_term():
    counts = rg.tensor([0.0, 1.0, 2.0])
    terms = rg.poisson_nll_loss(rg.zeros(3), counts, full=True, reduction="none")
    assert_close(terms.numpy(), np.array([1, 1, 1 + 2 * math.log(2) - 2 + 0.5 * math.log(4 * math.pi)], "float32"))


def test_a_small_variance_counts_as_eps_and_still_gets_a_gradient():
    var = rg.tensor([0.0], requires_grad=True)
    loss = F.gaussian_nll_loss(rg.zeros(1), rg.zeros(1), var, eps=0.5)
    assert loss.item() == pytest.approx(0.5 * math.log(0.5))
    assert rg.autograd.grad(loss, var)[0].tolist() == [1.0]


# ------------------------------------------------------------------------------------------------- sequences


def ctc(logits, targets, *lengths, **settings):
    return rg.ctc_loss(rg.log_softmax(logits, 2), rg.tensor(targets), *lengths, **settings)


def test_targets_in_a_table_or_in_a_row_cost_the_same(rng):
    logits = rg.tensor(rng.normal(size=(6, 2, 4)))
    lengths = (rg.tensor([6, 5]), rg.tensor([3, 1]))
    table = ctc(logits, [[1, 1, 3], [2, 0, 0]], *lengths, reduction="none")
    assert_close(table, ctc(logits, [1, 1, 3, 2], *lengths, reduction="none"))
    assert_close(ctc(logits, [1, 1, 3, 2], *lengths), (table / rg.tensor([3.0, 1.0], dtype="float64")).mean())


def test_a_target_too_long_for_its_steps_costs_infinity_and_has_gradient_zero(rng):
    logits = rg.tensor(rng.normal(size=(2, 1, 3)), requires_grad=True)
    loss = ctc(logits, [[1, 1]], (2,), (2,))
    assert loss.item() == math.inf
    assert rg.autograd.grad(loss, logits)[0].tolist() == np.zeros((2, 1, 3)).tolist()
    assert ctc(logits, [[1, 1]], (2,), (2,), zero_infinity=True).item() == 0


def test_certain_blanks_spell_nothing():
    logs = rg.tensor([[[0.0, -math.inf]]] * 3, requires_grad=True)
    loss = rg.ctc_loss(logs, rg.zeros(1, 1, dtype="int64"), (3,), (0,), reduction="sum")
    assert loss.item() == 0
    assert np.isfinite(rg.autograd.grad(loss, logs)[0].numpy()).all()


def test_steps_beyond_the_length_do_not_count(rng):
    logits = rg.tensor(rng.normal(size=(5, 1, 3)), requires_grad=True)
    loss = ctc(logits, [[2]], (3,), (1,))
    assert_close(loss, ctc(logits[:3], [[2]], (3,), (1,)))
    assert rg.autograd.grad(loss, logits)[0][3:].abs().sum().item() == 0


def test_the_gradient_behind_log_softmax_sums_to_zero_over_the_classes(rng):
    logits = rg.tensor(rng.normal(size=(4, 2, 3)), requires_grad=True)
    g = rg.autograd.grad(ctc(logits, [[1], [2]], (4, 4), (1, 1)), logits)[0]
    assert_close(g.sum(2).numpy(), np.zeros((4, 2)), atol=1e-12)
