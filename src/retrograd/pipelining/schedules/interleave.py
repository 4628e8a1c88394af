"""Interleave forward and backward passes: shared by 1F1B and its descendants."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, repeat

from retrograd.pipelining.schedules.actions import Action, Kind

Units = Iterable[Sequence[Action]]
"""Actions that stay together, such as the same one on all the stages of a block."""

_make = partial(tuple.__new__, Action)


def units(kind: Kind, stages: Sequence[int], micro_batches: int) -> Units:
    """Return per microbatch `kind` on every stage of a block: forward from first to last, else from last to first.

    >>> [str(action) for unit in units(Kind.B, [2, 3], 2) for action in unit]
    ['B3.0', 'B2.0', 'B3.1', 'B2.1']
    """
    order = stages if kind is Kind.F else stages[::-1]
    return zip(*(number_actions(kind, stage, range(micro_batches)) for stage in order), strict=True)


def in_rounds(kind: Kind, stages: Sequence[int], rounds: Iterable[range]) -> Units:
    """Return `kind` on every stage and microbatch as units of one action: within a round one stage after the other.

    >>> [str(action) for (action,) in in_rounds(Kind.F, [0, 2], [range(2), range(2, 3)])]
    ['F0.0', 'F0.1', 'F2.0', 'F2.1', 'F0.2', 'F2.2']
    """
    order = stages if kind is Kind.F else stages[::-1]
    return chain.from_iterable(
        zip(number_actions(kind, stage, numbers), strict=True) for numbers in rounds for stage in order
    )


def number_actions(kind: Kind, stage: int, numbers: Iterable[int]) -> Iterator[Action]:
    """Return the action for each of these microbatches, without the Python call of `Action(...)`.

    >>> list(map(str, number_actions(Kind.W, 2, range(3))))
    ['W2.0', 'W2.1', 'W2.2']
    """
    return map(_make, zip(repeat(kind), repeat(stage), numbers, repeat(None), strict=False))


def alternate(forwards: Units, backwards: Units, *, ahead: int) -> Iterator[Action]:
    """Yield `ahead` forwards, then alternate one backward and one forward, then the remaining backwards.

    >>> merged = alternate(units(Kind.F, [0], 3), units(Kind.B, [0], 3), ahead=2)
    >>> " ".join(map(str, merged))
    'F0.0 F0.1 B0.0 F0.2 B0.1 B0.2'
    """
    forwards = iter(forwards)
    yield from chain.from_iterable(islice(forwards, ahead))
    for unit in backwards:
        yield from unit
        yield from next(forwards, ())


def alternate_halves(forwards: Units, inputs: Units, weights: Units, *, ahead: int, keep: int) -> Iterator[Action]:
    """Alternate as above with split backwards: weight halves start once the activations of `keep` units are alive.

    Weight halves therefore run as late as memory allows; the remaining ones fill the time in which the last input
    halves arrive.

    >>> halves = units(Kind.F, [0], 3), units(Kind.I, [0], 3), units(Kind.W, [0], 3)
    >>> " ".join(map(str, alternate_halves(*halves, ahead=1, keep=2)))
    'F0.0 I0.0 F0.1 I0.1 W0.0 F0.2 I0.2 W0.1 W0.2'
    """
    forwards, weights = iter(forwards), iter(weights)
    yield from chain.from_iterable(islice(forwards, ahead))
    alive, forward = ahead, next(forwards, ())
    for unit in inputs:
        yield from unit
        if alive == keep or not forward:
            yield from next(weights, ())
        else:
            alive += 1
        yield from forward
        forward = next(forwards, ())
    yield from chain.from_iterable(weights)
