"""Checkpointed code on nested tensors gives the same gradients."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import operator_named
from retrograd.nested import nested_tensor
from retrograd.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)

LENGTHS = (2, 0, 4, 1)


def leaf():
    r = np.random.default_rng(0)
    return nested_tensor([rg.tensor(r.uniform(-1, 1, (n, 3))) for n in LENGTHS], requires_grad=True)


def weight():
    return rg.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [3.0, -1.0, 2.0]], dtype="float64", requires_grad=True)


def block(x, w):
    return (x @ w).tanh() * x


def gradients(run):
    x, w = leaf(), weight()
    run(x, w).values().sum().backward()
    return x.grad.values().numpy(), w.grad.numpy()


def assert_same(run):
    for found, expected in zip(gradients(run), gradients(block), strict=True):
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_gives_the_same_gradients(reentrant):
    assert_same(lambda x, w: checkpoint(block, x, w, use_reentrant=reentrant))


def test_checkpoints_nest():
    assert_same(lambda x, w: checkpoint(lambda x: checkpoint(block, x, w, use_reentrant=False), x, use_reentrant=False))


def test_a_selective_checkpoint_keeps_what_the_policy_says():
    kept = []

    def policy(ctx, op, *args, **kwargs):
        if op is operator_named("matmul"):
            kept.append(op)
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE

    assert_same(
        lambda x, w: checkpoint(
            block, x, w, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy)
        )
    )
    assert kept


def test_a_sequence_of_checkpointed_steps_gives_the_same_gradients():
    steps = [lambda x: x.sin(), lambda x: x * 2, lambda x: x.exp()]

    def without_checkpoint(x):
        for step in steps:
            x = step(x)
        return x

    x, y = leaf(), leaf()
    checkpoint_sequential(steps, 2, x, use_reentrant=False).values().sum().backward()
    without_checkpoint(y).values().sum().backward()
    np.testing.assert_allclose(x.grad.values().numpy(), y.grad.values().numpy())


def test_a_checkpoint_with_dropout_draws_the_same_numbers_again():
    def with_dropout(x, w):
        return rg.nn.functional.dropout(x @ w, 0.5, training=True) * x

    def run(use):
        rg.random.manual_seed(3)
        return gradients(use)

    plain = run(with_dropout)
    again = run(lambda x, w: checkpoint(with_dropout, x, w, use_reentrant=False))
    for a, b in zip(plain, again, strict=True):
        np.testing.assert_allclose(a, b)
