"""Time one operation on a small array: retrograd (compiled and pure), PyTorch, HIPS autograd, NumPy.

    python benchmarks/overhead.py [--rounds 31] [--json FILE] [--check]

One thread.  A chain consists of 1,000 multiplications `w = w * y` of 4 elements; times are per operation.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from retrograd.bench import Case, Subject, Suite, Table, changed_options, library, main, parser, run_suite, subjects

VALUES = [1.0, 1.00001, 0.99999, 1.0]  # whose millionth powers are finite
CHAIN = 1000
LONG, LONGER = 100_000, 1_000_000


class Row(NamedTuple):
    """One measurement: the operands, which of them are recorded, and the budget as a share of PyTorch's time."""

    what: str  # "forward" or "backward" (forward and backward)
    dtype: str = "float32"
    recorded: str = "w"  # which of w and y require gradients
    scalar: bool = False  # whether y is a Python number
    operations: int = CHAIN
    budget: float | None = None


ROWS = {
    "float32 forward, not recorded": Row("forward", recorded="", budget=0.40),
    "float32 forward, recorded": Row("forward", budget=0.55),
    "float32 forward + backward": Row("backward", budget=0.40),
    "float32 forward + backward, y requires grad": Row("backward", recorded="wy"),
    "float64 forward, not recorded": Row("forward", "float64", "", budget=0.40),
    "float64 forward, recorded": Row("forward", "float64", budget=0.55),
    "float64 forward + backward": Row("backward", "float64", budget=0.40),
    "scalar forward, not recorded": Row("forward", recorded="", scalar=True, budget=0.40),
    "scalar forward, recorded": Row("forward", scalar=True, budget=0.55),
    "scalar forward + backward": Row("backward", scalar=True, budget=0.40),
    "one multiplication, not recorded": Row("single", recorded="", budget=0.40),
    "one multiplication, recorded": Row("single", budget=0.55),
}
LONG_ROWS = {f"chain of {n:,}": Row("backward only", operations=n) for n in (LONG, LONGER)}

# -------------------------------------------------------------------------------------------------- subjects


def chain(w: Any, y: Any, n: int) -> Any:
    """Run n multiplications, each of the result of the one before."""
    for _ in range(n):
        w = w * y
    return w


def repeated(w: Any, y: Any, n: int) -> Any:
    """Run the same multiplication n times."""
    for _ in range(n):
        w * y


def eager(tensor: Callable[[str, bool], Any], row: Row) -> Callable[[], object]:
    """Return the call of a library with tensors and `backward()`."""
    w = tensor(row.dtype, "w" in row.recorded)
    y = 1.00001 if row.scalar else tensor(row.dtype, "y" in row.recorded)
    if row.what == "backward":
        return lambda: chain(w, y, row.operations).sum().backward()
    if row.what == "backward only":
        return partial(chain(w, y, row.operations).sum().backward, retain_graph=True)
    return partial(repeated if row.what == "single" else chain, w, y, row.operations)


def build_of_core() -> str:
    """Return which build of retrograd this process has imported."""
    return "pure" if sys.modules["retrograd.core.op"].__file__.endswith(".py") else "compiled"


def tensors(m: Any) -> Callable[[Row], Callable[[], object]]:
    """Return the case of retrograd or PyTorch."""
    return partial(eager, lambda dtype, grad: m.tensor(VALUES, dtype=getattr(m, dtype), requires_grad=grad))


def arrays(np: Any) -> Callable[[Row], Callable[[], object] | None]:
    """Return the lower bound: plain arrays, without recording."""
    return lambda row: None if row.recorded else eager(lambda dtype, grad: np.array(VALUES, dtype), row)


def hips(autograd: Any) -> Callable[[Row], Callable[[], object] | None]:
    """Return the case of HIPS autograd, which records inside `make_vjp`; outside, its functions only wrap NumPy's."""
    import autograd.numpy as anp
    from autograd.core import make_vjp
    from autograd.numpy.numpy_boxes import ArrayBox  # noqa: F401 (arrays are differentiable once it is imported)

    def call(row: Row) -> Callable[[], object] | None:
        if row.recorded != "w" or row.what in ("single", "backward only"):
            return None
        w = anp.array(VALUES, row.dtype)
        y = 1.00001 if row.scalar else anp.array(VALUES, row.dtype)

        def run() -> None:
            vjp, _ = make_vjp(lambda w: anp.sum(chain(w, y, row.operations)), w)
            if row.what == "backward":
                vjp(anp.ones((), row.dtype))

        return run

    return call


KINDS = {"HIPS autograd": hips, "NumPy": arrays}
SUBJECTS = {
    "retrograd": Subject("retrograd", {"RETROGRAD_PURE": ""}),
    "pure": Subject("retrograd", {"RETROGRAD_PURE": "1"}),
    **subjects("PyTorch", "HIPS autograd", "NumPy"),
}


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process."""
    m = library("retrograd" if name == "pure" else name, threads)
    if name in ("retrograd", "pure") and build_of_core() != ("pure" if name == "pure" else "compiled"):
        raise ImportError("a compiled build")
    calls = KINDS.get(name, tensors)(m)

    def case(title: str) -> Case | None:
        row = {**ROWS, **LONG_ROWS}[title]
        call = calls(row)
        return call and Case(call, operations=row.operations, once=True)

    return case


# -------------------------------------------------------------------------------------------------- measuring


def growth(options: argparse.Namespace) -> Table:
    """Return the time per operation of a backward pass over chains of two lengths, which must not grow by half."""
    few = changed_options(options, rounds=2, only="")
    chosen = {name: s for name, s in SUBJECTS.items() if name in ("retrograd", "pure", "PyTorch")}
    made = run_suite(Suite("Backward only", __file__, {row: {} for row in LONG_ROWS}, chosen, cases, unit="us"), few)
    short, long = made.rows
    for name in made.subjects:
        grown = long.median(name) / short.median(name)  # type: ignore[operator]
        made.notes.append(f"{name}: time per operation of the longer chain / of the shorter: {grown:.2f}")
        made.fine = made.fine and (name == "PyTorch" or grown <= 1.5)
    return made


def report(options: argparse.Namespace) -> list[Table]:
    """Return tables of operations, and of long chains."""
    rows = {title: {"PyTorch": row.budget} if row.budget else {} for title, row in ROWS.items()}
    made = run_suite(Suite("One operation on 4 elements", __file__, rows, SUBJECTS, cases, unit="us"), options)
    return [made, growth(options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 15), report, cases))
