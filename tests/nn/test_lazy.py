"""Lazy layers infer the size of their input from the first call, and are ordinary layers afterwards."""

import copy
import pickle

import pytest

import retrograd as rg
from retrograd import nn

SHAPES = {1: (2, 4, 5), 2: (2, 4, 5, 6), 3: (2, 4, 5, 6, 7)}
LAYERS = {
    "Linear": ((3,), (2, 5, 4)),
    **{f"Conv{d}d": ((6, 3), SHAPES[d]) for d in SHAPES},
    **{f"ConvTranspose{d}d": ((6, 2), SHAPES[d]) for d in SHAPES},
    **{f"BatchNorm{d}d": ((), SHAPES[d]) for d in SHAPES},
    **{f"InstanceNorm{d}d": ((1e-3, 0.1, True, True), SHAPES[d]) for d in SHAPES},
}


def lazy_and_ordinary(name):
    """Return a lazy layer, the arguments of an ordinary one for the input, and the input."""
    args, shape = LAYERS[name]
    size = shape[-1] if name == "Linear" else shape[1]
    return getattr(nn, f"Lazy{name}")(*args), lambda: getattr(nn, name)(size, *args), rg.randn(shape)


@pytest.mark.parametrize("name", LAYERS)
def test_the_first_call_makes_the_ordinary_layer_with_its_initial_values(name):
    layer, ordinary, x = lazy_and_ordinary(name)
    parameters = list(layer.parameters())
    assert layer.has_uninitialized_params()
    assert all(isinstance(p, nn.UninitializedParameter) for p in parameters)
    rg.manual_seed(0)
    layer(x)
    rg.manual_seed(0)
    other = ordinary()
    other(x)
    assert type(layer) is type(other)
    assert repr(layer) == repr(other)
    assert [(n, t.tolist()) for n, t in layer.state_dict().items()] == [
        (n, t.tolist()) for n, t in other.state_dict().items()
    ]
    assert [id(p) for p in layer.parameters()] == [id(p) for p in parameters]
    assert {type(p) for p in parameters} == {nn.Parameter}
    assert not layer._call_hooks
    assert not layer._state_hooks
    assert vars(layer).keys() == vars(other).keys()


@pytest.mark.parametrize("name", LAYERS)
def test_a_loaded_state_gives_the_shapes_and_stays(name):
    layer, ordinary, x = lazy_and_ordinary(name)
    other = ordinary()
    layer.load_state_dict(other.state_dict())
    assert not layer.has_uninitialized_params()
    assert layer(x).tolist() == other(x).tolist()
    assert repr(layer) == repr(other)


@pytest.mark.parametrize("name", ["Conv2d", "ConvTranspose1d", "InstanceNorm2d"])
def test_an_input_without_a_batch_gives_the_size_as_well(name):
    layer, ordinary, x = lazy_and_ordinary(name)
    layer(x[0])
    assert repr(layer) == repr(ordinary())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_layer_copied_before_its_first_call_is_lazy_itself(copied):
    layer = nn.LazyLinear(3, dtype=rg.float64)
    other = copied(layer)
    assert other(rg.ones(2, 4).double()).shape == (2, 3)
    assert layer.has_uninitialized_params()
    assert layer.weight is not other.weight


def test_an_optimizer_made_before_the_first_call_trains_the_parameters():
    layer = nn.LazyLinear(1, bias=False)
    optimizer = rg.optim.SGD(layer.parameters(), lr=1.0)
    optimizer.zero_grad()
    loss = layer(rg.ones(1, 2)).sum()
    before = layer.weight.detach().clone()
    loss.backward()
    optimizer.step()
    assert layer.weight.tolist() == (before - 1).tolist()


def test_dtypes_are_converted_before_the_first_call():
    layer = nn.Sequential(nn.LazyLinear(2), nn.LazyBatchNorm1d()).double()
    assert layer(rg.ones(3, 4).double()).dtype == rg.float64
    assert {t.dtype for t in layer.parameters()} == {layer[1].running_mean.dtype} == {rg.float64}


def test_states_of_lazy_layers_are_loaded_into_lazy_layers_only():
    lazy = nn.LazyLinear(3)
    nn.LazyLinear(3).load_state_dict(lazy.state_dict())
    with pytest.raises(RuntimeError, match="can't access the shape of an uninitialized parameter"):
        nn.Linear(4, 3).load_state_dict(lazy.state_dict())


@pytest.mark.parametrize(
    "use",
    [
        lambda w: w + 1,
        lambda w: w.copy_(rg.ones(2)),
        lambda w: w.fill_(1.0),
        lambda w: w.mul_(2.0),
        lambda w: w.numel(),
        lambda w: w.tolist(),
        lambda w: w.clone(),
        lambda w: w.sum().backward(),
    ],
)
def test_an_uninitialized_parameter_refuses_its_use(use):
    with pytest.raises(ValueError, match="attempted to use an uninitialized parameter"):
        use(nn.UninitializedParameter())


def test_the_shape_of_an_uninitialized_parameter_is_refused():
    with pytest.raises(RuntimeError, match="can't access the shape"):
        nn.init.uniform_(nn.UninitializedParameter())


def test_wrong_first_inputs_leave_the_layer_lazy():
    for layer, x in [
        (nn.LazyConv2d(3, 2), rg.ones(2, 3)),
        (nn.LazyBatchNorm2d(), rg.ones(2, 3)),
        (nn.LazyConv1d(4, 1, groups=2), rg.ones(2, 3, 4)),
    ]:
        with pytest.raises((RuntimeError, ValueError), match=type(layer).__name__.removeprefix("Lazy")):
            layer(x)
        assert layer.has_uninitialized_params()
    x = rg.ones(2, 4, 3)
    assert layer(x).shape == (2, 4, 3)


def test_a_lazy_module_must_materialize_its_parameters():
    class Forgetful(nn.lazy.LazyModuleMixin):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match=r"Forgetful: initialize_parameters\(\) has not materialized"):
        Forgetful()(1)


def test_an_unknown_argument_of_a_lazy_layer_is_a_type_error():
    with pytest.raises(TypeError, match="in_features"):
        nn.LazyLinear(3, in_features=4)
