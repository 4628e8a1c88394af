"""Generate a random program while both libraries run it; shrink and judge its differences."""

from collections.abc import Callable, Iterator
from typing import Any

from .compare import moderate
from .differential import Difference, Run, may_write, quietly
from .exempt import exempted, exempted_program, of_gradients
from .generate import KINDS, Generator
from .machine import recorded
from .shrink import shrunk

LARGEST = 400  # elements of a tensor with which a program continues
REPEATS = 5  # exempt differences after which a program ends
MODERATE = 0.9  # share of programs without special values: the libraries differ in most derivatives at infinity and NaN

Judged = tuple[Difference, str | None]


def differences(
    seed: int, ran: Callable[[list[str]], None] = lambda lines: None, kinds: list = KINDS
) -> Iterator[Judged]:
    """Yield the shrunk differences of a program, each with the reason for which it is allowed.

    After an allowed one the program continues without the line that differed, so that it hides no other.  `ran`
    gets the lines that both libraries accepted; `kinds` are those of `generate.KINDS`, or some of them.
    """
    generator, both, left = Generator(seed, kinds), Run(), REPEATS
    with quietly():
        for line in _lines(generator, both):
            if (message := both.line(line)) is None:
                continue
            found = list(judged(both.done, message))
            yield from found
            left -= 1
            if not left or any(reason is None for _, reason in found):
                return
            both.replay(both.done[:-1])
        ran(both.done)
        yield from _gradient_differences(both)


def _lines(generator: Generator, both: Run) -> Iterator[str]:
    yield from generator.leaves()
    only_moderate = generator.chance(MODERATE)
    for _ in range(int(generator.rng.integers(20, 61))):
        line = generator.line(both.theirs.v)
        yield line
        yield from _copy_lines(both)
        yield from _drop_lines(both.theirs.v, only_moderate, may_write(line))


def _drop_lines(tensors: dict[int, Any], only_moderate: bool, written: bool) -> Iterator[str]:
    """Yield lines that drop tensors with which a program does not continue: the latest, or any one; one stays."""
    for i, t in list(tensors.items())[1:] if written else list(tensors.items())[1:][-1:]:
        if t.numel() > LARGEST or (only_moderate and not moderate(t.numpy(force=True))):
            yield f"del v[{i}]"


def _copy_lines(both: Run) -> Iterator[str]:
    """Yield a line that copies the latest tensor if the two libraries laid it out in different orders.

    So a difference in layout is reported where it arises, and not again for every view of that tensor.
    """
    number, theirs = next(reversed(both.theirs.v.items()))
    ours = both.ours.v.get(number)
    if ours is not None and _layout(theirs) != _layout(ours):
        yield f"v[{number}] = v[{number}].clone(memory_format=L.contiguous_format)"


def _layout(tensor: Any) -> list[tuple[int, int]]:
    """Return sizes and strides, of dimensions that have more than one element."""
    if recorded(tensor) != "True, leaf False" and tensor.requires_grad:
        return []
    return [(n, s) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1] if tensor.numel() else []


def _gradient_differences(both: Run) -> Iterator[Judged]:
    """Yield the differences in the gradients of all results, up to one that is not allowed."""
    for message in list(both.gradients()):
        for found, reason in judged(both.done, message):
            yield found, reason
            if reason is None:
                return


def judged(lines: list[str], message: str) -> Iterator[Judged]:
    """Yield each difference of a message, shrunk if the whole program does not show whether it is allowed."""
    for line in message.split("\n"):
        found = Difference(list(lines), line)
        if not of_gradients(found) and (reason := exempted(found)):
            yield found, reason
        else:
            found = shrunk(found)
            yield found, exempted_program(found)
