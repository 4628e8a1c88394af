"""A `Pipe` whose model decides by values: `branches` are examples for them, and each becomes part of a stage."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import PipelineScheduleMulti, get_schedule_class, pipe_split, pipeline, stage_ranks
from retrograd.testing import assert_close

from .rank_threads import run_ranks


class Early(nn.Module):
    """A model that decides by its input, in the first of two stages."""

    def __init__(self):
        super().__init__()
        rg.manual_seed(5)
        self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        with rg.no_grad():
            self.a.weight.copy_(self.a.weight.abs() * 0.1)
            self.a.bias.zero_()

    def forward(self, x):
        h = self.a(x).relu() if x.sum() > 0 else self.b(-x).tanh()
        pipe_split()
        return self.c(h * h)


class Late(Early):
    """A model that decides in its second stage by what the first one computes, and uses the input there."""

    def forward(self, x):
        h = self.a(x)
        pipe_split()
        if h.sum() > 0:
            h = self.b(h) * h + x
        return self.c(h.sin())


def batches():
    """Return microbatches of 3 rows, of which two have positive sums, here and after the linear layer `a`."""
    rg.manual_seed(1)
    found = [rg.rand(3, 4) * scale for scale in (9.0, -9.0, 20.0, -20.0)]
    a = Early().a
    assert [(x.sum() > 0).item() for x in found] == [True, False, True, False]
    assert len({(a(x).sum() > 0).item() for x in found}) == 2
    return found


def make_pipe(model):
    first, *others = batches()
    return pipeline(model, (first,), branches=[(x,) for x in others])


@pytest.mark.parametrize("kind", [Early, Late])
def test_a_pipe_takes_the_branch_of_each_input_at_any_batch_size(kind):
    model = kind()
    pipe = make_pipe(model)
    assert pipe.num_stages == 2
    for mode in (True, False):
        pipe.train(mode)
        for x in [*batches(), *[rg.cat([x, x]) for x in batches()]]:
            [actual] = pipe(x)
            assert_close(actual, model(x))
            wanted = rg.autograd.grad(model(x).sum(), list(model.parameters()), allow_unused=True)
            found = rg.autograd.grad(actual.sum(), list(pipe.parameters()), allow_unused=True)
            for a, b in zip(found, wanted, strict=True):
                assert (a is None) == (b is None)
                assert a is None or rg.allclose(a, b)


@pytest.mark.parametrize("kind", [Early, Late])
@pytest.mark.parametrize("name", ["GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble"])
def test_schedules_run_the_branches_of_each_microbatch_with_the_gradients_of_the_model(name, kind):
    multi = issubclass(get_schedule_class(name), PipelineScheduleMulti)
    model, xs, ranks = kind(), batches(), 1 if multi else 2
    pipe = make_pipe(kind())
    x, y, homes = rg.cat(xs), rg.randn(12, 2), stage_ranks(name, 2, ranks)

    def script(rank, group):
        stages = [pipe.build_stage(index, "cpu", group) for index in range(2) if homes[index] == rank]
        schedule = get_schedule_class(name)(stages if multi else stages[0], 4, mse_loss)
        losses = []
        last = {"target": y, "losses": losses} if homes[-1] == rank else {}
        schedule.step(*([x] if homes[0] == rank or kind is Late else []), **last)
        return losses

    losses = [loss for found in run_ranks(ranks, script) for loss in found]
    expected = [mse_loss(model(part), target) for part, target in zip(xs, y.split(3), strict=True)]
    assert [loss.item() for loss in losses] == pytest.approx([loss.item() for loss in expected], rel=1e-5)
    (sum(expected) / 4).backward()
    for (label, ours), theirs in zip(pipe.named_parameters(), model.parameters(), strict=True):
        assert rg.allclose(ours.grad, theirs.grad, atol=1e-6), label


def test_a_value_without_a_branch_is_refused_with_the_line():
    first, other, *_ = batches()
    pipe = pipeline(Early(), (first,), branches=[(first * 3,)])
    with pytest.raises(RuntimeError, match=r"test_value_branches_of_pipes\.py:\d+ in forward read the value"):
        pipe(other)


def test_a_boundary_inside_of_a_branch_is_refused():
    class Marked(nn.Linear):
        def forward(self, x):
            if x.sum() > 0:
                x = x.tanh()
                pipe_split()
            return super().forward(x)

    with pytest.raises(ValueError, match=r"pipe_split\(\) is in a branch on a value, at .*\.py:\d+ in forward"):
        pipeline(Marked(2, 2), (rg.ones(1, 2),), branches=[(-rg.ones(1, 2),)])
