"""Dispatch of operators on nested tensors to operators on their buffers.

An operator on a nested tensor is that operator mapped over the components, each as a batch of one.  Rules that do so
without a loop are registered for whole families of operators (`rule_for_family`), and by name for single ones
(`rule_for`). Operators without a rule are composed of other operators, or mapped over the components one by one.
"""

from collections.abc import Callable
from typing import Any

from retrograd.backend.ragged import RaggedSizeError
from retrograd.core import Definition, Op, registry
from retrograd.core.dispatch import seen_whole
from retrograd.core.operand_errors import check_operands
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.error_words import FinalError, raise_in_pytorchs_words
from retrograd.nested.linked_views import link_copies

Rule = Callable[[Op, tuple, dict], Any]  # (op, args, params) -> result, or NotImplemented


class NotBatchOfOneError(RuntimeError):
    """The result of an operator for a component is not a batch of one."""


class AcrossComponentsError(RuntimeError):
    """An operator would act across the components."""


RULE_ERRORS = (RaggedSizeError, ValueError, TypeError, IndexError, NotBatchOfOneError)  # after these, try the next rule

_by_name: dict[str, Rule] = {}
_by_family: dict[type[Definition], Rule] = {}
_final_rules: set[Rule] = set()  # rules whose errors are final
_fallbacks: list[Rule] = []  # the rules for operators without another one


def rule_for(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: register a rule for operators of these names; NotImplemented defers to the family's rule."""

    def register(rule: Rule) -> Rule:
        for name in names:
            assert name in registry, name
            assert name not in _by_name, name
            _by_name[name] = rule
        return rule

    return register


def rule_for_family(*classes: type[Definition]) -> Callable[[Rule], Rule]:
    """Decorator: register a rule for families of operators; NotImplemented defers to the fallbacks."""

    def register(rule: Rule) -> Rule:
        _by_family.update(dict.fromkeys(classes, rule))
        return rule

    return register


def register_fallback(rule: Rule) -> Rule:
    """Decorator: register a fallback."""
    _fallbacks.append(rule)
    return rule


def with_final_errors(rule: Rule) -> Rule:
    """Decorator: make the errors of a rule final, so that no other rule is tried."""
    _final_rules.add(rule)
    return rule


def rules_of(op: Op) -> list[Rule]:
    """Return the rules for an operator, in the order in which they are tried."""
    named = [_by_name[op.name]] if op.name in _by_name else []
    return named + [_by_family[c] for c in op.definition.__mro__ if c in _by_family] + _fallbacks


def execution_kind(op: Op) -> str:
    """Return how an operator runs on nested tensors: "at once", "composed" of operators that do, or "one by one"."""
    if rules_of(op) != _fallbacks:
        return "at once"
    return "composed" if op.composite else "one by one"


def decompose(op: Op, args: tuple, params: dict) -> Any:
    """Return the result of the first applicable rule of an operator; NotImplemented if none applies.

    A rule that compares a ragged size with a number, or asks for one, may fail although the operator succeeds on each
    component: then the next rule is tried.  If all fail, the first error is raised.
    """
    if op.definition.accepts_nested or seen_whole() or not any(map(is_nested, args)):
        return NotImplemented
    try:
        return _run_rules(op, args, params)
    except (RuntimeError, *RULE_ERRORS) as error:
        raise_in_pytorchs_words(op, args, params, error)
        raise


def _run_rules(op: Op, args: tuple, params: dict) -> Any:
    """Return the result of the first applicable rule."""
    rules = _rule_cache.get(op)
    if rules is None:
        rules = _rule_cache[op] = rules_of(op)
    first_error: Exception | None = None
    for rule in rules:
        try:
            out = rule(op, args, params)
        except RULE_ERRORS as error:
            if rule in _final_rules or isinstance(error, FinalError):
                raise
            first_error = (
                error if first_error is None or isinstance(first_error, TypeError | NotBatchOfOneError) else first_error
            )
        except AttributeError:
            check_operands(op, args)
            raise
        except AcrossComponentsError:
            if first_error is None or isinstance(first_error, TypeError | NotBatchOfOneError) or rule is not rules[-1]:
                raise
        else:
            if out is not NotImplemented:
                _inherit_layout(args, out)
                return link_copies(op, args[0], params, out)
    assert first_error is not None
    raise first_error


def _inherit_layout(args: tuple, out: Any) -> None:
    """Mark the structures that a rule has made as strided, if those of all nested operands are."""
    if all(get_layout(a).structure.strided for a in args if is_nested(a)):
        for result in out if isinstance(out, tuple) else (out,):
            if is_nested(result):
                get_layout(result).structure.strided = True


_rule_cache: dict[Op, list[Rule]] = {}
