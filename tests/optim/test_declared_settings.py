"""Constructors made from declared settings behave like written ones."""

import copy
import inspect
import pickle

import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.optim.declared_settings import DeclaredOptimizer

DECLARED = [kind for kind in vars(optim).values() if isinstance(kind, type) and issubclass(kind, DeclaredOptimizer)]


def parameter():
    return nn.Parameter(rg.ones(2, 2))


def test_every_optimizer_declares_its_settings():
    kinds = {kind for kind in vars(optim).values() if isinstance(kind, type) and kind is not optim.Optimizer}
    assert kinds == set(DECLARED)
    assert len(kinds) == 16


@pytest.mark.parametrize("make", DECLARED)
def test_the_arguments_are_the_settings_of_a_group(make):
    arguments = inspect.signature(make).parameters
    group = make([parameter()]).param_groups[0]
    fixed = {optim.AdamW: {"decoupled_weight_decay"}, optim.Lion: {"decoupled_weight_decay"}}.get(make, set())
    assert {*arguments} | fixed == {*group}
    derived = {"params", "max_eval"}
    assert all(group[name] == one.default for name, one in arguments.items() if name not in derived)


def test_a_signature_shows_names_types_defaults_and_keywords():
    assert str(inspect.signature(optim.AdamW)) == (
        "(params: collections.abc.Iterable[typing.Any], lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999), "
        "eps: float = 1e-08, weight_decay: float = 0.01, amsgrad: bool = False, *, maximize: bool = False, "
        "foreach: bool | None = None, capturable: bool = False, differentiable: bool = False, "
        "fused: bool | None = None) -> None"
    )
    assert optim.Adam.__init__.__qualname__ == "Adam.__init__"


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        (lambda p: optim.SGD(), r"SGD.__init__\(\) missing a required argument: 'params'"),
        (lambda p: optim.SGD([p], rate=1.0), r"SGD.__init__\(\) got an unexpected keyword argument 'rate'"),
        (
            lambda p: optim.Adamax([p], 1, (0, 0), 1, 0, None, True),
            r"Adamax.__init__\(\) too many positional",
        ),
        (lambda p: optim.Adam([p], 1.0, lr=1.0), r"Adam.__init__\(\) multiple values for argument 'lr'"),
        (lambda p: optim.AdamW([p], decoupled_weight_decay=False), "unexpected keyword argument 'decoupled"),
    ],
)
def test_wrong_arguments_are_refused_with_the_class(call, pattern):
    with pytest.raises(TypeError, match=pattern):
        call(parameter())


def test_settings_are_no_attributes():
    assert not hasattr(optim.Adam, "lr")
    assert not hasattr(optim.Adam([parameter()]), "lr")


@pytest.mark.parametrize("make", DECLARED)
def test_optimizers_can_be_copied_and_pickled(make):
    optimizer = make([parameter()], lr=0.125)
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert type(other) is make
        assert other.param_groups[0]["lr"] == other.defaults["lr"] == 0.125
        assert other.param_groups[0]["params"][0] is not optimizer.param_groups[0]["params"][0]


def test_subclasses_may_write_their_own_constructor():
    class Faster(optim.Adam):
        def __init__(self, params, scale):
            super().__init__(params, 0.25 * scale, maximize=True)

    class Inherits(optim.SGD):
        pass

    class Own(optim.SGD):
        def __init__(self, params, lr):
            optim.Optimizer.__init__(self, params, {"lr": lr, "size": 3})

        def check(self, group):
            if group["size"] < 0:
                raise ValueError("size")

    group = Faster([parameter()], 2).param_groups[0]
    assert (group["lr"], group["maximize"], group["betas"]) == (0.5, True, (0.9, 0.999))
    assert Inherits([parameter()], 0.5, 0.25).defaults["momentum"] == 0.25
    assert Own([parameter()], 0.5).param_groups[0]["size"] == 3
    with pytest.raises(ValueError, match="momentum must be at least 0"):
        Inherits([parameter()], 0.5, -1.0)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adafactor", "ASGD"])
def test_the_way_of_running_a_formula_is_stored_and_changes_nothing(name):
    results = []
    for foreach in (None, False, True):
        p = parameter()
        optimizer = getattr(optim, name)([p], lr=0.5, foreach=foreach)
        p.square().sum().backward()
        optimizer.step()
        assert optimizer.state_dict()["param_groups"][0]["foreach"] is foreach
        results.append(p.tolist())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adamax", "NAdam", "RAdam", "Adagrad", "RMSprop", "ASGD", "Rprop"])
def test_a_differentiable_step_is_refused(name):
    with pytest.raises(NotImplementedError, match="differentiable=True is not supported"):
        getattr(optim, name)([parameter()], differentiable=True)
