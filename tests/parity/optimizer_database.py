"""The entries of PyTorch's optimizer database: the steps that both libraries take with their settings, and errors."""

import copy
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_optimizers import (
    OptimizerErrorEnum,
    _get_optim_inputs_including_global_cliquey_kwargs,
    optim_db,
)

import retrograd as rg

from .operator_database.comparison import far_apart
from .operator_database.conversion import Converter, UnavailableError
from .operator_database.sides import attempt

ENTRIES = {entry.name: entry for entry in optim_db}
STEPS = 6


@dataclass
class Program:
    """One use of an optimizer: its settings, the kinds of its parameters and gradients, how it is driven."""

    name: str
    settings: dict[str, Any]
    description: str
    dtype: str = "float64"
    sparse: bool = False
    closure: bool = False
    groups: bool = False
    schedulers: tuple[Callable, ...] = ()

    def __str__(self) -> str:
        flags = [flag for flag in ("sparse", "closure", "groups") if getattr(self, flag)]
        return ", ".join([self.description, self.dtype, *flags, *(["schedules"] if self.schedulers else [])])


@dataclass
class Trace:
    """What a program computed: losses and parameters after each step, the text and the state of its optimizer."""

    values: list[Any] = field(default_factory=list)
    rates: list[list[float]] = field(default_factory=list)
    text: str = ""
    state: dict[str, Any] = field(default_factory=dict)


@contextmanager
def float64_by_default() -> Iterator[None]:
    """Let PyTorch count and store rates in float64; in float32, which is its default, they have fewer digits."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def tolerance_of(name: str) -> float:
    """Return the tolerance of values, relative to the largest; PyTorch computes Muon's steps in bfloat16."""
    return 1e-2 if name == "Muon" else 1e-11


def programs(name: str) -> Iterator[Program]:
    """Yield the programs of an entry: all settings, with real, complex and sparse gradients, closures and schedules."""
    entry = ENTRIES[name]
    with float64_by_default():
        inputs = _get_optim_inputs_including_global_cliquey_kwargs("cpu", torch.float64, entry)
    for one in inputs:
        sparse, closure = entry.only_supports_sparse_grads, entry.step_requires_closure
        base = Program(name, one.kwargs, one.desc, sparse=sparse, closure=closure)
        yield base
        if entry.supports_complex:
            yield Program(name, one.kwargs, one.desc, "complex128", closure=closure)
        if entry.supports_param_groups:
            yield Program(name, one.kwargs, one.desc, sparse=sparse, groups=True)
        if entry.supports_sparse:
            yield Program(name, one.kwargs, one.desc, sparse=True)
        if not closure:
            yield Program(name, one.kwargs, one.desc, sparse=sparse, closure=True)
    for schedulers in entry.scheduler_inputs:
        for one in inputs[:1]:
            yield Program(name, one.kwargs, one.desc, sparse=sparse, closure=closure, schedulers=tuple(schedulers))


def run(library: Any, program: Program) -> Trace:
    """Run a program in one library; half-way, a new optimizer continues from the saved state."""
    convert = Converter().convert if library is rg else copy.deepcopy
    settings = convert(program.settings)
    make = lambda: getattr(library.optim, program.name)(_groups(params, program), **copy.copy(settings))  # noqa: E731
    params = _parameters(library, program)
    optimizer, trace = make(), Trace()
    schedules = [_of_library(library, scheduler)(optimizer) for scheduler in program.schedulers]
    for k in range(STEPS):
        if k == STEPS // 2 and not schedules:
            saved = copy.deepcopy(optimizer.state_dict())
            optimizer = make()
            optimizer.load_state_dict(saved)
        _step(library, program, optimizer, params, trace)
        for schedule in schedules:
            schedule.step(1.0 + k) if type(schedule).__name__ == "ReduceLROnPlateau" else schedule.step()
        trace.values += [p.detach().clone() for p in params]
        trace.rates.append([float(group["lr"]) for group in optimizer.param_groups])
    trace.text, trace.state = repr(optimizer), optimizer.state_dict()
    return trace


def _parameters(library: Any, program: Program) -> list[Any]:
    draws = np.random.default_rng(0)
    made = []
    for shape in ((2, 3), (4, 3) if program.name == "Muon" else (4,)):
        values = draws.uniform(-1, 1, shape)
        values = values + 1j * draws.uniform(-1, 1, shape) if program.dtype == "complex128" else values
        made.append(library.tensor(values, requires_grad=True))
    return made


def _groups(params: list[Any], program: Program) -> list[Any]:
    return [{"params": params[:1]}, {"params": params[1:], "lr": 0.05}] if program.groups else params


def _step(library: Any, program: Program, optimizer: Any, params: list[Any], trace: Trace) -> None:
    def closure() -> Any:
        optimizer.zero_grad()
        parts = [library.view_as_real(p) if p.is_complex() else p for p in params]
        loss = sum(((x - 0.5).square() + (3 * x).cos()).sum() for x in parts)
        loss.backward()
        if program.sparse:
            for p in params:
                p.grad = library.sparse_coo_tensor(library.tensor([[0, 1]]), p.grad[:2].clone(), tuple(p.shape))
        return loss

    if program.closure:
        trace.values.append(optimizer.step(closure).detach())
    else:
        closure()
        optimizer.step()


