"""Tables of test data for operators, one file per family, merged; and checks of an operator against a law."""

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import retrograd.fx
import retrograd.higher_order
import retrograd.implicit
import retrograd.pipelining  # noqa: F401  these four register operators when they are imported
from retrograd.core import Op, Tensor, registry
from retrograd.testing import run

# Whether expensive tests run on all samples of an operator, as in the nightly `make coverage`, or on the first.
ALL_SAMPLES = os.environ.get("RETROGRAD_TEST_SAMPLES") == "all"
# `fast_mode` of gradcheck: derivatives along random directions; in the nightly run, of each element.
FAST_MODE = not ALL_SAMPLES

BOOLEANS_AND_INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
DTYPES = (  # in promotion order
    *BOOLEANS_AND_INTEGERS, "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def operators_on_arrays() -> list[str]:
    """Return the names of all operators except those of composite arrays, which tests/nested and tests/sparse check.

    Those are registered if another test has imported these packages.
    """
    numbers = ("int", "float")  # the results of calculations with sizes in graphs
    found = {n: op for n, op in registry.items() if op.schema.returns not in numbers}
    packages = ("retrograd.nested", "retrograd.sparse")
    return sorted(n for n, op in found.items() if not op.definition.__module__.startswith(packages))


def first_samples(samples: list, count: int = 1) -> list:
    """Return the first samples of an operator, or all in the nightly run.

    For checks that take long and hardly depend on the sample. Each operator has other checks on all of them.
    """
    return samples if ALL_SAMPLES else samples[:count]


def on_tensors(op: Op, args: tuple, params: dict) -> tuple[Callable, list[Tensor]]:
    """Return a sample's operator as a function of its tensors only, and these tensors."""
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]

    def f(*tensors: Tensor) -> Any:
        full = list(args)
        for place, tensor in zip(places, tensors, strict=True):
            full[place] = tensor
        return run(op, tuple(full), params)

    return f, [args[place] for place in places]


def merged(package: str, table: str) -> dict:
    """Merge the dicts of that name of all modules of a package; no entry may be in two.

    `package` is relative to the folder of the tests: "parity.families".
    """
    found: dict = {}
    for path in sorted(Path(__file__).parent.joinpath(*package.split(".")).glob("[!_]*.py")):
        entries = getattr(import_module(f"{__package__}.{package}.{path.stem}"), table, {})
        assert not entries.keys() & found.keys(), f"{path.name}: {entries.keys() & found.keys()} stand elsewhere too"
        found |= entries
    return found


def failures(law: Callable, op: Op, samples: list) -> Iterator[Exception]:
    """Yield the errors of the law, for each sample on which it fails, with that sample in a note."""
    for i, (args, params) in enumerate(samples):
        try:
            law(op, args, params)
        except Exception as error:
            given = [*map(str, args), *(f"{name}={value}" for name, value in params.items())]
            error.add_note(f"{op.name}, sample {i}: {', '.join(given)}")
            yield error


def hold(law: Callable, op: Op, samples: list) -> None:
    """Check an operator against a law on all of its samples; an ExceptionGroup contains all failures.

    One test for all samples: pytest takes longer to start and report a test than a law takes for a sample.
    """
    hold_all([law], op, samples)


def hold_all(laws: list[Callable], op: Op, samples: list) -> None:
    """Check an operator against laws; an ExceptionGroup contains a group of the failures for each law that fails."""
    found = []
    for law in laws:
        errors = list(failures(law, op, samples))
        if errors:
            found.append(ExceptionGroup(f"{law.__name__} fails on {len(errors)} of {len(samples)} samples", errors))
    if found:
        raise ExceptionGroup(f"{op.name}: {', '.join(group.message for group in found)}", found)
