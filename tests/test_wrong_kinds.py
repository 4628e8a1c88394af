"""Arguments of a wrong kind are refused by a TypeError that names the function or the argument, and nothing changes."""

import inspect

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.optim.swa_utils import AveragedModel

WRONG = {"None": None, "int": 3, "str": "a", "list": [], "dict": {}, "object": object()}
INIT = [name for name in vars(nn.init) if name[0] != "_" and name.endswith("_")]
IN_PLACE = [
    name
    for name in dir(rg.Tensor)
    if name.endswith("_") and name[0] != "_" and hasattr(getattr(rg.Tensor, name), "writes")
]


def refusal(call):
    with pytest.raises(TypeError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("name", INIT)
def test_initializers_name_what_is_no_tensor(name):
    function = getattr(nn.init, name)
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    for wrong in WRONG.values():
        said = refusal(lambda w=wrong: function(w, *[1.0] * (len(needed) - 1)))
        assert "tensor must be a Tensor, got" in said


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_functions_name_what_is_no_tensor(name):
    for wrong in WRONG.values():
        assert (
            refusal(lambda w=wrong: getattr(rg.Tensor, name)(w)).partition(", got")[0].endswith("_: expected a Tensor")
        )


def gradients():
    p = rg.ones(2, requires_grad=True)
    p.grad = 9 * rg.ones(2)
    return p


p, layer = gradients(), nn.Linear(2, 2)
REFUSED = {
    "AveragedModel: model must be a Module": AveragedModel,
    "clip_grad_norm_: expected a Tensor": lambda wrong: nn.utils.clip_grad_norm_([p, wrong], 1.0),
    "clip_grad_value_: expected a Tensor": lambda wrong: nn.utils.clip_grad_value_([p, wrong], 1.0),
    "apply: fn must be a function": layer.apply,
    "get_device: expected a Tensor": rg.get_device,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("words", REFUSED)
def test_arguments_of_a_wrong_kind_are_named(words, wrong):
    assert refusal(lambda: REFUSED[words](WRONG[wrong])).startswith(words)
    assert p.grad.tolist() == [9.0, 9.0]


@pytest.mark.parametrize("wrong", [None, 3, "a", object()])
def test_what_is_no_tensor_has_no_gradients(wrong):
    w = rg.ones(2, requires_grad=True)
    for call in (
        lambda: rg.autograd.grad(wrong, w),
        lambda: rg.autograd.grad(w.sum(), wrong),
        lambda: rg.autograd.backward(wrong),
        lambda: nn.utils.clip_grad_norm_(wrong, 1.0),
    ):
        assert "expected a Tensor" in refusal(call)
