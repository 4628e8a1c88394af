"""Calling operators: aliases, additional keywords, in-place forms, and the text of `help`."""

import inspect
import operator

import numpy as np
import pytest

import retrograd as rg
from retrograd import ops
from retrograd.core import Tensor, registry
from retrograd.testing import samples_of

from ..case_groups import group_cases


def test_arithmetic_takes_the_keywords_that_pytorch_has():
    x = rg.tensor([7.0, -7.0])
    assert rg.add(x, 1, alpha=2).tolist() == x.add(1, alpha=2).tolist() == [9.0, -5.0]
    assert rg.sub(x, 1, alpha=2).tolist() == rg.subtract(x, 1, alpha=2).tolist() == [5.0, -9.0]
    assert rg.div(x, 2, rounding_mode="floor").tolist() == [3.0, -4.0]
    assert x.div(2, rounding_mode="trunc").tolist() == x.clone().div_(2, rounding_mode="trunc").tolist() == [3.0, -3.0]
    assert rg.add(input=x, other=x).tolist() == [14.0, -14.0]


def test_arithmetic_with_keywords_writes_into_out_and_passes_gradients():
    x, out = rg.tensor([1.0, 2.0], requires_grad=True), rg.zeros(2)
    rg.add(x.detach(), 1, alpha=3, out=out)
    assert out.tolist() == [4.0, 5.0]
    rg.add(x, x, alpha=3).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


ACTIVATIONS = "relu elu silu leaky_relu hardtanh mish selu relu6 hardswish hardsigmoid celu"


@pytest.mark.parametrize("name", ACTIVATIONS.split())
def test_activations_write_into_their_input_with_inplace(name):
    function = getattr(rg.nn.functional, name)
    x = rg.tensor([-1.0, 2.0])
    expected = function(x).tolist()
    assert function(x, inplace=False).tolist() == expected
    assert x.tolist() == [-1.0, 2.0]
    assert function(x, inplace=True) is x
    assert x.tolist() == expected


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "dropout1d", "feature_alpha_dropout"])
def test_dropouts_write_into_their_input_with_inplace(name):
    x = rg.ones(2, 3, 4)
    assert getattr(rg.nn.functional, name)(x, 1.0, training=True, inplace=True) is x
    assert len(set(x.flatten().tolist())) == 1
    assert x[0, 0, 0].item() < 1.0


def test_functions_without_inplace_refuse_the_keyword():
    with pytest.raises(TypeError, match="unexpected keyword argument 'inplace'"):
        rg.softmax(rg.ones(2), 0, inplace=True)


def test_one_operator_goes_by_several_names():
    assert rg.multiply is rg.mul
    assert rg.linalg.det is rg.det
    assert rg.special.expit is rg.sigmoid
    assert rg.nn.functional.sigmoid is rg.sigmoid
    assert rg.ones(2).multiply(3.0).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("home", ["", "linalg", "fft", "special", "masked", "nn.functional", "signal.windows"])
def test_namespaces_hold_what_belongs_there(home):
    module = rg
    for part in filter(None, home.split(".")):
        module = getattr(module, part)
    found = ops.public(home)
    assert found
    assert all(getattr(module, name) is member for name, member in found.items())


def test_help_shows_the_signature_and_the_whole_text():
    assert str(inspect.signature(rg.einsum)) == "(equation: 'str', operands: 'Tensor[]')"
    assert "alpha: 'number' = 1" in str(inspect.signature(rg.add))
    assert inspect.getdoc(rg.einsum) == inspect.getdoc(registry["einsum"].definition)
    assert rg.einsum.__name__ == "einsum"


def test_names_of_nodes_are_pytorchs():
    assert rg.ones(1, requires_grad=True).exp().grad_fn.name() == "ExpBackward0"
    assert rg.linalg.det(rg.eye(2).requires_grad_()).grad_fn.name() == "LinalgDetBackward0"


