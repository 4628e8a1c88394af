"""The entries of PyTorch's module database: the modules that both libraries make, their results, and errors."""

import copy
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

import retrograd as rg

from .operator_database.comparison import Comparison, far_apart
from .operator_database.conversion import Converter, UnavailableError, member
from .operator_database.sides import attempt, name_of, only_tensors, seed, tensor_of

ENTRIES = {entry.name: entry for entry in module_db}
TOLERANCE = 1e-9
SAY_MORE = re.compile(
    r"\b(CosineSimilarity|FractionalMaxPool.d|PairwiseDistance|UpsamplingBilinear2d)\([^()]*(\([^()]*\)[^()]*)*\)"
)
MOST_SAMPLES = 25  # of an entry; four entries have some 70, one has 857


@dataclass
class Sample:
    """A pair of modules, and the arguments of a call, in both libraries."""

    description: str
    theirs: Any
    ours: Any
    their_call: tuple[tuple, dict]
    our_call: tuple[tuple, dict]


def counterpart(name: str) -> Any:
    """Return our class for an entry."""
    return member(rg.nn, ENTRIES[name].module_cls.__name__)


def inputs(name: str, kind: str) -> Iterator[tuple[str, bool, Any]]:
    """Yield a description, whether in training, and each input of an entry in double precision."""
    entry = ENTRIES[name]
    made = getattr(entry, kind)
    for training in (True, False) if entry.train_and_eval_differ else (True,):
        seed()
        found = made(entry, device="cpu", dtype=torch.float64, requires_grad=True, training=training)
        for number, one in enumerate(found):
            yield f"{number}, {'training' if training else 'evaluation'}", training, one


