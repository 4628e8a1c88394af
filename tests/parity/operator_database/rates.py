"""Write docs/parity.md: how often results agree with PyTorch's, by aspect and dtype, with every exemption.

python -m tests.parity.operator_database.rates
"""

import warnings
from collections import Counter
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
here in both libraries, PyTorch {version} and retrograd, on all samples, in five dtypes.  It compares errors, values,
dtypes, shapes, contiguity, memory shared with inputs, `requires_grad`, first and second gradients, forward
derivatives, `vmap`, the in-place variant and `out=`.  A difference that this page does not list fails the tests.

{samples:,} samples of {entries} entries were run.  {equal:,} of {tried:,} comparisons without an exemption agree,
{rate:.3%}.  In {closer:,} of them the numbers differ, and those of retrograd are closer to the result of PyTorch in
double precision, to a difference quotient of its function, or to its result without `vmap`.

"""


def count() -> tuple[Counter, Counter, Counter, Counter, int, set]:
    """Run all samples; returns comparisons, differences and exempt ones by (aspect, dtype), and how many samples."""
    tried, differing, exempt, closer, samples, names = Counter(), Counter(), Counter(), Counter(), 0, set()
    for name, dtype in runs():
        for _, report in compare_samples(name, dtype):
            samples += 1
            names.add(name)
            closer.update(report.closer)
            tried.update((aspect, dtype) for aspect in set(report.tried))
            for aspect in report.differences:
                (exempt if (name, aspect) in EXEMPT else differing)[aspect, dtype] += 1
    return tried, differing, exempt, closer, samples, names


def page() -> str:
    """Return the page."""
    tried, differing, exempt, closer, samples, names = count()
    total, wrong = tried.total() - exempt.total(), differing.total()
    lines = [
        HEAD.format(
            version=torch.__version__.partition("+")[0],
            samples=samples,
            entries=len(names),
            equal=total - wrong,
            tried=total,
            rate=1 - wrong / total,
            closer=closer.total(),
        ),
        f"| aspect | {' | '.join(DTYPES)} | differ | exempt |",
        "| --- |" + " ---: |" * (len(DTYPES) + 2),
    ]
    for aspect in ASPECTS:
        counts = " | ".join(f"{tried[aspect, dtype]:,}" for dtype in DTYPES)
        wrong, excused = (sum(c[aspect, d] for d in DTYPES) for c in (differing, exempt))
        lines.append(f"| {aspect} | {counts} | {wrong} | {excused} |")
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
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
