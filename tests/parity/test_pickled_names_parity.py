"""Every public name that PyTorch pickles by name is pickled here too; objects with state survive a copy."""

import copy
import importlib
import pickle
import types

import pytest
import torch

import retrograd as rg

NAMESPACES = [
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.optim",
    "torch.Tensor",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.autograd",
    "torch.func",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.signal.windows",
    "torch.distributions",
    "torch.distributions.constraints",
    "torch.distributions.transforms",
    "torch.utils.data",
    "torch.sparse",
    "torch.nested",
    "torch.amp",
    "torch.utils.checkpoint",
    "torch.autograd.functional",
    "torch.autograd.graph",
    "torch.library",
    "torch.random",
    "torch.serialization",
    "torch.nn.parameter",
    "torch.utils.hooks",
    "torch.fx",
]
EXEMPT = {"torch.Tensor.size": "`Tensor.size` is NumPy's number of elements and a function, a property of the class"}


def find(path):
    home, _, _ = path.partition(".Tensor")
    return importlib.import_module(home) if path == home else importlib.import_module(home).Tensor


def is_pickled(value):
    try:
        found = pickle.loads(pickle.dumps(value))
    except Exception:
        return False
    bound = isinstance(value, (types.MethodType, types.BuiltinMethodType))  # made again for each access
    return found is value or bound or not callable(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_names_that_pytorch_pickles_are_pickled(namespace):
    theirs, ours = find(namespace), find(namespace.replace("torch", "retrograd", 1))
    wrong = [
        name
        for name in dir(theirs)
        if not name.startswith("_") and f"{namespace}.{name}" not in EXEMPT and hasattr(ours, name)
        if not isinstance(getattr(theirs, name), types.ModuleType) and is_pickled(getattr(theirs, name))
        if not is_pickled(getattr(ours, name))
    ]
    assert wrong == []


def test_exemptions_are_needed():
    assert not is_pickled(rg.Tensor.size)


def trained(m, optimizer, schedule=None):
    w = m.nn.Parameter(m.ones(3))
    made = optimizer(m.optim, [w])
    planned = schedule and schedule(m.optim.lr_scheduler, made)
    for _ in range(2):
        made.zero_grad()
        (w * m.arange(3.0)).square().sum().backward()
        made.step()
        if planned:
            planned.step()
    return made, planned


OPTIMIZERS = {
    name: (lambda optim, given, name=name: getattr(optim, name)(given, lr=0.1))
    for name in ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD")
}
SCHEDULES = {
    "StepLR": lambda s, o: s.StepLR(o, 1),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=9),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.1, 0.2, cycle_momentum=False),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o), s.ExponentialLR(o, 0.5)], [1]),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.LinearLR(o), s.ExponentialLR(o, 0.5)], o),
}


def state(value):
    """Return an object's state as comparable text: lists for tensors."""
    if isinstance(value, (torch.Tensor, rg.Tensor)):
        return value.tolist()
    if isinstance(value, dict):
        return {str(k): state(v) for k, v in value.items()}
    return [state(v) for v in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_copied_with_their_states(name, change):
    for m in (rg, torch):
        made, _ = trained(m, OPTIMIZERS[name])
        copied = change(made)
        assert state(copied.state_dict()) == state(made.state_dict())
        assert copied.param_groups[0]["params"][0] is not made.param_groups[0]["params"][0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_copied_and_go_on(name):
    rates = []
    for m in (rg, torch):
        made, planned = trained(m, OPTIMIZERS["SGD"], SCHEDULES[name])
        copied_optimizer, copied = copy.deepcopy((made, planned))
        for _ in range(3):
            copied.step()
        rates.append([copied.get_last_lr(), copied_optimizer.param_groups[0]["lr"], made.param_groups[0]["lr"]])
    for ours, theirs in zip(*rates, strict=True):
        assert ours == pytest.approx(theirs)


DISTRIBUTIONS = {
    "Normal": lambda d, m: d.Normal(m.zeros(2), m.ones(2)),
    "Categorical": lambda d, m: d.Categorical(logits=m.zeros(3)),
    "Independent": lambda d, m: d.Independent(d.Gamma(m.ones(2), m.ones(2)), 1),
    "MultivariateNormal": lambda d, m: d.MultivariateNormal(m.zeros(2), m.eye(2)),
    "MixtureSameFamily": lambda d, m: d.MixtureSameFamily(d.Categorical(m.ones(2)), d.Normal(m.zeros(2), m.ones(2))),
    "TransformedDistribution": lambda d, m: d.LogNormal(m.zeros(2), m.ones(2)),
}


@pytest.mark.parametrize("change", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_are_copied(name, change):
    for m in (rg, torch):
        made = DISTRIBUTIONS[name](m.distributions, m)
        sample = made.sample()
        assert state(change(made).log_prob(sample)) == state(made.log_prob(sample))


def test_states_of_generators_are_returned_and_restored_in_pytorchs_ways():
    for m in (rg, torch):
        for where in (m, m.random):
            kept = where.get_rng_state()
            drawn = m.rand(3).tolist()
            where.set_rng_state(kept)
            assert m.rand(3).tolist() == drawn
        generator = m.Generator().manual_seed(3)
        copied = m.Generator()
        copied.set_state(generator.get_state())
        assert m.rand(2, generator=copied).tolist() == m.rand(2, generator=generator).tolist()
        assert generator.clone_state().initial_seed() == generator.initial_seed()
        for wrong in (3, "a", None, m.ones(2)):
            with pytest.raises((TypeError, RuntimeError)):
                m.set_rng_state(wrong)
