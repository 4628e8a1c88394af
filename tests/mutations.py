"""Seed bugs into a copy of the source, one at a time, and report which of them the tests catch.

Run by hand: `python tests/mutations.py [words]`; words select the mutations whose description has one.
The exit status is 1 if more than one is not caught; docs/laws.md has the record.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LAWS = ("tests/ops/test_laws.py",)
TESTS = ("tests/nested", "tests/core", "tests/ops", "tests/autograd", "tests/func")
MISSES_ALLOWED = 1


class Mutation(NamedTuple):
    """One bug: its file, its description, and the text that it replaces (which must occur once)."""

    path: str
    bug: str
    old: str
    new: str


MUTATIONS = (
    # Rules
    Mutation("ops/pointwise.py", "sub: the second cotangent has the wrong sign",
        'vjp_a=lambda g: g, vjp_b=lambda g: -g, linear="a,b"',
        'vjp_a=lambda g: g, vjp_b=lambda g: g, linear="a,b"'),
    Mutation("ops/pointwise.py", "exp2: the factor log(2) is missing",
        "vjp=lambda g, out: g * (out * math.log(2))", "vjp=lambda g, out: g * out"),
    Mutation("ops/pointwise.py", "tanh: the vjp reads the input instead of the output",
        "vjp=lambda g, out: tanh_grad(g, out)", "vjp=lambda g, x: tanh_grad(g, x)"),
    Mutation("ops/pointwise.py", "atan2: the operands are swapped in one rule",
        "vjp_b=lambda g, a, b: g * -_angle_slope(a, a, b)",
        "vjp_b=lambda g, a, b: g * -_angle_slope(b, a, b)"),
    Mutation("ops/pointwise.py", "maximum: both of two equal operands get the whole gradient",
        "where(a == b, g / 2, where(a < b, 0, g))", "where(a == b, g, where(a < b, 0, g))"),
    Mutation("ops/nn.py", "softmax: the forward derivative is wrong, the vjp right",
        "return softmax_grad(cast_to(t, out.dtype), out, dim=dim)",
        "return softmax_grad(cast_to(t, out.dtype), 2 * out, dim=dim)"),
    Mutation("ops/nn.py", "log_softmax: the vjp sums along the first dimension",
        "return log_softmax_grad(g, out, dim=dim)", "return log_softmax_grad(g, out, dim=0)"),
    Mutation("ops/reduce.py", "mean: the vjp divides by the number of all elements",
        "_back(g / _counted(x_aval, dim, keepdim), x_aval", "_back(g / numel(x_aval.shape), x_aval"),
    Mutation("ops/view.py", "permute: the vjp applies the permutation, not its inverse",
        "tuple(order.index(i) for i in range(g.ndim))", "tuple(order[i] for i in range(g.ndim))"),
    Mutation("backend/gather_scatter.py", "getitem: one cotangent of an element that is indexed twice is lost",
        "np.add.at(out, where, src)", "out[where] = src"),
    Mutation("ops/solve.py", "solve_triangular: the gradient reaches the triangle that is not read",
        "return -one_triangle(matmul(gB, mT(out)), upper, unit)", "return -matmul(gB, mT(out))"),
    Mutation("ops/svd.py", "svdvals: the gradient of complex matrices is not conjugated",
        "return conjugate(matmul(U * across(g), Vh))", "return matmul(U * across(g), Vh)"),
    Mutation("ops/conv.py", "convolution: the weight's gradient ignores the dilation",
        "return convolution_weight(x, g, weight_aval.shape[2:], stride, before, dilation, groups)",
        "return convolution_weight(x, g, weight_aval.shape[2:], stride, before, (1,) * len(dilation), groups)"),
    Mutation("ops/scan.py", "cumsum: the cotangent is not flipped back",
        "return flip(cumsum(flip(g, dim), dim), dim) if g.ndim else g",
        "return cumsum(flip(g, dim), dim) if g.ndim else g"),
    Mutation("ops/fft.py", "rfft: the transpose counts the middle of the spectrum once",
        "full_dft(_weighed(g, dim, n, 0.5)", "full_dft(_weighed(g, dim, n, 1.0)"),
    Mutation("ops/special.py", "erfcinv: the derivative has the wrong sign",
        "g * (-math.sqrt(math.pi) / 2 * exp(out * out))", "g * (math.sqrt(math.pi) / 2 * exp(out * out))"),
    Mutation("ops/channels.py", "norm_channels: the vjp ignores that the variance depends on the input",
        "slope = (of_variance * 2 - scale * s * along) / count", "slope = (of_variance * 2 - 0 * along) / count"),
    Mutation("ops/normalize.py", "batch_norm: the running variance is not corrected for n - 1",
        'keep_running("batch_norm", running_var, var * (count / max(count - 1, 1)), momentum)',
        'keep_running("batch_norm", running_var, var, momentum)'),
    # Families
    Mutation("ops/family.py", "sum_to: the first broadcast dimension of size 1 is not summed over",
        "dims = (*range(lead), *repeated)", "dims = (*range(lead), *repeated[1:])"),
    Mutation("ops/family.py", "Pointwise: a cotangent keeps the promoted dtype",
        "return cast_to(sum_to(g, shape_of(aval)), dtype_of(aval))", "return sum_to(g, shape_of(aval))"),
    Mutation("core/dtype.py", "promotion: 0-d tensors count like tensors with dimensions",
        "rank = 2 if dtype is None else 1 if len(operand.shape) == 0 else 0",
        "rank = 2 if dtype is None else 0"),
    # Engine
    Mutation("core/engine.py", "engine: the second of two cotangents for one node is dropped",
        "return old + g", "return old"),
    Mutation("core/engine.py", "engine: every cotangent is treated as memory to sum into",
        "return result.value is not g.value and result.value.base is None", "return True"),
    Mutation("core/engine.py", "engine: nodes run in the order of their creation",
        "elif fn.sequence > rival.sequence:", "elif fn.sequence < rival.sequence:"),
    Mutation("core/graph.py", "engine: the heap yields the earliest node first",
        "return self.sequence > other.sequence", "return self.sequence < other.sequence"),
    Mutation("core/graph.py", "engine: one saved output of several is the first one in the second derivative",
        "out.output_nr = number", "out.output_nr = 0"),
    Mutation("core/engine.py", "engine: every cotangent goes to the first output of its node",
        "self.deliver(edge, 0 if fn.numbers is None else fn.numbers[i], gi)", "self.deliver(edge, 0, gi)"),
    Mutation("core/graph.py", "engine: a saved output is a constant in the second derivative",
        "return alias(saved, self)", "return saved"),
    Mutation("core/graph.py", "engine: saved values are not checked for changes",
        "if count != version:", "if False:"),
    # Views, writes, hooks
    Mutation("core/dispatch.py", "views: a view keeps its old history after a write to its base",
        "    if view.seen != t.version.rebased:", "    if False:"),
    Mutation("core/tensor.py", "writes: the version counter is not incremented", "version.count += 1", "pass"),
    Mutation("ops/mutate.py", "writes: the overwritten values get a gradient too",
        "return view_scatter(g, 0.0, chain=chain)", "return g"),
    Mutation("ops/mutate.py", "writes: an index assignment passes the gradient to the overwritten values",
        "return index_put(g, 0.0, ids, spec=spec)", "return g"),
    Mutation("ops/mutate.py", "writes: the values that a rule needs are not saved",
        "_keep_numbers(before, x)\n    return before", "pass\n    return before"),
    Mutation("ops/mutate.py", "writes: operands that are views do not follow the new history of their base",
        "for a in (x, *operands) if isinstance(a, Tensor)]", "for a in (x,) if isinstance(a, Tensor)]"),
    Mutation("core/hooks.py", "hooks: the return value of a tensor hook is dropped", "g = conjugate(result)", "pass"),
    Mutation("core/hooks.py", "hooks: a retained gradient stays with the old history",
        "if known is not None and known[0]() is tensor:", "if False:"),
    Mutation("core/engine.py", "hooks: a leaf is finalized after its first cotangent",
        "if self.left[leaf] == 0 and leaf in self.arrived:", "if leaf in self.arrived:"),
    Mutation("autograd/function/context.py", "functions: a saved output is a constant in the second derivative",
        "tensor = alias(tensor, fn)", "pass"),
    # Levels
    Mutation("levels/dual.py", "jvp: operators that are not differentiable pass tangents on",
        "if not op.differentiable or all(t is None for t in tangents):", "if all(t is None for t in tangents):"),
    Mutation("levels/batch.py", "vmap: backward() in a batch gives shared tensors one example's cotangent",
        'return tensor.value, registry["sum"](self.whole(cotangent), dim=0)',
        "return tensor.value, self.whole(cotangent)[0]"),
    Mutation("levels/batch.py", "vmap: with randomness='same', the stream continues from example to example",
        "source.set_state(before)", "pass"),
    Mutation("core/level.py", "levels: no_grad inside vmap does not affect the outer graph",
        "return at(self.parent, current().grad_enabled if self.mode_below is None else self.mode_below)",
        "return at(self.parent, self.parent_grad_enabled)"),
    Mutation("levels/grad.py", "vjp: a leaf that no gradient reaches gets the cotangent of another",
        'found[x] if x in found else registry["zeros_like"](x)', "next(iter(found.values()))"),
    Mutation("levels/jacobian.py", "jacrev: every chunk of rows begins at the first row",
        "linear(units(tensors, start, min(start + step, total)))", "linear(units(tensors, 0, min(step, total)))"),
    Mutation("func/forward.py", "linearize: a second call adds to the tangents of the first",
        "found: list[Tensor | None] = list(tangents)", "found = self.__dict__.setdefault('found', list(tangents))"),
    Mutation("ops/family.py", "vmap: operands of fewer dimensions broadcast against the examples",
        "tuple(align_batched(args, batched)), params)", "tuple(args), params)"),
    Mutation("ops/family.py", "vmap: 0-d tensors are promoted as if they had a dimension",
        "args = cls._promoted_alone(batched, args) if cls.promotion else args", "pass"),
    Mutation("ops/index.py", "vmap: separated index tensors put the batch dimension behind theirs",
        "return (self.rank, 0) if self.apart and self.rank else ()", "return ()"),
    Mutation("ops/linalg.py", "vmap: a vector as the right operand of a matrix product is treated as a row",
        "b = unsqueeze(b, -1) if ranks[1] == 1 else b", "b = unsqueeze(b, -2) if ranks[1] == 1 else b"),
    Mutation("autograd/backward.py", "backward: inside a transform it does not continue one level below",
        "if any(root.value.requires_grad for root, _ in around):", "if False:"),
    Mutation("autograd/function/batch_rule.py", "functions: tensors that the examples share get one example's gradient",
        'return level.whole(g) if batched else registry["sum"](level.whole(g), dim=0)',
        "return level.whole(g) if batched else level.whole(g)[0]"),
    # Schemas
    Mutation("core/schema.py", "schema: an omitted default becomes None",
        "return parameter.default", "return None"),
    # Nested tensors
    Mutation("nested/rules/pointwise.py", "nested: tensors of different structures are accepted together",
        "return values(a) if alike and its.structure == known.structure else NotImplemented",
        "return values(a) if alike else NotImplemented"),
    Mutation("nested/rules/pointwise.py", "nested: a value per component is that of the first component",
        "return repeat_rows(each, structure=known.structure, row=known.row)",
        "return reshape(a, (*front, shape[lead], *middle, *end))[:1]"),
    Mutation("nested/buffer.py", "nested: gradients of rows that two components share are not summed",
        'registry["index_sum"](rows, as_tensor(places), dim=row, size=shape[row])',
        'registry["zeros"](shape, dtype=rows.dtype).index_copy(row, as_tensor(places), rows)'),
    Mutation("backend/ragged.py", "nested: sizes with equal sums are treated as equal",
        "return np.array_equal(self.sizes, other.sizes) and", "return self.sizes.sum() == other.sizes.sum() and"),
    Mutation("kernels/attention_reference.py", "nested: attention reads one key too many",
        "np.tri(*out.shape[-2:], k=behind, dtype=bool)", "np.tri(*out.shape[-2:], k=behind + 1, dtype=bool)"),
    Mutation("kernels/attention_reference.py", "nested: attention's gradient ignores that weights sum to 1",
        "level = of_sums - np.vecdot(g, out)", "level = of_sums - 0 * np.vecdot(g, out)"),
    Mutation("backend/padding.py", "nested: unpadding returns the previous component",
        "parts = [x[(*front, i, *corner)] for i,", "parts = [x[(*front, i - 1, *corner)] for i,"),
    Mutation("nested/fallback_loop.py", "nested: the loop over components uses the first one twice",
        "islice(_each(args, parts, followed, known), 1, None)",
        "islice(_each(args, parts, followed, known), 0, len(known.structure) - 1)"),
    # Kernels
    Mutation("kernels/reference.py", "kernels: the slope of gelu lacks the density",
        "return _normal(x) + y * density", "return _normal(x) + 0 * density"),
)  # fmt: skip


def seeded(mutation: Mutation, folder: Path) -> Path:
    """Return a copy of the source tree with the bug in it."""
    source = Path(shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__")))
    file = source / "retrograd" / mutation.path
    text = file.read_text()
    found = text.count(mutation.old)
    assert found == 1, f"{mutation.path}: {found} times {mutation.old!r}: bring this mutation up to date"
    file.write_text(text.replace(mutation.old, mutation.new))
    return source


def first_failure(source: Path | None, tests: tuple[str, ...]) -> str:
    """Return the first failing test with that source tree (None: the installed one), '' if none fails."""
    path = {} if source is None else {"PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}
    environment = {**os.environ, **path, "RETROGRAD_PURE": "1", "OMP_NUM_THREADS": "1"}
    options = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" ", 1)[1].split(" - ")[0] if failed else done.stdout[-300:] + done.stderr[-300:]


def report(mutation: Mutation) -> tuple[bool, bool]:
    """Try one mutation, print its row, and return whether the laws and whether any tests caught it."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        source = seeded(mutation, Path(folder))
        by_laws = first_failure(source, LAWS)
        failure = by_laws or first_failure(source, TESTS)
    verdict = f"caught by {failure.removeprefix('tests/')}" if failure else "MISSED"
    print(f"{mutation.bug:<85} {time.monotonic() - start:5.1f} s  {verdict}", flush=True)
    return bool(by_laws), bool(failure)


def main(words: list[str]) -> int:
    """Try all mutations, or those that a word selects; return 1 if too many are missed."""
    broken = first_failure(None, TESTS)
    if broken:
        print(f"the tests fail without any mutation: {broken}")
        return 1
    chosen = [m for m in MUTATIONS if not words or any(word in m.bug for word in words)]
    if not chosen:
        sys.exit(f"no mutation has one of the words {' '.join(words)} in its description")
    rows = [report(mutation) for mutation in chosen]
    by_laws, caught = (sum(column) for column in zip(*rows, strict=True))
    print(f"\ncaught {caught} of {len(chosen)}, {by_laws} of them by the laws alone")
    return int(len(chosen) - caught > MISSES_ALLOWED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
