"""Models whose control flow depends on values: a capture for each combination of branches, chosen per microbatch."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import Pipeline, PipelineError, SplitPoint, pipe_split
from retrograd.pipelining.runtime.gradient_sums import Gradients

from .matrix import branching_batches, branching_model, check_step, descend
from .splits import cut_after


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved1f1b", "ZB-H1", "zbv", "dualpipev"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_each_micro_batch_takes_its_branches_and_has_the_gradients_of_the_model(schedule, deterministic):
    found, expected = branching_model(), branching_model()
    options = {"micro_batches": 4, "loss_fn": mse_loss, "deterministic": deterministic}
    pipeline = Pipeline(found, 4, schedule=schedule, **options)
    for x, y in branching_batches():
        check_step(pipeline, expected, x, y)
        descend(found)
        descend(expected)
    assert sum(one.micro_batches for one in pipeline.captures()) == 16
    assert len({one.guards for one in pipeline.captures()}) == len(pipeline.captures()) > 3


@pytest.mark.parametrize(
    "options", [{"split_spec": {"negative": SplitPoint.BEGINNING}}, {"split_spec": {"last": SplitPoint.BEGINNING}}]
)
def test_marks_in_one_branch_only_do_not_move_parameters(options):
    found, expected = branching_model(), branching_model()
    pipeline = Pipeline(found, micro_batches=4, loss_fn=mse_loss, **options)
    for x, y in branching_batches():
        check_step(pipeline, expected, x, y)
    homes = [
        {name: stage.stage_index for stage in one.pipe.stages for name, _ in stage.submod.named_parameters()}
        for one in pipeline._captures.all()
    ]
    for home in homes[1:]:
        assert {name: stage for name, stage in home.items() if name in homes[0]}.items() <= homes[0].items()


class Gated(nn.Module):
    """A model that doubles its result where the sum of its input is positive."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        h = self.a(x)
        if x.sum() > 0:
            h = h * 2
        return self.b(h)


def test_a_report_lists_the_captures_and_how_often_each_was_chosen():
    pipeline = Pipeline(Gated(), 2, micro_batches=3)
    x = rg.tensor([[1.0, 1.0], [-1.0, -1.0], [2.0, 2.0]])
    assert rg.allclose(pipeline.predict(x), pipeline.model(x[:1]).detach().new_tensor(pipeline.predict(x).tolist()))
    pipeline.model.eval()
    pipeline.predict(x[1:2])
    reports = pipeline.captures()
    assert [(one.training, one.inputs, one.micro_batches) for one in reports] == [
        (True, ("float32[1, 2]",), 4), (True, ("float32[1, 2]",), 2), (False, ("float32[1, 2]",), 1),
    ]  # fmt: skip
    assert [one.guards[0].value for one in reports] == ["True", "False", "False"]
    line = Gated.forward.__code__.co_firstlineno + 2
    assert all(f"test_value_branches.py:{line} in forward" in one.guards[0].source for one in reports)


def test_more_captures_than_permitted_are_refused_before_anything_runs():
    class Scaled(nn.Linear):
        def forward(self, x):
            return super().forward(x) * x.max().item()

    model = Scaled(2, 2)
    pipeline = Pipeline(model, 1, loss_fn=mse_loss, max_captures=2)
    for value in (1.0, 2.0, 1.0):
        pipeline.step(rg.full((1, 2), value), target=rg.ones(1, 2))
    before = model.weight.grad.clone()
    with pytest.raises(
        RuntimeError, match=r"in forward read 3.0, for which the model is not captured, and there are 2"
    ):
        pipeline.step(rg.full((1, 2), 3.0), target=rg.ones(1, 2))
    assert len(pipeline.captures()) == 2
    assert model.weight.grad.tolist() == before.tolist()
    pipeline.step(rg.full((1, 2), 2.0), target=rg.ones(1, 2))
    with pytest.raises(ValueError, match="max_captures must be an integer of at least 1, got 0"):
        Pipeline(model, 1, max_captures=0)


def test_a_value_that_depends_on_draws_or_on_earlier_micro_batches_is_checked_in_the_run():
    class RandomBranch(nn.Linear):
        def forward(self, x):
            return super().forward(x) * (2 if (nn.functional.dropout(x, 0.5) * x).sum() > limit else 1)

    class Counting(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)
            self.seen = nn.Buffer(rg.zeros(()))

        def forward(self, x):
            self.seen += x.sum().detach()
            return super().forward(x) * (2 if self.seen > limit else 1)

    limit = 3.0
    for model in (RandomBranch(2, 2), Counting()):
        pipeline = Pipeline(model, 1, loss_fn=mse_loss)
        pipeline.step(rg.zeros(1, 2), target=rg.ones(1, 2))
        with pytest.raises(PipelineError, match=r"guard: .* in forward read the value False"):
            pipeline.step(rg.full((1, 2), 100.0), target=rg.ones(1, 2))
        assert pipeline.captures()[0].guards == ()


