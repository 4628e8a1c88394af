"""Run passes in an order that constraints allow."""

import functools
import inspect
import logging
from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.passes.infra.pass_base import PassResult
from retrograd.nn.module import Module

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

Pass = Callable[..., PassResult | None]
Constraint = Callable[[Callable, Callable], bool]

logger = logging.getLogger(__name__)


def pass_result_wrapper(fn: Callable) -> Callable:
    """Return a pass that gives a `PassResult` from one that changes a module in place and returns None.

    >>> from retrograd import fx
    >>> pass_result_wrapper(lambda module: None)(fx.symbolic_trace(lambda x: x)).modified
    True
    """

    @functools.wraps(fn)
    def wrapped(module: GraphModule) -> PassResult:
        result = fn(module)
        if isinstance(result, PassResult):
            return result
        return PassResult(module if result is None else result, True)

    return wrapped


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Constraint:
    """Return the constraint that `this` runs before `that`: false for the two in the other order."""
    return lambda a, b: not (a is that and b is this)


class PassManager:
    """Runs passes on a module, in an order that meets the constraints.

    `constraints` are functions of two passes that return whether the first may run before the second.  All passes run
    `steps` times, or until none changes the module.  `add_checks` sets a function that raises an error for a wrong
    module; it runs at the beginning, and after each pass with `run_checks_after_each_pass`.  With
    `suppress_check_failures` failed checks are logged.

    >>> from retrograd import fx
    >>> def clean(module):
    ...     module.graph.eliminate_dead_code()
    >>> manager = PassManager([pass_result_wrapper(clean)])
    >>> result = manager(fx.symbolic_trace(lambda x: (x + 1, x * 2)[1]))
    >>> [node.name for node in result.graph_module.graph.nodes]
    ['x', 'mul', 'output']
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._check: Callable[[Module], None] = lambda module: None
        self._validated = False

    def add_pass(self, _pass: Pass) -> None:
        """Add a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a constraint on the order."""
        self.constraints.append(constraint)
        self._validated = False

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """Set the function that checks the module; raise TypeError unless it takes one argument."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self._check = check

    def check(self, module: Module) -> None:
        """Check the module with the function of `add_checks`."""
        self._check(module)

    def validate_constraints(self) -> None:
        """Raise RuntimeError if the present order breaks a constraint."""
        for index, first in enumerate(self.passes):
            for second in self.passes[index + 1 :]:
                for constraint in self.constraints:
                    if not constraint(first, second):
                        raise RuntimeError(
                            f"pass schedule validation failed. Constraint violated {constraint}: {_name(first)} runs "
                            f"before {_name(second)}"
                        )
        self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes into an order that meets the constraints; raise RuntimeError if there is none."""
        sorter: TopologicalSorter = TopologicalSorter({index: [] for index in range(len(self.passes))})
        for a, first in enumerate(self.passes):
            for b, second in enumerate(self.passes):
                if a != b and any(not constraint(first, second) for constraint in self.constraints):
                    sorter.add(a, b)  # the first may not run before the second
        try:
            self.passes = [self.passes[index] for index in sorter.static_order()]
        except CycleError as error:
            names = [_name(self.passes[index]) for index in error.args[1]]
            raise RuntimeError(f"Circular dependency detected within the following passes: {names}") from None
        self._validated = True

    def __call__(self, module: Module) -> PassResult:
        """Run the passes; an error of a pass notes the passes that ran before."""
        if not self._validated:
            self.solve_constraints()
        self._guarded_check(module)
        overall = False
        for _ in range(self.steps):
            modified = False
            for index, fn in enumerate(self.passes):
                result = self._run(fn, module, [_name(done) for done in self.passes[:index]])
                module, changed = result.graph_module, bool(result.modified)
                modified = modified or changed
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self._guarded_check(module)
            overall = overall or modified
            if not modified:
                break
        return PassResult(module, overall)  # type: ignore[arg-type]

    def _run(self, fn: Pass, module: Module, before: list[str]) -> Any:
        try:
            result = fn(module)
            if not isinstance(result, PassResult):
                raise TypeError(
                    f"The result of the pass {_name(fn)} should be type PassResult. Please wrap it with "
                    f"pass_result_wrapper()"
                )
        except Exception as error:
            error.add_note(
                f"An error occurred when running the {_name(fn)!r} pass after the following passes: {before}"
            )
            raise
        return result

    def _guarded_check(self, module: Module) -> None:
        try:
            self.check(module)
        except Exception:
            if not self.suppress_check_failures:
                raise
            logger.exception("the check of the module failed")


def _name(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)


suggest_in_module(globals())
