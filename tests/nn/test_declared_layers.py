"""Constructors made from the fields of a layer behave like written ones."""

import copy
import inspect
import pickle

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.constructor_fields import fields_of

LAYERS = {
    "Softplus": lambda: nn.Softplus(2.0),
    "ReLU6": lambda: nn.ReLU6(True),
    "Dropout": lambda: nn.Dropout(0.25),
    "MaxPool2d": lambda: nn.MaxPool2d(3, ceil_mode=True),
    "LPPool1d": lambda: nn.LPPool1d(2, 3),
    "FractionalMaxPool2d": lambda: nn.FractionalMaxPool2d(2, output_ratio=0.5),
    "UpsamplingBilinear2d": lambda: nn.UpsamplingBilinear2d(scale_factor=2),
    "KLDivLoss": lambda: nn.KLDivLoss("batchmean"),
    "CrossEntropyLoss": lambda: nn.CrossEntropyLoss(rg.ones(3), label_smoothing=0.5),
    "MultiMarginLoss": lambda: nn.MultiMarginLoss(2, weight=rg.ones(3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_arguments_become_attributes_or_buffers(name):
    layer = LAYERS[name]()
    assert all(hasattr(layer, argument) for argument in inspect.signature(type(layer)).parameters)
    buffers = {"CrossEntropyLoss": ["weight"], "MultiMarginLoss": ["weight"]}.get(name, [])
    assert [name for name, _ in layer.named_buffers()] == buffers
    assert not any(field in vars(type(layer)) for field in fields_of(type(layer)))


@pytest.mark.parametrize("name", LAYERS)
def test_layers_can_be_copied_and_pickled(name):
    layer = LAYERS[name]()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(other) is type(layer)
        assert repr(other) == repr(layer)
        assert {n: b.tolist() for n, b in other.named_buffers()} == {n: b.tolist() for n, b in layer.named_buffers()}


def test_a_layer_shows_its_settings_in_the_order_of_the_arguments():
    assert repr(LAYERS["LPPool1d"]()) == "LPPool1d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)"
    assert repr(LAYERS["ReLU6"]()) == "ReLU6(inplace=True)"
    assert repr(LAYERS["KLDivLoss"]()) == "KLDivLoss()"


@pytest.mark.parametrize(
    ("call", "error", "pattern"),
    [
        (lambda: nn.Threshold(1.0), TypeError, r"Threshold.__init__\(\) missing a required argument: 'value'"),
        (lambda: nn.ReLU(1, 2), TypeError, r"ReLU.__init__\(\) too many positional arguments"),
        (lambda: nn.ReLU6(min_val=1.0), TypeError, r"ReLU6.__init__\(\) got an unexpected keyword argument 'min_val'"),
        (
            lambda: nn.GaussianNLLLoss(None, "sum"),
            TypeError,
            r"GaussianNLLLoss.__init__\(\) too many positional arguments",
        ),
        (lambda: nn.Dropout2d(2), ValueError, "Dropout2d: dropout probability has to be between 0 and 1, but got 2"),
        (lambda: nn.L1Loss("batchmean"), ValueError, "L1Loss: reduction must be one of mean, sum, none, got 'batch"),
        (lambda: nn.MultiMarginLoss(3), ValueError, "MultiMarginLoss: p must be 1 or 2, got 3"),
        (lambda: nn.LPPool2d(0, 2), ValueError, "LPPool2d: norm_type must not be 0"),
    ],
)
def test_wrong_arguments_are_refused_with_the_class(call, error, pattern):
    with pytest.raises(error, match=pattern):
        call()


def test_subclasses_may_write_their_own_constructor():
    class Half(nn.Dropout):
        def __init__(self, inplace):
            super().__init__(0.5, inplace)
            self.extra = nn.Linear(1, 1)

    layer = Half(True)
    assert (layer.p, layer.inplace, len(list(layer.parameters()))) == (0.5, True, 2)
