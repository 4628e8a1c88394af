"""Pipelines on ragged microbatches give the results of the unsplit model."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nested import nested_tensor
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import Pipeline, pipe_split
from retrograd.pipelining.microbatch import split_batch

LENGTHS = (2, 5, 1, 3, 4, 2)


def sequences(lengths=LENGTHS, width=4, seed=0):
    r = np.random.default_rng(seed)
    return nested_tensor([rg.tensor(r.uniform(-1, 1, (n, width))) for n in lengths])


class Marked(nn.Module):
    """A model with two stages."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        y = self.a(x).tanh()
        pipe_split()
        return self.b(y) + x


def model():
    rg.random.manual_seed(0)
    return Marked().to(rg.float64)


def unsplit(x, y, loss_fn):
    alone = model()
    loss = loss_fn(alone(x), y)
    loss.backward()
    return loss.item(), {name: p.grad for name, p in alone.named_parameters()}


def assert_gradients(module, expected):
    for name, p in module.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), expected[name].numpy(), rtol=1e-9, atol=1e-12)


def by_sequence(out, target):
    """Return the mean over the sequences, with one target each."""
    return ((out.mean(1) - target) ** 2).mean()


def test_a_batch_is_split_by_components():
    x = sequences()
    parts = split_batch((x,), {}, 4)
    assert [[len(c) for c in part.args[0].unbind()] for part in parts] == [[2, 5], [1, 3], [4], [2]]
    found = [c for part in parts for c in part.args[0].unbind()]
    for a, b in zip(found, x.unbind(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy())


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("micro_batches", [1, 2, 4])
def test_a_mean_over_the_elements_of_ragged_targets_is_that_of_the_unsplit_model(schedule, micro_batches):
    x, y = sequences(), sequences(seed=1)
    loss, gradients = unsplit(x, y, mse_loss)
    split = model()
    pipeline = Pipeline(split, schedule=schedule, micro_batches=micro_batches, loss_fn=mse_loss)
    assert pipeline.step(x, target=y).item() == pytest.approx(loss)
    assert_gradients(split, gradients)


def test_a_mean_over_sequences_is_that_of_the_unsplit_model():
    x, y = sequences(), rg.tensor(np.random.default_rng(2).uniform(-1, 1, (6, 4)))
    loss, gradients = unsplit(x, y, by_sequence)
    split = model()
    assert Pipeline(split, micro_batches=4, loss_fn=by_sequence).step(x, target=y).item() == pytest.approx(loss)
    assert_gradients(split, gradients)


def test_outputs_are_joined_again():
    x, module = sequences(), model()
    found, expected = Pipeline(module, micro_batches=4).predict(x), module(x)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.values().numpy(), expected.detach().values().numpy())


def test_captured_programs_run_batches_of_other_lengths():
    split = model()
    pipeline = Pipeline(split, micro_batches=2, loss_fn=mse_loss)
    pipeline.step(sequences(), target=sequences(seed=1))
    captured = pipeline.pipe
    split.zero_grad()
    x, y = sequences((1, 1, 7, 2, 3, 6)), sequences((1, 1, 7, 2, 3, 6), seed=1)
    loss, gradients = unsplit(x, y, mse_loss)
    assert pipeline.step(x, target=y).item() == pytest.approx(loss)
    assert_gradients(split, gradients)
    assert len(pipeline._captures) == 1
    assert pipeline.pipe is captured


def test_a_model_that_unpacks_sequences_is_captured_for_each_structure():
    class SeparateLayers(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 1)

        def forward(self, x):
            return self.a(x).values()

    rg.random.manual_seed(0)
    module = SeparateLayers().to(rg.float64)
    pipeline = Pipeline(module, micro_batches=2)
    x = sequences()
    np.testing.assert_allclose(pipeline.predict(x).numpy(), module(x).detach().numpy())
    assert len(pipeline._captures) == 2


def test_a_model_is_split_automatically_by_typical_sizes():
    rg.random.manual_seed(0)
    module = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)]).to(rg.float64)
    pipeline = Pipeline(module, stages=2, micro_batches=3, loss_fn=mse_loss)
    x, y = sequences(), sequences(seed=1)
    expected = mse_loss(module(x), y).item()
    assert pipeline.step(x, target=y).item() == pytest.approx(expected)
    assert pipeline.pipe.num_stages == 2
