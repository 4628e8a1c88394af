"""`F.relu(x, inplace=True)` and similar functions write their result to the input."""

import inspect

import numpy as np
import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.core import registry
from retrograd.nn import functional as F

NAMES = sorted(operator.name for operator in registry.values() if operator.definition.in_place == "argument")
# Further arguments of some functions.
ARGUMENTS = {"threshold": (0.1, 0.5), "alpha_dropout": (0.4, True), "feature_alpha_dropout": (0.4, True)}


def tensors(rng):
    return rg.from_numpy(rng.standard_normal((4, 6, 2)))


def inputs(name, rng):
    """Return an input of the number of dimensions that a function takes without a warning."""
    x = tensors(rng)
    return x[..., None] if name in ("dropout2d", "dropout3d") else x


def test_they_are_those_of_pytorch():
    assert NAMES == [
        "alpha_dropout", "celu", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "feature_alpha_dropout",
        "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu", "relu6", "rrelu", "selu", "silu",
        "threshold",
    ]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_result_is_written_into_the_input_and_differentiates(name, rng):
    function, others = getattr(F, name), ARGUMENTS.get(name, ())
    x = inputs(name, rng)
    results = []
    for inplace in (False, True):
        w = x.clone().requires_grad_()
        h = w * 1.5
        rg.manual_seed(3)
        y = function(h, *others, inplace=inplace)
        assert (y is h) == inplace
        (y * y).sum().backward()
        results.append((y.detach().numpy(), w.grad.numpy()))
    assert np.array_equal(results[0][0], results[1][0])
    assert np.allclose(results[0][1], results[1][1], rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_inplace_is_the_last_argument_by_position_too(name, rng):
    function = getattr(F, name)
    parameters = inspect.signature(function).parameters
    assert list(parameters)[-1] == "inplace"
    assert function.__name__ == name
    assert function.__doc__ == registry[name].__doc__
    given = ARGUMENTS.get(name, tuple([p.default for p in list(parameters.values())[1:-1]]))
    x = inputs(name, rng)
    assert function(x, *given, True) is x


def test_read_only_tensors_refuse_writes():
    with pytest.raises(RuntimeError, match="leaf"):
        F.relu(rg.ones(2, requires_grad=True), inplace=True)
    with pytest.raises(TypeError, match="relu"):
        F.relu(rg.ones(2), True, 3)


class Model(nn.Module):
    """A model that writes in place in two ways."""

    def forward(self, x):
        return F.dropout(F.relu_(F.relu(x - 1, inplace=True) - 1), 0.5, self.training, inplace=True)


def test_under_transforms_and_in_graphs_it_writes_too():
    x, model = rg.tensor([[-1.0, 4.0], [2.5, 0.0]]), Model().eval()
    expected = [[0.0, 2.0], [0.5, 0.0]]
    assert rg.vmap(model)(x).tolist() == expected
    assert rg.func.grad(lambda x: model(x).sum())(x).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert fx.symbolic_trace(model)(x).tolist() == expected
    assert fx.trace(model, x)(x).tolist() == expected
