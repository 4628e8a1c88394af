"""Selective checkpoints: a policy selects the operators whose results are saved, and so not recomputed."""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from retrograd.core import Level, Op, Tensor, call, graph_level
from retrograd.core.level import TransparentLevel
from retrograd.core.record import record
from retrograd.core.state import is_recording
from retrograd.core.tensor import alias, count_of


class CheckpointPolicy(Enum):
    """The treatment of an operator's result; `PREFER_` and `MUST_` are equivalent here, since nothing overrides
    them.  `CPU_OFFLOAD` saves on the CPU, where the result is already."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


# Operators that every selective checkpoint repeats without asking its policy, in addition to views, writes and random
# draws. Programs may add their own.
SAC_IGNORED_OPS: set[Op] = set()

SAVE_POLICIES = frozenset(policy for policy in CheckpointPolicy if not policy.name.endswith("RECOMPUTE"))


class SelectiveCheckpointContext:
    """An argument of policies: whether the function is being recomputed, and the operator's result, `op_output`.

    A policy decides in the forward pass; `is_recompute` is True only where recomputation runs an operator that the
    forward pass did not run, and that must not be selected.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


Policy = Callable[..., CheckpointPolicy | bool]


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[Op], allow_cache_entry_mutation: bool = False
) -> tuple[Level, Level]:
    """Return the contexts of the forward pass and of recomputation, for `checkpoint(context_fn=...)`.

    A policy is called as `policy(ctx, op, *args, **params)` for each operator and returns a `CheckpointPolicy`, or
    whether to save; a list names the operators whose results are saved.  Every recomputation gets the saved results
    in the order of the calls of each operator.  Views, in-place writes and random draws
    are always repeated, as they must be, and so are the operators in the set `SAC_IGNORED_OPS`.

    Composite operators are not intercepted, only their parts: naming one in a list is a ValueError.  If a saved
    result has been written to in place, recomputation raises RuntimeError unless `allow_cache_entry_mutation`.

    >>> from functools import partial
    >>> import retrograd as rg
    >>> from retrograd.utils.checkpoint import checkpoint
    >>> keep_products = partial(create_selective_checkpoint_contexts, [rg.matmul])
    >>> x = rg.ones(2, 2, requires_grad=True)
    >>> checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=keep_products).sum().backward()
    """
    policy = policy_fn_or_list if callable(policy_fn_or_list) else _policy_of_list(policy_fn_or_list)
    saved = _ResultCache(allow_cache_entry_mutation)
    forward = _SaveSelected(policy, saved)
    return forward, _ReplaySaved(policy, saved, forward)


def _policy_of_list(operators: Any) -> Policy:
    if not isinstance(operators, Sequence):
        raise TypeError(
            f"create_selective_checkpoint_contexts: policy_fn_or_list must be either a function or a list of ops, got "
            f"{type(operators).__name__}"
        )
    for op in operators:
        if not isinstance(op, Op):
            raise ValueError(
                f"create_selective_checkpoint_contexts: Expected op in `op_list` to be an operator such as rg.matmul, "
                f"but got: {op!r} of type {type(op)}"
            )
        if op.composite:
            raise ValueError(
                f"create_selective_checkpoint_contexts: {op.name} is composed of other operators; name those"
            )
    return lambda ctx, op, *args, **params: op in operators


class _SavedResult(NamedTuple):
    tensor: Tensor
    version: int


def _save_result(tensor: Tensor) -> _SavedResult:
    return _SavedResult(tensor.detach(), count_of(tensor))


