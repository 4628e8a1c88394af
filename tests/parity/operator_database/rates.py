"""Write docs/parity.md: how often results agree with PyTorch's, by aspect and dtype, with every exemption.

python -m tests.parity.operator_database.rates

Prints the differences that are not exempt.
"""

import warnings
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path

import torch

from .comparison import ASPECTS, compare_samples
from .entries import DTYPES, entries, runs
from .exemptions import ABSENT, EXEMPT

PAGE = Path(__file__).parents[3] / "docs" / "parity.md"
HEAD = """\
# Agreement with PyTorch's operator tests

<!-- Written by `python -m tests.parity.operator_database.rates`, in the environment of `make parity`. -->

PyTorch tests its operators with a database of sample inputs.  `make parity` runs every entry that has a counterpart
here in both libraries, PyTorch {version} and retrograd, on all samples, in six dtypes.  It compares errors, values,
dtypes, shapes, contiguity, memory shared with inputs, `requires_grad`, first and second gradients, forward
derivatives, `vmap`, the in-place variant and `out=`; in bfloat16 everything but second gradients.  A difference that
this page does not list fails the tests.

{samples:,} samples of {entries} entries were run.  {equal:,} of {tried:,} comparisons without an exemption agree,
{rate:.3%}.  In {closer:,} of them the numbers differ, and those of retrograd are closer to the exact value, to the
result of PyTorch in double precision, to a difference quotient of its function, or to its result without `vmap`.
"""


FURTHER = """
## Modules and optimizers

PyTorch's databases of modules and of optimizers run too (`tests/parity/test_module_database_parity.py`,
`test_optimizer_database_parity.py`): values, buffers, gradients, second gradients, forward derivatives, `vmap`, states,
copies and pickles of modules in double precision; steps, states, settings and printed groups of optimizers with real,
complex and sparse gradients, closures, groups and schedules; error inputs by class and words. The tests list each
difference with its reason, and fail when it is gone:

- the second gradient of `KLDivLoss` in a target, and the tangent of `CrossEntropyLoss` without targets: NaN in PyTorch
- `fused` with complex parameters or sparse gradients, tensors among factors, eps=0 of norms, weights of another dtype,
  0 and 1 for `bias` and `batch_first`: accepted here
- a parameter twice in a group: an error here, a warning in PyTorch
- the text of some messages
"""


@dataclass
class Counts:
    """Counts of samples, and of comparisons made, differing, exempt or closer, by (aspect, dtype)."""

    samples: int = 0
    tried: Counter = field(default_factory=Counter)
    differing: Counter = field(default_factory=Counter)
    exempt: Counter = field(default_factory=Counter)
    closer: Counter = field(default_factory=Counter)

    def add(self, other: "Counts") -> None:
        """Add the counts of other samples."""
        self.samples += other.samples
        for mine, more in zip(self._counters(), other._counters(), strict=True):
            mine.update(more)

    def _counters(self) -> tuple[Counter, ...]:
        return self.tried, self.differing, self.exempt, self.closer


def count(run: tuple[str, str]) -> Counts:
    """Return the counts of all samples of an entry in a dtype."""
    name, dtype = run
    found = Counts()
    for number, report in compare_samples(name, dtype):
        found.samples += 1
        found.closer.update((aspect, dtype) for aspect in report.closer)
        found.tried.update((aspect, dtype) for aspect in set(report.tried))
        for aspect, message in report.differences.items():
            if (name, aspect) not in EXEMPT:
                print(f"{name} {dtype}, sample {number}, {aspect}: {message}", flush=True)
            (found.exempt if (name, aspect) in EXEMPT else found.differing)[aspect, dtype] += 1
    return found


def page() -> str:
    """Return the text of the page."""
    every, counts = list(runs()), Counts()
    with Pool(2, initializer=_prepare) as pool:
        for found in pool.imap_unordered(count, every):
            counts.add(found)
    total, wrong = counts.tried.total() - counts.exempt.total(), counts.differing.total()
    lines = [
        HEAD.format(
            version=torch.__version__.partition("+")[0],
            samples=counts.samples,
            entries=len({name for name, _ in every}),
            equal=total - wrong,
            tried=total,
            rate=1 - wrong / total,
            closer=counts.closer.total(),
        ),
        f"| aspect | {' | '.join(DTYPES)} | differ | exempt |",
        "| --- |" + " ---: |" * (len(DTYPES) + 2),
    ]
    for aspect in ASPECTS:
        tried = " | ".join(f"{counts.tried[aspect, dtype]:,}" for dtype in DTYPES)
        wrong, excused = (sum(c[aspect, d] for d in DTYPES) for c in (counts.differing, counts.exempt))
        lines.append(f"| {aspect} | {tried} | {wrong} | {excused} |")
    names = {name for name, _ in EXEMPT}
    lines += [
        "",
        "## Exemptions",
        "",
        f"{len(names)} entries.",
        "",
        "| entry | aspect | reason |",
        "| --- | --- | --- |",
    ]
    lines += [f"| `{name}` | {aspect} | {reason} |" for (name, aspect), reason in sorted(EXEMPT.items())]
    lines += ["", "## Entries without a counterpart", "", f"{len(ABSENT)} of {len(entries())} entries.", ""]
    lines += ["| entry | reason |", "| --- | --- |"]
    lines += [f"| `{name}` | {reason} |" for name, reason in sorted(ABSENT.items())]
    return "\n".join(lines) + "\n" + FURTHER


def _prepare() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
