"""Activation checkpointing: drop the saved tensors of a function, and recompute them in the backward pass.

The names are those of `torch.utils.checkpoint`.  There is one implementation, which works the same under
`backward()`, `backward(inputs=...)`, `grad()` and function transforms, nested and with `create_graph`; the argument
`use_reentrant` of PyTorch's two is accepted, and leaving it out warns as there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn

import optree

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.core.blocks import generator_block
from retrograd.core.state import is_recording
from retrograd.foundation.number_arguments import as_switch, check_number
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.utils.chain_checkpoint import run_chain
from retrograd.utils.recompute import CheckpointError, ContextPair, GraphExecGroup, Options, run_with_recomputation
from retrograd.utils.selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_early_stop: ContextVar[bool | None] = ContextVar("early_stop", default=None)
_debug: ContextVar[bool | None] = ContextVar("debug", default=None)


def noop_context_fn() -> ContextPair:
    """Return contexts for the forward pass and for recomputation that do nothing."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any] | Iterable[Callable[..., Any]],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], ContextPair] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    budget_bytes: int | None = None,
    **kwargs: Any,
) -> Any:
    """Return `function(*args, **kwargs)` without the saved tensors of its operators.

    They are recomputed when the backward pass reaches them, once per pass, and freed as they are used.  Arguments
    and results are any pytrees.  If nothing is recorded, as under `no_grad()`, the function is just called.

    - `preserve_rng_state`: recomputation draws the same random values, from the default generator and from any
    `Generator` among the arguments, and restores their states.
    - `early_stop`: recomputation ends as soon as it has all required tensors.
    - `context_fn`: returns two context managers, for the forward pass and for recomputation; see
      `create_selective_checkpoint_contexts`.
    - `determinism_check`: "default" compares shapes and dtypes of the recomputed tensors with the original ones,
    "none" only their number.
    - `debug`: a `CheckpointError` lists the operators of both runs.
    - `budget_bytes`: for a chain, an `nn.Sequential` or list of functions, each of which gets the result of the
    previous one.  At most `budget_bytes` of the values between them are saved, at the steps that minimize the number
    of recomputed steps, `revolve.cost(len(function), budget_bytes // bytes)`, if they are all of
    one size; if not, the largest one so far determines how many fit.  The running step's own input and
    result, and its saved tensors, are not counted.
    - `use_reentrant`: with True, the result requires grad only if some tensor among the arguments does, and
    it warns if none does.  False is recommended.  Leaving it out means True and warns, except with `budget_bytes`.

    Raises ValueError for a budget below one value, for `debug` with a `context_fn`, and for either of them with
    `use_reentrant=True`; RuntimeError if a context suppresses an exception of the function; and in the backward pass
    `CheckpointError` if recomputation saves other tensors than before, RuntimeError if an argument has been changed in
    place.

    >>> import retrograd as rg
    >>> x = rg.tensor([0.0, 1.0], requires_grad=True)
    >>> y = checkpoint(lambda x: (x * x).exp(), x, use_reentrant=False)
    >>> rg.autograd.grad(y.sum(), x)
    (tensor([0.0000, 5.4366]),)
    """
    if use_reentrant is None and budget_bytes is None:
        use_reentrant = _warn_of_default("checkpoint")
    if use_reentrant and (context_fn is not noop_context_fn or debug):
        raise ValueError(
            "checkpoint: Passing `context_fn` or `debug` is only supported when use_reentrant=False. Pass that as well."
        )
    options = _make_options(context_fn, determinism_check, debug, early_stop, preserve_rng_state)
    steps = None if budget_bytes is None else _check_chain(function, args, kwargs, budget_bytes)
    if not callable(function) and steps is None:
        raise TypeError(f"checkpoint: expected a function, got {type(function).__name__}; a list needs budget_bytes")
    call: Any = function if steps is None else partial(_run, steps)
    arguments: Any = (args, kwargs)
    if not is_recording():
        return call(*args, **kwargs)
    if use_reentrant and not check_backward_validity(optree.tree_leaves(arguments)):
        with no_grad():
            return call(*args, **kwargs)
    if steps is not None and budget_bytes is not None:
        return run_chain(steps, args[0], budget_bytes, options)
    return run_with_recomputation(call, args, kwargs, options)