def test_sizes_may_be_tensors_without_dimensions():
    n = rg.tensor(2)
    assert rg.zeros(n, 3).shape == rg.zeros(2, 3).reshape(n, -1).shape == (2, 3)
    assert rg.ones(2, 3).sum(n - 1).tolist() == rg.ones(2, 3).sum(dim=n - 1).tolist() == [3.0, 3.0]


@group_cases
@pytest.mark.parametrize("operator", registry.values(), ids=registry.keys())
def test_every_operator_shows_its_signature(operator):
    assert list(inspect.signature(operator).parameters) == [p.name for p in operator.called_as.parameters]


def as_arrays(value):
    """Return a value with an array for each tensor."""
    if isinstance(value, Tensor):
        return value.numpy()
    return type(value)(map(as_arrays, value)) if type(value) in (list, tuple) else value


def kinds(out):
    return [type(o) for o in out] if isinstance(out, (tuple, list)) else type(out)


@group_cases
@pytest.mark.parametrize("name", sorted(n for n in ops.public("") if n in registry))
def test_functions_take_arrays_as_tensors(name):
    op = registry[name]
    args, params = next(iter(samples_of(op)))
    given = {**op.schema.group(args), **params}
    expected = op(**given)
    assert kinds(op(**{key: as_arrays(value) for key, value in given.items()})) == kinds(expected)


def test_numpy_scalars_are_taken_as_tensors_without_dimensions():
    assert isinstance(rg.real(rg.tensor(1.5).numpy()[()]), Tensor)


def test_to_takes_a_bool_for_the_dtype_and_never_after_a_device():
    x = rg.ones(2)
    assert x.to(True).dtype == x.to(False, False).dtype == rg.bool
    assert x.to(rg.float32, True) is x
    assert x.to(rg.float32, False, True) is not x
    with pytest.raises(TypeError, match="expected a dtype after the device, got True"):
        x.to("cpu", True)


REFUSED = {
    "eye: .*[Ss]izes must not be negative": lambda: rg.eye(2, -1),
    "randn: .*[Ss]izes must not be negative": lambda: rg.randn(2, -1),
    "neg: ": lambda: rg.neg(rg.tensor([True])),
    r"split: expected an integer or a list of integers, got 'a'": lambda: rg.split(rg.zeros(3), "a"),
    r"cumsum\(\): dim must be int, got False": lambda: rg.cumsum(rg.zeros(3), False),
    r"narrow\(\): start must be int": lambda: rg.narrow(rg.zeros(3), 0, rg.tensor([1]), 1),
    "arange: expected finite numbers": lambda: rg.arange(0.0, float("nan")),
    "roll: dim 0 is named, but the tensor has no dimensions": lambda: rg.roll(rg.tensor(1.0), 1, 0),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals_name_the_operator(message):
    with pytest.raises((TypeError, ValueError, IndexError), match=f"^{message}"):
        REFUSED[message]()


def test_none_of_several_results_is_written_if_one_can_not_be():
    values, places = rg.zeros(3), rg.zeros(1, dtype=rg.int64).expand(3)
    with pytest.raises(RuntimeError, match="max: the memory of out is read-only"):
        rg.max(rg.ones(3, 3), 0, out=(values, places))
    assert values.tolist() == [0, 0, 0]


def test_arrays_that_repeat_their_elements_are_not_written_to():
    array = np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,))
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        rg.from_numpy(array).add_(1)


@pytest.mark.parametrize("name", ["add", "exp", "sum", "matmul", "linalg.cholesky_ex", "linalg.solve", "max", "norm"])
def test_out_may_be_none_and_is_as_if_not_given(name):
    function = operator.attrgetter(name)(rg)
    x = rg.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    operands = [x, x] if name in ("add", "matmul", "linalg.solve") else [x, 0] if name == "max" else [x]
    first, second = function(*operands, out=None), function(*operands)
    for found, expected in zip(*[r if isinstance(r, tuple) else (r,) for r in (first, second)], strict=True):
        assert rg.equal(found, expected)
        assert found.requires_grad == expected.requires_grad
