"""Typical mistakes are answered by an error that says what is wrong and what to do."""

import copy
import inspect
import sys

import pytest
from tests.case_groups import group_cases

import retrograd as rg
import retrograd.nn.functional as F
from retrograd import nn, optim
from retrograd.utils.data import DataLoader, Dataset, RandomSampler, random_split

x = rg.ones(2, 3)
ids = rg.tensor([0, 1])


def weight(*sizes):
    return rg.ones(*sizes, requires_grad=True)


def sgd():
    return optim.SGD([weight(1)], lr=0.1)


def backward_twice():
    w = weight(2)
    loss = (w * w).sum()
    loss.backward()
    loss.backward()


def write_to_saved():
    y = weight(2) * 2
    loss = (y * y).sum()
    y += 1
    loss.backward()


def early_metric():
    optimizer = sgd()
    schedule = optim.lr_scheduler.StepLR(optimizer, 3)
    optimizer.step()
    with pytest.warns(UserWarning, match="is deprecated"):
        schedule.step(rg.tensor(0.5))


class Doubled(rg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return ctx.factor * g


def cycle_is_over():
    optimizer = sgd()
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
    for _ in range(3):
        optimizer.step()
        schedule.step()


class Uneven(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return rg.ones(index + 1)


class Endless(Dataset):
    def __getitem__(self, index):
        return index


class WithoutSuper(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)


ERRORS = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, AttributeError)
# A call, and the words of its error that tell a user what to do.
MISTAKES = {
    "targets are floats": (lambda: F.cross_entropy(rg.ones(4, 3), rg.ones(4)), r"convert with .to\('int64'\)"),
    "targets have a column": (lambda: F.cross_entropy(rg.ones(2, 3), ids[:, None]), r"target\.squeeze\(1\)"),
    "inputs are doubles": (lambda: nn.Linear(3, 2)(x.double()), r"got float64 and float32; convert one with"),
    "a class is out of range": (lambda: F.cross_entropy(x, rg.tensor([0, 3])), "3 needs a size of at least 4"),
    "a matrix is not transposed": (lambda: x @ x, r"its transpose, \.mT, would fit"),
    "a layer has other features": (lambda: nn.Linear(4, 2)(x), "the last size of x is 3, and the weight takes 4"),
    "images have other channels": (
        lambda: nn.Conv2d(3, 4, 3)(rg.ones(1, 1, 8, 8)),
        "has 1 channels, the weight expects 3",
    ),
    "tensors are not in a list": (lambda: rg.cat(x, x), r"put the tensors into a list: cat\(\[a, b\]\)"),
    "sizes differ in cat": (lambda: rg.cat([x, x.T]), "except in dimension 0"),
    "sizes differ in stack": (lambda: rg.stack([x, x.T]), r"shapes must agree, got \(2, 3\), \(3, 2\)"),
    "elements are missing": (lambda: x.view(4, 2), r"\(2, 3\) of 6 elements does not fit into \(4, 2\)"),
    "memory is transposed": (lambda: x.T.view(6), r"Use \.reshape\(\.\.\.\) instead"),
    "a size does not expand": (lambda: x.expand(2, 4), r"\(2, 3\) does not expand to \(2, 4\)"),
    "shapes do not broadcast": (lambda: x + rg.ones(2), "dimension -1 is 2 and 3"),
    "a dimension does not exist": (lambda: x.sum(dim=3), r"expected to be in range of \[-2, 1\]"),
    "nothing to choose from": (lambda: rg.ones(0).max(), "have no elements"),
    "a mean of integers": (lambda: ids.mean(), r"convert with \.to\(dtype\), or pass dtype="),
    "axes": (lambda: x.sum(axes=1), "Did you mean 'dim'"),
    "a dtype is misspelt": (lambda: rg.ones(2, dtype="float23"), "Did you mean 'float32'"),
    "a dtype is passed by position": (lambda: rg.zeros((2, 3), "float32"), "name the others: dtype="),
    "a seed is passed": (lambda: rg.rand(2, seed=1), "Did you mean 'generator'"),
    "a mode is misspelt": (lambda: F.mse_loss(x, x, reduction="avg"), "must be 'mean', 'sum' or 'none'"),
    "an older option": (lambda: nn.HuberLoss(size_average=False), "size_average"),
    "parameters are a model": (lambda: optim.SGD(nn.Linear(2, 2), lr=0.1), r"pass its \.parameters\(\)"),
    "parameters are a tensor": (lambda: optim.SGD(weight(2), lr=0.1), "put it into a list"),
    "a parameter is a result": (lambda: optim.SGD([weight(2) * 2], lr=0.1), "that an operator made"),
    "parameters are a dict": (
        lambda: optim.SGD(dict(nn.Linear(2, 2).named_parameters()), lr=0.1),
        r"SGD: expected parameters, got dict; pass its \.values\(\)",
    ),
    "a model among the parameters": (lambda: optim.SGD([nn.Linear(2, 2)], lr=0.1), r"pass its \.parameters\(\)"),
    "gradients of a model are clipped": (
        lambda: nn.utils.clip_grad_norm_(nn.Linear(2, 2), 1.0),
        r"clip_grad_norm_: expected parameters, got Linear; pass its \.parameters\(\)",
    ),
    "values of a model are clipped": (
        lambda: nn.utils.clip_grad_value_(nn.Linear(2, 2), 1.0),
        r"clip_grad_value_: expected parameters, got Linear; pass its \.parameters\(\)",
    ),
    "a model becomes a vector": (
        lambda: nn.utils.parameters_to_vector(nn.Linear(2, 2)),
        r"parameters_to_vector: expected parameters, got Linear; pass its \.parameters\(\)",
    ),
    "a vector becomes a model": (
        lambda: nn.utils.vector_to_parameters(rg.ones(6), nn.Linear(2, 2)),
        r"vector_to_parameters: expected parameters, got Linear; pass its \.parameters\(\)",
    ),
    "a closure that is a loss": (
        lambda: sgd().step(x.sum()),
        r"SGD\.step: closure must be a function that returns the loss, got tensor\(6\.\)",
    ),
    "a closure of LBFGS that is a loss": (
        lambda: optim.LBFGS([weight(1)]).step(x.sum()),
        r"LBFGS\.step: closure must be a function that returns the loss",
    ),
    "a metric for a schedule of steps": (early_metric, "only ReduceLROnPlateau takes a metric"),
    "a factor for a function of steps": (
        lambda: optim.lr_scheduler.LambdaLR(sgd(), 0.9),
        "LambdaLR: lr_lambda must be a function of the number of steps, or a list of them, got 0.9",
    ),
    "a cycle that is over": (cycle_is_over, "give more total_steps"),
    "parameters of two models": (
        lambda: optim.SGD([nn.Linear(2, 2).parameters(), nn.Linear(2, 2).parameters()], lr=0.1),
        r"join the lists: \[\*first, \*second\]",
    ),
    "the method of the parameters": (
        lambda: optim.SGD(nn.Linear(2, 2).parameters, lr=0.1),
        "SGD: .*it can be called; pass its result",
    ),
    "more stages than operators": (
        lambda: rg.pipelining.Pipeline(nn.Linear(3, 3), 2, loss_fn=F.mse_loss).step(x, target=x),
        "can't make 2 stages; each needs at least one",
    ),
    "a class among the layers": (lambda: nn.Sequential(nn.ReLU), r"got type; make one: ReLU\(\)"),
    "a file and an object in the wrong order": (
        lambda: rg.save("model.pt", x),
        r"the object comes first: save\(obj, f\)",
    ),
    "a schedule is misspelt": (
        lambda: rg.pipelining.Pipeline(nn.Linear(2, 2), 1, schedule="gpip"),
        "Did you mean 'gpipe'",
    ),
    "one beta": (lambda: optim.AdamW([weight(2)], betas=0.9), "must be two numbers"),
    "a schedule of a model": (
        lambda: optim.lr_scheduler.StepLR(nn.Linear(2, 2), 3),
        "expected an Optimizer, got Linear",
    ),
    "a cycle without its length": (lambda: optim.lr_scheduler.OneCycleLR(sgd(), 0.1), "give total_steps, or both"),
    "no closure": (lambda: optim.LBFGS([weight(1)]).step(), "pass a closure that clears the gradients"),
    "no GPU": (lambda: x.to("cuda"), r"leave out the device, or choose it by 'cuda' if rg\.cuda\.is_available"),
    "a device is misspelt": (lambda: rg.ones(2, device="gpu"), "expected one of cpu cuda"),
    "a tensor moves to a device that is misspelt": (lambda: x.to("gpu"), "or a device.* Did you mean 'cuda'"),
    "a model moves to a device that is misspelt": (lambda: nn.Linear(2, 2).to("cup"), "Did you mean 'cpu'"),
    "a generator on a device that is misspelt": (lambda: rg.Generator("gpu"), "expected one of cpu cuda"),
    "a Function is called, and not applied": (lambda: Doubled(x), r"call Doubled\.apply\(\.\.\.\)"),
    "forward has not set what backward reads": (
        lambda: Doubled.apply(weight(2)).sum().backward(),
        r"no attribute 'factor'; forward, or setup_context, sets .*: ctx\.factor = ",
    ),
    "nothing requires grad": (lambda: x.sum().backward(), "nothing that requires grad went into this output"),
    "a loss with elements": (lambda: (weight(2) * 2).backward(), r"give its cotangent, or reduce it, .* \.sum\(\)"),
    "backward twice": (backward_twice, "retain_graph=True"),
    "a write to a saved tensor": (write_to_saved, r"written to at .*test_mistakes\.py:\d+ in write_to_saved.*clone"),
    "a write to a leaf": (lambda: weight(2).add_(1), r"under no_grad\(\), or to x\.detach\(\)"),
    "a gradient that is unused": (lambda: rg.autograd.grad(weight(2).sum(), weight(2)), "allow_unused=True"),
    "integers that require grad": (lambda: rg.ones(2, dtype="int64", requires_grad=True), r"convert with \.float\(\)"),
    "an array of what requires grad": (lambda: weight(2).numpy(), r"Use tensor\.detach\(\)\.numpy\(\)"),
    "if of many": (lambda: bool(x > 0), r"use \.any\(\) or \.all\(\)"),
    "item of many": (lambda: x.item(), r"only one element .* got shape \(2, 3\)"),
    "an index out of range": (lambda: x[5], "out of bounds for dimension 0 with size 2"),
    "too many indices": (lambda: x[0, 0, 0], "too many indices for tensor of dimension 2"),
    "a mask of another size": (lambda: x[rg.ones(3, dtype="bool")], r"a mask of shape \(3,\) does not fit \(2, 3\)"),
    "an embedding out of range": (lambda: nn.Embedding(3, 2)(rg.tensor([3])), "3 needs a size of at least 4"),
    "an embedding of floats": (lambda: nn.Embedding(3, 2)(rg.ones(3)), r"convert with \.to\('int64'\)"),
    "a state of DataParallel": (
        lambda: nn.Linear(2, 2).load_state_dict({"module.weight": rg.ones(2, 2), "module.bias": rg.ones(2)}),
        r"begin with 'module\.': load \{k\.removeprefix\('module\.'\)",
    ),
    "a state of other shapes": (
        lambda: nn.Linear(2, 2).load_state_dict({"weight": x, "bias": rg.ones(2)}),
        r"size mismatch for weight: .* \(2, 3\) .* \(2, 2\)",
    ),
    "a state that is a path": (lambda: nn.Linear(2, 2).load_state_dict("model.pt"), r"read the file first: rg\.load"),
    "a model is saved": (lambda: rg.save(nn.Linear(2, 2), "model.pt"), r"save its state_dict\(\)"),
    "no super().__init__()": (WithoutSuper, r"call super\(\)\.__init__\(\)"),
    "a list of layers": (lambda: nn.Sequential([nn.ReLU()]), r"Sequential\(\*layers\)"),
    "a function as a layer": (lambda: nn.Sequential(nn.Linear(2, 2), F.relu), r"nn\.ReLU\(\) for relu"),
    "a list is called": (lambda: nn.ModuleList([nn.ReLU()])(x), "call its modules one by one"),
    "heads do not divide": (lambda: nn.MultiheadAttention(10, 3), "embed_dim must be divisible by num_heads"),
    "one row in a batch norm": (lambda: nn.BatchNorm1d(3)(x[:1]), "more than 1 value per channel"),
    "examples differ in shape": (lambda: list(DataLoader(Uneven(), 2)), "collate_fn=nested_collate"),
    "a data set without a length": (lambda: list(DataLoader(Endless())), "define __len__"),
    "a collate_fn that is no function": (
        lambda: DataLoader([1, 2], collate_fn="stack"),
        "collate_fn must be a function of a list of examples, got 'stack'",
    ),
    "a class as a sampler": (
        lambda: DataLoader([1, 2], sampler=RandomSampler),
        r"sampler must be an iterable of indices, got <class '.*RandomSampler'>",
    ),
    "a number as a sampler of batches": (
        lambda: DataLoader([1, 2], batch_sampler=2),
        "batch_sampler must be an iterable of indices, got 2",
    ),
    "a number of workers as text": (
        lambda: DataLoader([1, 2], num_workers="2"),
        r"DataLoader: num_workers must be a number, got '2' \(str\)",
    ),
    "a number of parts": (lambda: random_split([1, 2], 2), "random_split: lengths must be a list of numbers, got 2"),
    "a padded tensor": (
        lambda: nn.utils.rnn.pad_sequence(rg.ones(3)),
        r"expected a list of sequences, got a Tensor of shape \(3,\)",
    ),
    "an array among argnums": (
        lambda: rg.func.grad(lambda a: a.sum(), x)(x),
        r"argnums must be an int or a tuple of ints, got a Tensor of shape \(2, 3\)",
    ),
    "an example is None": (lambda: list(DataLoader([None, None])), "give the loader a collate_fn"),
    "components of other dimensions": (
        lambda: rg.nested.nested_tensor([rg.ones(2), x]),
        "must have the same dimension",
    ),
    "rows of other lengths": (lambda: rg.tensor([[1, 2], [3]]), r"rg\.nested\.nested_tensor, or .*pad_sequence"),
    "None among numbers": (lambda: rg.tensor([1, None]), "Could not infer dtype of NoneType: expected numbers"),
    "a list where a tensor is due": (lambda: rg.sin([1.0]), r"see rg\.tensor"),
    "a list where an array is due": (lambda: rg.from_numpy([1.0]), r"rg\.tensor takes other values"),
    "the state of a recurrent layer": (
        lambda: nn.Sequential(nn.LSTM(3, 4), nn.Linear(4, 2))(x),
        "it holds tensors; pass one of them, or join them",
    ),
    "values and indices": (lambda: F.relu(x.max(1)), "it holds tensors; pass one of them"),
    "a forward without return": (lambda: nn.Linear(3, 2)(None), "a function without `return` returns None"),
    "a layer where a tensor is due": (lambda: F.relu(nn.ReLU()), "it can be called; pass its result"),
    "an operand of einsum is missing": (lambda: rg.einsum("ij,jk->ik", x), "has 2 terms for 1 operands"),
    "a mask of floats": (lambda: x.masked_fill(x, 0), r"convert with \.bool\(\)"),
    "a copy of a result": (lambda: copy.deepcopy(weight(2) * 2), r"use x\.clone\(\)"),
    "item in vmap": (lambda: rg.vmap(lambda a: a.sum().item())(x), r"fallback='loop'"),
    "a gradient of many": (lambda: rg.func.grad(lambda a: a * 2)(rg.ones(2)), "use vjp, or jacrev"),
}


@group_cases
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_by_what_to_do(mistake):
    call, way_out = MISTAKES[mistake]
    with pytest.raises(ERRORS, match=way_out):
        call()


def is_made_of_modules(kind):
    return issubclass(kind, (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict, nn.Sequential))


@pytest.mark.parametrize("number", [1, 2])
def test_each_layer_that_gets_tensors_as_settings_says_that_an_instance_takes_them(number):
    layers = [kind for kind in vars(nn).values() if inspect.isclass(kind) and issubclass(kind, nn.Module)]
    refused, silent = 0, {}
    for kind in layers:
        if kind is nn.Module or is_made_of_modules(kind):
            continue
        try:
            kind(*[rg.ones(8, 4)] * number)
        except (TypeError, ValueError) as error:
            if "call an instance with tensors: " in str(error):
                refused += 1
            elif "positional argument" not in str(error) and "missing a required argument" not in str(error):
                silent[kind.__name__] = str(error)
    assert silent == {}
    assert refused > 90


@pytest.mark.parametrize("home", [optim, optim.lr_scheduler])
def test_each_optimizer_and_schedule_names_itself_and_no_base_of_it(home):
    kinds = [kind for name, kind in vars(home).items() if inspect.isclass(kind) and name[0] != "_"]
    named = 0
    for kind in kinds:
        required = [p for p in inspect.signature(kind).parameters.values() if p.default is p.empty]
        with pytest.raises(ERRORS) as error:
            kind(nn.Linear(2, 2), *[0.5] * (len(required) - 1))
        bases = {base.__name__ for base in kind.__mro__[1:] if base.__name__ in str(error.value).split(":")[0].split()}
        assert not bases, (kind, str(error.value))
        named += kind.__name__ in str(error.value)
    assert named > len(kinds) - 5


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX.proto.plugin_hparams_pb2", None)
    with pytest.raises(ImportError, match=r"pip install 'retrograd\[tensorboard\]'"):
        rg.utils.tensorboard.SummaryWriter("unused")