def samples(name: str) -> Iterator[Sample]:
    """Yield some samples of an entry, evenly spaced: pairs of modules, of which the parameters differ."""
    listed = list(inputs(name, "module_inputs_func"))
    step = -(-len(listed) // MOST_SAMPLES) | 1  # odd, since many lists alternate between two values of an argument
    for description, training, given in listed[::step]:
        converter = Converter()
        made, call = given.constructor_input, given.forward_input
        theirs = ENTRIES[name].module_cls(*made.args, **made.kwargs).double().train(training)
        args, kwargs = converter.convert((made.args, made.kwargs))
        ours = counterpart(name)(*args, **kwargs).double().train(training)
        their_call = (call.args, call.kwargs)
        our_call = converter.convert(their_call)
        if ENTRIES[name].is_lazy:
            theirs(*their_call[0], **their_call[1])
            ours(*our_call[0], **our_call[1])
        yield Sample(f"{description}, {given.desc}".rstrip(", "), theirs, ours, their_call, our_call)


def differences(name: str, sample: Sample) -> dict[str, str]:
    """Return how our module differs from PyTorch's, by aspect."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        message = different_states(sample.theirs, sample.ours)
        if message is not None:
            return {"state": message}
        sample.ours.load_state_dict({k: tensor(v) for k, v in sample.theirs.state_dict().items()})
        found = functional_differences(name, sample)
        for aspect, change in COPIES.items():
            message = different_calls(sample, change)
            if message is not None:
                found[aspect] = message
        ours, theirs = printed(sample.ours), printed(sample.theirs)
        return found if ours == theirs else found | {"printed": f"{theirs}, ours {ours}"}


def printed(module: Any) -> str:
    """Return a module's text, without the settings that only ours say, and names of PyTorch's private classes."""
    text = re.sub(r"NonDynamicallyQuantizable(Linear)|_((WeightNorm|Orthogonal)\()", r"\1\2", repr(module))
    return SAY_MORE.sub(r"\1(...)", text)


def tensor(value: torch.Tensor) -> Any:
    """Return our tensor with the values of PyTorch's."""
    return tensor_of(rg, value.detach().numpy(), name_of(value.dtype))


def different_states(theirs: Any, ours: Any) -> str | None:
    """Return whether names, shapes or dtypes of parameters and buffers, or which of them are trained, differ."""
    kinds = [
        [
            [(k, tuple(v.shape), name_of(v.dtype)) for k, v in module.state_dict().items()],
            [(k, p.requires_grad) for k, p in module.named_parameters()],
            [k for k, _ in module.named_buffers()],
            [(k, type(m).__name__, m.training) for k, m in module.named_modules() if "out_proj" not in k],
        ]
        for module in (theirs, ours)
    ]
    return None if kinds[0] == kinds[1] else f"{kinds[0]}, ours {kinds[1]}"


def functional(library: Any, module: Any) -> Callable:
    """Return the module as a function of parameters, buffers and arguments; it returns the new buffers too."""

    def call(params: dict, buffers: dict, *args: Any, **kwargs: Any) -> tuple[Any, dict]:
        new = {k: v.clone() for k, v in buffers.items()}
        return library.func.functional_call(module, {**params, **new}, args, kwargs), new

    return call


def functional_differences(name: str, sample: Sample) -> dict[str, str]:
    """Compare the function of parameters, buffers and arguments as an operator: values, gradients, jvp, vmap."""
    params = {k: v.detach().clone().requires_grad_() for k, v in sample.theirs.named_parameters()}
    entry = SimpleNamespace(
        op=functional(torch, sample.theirs),
        gradcheck_wrapper=lambda function, *args, **kwargs: function(*args, **kwargs),
        inplace_variant=None,
        supports_out=False,
    )
    args, kwargs = sample.their_call
    given = SimpleNamespace(
        input=params, args=(dict(sample.theirs.named_buffers()), *args), kwargs=kwargs, output_process_fn_grad=None
    )
    return Comparison(name, entry, functional(rg, sample.ours), given).run().differences


def through_state(module: Any) -> Any:
    """Return a copy that has loaded the module's state."""
    made = copy.deepcopy(module)
    for p in made.parameters():
        p.data.zero_()
    made.load_state_dict(module.state_dict())
    return made


COPIES: dict[str, Callable] = {
    "call": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "loaded": through_state,
}


def different_calls(sample: Sample, change: Callable) -> str | None:
    """Return how the results and gradients of a call of copied modules differ."""
    results = []
    for module, (args, kwargs) in ((sample.theirs, sample.their_call), (sample.ours, sample.our_call)):
        made = change(module)
        outs = [t for t in only_tensors(made(*args, **kwargs)) if t.requires_grad]
        if outs:
            sum((t * t).sum() for t in outs).backward(retain_graph=True)
        results.append([*outs, *made.buffers(), *(p.grad for p in made.parameters())])
    return far_apart(*results, TOLERANCE)


# ------------------------------------------------------------------------------------------------------ errors


@dataclass
class BadInput:
    """An error input: the words that PyTorch's tests ask for, and the errors of both libraries."""

    description: str
    words: str
    theirs: Exception | None
    ours: Exception | None


def bad_inputs(name: str) -> Iterator[BadInput]:
    """Yield the error inputs of an entry; its modes are equal for all of them."""
    for description, training, listed in inputs(name, "module_error_inputs_func"):
        given = listed.module_error_input
        made, call = (
            ((), {}) if one is None else (one.args, one.kwargs)
            for one in (given.constructor_input, given.forward_input)
        )
        convert = Converter().convert
        try:
            our_made, our_call = convert(made), convert(call)
        except UnavailableError:
            continue
        called = listed.error_on is ModuleErrorEnum.FORWARD_ERROR
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcomes = [
                attempt(lambda use=use, called=called, training=training: _use(*use, called, training))[1]
                for use in ((ENTRIES[name].module_cls, made, call), (counterpart(name), our_made, our_call))
            ]
        yield BadInput(description, listed.error_regex, *outcomes)


def _use(kind: Any, made: tuple, call: tuple, called: bool, training: bool) -> None:
    module = kind(*made[0], **made[1]).train(training)
    if called:
        module(*call[0], **call[1])
