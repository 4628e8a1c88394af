"""A pipeline that is called in PyTorch's or another way says what it expects."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F
from retrograd.pipelining import Pipeline, PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

x, y = rg.ones(4, 3), rg.ones(4, 2)


def model():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def pipeline():
    return Pipeline(model(), 2, loss_fn=F.mse_loss, micro_batches=2, transport="threads")


def stage():
    return PipelineStage(model(), 0, 1, device="cpu")


MAKERS = {
    "Pipeline": pipeline,
    "ScheduleGPipe": lambda: ScheduleGPipe(stage(), 2, loss_fn=F.mse_loss),
    "Schedule1F1B": lambda: Schedule1F1B(stage(), 2, loss_fn=F.mse_loss),
    "ScheduleInterleaved1F1B": lambda: ScheduleInterleaved1F1B([stage()], 2, loss_fn=F.mse_loss),
}


@pytest.mark.parametrize(
    "step",
    [lambda pipe: pipe.step(x, y), lambda pipe: pipe.step(x), lambda pipe: pipe.step(x, targets=y)],
    ids=["by position", "not at all", "by another keyword"],
)
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.filterwarnings("ignore:mse_loss. the input has shape")
def test_a_step_without_its_target_names_the_keyword(name, step):
    with pytest.raises((RuntimeError, TypeError)) as caught:
        step(MAKERS[name]())
    assert caught.value.__notes__ == [
        f"{name}.step: no target was given; its keyword is target=: step(x, target=y)"
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:mse_loss. the input has shape")
def test_so_do_the_other_steps():
    for call, step in {
        "costs(x, target=y)": lambda: pipeline().costs(x, y),
        "step_microbatches(x, target_mbs=y)": lambda: pipeline().step_microbatches([(x, y)]),
        "step(x, target=y)": lambda: rg.func.grad(lambda x: pipeline().step(x, y))(x),
    }.items():
        with pytest.raises((RuntimeError, TypeError)) as caught:
            step()
        assert caught.value.__notes__[-1].endswith(call)


def test_a_schedule_gives_no_note_where_no_target_is_due():
    for schedule in (ScheduleGPipe(stage(), 2), MAKERS["ScheduleGPipe"]()):
        with pytest.raises(RuntimeError) as caught:
            schedule.eval(x, y)
        assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("batch", [x, (x,), (x, y, y), {"x": x, "y": y}])
def test_a_batch_of_train_steps_that_is_no_pair_is_refused(batch):
    pipe = pipeline()
    with pytest.raises(TypeError, match="each batch must be a pair of the model's arguments and the target, got "):
        pipe.train_steps([(x, y), batch], rg.optim.SGD(pipe.model.parameters(), lr=0.1))


def test_an_error_of_a_step_with_a_target_gets_no_note_about_it():
    pipe = Pipeline(model(), 2, loss_fn=F.mse_loss, micro_batches=2, transport="threads")
    with pytest.raises(ValueError, match="batch sizes differ") as caught:
        pipe.step(x, target=rg.ones(3, 2))
    assert not getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize(
    ("loss_fn", "text"),
    [("mse", "a function of the output and the target, got 'mse'"), (nn.MSELoss, r"make one: MSELoss\(\)")],
)
def test_a_loss_that_is_no_function_is_refused(loss_fn, text):
    with pytest.raises(TypeError, match=text):
        Pipeline(model(), 2, loss_fn=loss_fn)


def test_a_function_is_no_model():
    with pytest.raises(TypeError, match="expected a Module, or the stages as a list of Modules, got <function"):
        Pipeline(lambda x: x, 2)
