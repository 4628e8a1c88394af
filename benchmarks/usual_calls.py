"""Time the calls that scripts are made of on small tensors: reading shapes, views, reductions, layers, losses.

    python benchmarks/usual_calls.py [--rounds 9] [--json FILE]

A call on 32 numbers takes little time besides that of Python, of binding its arguments, and of making its results.
Rows are what the scripts and libraries in the tests call most; one thread.  There is no budget.
"""

import argparse
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from retrograd.bench import Case, Suite, Table, converter, library, main, parser, run_suite, subjects

READING = ("x.shape", "x.shape[0]", "x.dim()", "x.numel()", "x.dtype", "x.is_contiguous()", "s.item()", "float(s)")
VIEWS = (
    "x.view(8, 4)", "x.view(-1)", "x.reshape(8, 4)", "x.flatten()", "x.t()", "x.transpose(0, 1)", "x.unsqueeze(0)",
    "x[0]", "x[:, 0]", "x[:2]", "x[None]", "x.expand(2, 4, 8)", "x.chunk(2, -1)", "x.detach()", "x.contiguous()",
)  # fmt: skip
ELEMENTWISE = (
    "x + y", "x * 2", "1 - x", "x / y", "x**2", "x.exp()", "x.sigmoid()", "F.relu(x)", "F.gelu(x)", "x.clamp(0, 1)",
    "x > 0", "m.where(mask, x, y)", "x.masked_fill(mask, 0.0)", "x.float()", "x.double()", "x.clone()",
)  # fmt: skip
REDUCTIONS = (
    "x.sum()", "x.sum(-1)", "x.mean()", "x.mean(-1, keepdim=True)", "x.max()", "x.max(-1)", "x.argmax(-1)", "x.std()",
    "x.var(-1, unbiased=False)", "x.norm()", "x.softmax(-1)", "m.logsumexp(x, -1)", "x.cumsum(-1)", "x.sort(-1)",
    "x.topk(2, -1)", "(x > 0).any()", "m.allclose(x, y)",
)  # fmt: skip
CHOICES = (
    "x[mask]", "x[rows]", "x[:, rows]", "x.tril()", "F.pad(x, (1, 1))", "x.gather(1, rows[:, None])",
    "x.index_select(0, rows)", "F.one_hot(rows, 5)", "x.scatter(1, rows[:, None], 1.0)",
)  # fmt: skip
NEW = (
    "m.zeros(4, 8)", "m.ones_like(x)", "m.arange(8)", "m.tensor(1.0)", "m.full((2, 3), 1.0)", "m.cat([x, y])",
    "m.stack([x, y])", "x.repeat(2, 1)",
)  # fmt: skip
PRODUCTS = ("x @ w", "m.einsum('bi,ij->bj', x, w)", "F.linear(x, w, b)", "layer(x)")
LAYERS = (
    "norm(x)", "batch_norm(x)", "embedding(rows)", "F.layer_norm(x, (8,))", "F.conv2d(image, filters, padding=1)",
    "F.max_pool2d(image, 2)", "F.avg_pool2d(image, 2)", "F.scaled_dot_product_attention(q, q, q)",
    "F.cross_entropy(x, target)", "F.mse_loss(x, y)", "F.normalize(x, dim=-1)",
)  # fmt: skip
PASSES = (
    "(r * 2).sum().backward()", "r.view(8, 4).t().sum().backward()", "F.softmax(r, -1).sum().backward()",
    "F.cross_entropy(r, target).backward()", "layer(x).sum().backward()", "norm(r).sum().backward()",
    "m.cat([r, r]).sum().backward()", "r[0].sum().backward()", "F.gelu(r).sum().backward()",
    "F.mse_loss(r, y).backward()", "r.max(-1)[0].sum().backward()",
)  # fmt: skip
ROWS = (*READING, *VIEWS, *ELEMENTWISE, *REDUCTIONS, *CHOICES, *NEW, *PRODUCTS, *LAYERS, *PASSES)


def operands(m: ModuleType) -> dict[str, Any]:
    """Return the names in the rows, with the same values for every subject."""
    numbers = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return m.from_numpy(numbers.standard_normal(shape).astype(np.float32))

    x = normal(4, 8)
    return {
        "m": m, "F": m.nn.functional, "x": x, "y": normal(4, 8), "w": normal(8, 8), "b": normal(8), "s": m.tensor(2.0),
        "r": normal(4, 8).requires_grad_(True), "mask": x > 0, "rows": m.tensor([0, 3, 1, 2]),
        "target": m.tensor([0, 7, 1, 2]), "image": normal(2, 3, 8, 8), "filters": normal(4, 3, 3, 3),
        "q": normal(2, 2, 4, 8), "layer": m.nn.Linear(8, 8), "norm": m.nn.LayerNorm(8),
        "batch_norm": m.nn.BatchNorm1d(8), "embedding": m.nn.Embedding(10, 8),
    }  # fmt: skip


def cases(name: str, threads: int) -> Callable[[str], Case]:
    """Return a function from row to case in a subject's process."""
    m = library(name, threads)
    names = operands(m)

    def case(row: str) -> Case:
        call = eval(f"lambda: {row}", names)
        drawn = row.startswith(("layer", "embedding"))  # their weights are drawn, and differ

        def results() -> list:
            found = call()
            found = found if isinstance(found, tuple | list) else [found]
            return [] if drawn else [converter(m)(t).copy() for t in found if hasattr(t, "detach")]

        return Case(call, results)

    return case


SUITE = Suite("Usual calls", __file__, {row: {} for row in ROWS}, subjects("retrograd", "PyTorch"), cases, unit="us")


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table."""
    return [run_suite(SUITE, options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 9), report, cases))
