"""Idioms of scripts print the same under PyTorch and, with `import torch` replaced, here.

The files of `idioms/` have programs of a few lines, separated by `---`. `torch`, `nn` and `np` are imported for them.
An error's words may go on, or begin with the name of the operator; shapes may print as tuples.
"""

import contextlib
import io
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import retrograd as rg

from ..case_groups import group_cases

IDIOMS = {
    f"{path.stem} {number}": text
    for path in sorted((Path(__file__).parent / "idioms").glob("*.txt"))
    for number, text in enumerate(path.read_text().strip().split("\n---\n"))
}


def printed(library, text):
    """Return the lines that a program prints, in PyTorch's names, and the class of the error that ends it."""
    if library is rg:
        text = re.sub(r"^(\s*)import torch\.", r"\1import retrograd.", text, flags=re.M)
        text = re.sub(r"^(\s*)import torch\b", r"\1import retrograd as torch", text, flags=re.M)
        text = re.sub(r"^(\s*)from torch\b", r"\1from retrograd", text, flags=re.M)
    names = {"torch": library, "nn": library.nn, "np": np, "__name__": "__main__"}
    state, rng = library.get_default_dtype(), library.get_rng_state()
    out = io.StringIO()
    library.manual_seed(0)
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "idiom", "exec"), names)
        except Exception as error:
            print("ends with", next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"))
        finally:
            library.set_default_dtype(state)
            library.set_rng_state(rng)
            library.set_printoptions(profile="default")
    return [plain(line) for line in out.getvalue().replace("retrograd.", "torch.").splitlines()]


def plain(line):
    line = re.sub(
        r"torch\.Size\(\[([^\]]*)\]\)", lambda m: f"({m[1]},)" if re.fullmatch(r"\d+", m[1]) else f"({m[1]})", line
    )
    return re.sub(r" at 0x\w+", "", line.replace("torch.", ""))


@group_cases
@pytest.mark.parametrize("name", IDIOMS)
def test_an_idiom_prints_the_same(name):
    theirs, ours = printed(torch, IDIOMS[name]), printed(rg, IDIOMS[name])
    differ = [pair for pair in zip(theirs, ours, strict=False) if pair[0].rstrip(". ") not in pair[1]]
    assert (differ, len(ours)) == ([], len(theirs))
