"""A pipeline that is called in PyTorch's or another way says what it expects."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F
from retrograd.pipelining import Pipeline

x, y = rg.ones(4, 3), rg.ones(4, 2)


def model():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


@pytest.mark.parametrize(
    "step",
    [lambda pipe: pipe.step(x, y), lambda pipe: pipe.step(x), lambda pipe: pipe.step(x, targets=y)],
    ids=["by position", "not at all", "by another keyword"],
)
def test_a_step_without_its_target_names_the_keyword(step):
    pipe = Pipeline(model(), 2, loss_fn=F.mse_loss, micro_batches=2, transport="threads")
    with pytest.raises((RuntimeError, TypeError)) as caught:
        step(pipe)
    assert caught.value.__notes__[-1].endswith("its keyword is target=: step(x, target=y)")


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
