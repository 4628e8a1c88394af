"""Search the actions and spans of a timeline by words."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.timeline.colors import name_of
from retrograd.pipelining.timeline.records import Event, Span, Step

Test = Callable[[Event | Span], bool]
# The operators that functions run under another name; functions without the number of dimensions.
OPERATOR_NAMES = {
    "avg_pool": "pooled_sum", "batch_norm": "norm_channels", "bmm": "matmul", "conv": "convolution",
    "conv_transpose": "convolution_input", "cross_entropy": "class_loss", "dropout": "keep", "embedding": "lookup",
    "group_norm": "channel_standardize", "instance_norm": "channel_standardize", "interpolate": "resample",
    "layer_norm": "norm_rows", "max_pool": "pooled_max", "mm": "matmul",
    "scaled_dot_product_attention": "attend",
}  # fmt: skip
MICRO_BATCH = ("micro-batch", "microbatch", "micro", "mb")


def matcher(text: str, steps: Sequence[Step]) -> Callable[[Iterable[Event | Span]], list[Event | Span]]:
    """Return a function that selects the records for which all words of a text hold; none for an empty text."""
    words, starts = text.lower().split(), [step.start for step in steps]

    def step_of(record: Event | Span) -> int | None:
        index = bisect_right(starts, record.start) - 1
        return steps[index].number if index >= 0 else None

    tests: list[Test] = []
    numbers = {i: int(number) for i, (_, number) in enumerate(pairwise(words)) if number.isdecimal()}
    numbers = {i: number for i, number in numbers.items() if words[i] in ("rank", "stage", "step", *MICRO_BATCH)}
    for i, word in enumerate(words):
        if i in numbers:
            tests.append(_number_test(word, numbers[i], step_of))
        elif i - 1 not in numbers:
            tests.append(_word_test(word))
    return lambda records: sorted(
        (record for record in records if tests and all(test(record) for test in tests)),
        key=lambda record: record.start,
    )


def _number_test(word: str, number: int, step_of: Callable[[Event | Span], int | None]) -> Test:
    if word == "rank":
        return lambda record: record.rank == number
    if word == "step":
        return lambda record: step_of(record) == number
    name = "micro_batch" if word in MICRO_BATCH else "stage"
    return lambda record: isinstance(record, Event) and getattr(record.action, name) == number


def _word_test(word: str) -> Test:
    operator = OPERATOR_NAMES.get(re.sub(r"[123]d$", "", word), word)

    def test(record: Event | Span) -> bool:
        if isinstance(record, Span):
            return word in record.name.lower() or operator in record.name.lower()
        kind, stage, micro_batch, _ = record.action
        names = (kind.value.lower(), f"{kind.value}{stage}.{micro_batch}".lower())
        return word in names or word in _purpose(kind)

    return test


def _purpose(kind: Kind) -> str:
    if kind.is_compute or kind.is_move or kind.is_reduction:
        return name_of(kind).lower()
    return "send" if kind.is_send else "wait for a message"
