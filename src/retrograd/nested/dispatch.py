"""Dispatch of operators on nested tensors to operators on their buffers.

An operator on a nested tensor is that operator mapped over the components, each as a batch of one.  Rules that do so
without a loop are registered for whole families of operators (`family`), and by name for single ones (`composed`).
Operators without a rule are composed of other operators, or mapped over the components one by one.
"""

from collections.abc import Callable
from typing import Any

from retrograd.backend.ragged import RaggedSizeError
from retrograd.core import Definition, Op, registry
from retrograd.core.dispatch import seen_whole
from retrograd.core.operand_errors import check_operands
from retrograd.nested.buffer_layout import is_nested, layout
from retrograd.nested.linked_views import linked

Rule = Callable[[Op, tuple, dict], Any]  # (op, args, params) -> result, or NotImplemented


class NoBatchError(RuntimeError):
    """The result of an operator for a component is not a batch of one."""


class AcrossError(RuntimeError):
    """An operator would act across the components."""


DOES_NOT_FIT = (RaggedSizeError, ValueError, TypeError, IndexError, NoBatchError)  # after these, try the next rule

_by_name: dict[str, Rule] = {}
_by_family: dict[type[Definition], Rule] = {}
_final: set[Rule] = set()  # rules whose errors are final
_last: list[Rule] = []  # the rules for operators without another one


def composed(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: register a rule for operators of these names; NotImplemented defers to the family's rule."""

    def register(rule: Rule) -> Rule:
        for name in names:
            assert name in registry, name
            assert name not in _by_name, name
            _by_name[name] = rule
        return rule

    return register


def family(*classes: type[Definition]) -> Callable[[Rule], Rule]:
    """Decorator: register a rule for families of operators; NotImplemented defers to the fallbacks."""

    def register(rule: Rule) -> Rule:
        _by_family.update(dict.fromkeys(classes, rule))
        return rule

    return register


def fallback(rule: Rule) -> Rule:
    """Decorator: register a fallback."""
    _last.append(rule)
    return rule


def final(rule: Rule) -> Rule:
    """Decorator: make the errors of a rule final, so that no other rule is tried."""
    _final.add(rule)
    return rule


def rules_of(op: Op) -> list[Rule]:
    """Return the rules for an operator, in the order in which they are tried."""
    named = [_by_name[op.name]] if op.name in _by_name else []
    return named + [_by_family[c] for c in op.definition.__mro__ if c in _by_family] + _last


def execution_kind(op: Op) -> str:
    """Return how an operator runs on nested tensors: "at once", "composed" of operators that do, or "one by one"."""
    if rules_of(op) != _last:
        return "at once"
    return "composed" if op.composite else "one by one"


def decompose(op: Op, args: tuple, params: dict) -> Any:
    """Return the result of the first applicable rule of an operator; NotImplemented if none applies.

    A rule that compares a ragged size with a number, or asks for one, may fail although the operator succeeds on each
    component: then the next rule is tried.  If all fail, the first error is raised.
    """
    if op.definition.accepts_nested or seen_whole() or not any(map(is_nested, args)):
        return NotImplemented
    rules = _known.get(op)
    if rules is None:
        rules = _known[op] = rules_of(op)
    said: Exception | None = None
    for rule in rules:
        try:
            out = rule(op, args, params)
        except DOES_NOT_FIT as error:
            if rule in _final:
                raise
            said = error if said is None or isinstance(said, TypeError | NoBatchError) else said
        except AttributeError:
            check_operands(op, args)
            raise
        except AcrossError:
            if said is None or isinstance(said, TypeError | NoBatchError) or rule is not rules[-1]:
                raise
        else:
            if out is not NotImplemented:
                _inherit_layout(args, out)
                return linked(op, args[0], params, out)
    assert said is not None
    raise said


def _inherit_layout(args: tuple, out: Any) -> None:
    """Mark the structures that a rule has made as strided, if those of all nested operands are."""
    if all(layout(a).structure.strided for a in args if is_nested(a)):
        for result in out if isinstance(out, tuple) else (out,):
            if is_nested(result):
                layout(result).structure.strided = True


_known: dict[Op, list[Rule]] = {}