@suggest_keywords
def checkpoint_sequential(
    functions: Iterable[Callable[..., Any]],
    segments: int | None,
    input: Any,
    use_reentrant: bool | None = None,
    budget_bytes: int | None = None,
    preserve_rng_state: bool = True,
    **kwargs: NoReturn,
) -> Any:
    """Return the result of a chain of functions, or `nn.Sequential`, each run on the result of the previous one.

    The chain is cut into `segments` of about equal length, and all but the last are checkpointed.  With
    `budget_bytes` instead of `segments` (then None) a binomial plan decides which values are saved, and which are
    saved again in the backward pass: see `checkpoint`.  Raises ValueError for less than one segment or more than there
    are functions, unless exactly one of both is given, and for other keyword arguments.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
    >>> checkpoint_sequential(model, 2, rg.ones(3, 4), use_reentrant=False).shape
    (3, 8)
    >>> checkpoint_sequential(model, None, rg.ones(3, 4), budget_bytes=200).shape
    (3, 8)
    """
    if use_reentrant is None and budget_bytes is None:
        use_reentrant = _warn_of_default("checkpoint_sequential")
    if kwargs:
        raise ValueError(
            f"checkpoint_sequential: Unexpected keyword arguments: {','.join(kwargs)}; each function gets only the "
            f"result of the previous one"
        )
    steps = list(functions)
    if (segments is None) == (budget_bytes is None):
        raise ValueError("checkpoint_sequential: give the number of segments or budget_bytes, the other one as None")
    checkpoint_segment = partial(checkpoint, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    if segments is None:
        return checkpoint_segment(steps, input, budget_bytes=budget_bytes)
    if not 1 <= segments <= max(1, len(steps)):
        raise ValueError(f"checkpoint_sequential: {len(steps)} functions make no {segments} segments")
    size = len(steps) // segments
    cut = size * (segments - 1)
    for start in range(0, cut, size):
        input = checkpoint_segment(partial(_run, steps[start : start + size]), input)
    return _run(steps[cut:], input)


def _warn_of_default(name: str) -> bool:
    """Warn that `use_reentrant` was not passed; return its default."""
    warn_user(
        f"{name}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended. The "
        f"default is use_reentrant=True, with which the result requires grad only if an argument does."
    )
    return True


def _run(steps: Sequence[Callable], x: Any) -> Any:
    for step in steps:
        x = step(x)
    return x


def _check_chain(function: Any, args: tuple, kwargs: dict[str, Any], budget: int) -> list[Callable]:
    """Return the steps of a chain that is to run under a budget."""
    if not hasattr(function, "__iter__"):
        raise TypeError(
            f"checkpoint: budget_bytes is for a chain, an nn.Sequential or a list of functions, got "
            f"{type(function).__name__}"
        )
    steps = list(function)
    if not steps or len(args) != 1 or kwargs:
        raise TypeError(
            f"checkpoint: with budget_bytes, expected at least one step and exactly one argument, got {len(steps)} "
            f"steps, {len(args)} arguments and {len(kwargs)} keyword arguments"
        )
    if budget < 1:
        raise ValueError(f"checkpoint: budget_bytes must be at least 1, got {budget}")
    return steps


def _make_options(
    context_fn: Callable[[], ContextPair], determinism_check: str, debug: bool, early_stop: bool, preserve: bool
) -> Options:
    if determinism_check not in _DESCRIPTIONS:
        raise ValueError(
            f"checkpoint: determinism_check should be one of {sorted(_DESCRIPTIONS)}, but got {determinism_check}"
        )
    forced_stop, forced_debug = _early_stop.get(), _debug.get()
    debug = debug if forced_debug is None else forced_debug
    if debug and context_fn is not noop_context_fn:
        raise ValueError(
            "checkpoint: debug=True is incompatible with non-default context_fn: the contexts may replace operators, "
            "so that the lists of both runs differ"
        )
    return Options(
        context_fn=context_fn,
        describe=_DESCRIPTIONS[determinism_check],
        debug=debug,
        early_stop=early_stop if forced_stop is None else forced_stop,
        preserve_rng_state=preserve,
    )


def _aval(tensor: Tensor) -> Any:
    return tensor.aval


def _no_description(tensor: Tensor) -> None:
    return None


_DESCRIPTIONS: dict[str, Callable[[Tensor], Any]] = {"default": _aval, "none": _no_description}


class CheckpointFunction:
    """The reentrant kind of `checkpoint`, as code calls it that passes all its arguments by position.

    >>> import retrograd as rg
    >>> x = rg.tensor([0.0, 1.0], requires_grad=True)
    >>> rg.autograd.grad(CheckpointFunction.apply(lambda x: (x * x).exp(), True, x).sum(), x)
    (tensor([0.0000, 5.4366]),)
    """

    @staticmethod
    def apply(run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Return `checkpoint(run_function, *args, use_reentrant=True)`."""
        return checkpoint(run_function, *args, use_reentrant=True, preserve_rng_state=preserve_rng_state)


# ----------------------------------------------------------------------------------------------- settings for a block


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """Set whether checkpoints created in the block stop recomputing early, overriding their own argument.

    >>> with set_checkpoint_early_stop(False):
    ...     pass
    """
    return _set_in_block(_early_stop, as_switch("set_checkpoint_early_stop: enable", enable))


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """Set whether checkpoints created in the block run with `debug`; None means their own argument.

    >>> with set_checkpoint_debug_enabled(True):
    ...     pass
    """
    check_number("set_checkpoint_debug_enabled: enabled", bool | None, enabled)
    return _set_in_block(_debug, enabled)


@generator_block
def _set_in_block(variable: ContextVar[bool | None], value: bool | None) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


# -------------------------------------------------------------------------------------- helpers, as in PyTorch


def check_backward_validity(inputs: Iterable[Any]) -> bool:
    """Return whether an input is a tensor that requires grad; warn if none is."""
    if any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        return True
    warn_user("checkpoint: None of the inputs have requires_grad=True. Gradients will be None")
    return False


def detach_variable(inputs: tuple) -> tuple:
    """Return the inputs with new leaves instead of the tensors: each requires grad if its tensor does.

    >>> import retrograd as rg
    >>> detach_variable((rg.ones(2, requires_grad=True) * 2, "as it is"))
    (tensor([2., 2.], requires_grad=True), 'as it is')
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"detach_variable: Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}"
        )
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return the non-CPU devices of the tensors among the arguments, and their random states: always empty."""
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Any], *, device_type: str | None = None) -> None:
    """Restore the result of `get_device_states`; ValueError for devices that do not exist here."""
    if devices:
        raise ValueError(f"set_device_states: expected no devices except the CPU, got {list(devices)}")


class DefaultDeviceType:
    """The device type that checkpoints assume by default: the CPU, the only one.

    >>> DefaultDeviceType.get_device_type()
    'cpu'
    """

    @staticmethod
    def get_device_type() -> str:
        """Return 'cpu'."""
        return "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Accept 'cpu', and raise ValueError for anything else."""
        if device != "cpu":
            raise ValueError(f"DefaultDeviceType: expected 'cpu', got {device!r}")
