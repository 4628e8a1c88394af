"""Operators on nested tensors, taken apart into operators on their buffers.

An operator on a nested tensor is that operator mapped over the components, each as a batch of one.  How that is done
without a loop is said here once for whole families of operators (`family`), and by name for those that have a way of
their own (`composed`).  What is neither is composed of other operators, or mapped over the components one by one.
"""

from collections.abc import Callable
from typing import Any

from retrograd.backend.ragged import RaggedSizeError
from retrograd.core import Definition, Op, registry
from retrograd.core.dispatch import check_operands, seen_whole
from retrograd.nested.buffer_layout import is_nested
from retrograd.nested.linked_views import linked

Rule = Callable[[Op, tuple, dict], Any]  # (op, args, params) -> result, or NotImplemented


class NoBatchError(RuntimeError):
    """What an operator gives for a component is no batch of one."""


class AcrossError(RuntimeError):
    """An operator would act across the components."""


DOES_NOT_FIT = (RaggedSizeError, ValueError, TypeError, IndexError, NoBatchError)  # what another rule may do better

_by_name: dict[str, Rule] = {}
_by_family: dict[type[Definition], Rule] = {}
_final: set[Rule] = set()  # those whose errors stand
_last: list[Rule] = []  # what is done with operators that no rule takes


def composed(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: how operators of these names are taken apart; NotImplemented leaves a call to the family's rule."""

    def register(rule: Rule) -> Rule:
        for name in names:
            assert name in registry, name
            assert name not in _by_name, name
            _by_name[name] = rule
        return rule

    return register


def family(*classes: type[Definition]) -> Callable[[Rule], Rule]:
    """Decorator: how the operators of a family are taken apart; NotImplemented leaves a call to what comes last."""

    def register(rule: Rule) -> Rule:
        _by_family.update(dict.fromkeys(classes, rule))
        return rule

    return register


def otherwise(rule: Rule) -> Rule:
    """Decorator: what is done where no other rule is."""
    _last.append(rule)
    return rule


def final(rule: Rule) -> Rule:
    """Decorator: what the rule refuses no other one is asked for."""
    _final.add(rule)
    return rule


def rules_of(op: Op) -> list[Rule]:
    """The rules for an operator, in the order in which they are asked."""
    named = [_by_name[op.name]] if op.name in _by_name else []
    return named + [_by_family[c] for c in op.definition.__mro__ if c in _by_family] + _last


def way(op: Op) -> str:
    """How an operator runs on nested tensors: "at once", "composed" of operators that do, or "one by one"."""
    if rules_of(op) != _last:
        return "at once"
    return "composed" if op.composite else "one by one"


def take_apart(op: Op, args: tuple, params: dict) -> Any:
    """What an operator answers, by the first of its rules that has an answer; NotImplemented leaves it as it is.

    A rule that compares a ragged size with a number, or asks for that, fails where the operator on each component may
    not: then the next one is asked.  If all fail, what the first one said stands.
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
                return linked(op, args[0], params, out)
    assert said is not None
    raise said


_known: dict[Op, list[Rule]] = {}