def _of_library(library: Any, scheduler: Callable) -> Callable:
    """Return a function that makes a schedule, with the names of its classes bound to a library."""
    own = {name: found for name, found in vars(library.optim.lr_scheduler).items() if isinstance(found, type)}
    return types.FunctionType(scheduler.__code__, {**scheduler.__globals__, **own})


# ------------------------------------------------------------------------------------------------- differences


def differences(program: Program) -> dict[str, str]:
    """Return how our results of a program differ from PyTorch's, by aspect: error, value, rate, text, state."""
    with warnings.catch_warnings(), float64_by_default():
        warnings.simplefilter("ignore")
        theirs, refused = attempt(lambda: run(torch, program))
        ours, refusal = attempt(lambda: run(rg, program))
    if refused or refusal:
        same = refused and refusal and isinstance(refusal, type(refused))
        return {} if same else {"error": f"{refused!r}, ours {refusal!r}"}
    tolerance = tolerance_of(program.name)
    found = {
        "value": far_apart(theirs.values, ours.values, tolerance),
        "rate": None if np.allclose(theirs.rates, ours.rates, rtol=1e-12) else f"{theirs.rates}, ours {ours.rates}",
        "text": None if theirs.text == ours.text or program.schedulers else f"{theirs.text}, ours {ours.text}",
        "state": different_states(theirs.state["state"], ours.state["state"], tolerance)
        or different_groups(theirs.state["param_groups"], ours.state["param_groups"]),
    }
    return {aspect: message for aspect, message in found.items() if message is not None}


def different_states(theirs: dict, ours: dict, tolerance: float) -> str | None:
    """Return which entry of the states of parameters differs."""
    if list(theirs) != list(ours):
        return f"states of {list(theirs)}, ours {list(ours)}"
    for number, state in theirs.items():
        if set(state) != set(ours[number]):
            return f"entries {sorted(state)}, ours {sorted(ours[number])}"
        for name, value in state.items():
            message = different_entries(value, ours[number][name], tolerance)
            if message:
                return f"{name} of {number}: {message}"
    return None


def different_entries(theirs: Any, ours: Any, tolerance: float) -> str | None:
    """Return how an entry differs; a number may be a tensor without dimensions in one library."""
    if isinstance(theirs, list):
        messages = [different_entries(a, b, tolerance) for a, b in zip(theirs, ours, strict=True)]
        return next(filter(None, messages), None)
    if isinstance(theirs, torch.Tensor) and theirs.ndim:
        theirs, ours = (t.to_dense() if t.is_sparse else t for t in (theirs, ours))
        return far_apart([theirs], [ours], tolerance)
    same = theirs is ours is None or np.isclose(complex(theirs), complex(ours), rtol=max(tolerance, 1e-9))
    return None if same else f"{theirs}, ours {ours}"


def different_groups(theirs: list[dict], ours: list[dict]) -> str | None:
    """Return which setting of the groups differs."""
    for a, b in zip(theirs, ours, strict=True):
        differing = [name for name in {**a, **b} if _plain(a.get(name)) != _plain(b.get(name))]
        if differing or set(a) != set(b) or list(a)[-1] != list(b)[-1]:
            return f"{differing} of {a}, ours {b}"
    return None


def _plain(value: Any) -> Any:
    return f"{float(value):.12g}" if isinstance(value, int | float | torch.Tensor | rg.Tensor) else value


# ------------------------------------------------------------------------------------------------------ errors


@dataclass
class BadInput:
    """An error input: the words that PyTorch's tests ask for, and the errors of both libraries."""

    description: str
    words: str
    theirs: Exception | None
    ours: Exception | None


def bad_inputs(name: str) -> Iterator[BadInput]:
    """Yield the error inputs of an entry that our tensors can represent; a warning counts as an error."""
    entry = ENTRIES[name]
    for listed in entry.optim_error_inputs_func("cpu", torch.float64):
        given = listed.optimizer_error_input
        steps = listed.error_on is OptimizerErrorEnum.STEP_ERROR
        try:
            params, settings = Converter().convert((given.params, given.kwargs))
        except UnavailableError:  # a sparse parameter
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _, refused = attempt(partial(_use, torch, name, given.params, given.kwargs, steps))
            _, refusal = attempt(partial(_use, rg, name, params, settings, steps))
        yield BadInput(given.desc, listed.error_regex, refused, refusal)


def _use(library: Any, name: str, params: Any, settings: dict[str, Any], steps: bool) -> None:
    if params is None:
        params = [library.nn.Parameter(library.ones(2, 3))]
    optimizer = getattr(library.optim, name)(params, **settings)
    if steps:
        for p in (p for group in optimizer.param_groups for p in group["params"]):
            p.grad = library.zeros_like(p)
        optimizer.step()