class _ResultCache:
    """Results by operator and index of its call, with their saved versions."""

    def __init__(self, allow_mutation: bool) -> None:
        self._results: dict[tuple[Op, int], Any] = {}
        self._allow_mutation = allow_mutation

    def put(self, key: tuple[Op, int], out: Any) -> None:
        """Save a result: a tensor, or a tuple of them."""
        self._results[key] = tuple(_save_result(o) for o in out) if isinstance(out, tuple) else _save_result(out)

    def __contains__(self, key: tuple[Op, int]) -> bool:
        return key in self._results

    def get(self, key: tuple[Op, int]) -> Any:
        """Return a saved result, detached."""
        saved = self._results[key]
        load = partial(self._check_and_alias, key[0])
        return load(saved) if isinstance(saved, _SavedResult) else tuple(map(load, saved))

    def _check_and_alias(self, op: Op, saved_result: _SavedResult) -> Tensor:
        tensor, version = saved_result
        if count_of(tensor) != version and not self._allow_mutation:
            raise RuntimeError(
                f"Tensor cached during selective activation checkpoint has been mutated: the result of {op.name}, of "
                f"shape {tensor.shape}, is at version {count_of(tensor)}; expected version {version}. Write to a copy, "
                f"x.clone(), don't save that operator, or pass allow_cache_entry_mutation=True."
            )
        return alias(tensor, None)


class _CallCounter(TransparentLevel):
    """Counts the calls of each operator, from 0 each time that it is entered."""

    def __init__(self, saved: _ResultCache) -> None:
        self._saved = saved
        self._calls: Counter[Op] = Counter()

    def __enter__(self) -> Any:
        self._calls.clear()
        return super().__enter__()

    def key(self, op: Op) -> tuple[Op, int]:
        """Return the key of this call of an operator."""
        self._calls[op] += 1
        return op, self._calls[op]


class _SaveSelected(_CallCounter):
    """In the forward pass: saves the results that the policy selects."""

    def __init__(self, policy: Policy, saved: _ResultCache) -> None:
        super().__init__(saved)
        self._policy = policy

    def process(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        """Run the operator, and save its result if selected."""
        key = self.key(op)
        out = call(op, args, params)
        if not _runs_always(op) and self._is_selected(out, op, args, params):
            self._saved.put(key, out)
        return out

    def _is_selected(self, out: Any, op: Op, args: tuple, params: dict[str, Any]) -> bool:
        context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
        return _selects(op, self._policy(context, op, *args, **params))

    def has_run(self, op: Op) -> bool:
        """Return whether the operator has run in the last forward pass."""
        return op in self._calls


def _selects(op: Op, decision: Any) -> bool:
    """Return whether a policy's decision is to save."""
    if isinstance(decision, CheckpointPolicy):
        return decision in SAVE_POLICIES
    if isinstance(decision, bool):
        return decision
    raise TypeError(f"the checkpoint policy must return a CheckpointPolicy or a bool, got {decision!r} for {op.name}")


class _ReplaySaved(_CallCounter):
    """In recomputation: returns the saved results."""

    def __init__(self, policy: Policy, saved: _ResultCache, forward: _SaveSelected) -> None:
        super().__init__(saved)
        self._policy = policy
        self._forward = forward

    def process(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        """Return the saved result, recorded as if the operator had run; else run it."""
        key = self.key(op)
        if key not in self._saved:
            if not self._forward.has_run(op) and not _runs_always(op):
                self._check_unselected(op, args, params)
            return call(op, args, params)
        out = self._saved.get(key)
        level = graph_level()
        if is_recording() and op.differentiable and any(_operand_requires_grad(a, level) for a in args):
            record(op, args, params, out, level)
        return out

    def _check_unselected(self, op: Op, args: tuple, params: dict[str, Any]) -> None:
        """Raise RuntimeError if the policy saves an operator that the forward pass did not run."""
        if _selects(op, self._policy(SelectiveCheckpointContext(is_recompute=True), op, *args, **params)):
            raise RuntimeError(
                f"selective checkpoint: {op.name} encountered during backward but not found in storage: the forward "
                "pass did not run it. This can happen if the operations in the checkpointed region are "
                "nondeterministic or depend on global state that changed between forward and backward."
            )


def _runs_always(op: Op) -> bool:
    """Whether an operator always runs: views share memory, and random draws advance their generator."""
    return op.view or op.definition.impure or op.random or op in SAC_IGNORED_OPS


def _operand_requires_grad(operand: Any, level: Level | None) -> bool:
    return isinstance(operand, Tensor) and operand.requires_grad and operand.level is level
