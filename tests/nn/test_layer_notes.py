"""An error inside a model names the layer and what it was called with."""

import pickle

import pytest

import retrograd as rg
from retrograd import nn


class Failing(nn.Module):
    def __init__(self, error=ValueError):
        super().__init__()
        self.error = error

    def forward(self, *args, **kwargs):
        raise self.error("on purpose")


def notes(model, *args, **kwargs):
    with pytest.raises((ValueError, ZeroDivisionError)) as caught:
        model(*args, **kwargs)
    return getattr(caught.value, "__notes__", [])


def test_the_innermost_layer_is_named_once():
    model = nn.Sequential(nn.Linear(4, 8), nn.ModuleDict({"a": nn.Sequential(nn.ReLU(), nn.Linear(9, 3))})["a"])
    (note,) = notes(nn.Sequential(model), rg.ones(2, 4))
    assert note == "in layer 0.1.1 (Linear) of Sequential, called with a Tensor of shape (2, 8) and float32"


def test_a_model_without_layers_has_no_note():
    assert notes(nn.Linear(4, 8), rg.ones(2, 3)) == []


def test_keywords_and_calls_without_arguments_are_described():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Failing()

        def forward(self, **given):
            return self.part(**given)

    assert notes(Model()) == ["in layer part (Failing) of Model, called with no arguments"]
    assert notes(Model(), mode="mean")[0].endswith("called with mode='mean'")


def test_a_layer_that_the_model_does_not_own_is_named_by_the_layer_around_it():
    class Borrowing(nn.Module):
        def forward(self, x):
            return Failing()(x)

    (note,) = notes(nn.Sequential(Borrowing()), 1)
    assert note == "in layer 0 (Borrowing) of Sequential, called with 1"


@pytest.mark.parametrize("hook", ["register_forward_hook", "register_forward_pre_hook"])
def test_errors_of_hooks_name_the_layer(hook):
    model = nn.Sequential(nn.ReLU())
    getattr(model[0], hook)(lambda *_: 1 / 0)
    assert notes(model, rg.ones(2))[0].startswith("in layer 0 (ReLU) of Sequential")


def test_other_notes_stay_and_errors_can_be_sent_to_other_processes():
    error = ValueError("on purpose")
    error.add_note("mine")
    (mine, ours) = notes(nn.Sequential(nn.Sequential(Failing(lambda _: error))), 1)
    assert (mine, ours) == ("mine", "in layer 0.0 (Failing) of Sequential, called with 1")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["mine", ours]


def test_an_endless_recursion_stays_a_recursion_error():
    class Endless(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = [self]

        def forward(self, x):
            return self.parts[0](x)

    with pytest.raises(RecursionError):
        nn.Sequential(Endless())(1)


def test_a_compiled_model_names_the_layer_as_well():
    model = rg.compile(nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 1)))
    assert notes(model, rg.ones(1, 2))[0].startswith("in layer _orig_mod.1 (Linear) of OptimizedModule")