def test_a_branch_on_the_size_of_a_micro_batch_may_use_other_values_of_earlier_stages():
    class Sized(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            h = self.a(x)
            pipe_split()
            k = self.b(h.tanh())
            pipe_split()
            return k.tanh() + h if x.shape[0] > 1 else k.tanh()

    model = Sized()
    pipeline = Pipeline(model, micro_batches=2, loss_fn=mse_loss)
    x, y = rg.randn(3, 2), rg.randn(3, 2)
    loss = pipeline.step(x, target=y)
    parts = [mse_loss(model(part), target) * (len(part) / 3) for part, target in ((x[:2], y[:2]), (x[2:], y[2:]))]
    assert abs(loss.item() - sum(parts).item()) < 1e-6
    mine = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    sum(parts).backward()
    assert all(rg.allclose(a, p.grad, atol=1e-6) for a, p in zip(mine, model.parameters(), strict=True))


def test_a_branch_on_the_number_of_elements_of_a_ragged_input_is_captured_for_each():
    class Long(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)

        def forward(self, x):
            return self.a(x) * 2 if x.numel() > 8 else self.a(x)

    def ragged(*lengths):
        return rg.nested.nested_tensor([rg.ones(n, 2) for n in lengths], layout=rg.jagged)

    model = Long()
    pipeline = Pipeline(model, 1)
    for x in (ragged(1, 2), ragged(4, 5), ragged(2, 2), ragged(1, 2)):
        assert rg.allclose(pipeline.predict(x).values(), model(x).values())
    with pytest.raises(ValueError, match="the graph depends on these sizes"):
        rg.fx.trace(model, ragged(1, 2))(ragged(4, 5))


def test_copies_of_a_parameter_get_the_sum_also_in_a_step_without_the_branch_that_copies_it():
    class Twice(Gated):
        def forward(self, x):
            h = self.b(self.a(x).tanh())
            return self.a(h.tanh()) if x.sum() < 0 else h.tanh()

    model, x, y = Twice(), rg.tensor([[-1.0, -1.0], [1.0, 1.0]]), rg.zeros(2, 2)
    pipeline = Pipeline(model, 2, micro_batches=1, loss_fn=mse_loss, split_policy=cut_after(2))
    pipeline.step(x[:1], target=y[:1])
    assert [set(dict(stage.submod.named_parameters())) for stage in pipeline.pipe.stages] == [
        {"a.weight", "a.bias"}, {"a.weight", "a.bias", "b.weight", "b.bias"},
    ]  # fmt: skip
    model.zero_grad()
    users = []
    real = Gradients.finish
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gradients, "finish", lambda sums, link: users.append(sums._users) or real(sums, link))
        pipeline.step(x[1:], target=y[1:])
    assert users == [[[0, 1], [0, 1]]] * 2  # both ranks receive the gradients of both copies
    mine = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    mse_loss(model(x[1:]), y[1:]).backward()
    assert all(rg.allclose(a, p.grad, atol=1e-6) for a, p in zip(mine, model.parameters(), strict=True))


def test_dropout_in_a_branch_is_reproducible():
    class Dropping(Gated):
        def forward(self, x):
            return nn.functional.dropout(super().forward(x), 0.5) if x.max() > 0 else super().forward(x)

    model, x = Dropping(), rg.randn(6, 2)
    pipeline = Pipeline(model, 2, micro_batches=3)
    runs = []
    for _ in range(2):
        rg.manual_seed(4)
        runs.append(pipeline.predict(x).tolist())
    assert runs[0] == runs[1]


def test_a_stage_receives_a_parameter_that_it_uses_in_one_branch_only():
    class Again(Gated):
        def forward(self, x):
            h = self.b(self.a(x).tanh())
            return self.a(h.tanh()) if x.sum() > 0 else h.tanh()

    model, x, y = Again(), rg.tensor([[-1.0, -1.0], [1.0, 1.0]]), rg.zeros(2, 2)
    pipeline = Pipeline(model, 2, micro_batches=2, loss_fn=mse_loss, split_policy=cut_after(2))
    pipeline.step(x, target=y)
    stages = [one.pipe.stages[1] for one in pipeline._captures.all()]
    assert [[name for name, _ in stage.submod.named_parameters()] for stage in stages] == [["b.weight", "b.bias"]] * 2
    assert {value.name for value in stages[1].inputs} >= {"a_weight", "a_bias"}
    mine = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    sum(mse_loss(model(x[i : i + 1]), y[:1]) / 2 for i in range(2)).backward()
    assert all(rg.allclose(a, p.grad, atol=1e-6) for a, p in zip(mine, model.parameters(), strict=True))
