"""`opcheck`: check that an operator satisfies its declarations in every mode."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from retrograd.core import Operator, registry
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.library import CustomOperator, sanitize
from retrograd.testing.calculus import seeded
from retrograd.testing.opcheck_derivatives import ATOL, RTOL, check_batching, check_forward, check_gradients
from retrograd.testing.opcheck_values import check_fake, check_schema, check_strides, check_tracing, tolerant
from retrograd.testing.probe import Probe

SUCCESS = "SUCCESS"
CHECKS: dict[str, Callable] = {
    "test_schema": check_schema,
    "test_fake": check_fake,
    "test_gradients": check_gradients,
    "test_forward": check_forward,
    "test_batching": check_batching,
    "test_tracing": check_tracing,
    "test_strides": check_strides,
}
GROUPS = {  # PyTorch's names: each is of several checks
    "test_schema": ("test_schema",),
    "test_autograd_registration": ("test_gradients", "test_forward"),
    "test_faketensor": ("test_fake", "test_strides"),
    "test_aot_dispatch_static": ("test_tracing", "test_batching"),
    "test_aot_dispatch_dynamic": ("test_tracing", "test_batching"),
}
DEFAULTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
# The registered functions that a check is about, the first one present; else it is the kernel.
SUBJECTS = {
    "test_fake": {"abstract": "the abstract function"},
    "test_gradients": {"autograd": "impl_autograd", "pull": "the gradient formula", "backward": "the gradient formula"},
    "test_forward": {"jvp": "the forward rule", "pull": "the gradient formula", "backward": "the gradient formula"},
    "test_batching": {"vmap": "the batching rule"},
}


class NoOperatorError(TypeError, ValueError):
    """The error of `opcheck` for an object that is no operator; ValueError in PyTorch."""


class OpCheckError(AssertionError):
    """The failures that `opcheck` found; `results` has a text for each check."""

    def __init__(self, message: str, results: dict[str, str]) -> None:
        super().__init__(message)
        self.results = results


def opcheck(
    op: Operator | str,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = DEFAULTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Check an operator, custom or built in, with these arguments; return "SUCCESS" or the failure of each check.

    The checks have PyTorch's names, and each consists of one or two that have names of their own:

    - test_schema: it writes only to the arguments marked in its schema, and returns new memory, as the schema declares.
    - test_autograd_registration: test_gradients, its gradients agree with `gradcheck`, also of second order if its
      formula is recorded; and test_forward, its forward derivatives agree with finite differences.
    - test_faketensor: test_fake, its abstract function predicts the shapes and dtypes of the results, also for other
      shapes and dtypes; and test_strides, results and gradients do not depend on the memory layout of tensors.
    - test_aot_dispatch_dynamic: test_tracing, a traced graph, of it and of its gradients, gives the same, also on other
      values; and test_batching, `vmap` equals a loop, for any batched inputs, along the first or last dimension.

    `test_utils` names some of both, or is "ALL" for the seven.  Derivatives are checked in double precision, for the
    arguments that require grad, or for all floating ones if none does; an operator without a formula that raises an
    error passes.  `atol` and `rtol` apply to every comparison, by default `assert_close`'s, and `gradcheck`'s for
    derivatives.  Choose arguments where the operator is smooth, and valid with their entries in another order; they are
    not changed.

    Raises OpCheckError with all failures, if `raise_exception`; ValueError for an unknown check, TypeError for
    a non-operator or arguments that do not fit its schema.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::doubled_by_opcheck", mutates_args=())
    ... def double(x: rg.Tensor) -> rg.Tensor:
    ...     return x * 2
    >>> double.register_autograd(lambda ctx, g: g * 3)
    >>> results = opcheck(double, (rg.ones(3),), raise_exception=False)
    >>> [name for name, text in results.items() if text != "SUCCESS"]
    ['test_autograd_registration']
    """
    operator, names = _operator(op), _names(test_utils)
    if (rtol is None) != (atol is None):
        raise ValueError(f"opcheck: if you specify one of rtol/atol, you must specify both; got {rtol=} and {atol=}")
    probe = Probe.from_call(operator, args, kwargs or {})
    tolerances = {"atol": ATOL if atol is None else atol, "rtol": RTOL if rtol is None else rtol}
    known = {**CHECKS}
    for name in ("test_gradients", "test_forward"):
        known[name] = partial(CHECKS[name], **tolerances)
    results = {}
    for name in names:
        verdicts = [_verdict(known[part], probe, tolerant(atol, rtol)) for part in GROUPS.get(name, (name,))]
        results[name] = next((text for text in verdicts if text != SUCCESS), SUCCESS)
    wrong = {name: text for name, text in results.items() if text != SUCCESS}
    if wrong and raise_exception:
        raise OpCheckError(_report(operator, wrong, len(results)), results)
    return results


def _operator(op: Any) -> Operator:
    found = registry.get(op) if isinstance(op, str) else op
    if not isinstance(found, Operator):
        raise NoOperatorError(
            f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, an operator, or the name of one, got "
            f"{type(op)}: {op!r}"
        )
    return found


def _names(test_utils: str | Sequence[str]) -> tuple[str, ...]:
    if test_utils == "ALL":
        return tuple(CHECKS)
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    for name in names:
        if name not in CHECKS and name not in GROUPS:
            raise ValueError(
                f"opcheck: expected test_utils to be subset of {tuple({**GROUPS, **CHECKS})} but it was not: "
                f"test_utils names {name!r}"
            )
    return names


def _verdict(check: Callable, probe: Probe, close: Callable) -> str:
    with warnings.catch_warnings(), sanitize(False), seeded():
        warnings.simplefilter("ignore")  # of low precision, divisions by zero in shapes that are tried, and the like
        try:
            check(probe, close)
        except AssertionError as error:
            return str(error) or "an assertion fails"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return SUCCESS


# ------------------------------------------------------------------------------------------------------- report


def _report(op: Operator, wrong: dict[str, str], total: int) -> str:
    """Return the failures as text: each error once, with its checks and the registrations that they concern."""
    first = next(iter(wrong))
    lines = [f"opcheck(op, ...): {first} failed with {wrong[first].splitlines()[0]}"]
    lines += [f"opcheck: {op.schema} fails {len(wrong)} of {total} checks"]
    checks_by_text: dict[str, list[str]] = {}
    for name, text in wrong.items():
        checks_by_text.setdefault(text, []).append(name)
    for text, names in checks_by_text.items():
        places = dict.fromkeys([_subject_location(op, name) for name in names])
        lines += [f"  {', '.join(names)} ({'; '.join(places)}):", *[f"    {line}" for line in text.splitlines()]]
    return "\n".join(lines)


def _subject_location(op: Operator, check: str) -> str:
    """Return the subject of a check, and where it is registered."""
    if not isinstance(op, CustomOperator):
        return f"built in, {op.definition.__module__}"
    for field, what in SUBJECTS.get(GROUPS.get(check, (check,))[0], {}).items():
        part = getattr(op.registrations, field)
        if part is not None:
            return f"{what} at {part.location}"
    for known in op.registrations.kernels.values():
        return f"the kernel at {known.location}"
    return f"defined at {op.registrations.location}"


suggest_in_module(globals())
