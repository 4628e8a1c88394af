"""Time a sentence encoder on nested and on padded batches, in retrograd and PyTorch.

    python benchmarks/nested_encoder.py [--rounds 5] [--json FILE] [--check]

The encoder is that of examples/ragged_sentences.py, all-MiniLM-L6-v2, with random weights: six layers of width 384
with 12 heads. The lengths of the texts are those of docstrings in Python's standard library, at most 256 words; the
lengths of the sentences are those of the sentences in them. PyTorch's encoder converts a padded batch to nested
tensors by itself if nothing is recorded ("nested"), unless this is disabled. One thread.
"""

import argparse
import bisect
import heapq
import importlib
import inspect
import random
import re
import shutil
import statistics
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.bench import Case, Suite, Table, converter, library, main, parser, run_suite, subjects

MODULES = (bisect, heapq, random, shutil, statistics, tempfile, textwrap)
MOST = 256  # words of a text

# Measured work, and the budget as a share of the padded batch's time.
ROWS: dict[str, float | None] = {
    "forward, 64 texts": 0.6,
    "forward, 64 sentences": 0.6,
    "forward and backward, 16 texts": 0.6,
    "forward and backward, 64 sentences": 0.6,
}
NESTED, PADDED = "retrograd, nested", "retrograd, padded"


def texts() -> list[str]:
    """Return the docstrings of the public functions of some modules."""
    functions = [getattr(module, name) for module in MODULES for name in getattr(module, "__all__", ())]
    return [text for function in functions if callable(function) and (text := inspect.getdoc(function))]


def lengths(kind: str, count: int) -> list[int]:
    """Return the word counts of that many "texts" or "sentences", with punctuation and the start and end tokens."""
    found = texts() if kind == "texts" else [part for text in texts() for part in re.split(r"(?<=[.:])\s+", text)]
    words = [min(len(re.findall(r"\w+|[^\w\s]", text)) + 2, MOST) for text in found]
    return random.Random(0).sample(words, count)


def encoder(m: Any, nested: bool) -> Any:
    """Return the layers of the model."""
    layer = m.nn.TransformerEncoderLayer(384, 12, 1536, 0.0, "gelu", 1e-12, batch_first=True)
    options = {} if m.__name__ == "retrograd" else {"enable_nested_tensor": nested}
    parts = {
        "words": m.nn.Embedding(30522, 384),
        "places": m.nn.Embedding(512, 384),
        "norm": m.nn.LayerNorm(384, 1e-12),
        "layers": m.nn.TransformerEncoder(layer, 6, **options),
    }
    return m.nn.ModuleDict(parts)


def vectors(m: Any, model: Any, words: Any, places: Any, padding: Any = None) -> Any:
    """Map word ids and their positions (texts, words) to vectors (texts, width)."""
    x = model["norm"](model["words"](words) + model["places"](places))
    x = model["layers"](x, src_key_padding_mask=padding)
    if padding is None:
        return m.nn.functional.normalize(x.mean(1), dim=1)
    x = x.masked_fill(padding.unsqueeze(-1), 0.0).sum(1) / (~padding).sum(1, keepdim=True)
    return m.nn.functional.normalize(x, dim=1)


def batch(m: Any, counts: list[int], nested: bool) -> tuple:
    """Return the inputs of `vectors`: nested or padded."""
    drawn = np.random.default_rng(1)
    words, places = [m.from_numpy(drawn.integers(0, 30522, n)) for n in counts], [m.arange(n) for n in counts]
    if nested and m.__name__ == "retrograd":
        return m.nested.nested_tensor(words), m.nested.nested_tensor(places)
    longest = max(counts)
    padding = m.tensor([[i >= n for i in range(longest)] for n in counts])
    both = [m.stack([m.nn.functional.pad(x, (0, longest - len(x))) for x in parts]) for parts in (words, places)]
    return *both, padding


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process."""
    m, nested = library(name, threads), name.endswith("nested")
    if m.__name__ == "retrograd":
        importlib.import_module("retrograd.nested")
    warnings.simplefilter("ignore")  # PyTorch's nested tensors are a prototype
    model = encoder(m, nested)
    drawn = np.random.default_rng(0)
    with m.no_grad():
        for p in model.parameters():
            p.copy_(m.from_numpy(0.05 * drawn.standard_normal(tuple(p.shape), np.float32)))

    def case(row: str) -> Case | None:
        how, _, what = row.rpartition(", ")
        count, kind = what.split()
        inputs = batch(m, lengths(kind, int(count)), nested)

        def forward() -> Any:
            model.eval()
            with m.no_grad():
                return vectors(m, model, *inputs)

        def both_ways() -> None:
            model.train()
            model.zero_grad()
            vectors(m, model, *inputs)[:, 0].sum().backward()

        if how == "forward":
            return Case(forward, lambda: [converter(m)(forward())], once=True)
        return None if name == "PyTorch, nested" else Case(both_ways, once=True)

    return case


SUITE = Suite(
    "Sentence encoder",
    __file__,
    {row: {PADDED: budget} if budget else {} for row, budget in ROWS.items()},
    subjects(NESTED, PADDED, "PyTorch, padded", "PyTorch, nested"),
    cases,
    unit="s",
    ours=NESTED,
    tolerance=1e-3,
)


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table."""
    return [run_suite(SUITE, options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 2), report, cases))
