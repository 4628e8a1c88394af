"""Seed bugs into a copy of the source, one at a time, and report which of them the tests catch.

A bug names its function and the kind of change, so that it survives other edits of the source.

Run by hand: `python tests/mutations.py [words]`; words select the mutations whose description has one.
The exit status is 1 if more than one is not caught; docs/laws.md has the record.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LAWS = ("tests/ops/test_laws.py",)
TESTS = ("tests/nested", "tests/core", "tests/ops", "tests/autograd", "tests/func")
SCHEDULES = ("tests/pipelining/test_schedules.py", "tests/pipelining/test_schedule_search.py")
PLANS = ("tests/pipelining/test_plan.py",)
MISSES_ALLOWED = 1


class Result(NamedTuple):
    """The result of a function or lambda becomes another expression: the only result, or the old one."""

    new: str
    old: str | None = None

    def replacement(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Return) and self.old in (None, ast.unparse(node.value or ast.Constant(None))):
            return ast.Return(expression(self.new))
        return ast.Lambda(node.args, expression(self.new)) if isinstance(node, ast.Lambda) else None


class Call(NamedTuple):
    """The call of a function becomes another expression; without one, its first argument."""

    name: str
    new: str | None = None

    def replacement(self, node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != self.name:
            return None
        return node.args[0] if self.new is None else expression(self.new)


class Argument(NamedTuple):
    """An argument of the call of a function, by position or keyword, becomes another expression."""

    name: str
    which: int | str
    new: str

    def replacement(self, node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != self.name:
            return None
        args = [expression(self.new) if i == self.which else arg for i, arg in enumerate(node.args)]
        keywords = [ast.keyword(k.arg, expression(self.new) if k.arg == self.which else k.value) for k in node.keywords]
        return ast.Call(node.func, args, keywords)


class Condition(NamedTuple):
    """The condition that mentions a name is never true."""

    name: str

    def replacement(self, node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.If) or not mentions(node.test, self.name):
            return None
        return ast.If(ast.Constant(False), node.body, node.orelse)


class Statement(NamedTuple):
    """The statement that calls a function, or assigns to a name, becomes another one."""

    name: str
    new: str = "pass"

    def replacement(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            known = ast.unparse(node.value.func)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            known = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        else:
            return None
        return ast.parse(self.new).body[0] if known == self.name else None


class Comparison(NamedTuple):
    """All comparisons that mention a name turn around: less to greater, greater to less."""

    name: str

    def replacement(self, node: ast.AST) -> ast.AST | None:
        turned = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
        if not isinstance(node, ast.Compare) or type(node.ops[0]) not in turned or not mentions(node, self.name):
            return None
        return ast.Compare(node.left, [turned[type(node.ops[0])]()], node.comparators)


class Expression(NamedTuple):
    """An expression, however it is laid out, becomes another one."""

    old: str
    new: str

    def replacement(self, node: ast.AST) -> ast.AST | None:
        fits = isinstance(node, ast.expr) and ast.unparse(node) == ast.unparse(expression(self.old))
        return expression(self.new) if fits else None


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def mentions(node: ast.AST, name: str) -> bool:
    return any(name in (getattr(n, "id", None), getattr(n, "attr", None)) for n in ast.walk(node))


class Mutation(NamedTuple):
    """One bug: its file, the path of names to the function or keyword in it, its description, and the change.

    tests: those of a part that `TESTS` does not cover; the laws do not apply to it.
    """

    path: str
    where: str
    bug: str
    change: Result | Call | Argument | Condition | Statement | Comparison | Expression
    tests: tuple[str, ...] = ()


MUTATIONS = (
    # Rules
    Mutation("ops/pointwise.py", "sub.vjp_b",
        "sub: the second cotangent has the wrong sign",
        Result("g")),
    Mutation("ops/pointwise.py", "exp2.vjp",
        "exp2: the factor log(2) is missing",
        Result("g * out")),
    Mutation("ops/pointwise.py", "tanh.vjp",
        "tanh: the vjp reads the input instead of the output",
        Expression("lambda g, out: tanh_grad(g, out)", "lambda g, x: tanh_grad(g, x)")),
    Mutation("ops/pointwise.py", "atan2.vjp_b",
        "atan2: the operands are swapped in one rule",
        Argument("_angle_derivative", 0, "b")),
    Mutation("ops/pointwise.py", "_maximum_vjp",
        "maximum: both of two equal operands get the whole gradient",
        Expression("g / 2", "g")),
    Mutation("ops/nn.py", "softmax.jvp_x",
        "softmax: the forward derivative is wrong, the vjp right",
        Argument("softmax_grad", 1, "2 * out")),
    Mutation("ops/nn.py", "log_softmax.vjp_x",
        "log_softmax: the vjp sums along the first dimension",
        Argument("log_softmax_grad", "dim", "0")),
    Mutation("ops/reduce.py", "mean.vjp_x",
        "mean: the vjp divides by the number of all elements",
        Call("_symbolic_count", "numel(x_aval.shape)")),
    Mutation("ops/view.py", "permute.vjp_x",
        "permute: the vjp applies the permutation, not its inverse",
        Call("order.index", "order[i]")),
    Mutation("backend/gather_scatter.py", "add_at",
        "getitem: one cotangent of an element that is indexed twice is lost",
        Statement("np.add.at", "out[where] = src")),
    Mutation("ops/solve.py", "triangular.vjp_A",
        "solve_triangular: the gradient reaches the triangle that is not read",
        Call("take_triangle")),
    Mutation("ops/svd.py", "svd_values.vjp_A",
        "svdvals: the gradient of complex matrices is not conjugated",
        Call("conjugate")),
    Mutation("ops/conv.py", "convolution.vjp_weight",
        "convolution: the weight's gradient ignores the dilation",
        Argument("convolution_weight", 5, "(1,) * len(dilation)")),
    Mutation("ops/scan.py", "cumsum.vjp_x",
        "cumsum: the cotangent is not flipped back",
        Expression("flip(cumsum(flip(g, dim), dim), dim)", "cumsum(flip(g, dim), dim)")),
    Mutation("ops/fft.py", "half_dft.vjp_x",
        "rfft: the transpose counts the middle of the spectrum once",
        Argument("_scale_half_spectrum", 3, "1.0")),
    Mutation("ops/special.py", "erfcinv.vjp",
        "erfcinv: the derivative has the wrong sign",
        Expression("-math.sqrt(math.pi)", "math.sqrt(math.pi)")),
    Mutation("ops/channels.py", "norm_channels.vjp_tensors",
        "norm_channels: the vjp ignores that the variance depends on the input",
        Expression("scale * s", "0")),
    Mutation("ops/normalize.py", "batch_norm.compose",
        "batch_norm: the running variance is not corrected for n - 1",
        Expression("var * (count / max(count - 1, 1))", "var")),
    # Families
    Mutation("ops/family.py", "sum_to",
        "sum_to: the first broadcast dimension of size 1 is not summed over",
        Statement("dims", "dims = (*range(lead), *repeated[1:])")),
    Mutation("ops/family.py", "Pointwise.fit",
        "Pointwise: a cotangent keeps the promoted dtype",
        Call("cast_to")),
    Mutation("core/dtype.py", "result_type",
        "promotion: 0-d tensors count like tensors with dimensions",
        Expression("1 if len(operand.shape) == 0 else 0", "0")),
    # Engine
    Mutation("core/engine.py", "BackwardPass.add_cotangents",
        "engine: the second of two cotangents for one node is dropped",
        Expression("sum_of_gradients(old, g)", "old")),
    Mutation("core/engine.py", "is_fresh",
        "engine: every cotangent is treated as memory to sum into",
        Expression("result.value is not g.value and result.value.base is None", "True")),
    Mutation("core/engine.py", "BackwardPass.enqueue",
        "engine: nodes run in the order of their creation",
        Comparison("sequence")),
    Mutation("core/graph.py", "GradFn.__lt__",
        "engine: the heap yields the earliest node first",
        Comparison("sequence")),
    Mutation("core/graph.py", "GradFn.output_again",
        "engine: one saved output of several is the first one in the second derivative",
        Statement("out._output_nr", "out._output_nr = 0")),
    Mutation("core/engine.py", "BackwardPass.step",
        "engine: every cotangent goes to the first output of its node",
        Argument("self.deliver", 1, "0")),
    Mutation("core/graph.py", "GradFn.output",
        "engine: a saved output is a constant in the second derivative",
        Call("alias")),
    Mutation("core/graph.py", "GradFn.check",
        "engine: saved values are not checked for changes",
        Condition("version")),
    # Views, writes, hooks
    Mutation("core/views.py", "sync_view",
        "views: a view keeps its old history after a write to its base",
        Condition("attr_version")),
    Mutation("core/tensor.py", "bump_version",
        "writes: the version counter is not incremented",
        Statement("version.count")),
    Mutation("ops/mutate.py", "view_scatter.vjp_base",
        "writes: the overwritten values get a gradient too",
        Call("view_scatter", "g")),
    Mutation("ops/mutate.py", "index_put.vjp_x",
        "writes: an index assignment passes the gradient to the overwritten values",
        Call("index_put", "g")),
    Mutation("ops/mutate.py", "_input_before_write",
        "writes: the values that a rule needs are not saved",
        Statement("_save_values")),
    Mutation("ops/mutate.py", "is_recorded",
        "writes: operands that are views do not follow the new history of their base",
        Expression("(x, *operands)", "(x,)")),
    Mutation("core/hooks.py", "run_tensor_hooks",
        "hooks: the return value of a tensor hook is dropped",
        Statement("g")),
    Mutation("core/hooks.py", "move_retained",
        "hooks: a retained gradient stays with the old history",
        Condition("known")),
    Mutation("core/engine.py", "BackwardPass.count_down",
        "hooks: a leaf is finalized after its first cotangent",
        Expression("self.left[leaf] == 0 and leaf in self.arrived", "leaf in self.arrived")),
    Mutation("core/function_node.py", "unpack_saved",
        "functions: a saved output is a constant in the second derivative",
        Call("alias")),
    # Levels
    Mutation("levels/dual.py", "DualLevel.process",
        "jvp: operators that are not differentiable pass tangents on",
        Expression("self.on and op.differentiable", "self.on")),
    Mutation("levels/batch.py", "VmapLevel.lower",
        "vmap: backward() in a batch gives shared tensors one example's cotangent",
        Call("registry['sum']", "self.all_examples(cotangent)[0]")),
    Mutation("levels/batch.py", "VmapLevel._process_random_same",
        "vmap: with randomness='same', the stream continues from example to example",
        Statement("source._set_plain_state")),
    Mutation("core/level.py", "grad_mode_below",
        "levels: no_grad inside vmap does not affect the outer graph",
        Expression("state.grad_enabled if level.mode_below is None else level.mode_below",
            "level.parent_grad_enabled")),
    Mutation("levels/grad.py", "pull_cotangents",
        "vjp: a leaf that no gradient reaches gets the cotangent of another",
        Expression("found[x] if x in found else registry['zeros_like'](x)", "next(iter(found.values()))")),
    Mutation("levels/jacobian.py", "map_in_chunks",
        "jacrev: every chunk of rows begins at the first row",
        Call("units", "units(tensors, 0, min(step, total))")),
    Mutation("func/forward.py", "TapeLevel.run",
        "linearize: a second call adds to the tangents of the first",
        Call("list", "self.__dict__.setdefault('found', list(tangents))")),
    Mutation("ops/family.py", "Pointwise.batch",
        "vmap: operands of fewer dimensions broadcast against the examples",
        Call("align_batched")),
    Mutation("ops/family.py", "Pointwise.batch",
        "vmap: 0-d tensors are promoted as if they had a dimension",
        Call("cls._promote_unbatched", "args")),
    Mutation("ops/index.py", "IndexLayout._moves",
        "vmap: separated index tensors put the batch dimension behind theirs",
        Expression("(self.rank, 0) if self.apart and self.rank else ()", "()")),
    Mutation("ops/linalg.py", "_as_matrices",
        "vmap: a vector as the right operand of a matrix product is treated as a row",
        Expression("unsqueeze(b, -1)", "unsqueeze(b, -2)")),
    Mutation("autograd/backward.py", "_run_backward",
        "backward: inside a transform it does not continue one level below",
        Condition("requires_grad")),
    Mutation("autograd/function/batch_rule.py", "_BatchedCall.cotangent",
        "functions: tensors that the examples share get one example's gradient",
        Call("registry['sum']", "level.all_examples(g)[0]")),
    # Schemas
    Mutation("core/schema.py", "Schema._convert",
        "schema: an omitted default becomes None",
        Result("None", "parameter.default")),
    # Nested tensors
    Mutation("nested/rules/pointwise.py", "buffer_operand",
        "nested: tensors of different structures are accepted together",
        Expression("same_dims and its.structure == layout.structure", "same_dims")),
    Mutation("nested/rules/pointwise.py", "_reshape_for_rows",
        "nested: a value per component is that of the first component",
        Call("repeat_rows", "reshape(a, (*front, shape[lead], *middle, *end))[:1]")),
    Mutation("nested/buffer.py", "_scatter_rows",
        "nested: gradients of rows that two components share are not summed",
        Call("registry['index_sum']",
            "registry['zeros'](shape, dtype=rows.dtype).index_copy(row, as_tensor(indices), rows)")),
    Mutation("backend/ragged.py", "Structure.__eq__",
        "nested: sizes with equal sums are treated as equal",
        Expression("np.array_equal(self.sizes, other.sizes)", "self.sizes.sum() == other.sizes.sum()")),
    Mutation("kernels/attention_reference.py", "_mask",
        "nested: attention reads one key too many",
        Argument("np.tri", "k", "behind + 1")),
    Mutation("kernels/attention_reference.py", "attend_grad",
        "nested: attention's gradient ignores that weights sum to 1",
        Call("np.vecdot", "0 * np.vecdot(g, out)")),
    Mutation("backend/padding.py", "unpad_rows",
        "nested: unpadding returns the previous component",
        Expression("x[(*front, i, *corner)]", "x[(*front, i - 1, *corner)]")),
    Mutation("nested/fallback_loop.py", "map_components",
        "nested: the loop over components uses the first one twice",
        Call("islice", "islice(_component_arguments(args, parts, batched, layout), 0, len(layout.structure) - 1)")),
    # Kernels
    Mutation("kernels/reference.py", "_gelu_slope",
        "kernels: the slope of gelu lacks the density",
        Expression("y * density", "0 * density")),
    # Schedules
    Mutation("pipelining/schedules/greedy.py", "_State.choose",
        "schedules: the list scheduler of slots prefers the forward of the earliest stage",
        Expression("reversed(stages)", "stages"), SCHEDULES),
    Mutation("pipelining/planning/list_scheduler.py", "_Rank.__init__",
        "schedules: the list scheduler of costs prefers the forward of the earliest stage under every policy",
        Expression("self.stages[::-1] if policy.latest_first else self.stages", "self.stages"), SCHEDULES),
    Mutation("pipelining/planning/list_scheduler.py", "_Rank._may_start",
        "schedules: the list scheduler of costs never waits for a gradient",
        Result("True"), SCHEDULES),
    Mutation("pipelining/planning/choose.py", "Planner._memory",
        "plan: a searched schedule holds no activations",
        Expression("self.found[tuple(ends)].peaks", "[0.0] * self.settings.ranks"), PLANS),
)  # fmt: skip


def scope(tree: ast.AST, where: str) -> ast.AST:
    """Return the function, class, assigned value or keyword at a path of names."""
    for name in where.split("."):
        own = [node for node in ast.iter_child_nodes(tree) if name in _names(node)]
        named = own or [node for node in ast.walk(tree) if name in _names(node)]
        assert len(named) == 1, f"{where}: {len(named)} definitions of {name}"
        tree = named[0]
    return tree


def _names(node: ast.AST) -> list[str | None]:
    """Return the names that a node defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [getattr(target, "id", None) for target in node.targets]
    return [node.arg] if isinstance(node, ast.keyword) else []


class _Apply(ast.NodeTransformer):
    """Replace what a change applies to, and count it."""

    def __init__(self, change: Any) -> None:
        self.change, self.count = change, 0

    def visit(self, node: ast.AST) -> ast.AST:
        new = self.change.replacement(node)
        if new is None:
            return self.generic_visit(node)
        self.count += 1
        return new


def apply_to(source: str, mutation: Mutation) -> str:
    """Return the source with the bug; AssertionError unless there is exactly one place for it."""
    tree = ast.parse(source)
    apply = _Apply(mutation.change)
    apply.generic_visit(scope(tree, mutation.where))
    fits = apply.count == 1 or (apply.count and isinstance(mutation.change, Comparison))
    assert fits, f"{mutation.path}: {mutation.where}: {apply.count} places for {mutation.change}"
    return ast.unparse(ast.fix_missing_locations(tree))


def seeded(mutation: Mutation, folder: Path) -> Path:
    """Return a copy of the source tree with the bug in it."""
    source = Path(shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__")))
    file = source / "retrograd" / mutation.path
    file.write_text(apply_to(file.read_text(), mutation))
    return source


def first_failure(source: Path | None, tests: tuple[str, ...]) -> str:
    """Return the first failing test with that source tree (None: the installed one), '' if none fails."""
    path = {} if source is None else {"PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}
    environment = {**os.environ, **path, "RETROGRAD_PURE": "1", "RETROGRAD_TEST_SAMPLES": "all", "OMP_NUM_THREADS": "1"}
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
        by_laws = "" if mutation.tests else first_failure(source, LAWS)
        failure = by_laws or first_failure(source, mutation.tests or TESTS)
    verdict = f"caught by {failure.removeprefix('tests/')}" if failure else "MISSED"
    print(f"{mutation.bug:<85} {time.monotonic() - start:5.1f} s  {verdict}", flush=True)
    return bool(by_laws), bool(failure)


def main(words: list[str]) -> int:
    """Try all mutations, or those that a word selects; return 1 if too many are missed."""
    chosen = [m for m in MUTATIONS if not words or any(word in m.bug for word in words)]
    if not chosen:
        sys.exit(f"no mutation has one of the words {' '.join(words)} in its description")
    broken = first_failure(None, tuple(dict.fromkeys(name for m in chosen for name in m.tests or TESTS)))
    if broken:
        print(f"the tests fail without any mutation: {broken}")
        return 1
    rows = [report(mutation) for mutation in chosen]
    by_laws, caught = (sum(column) for column in zip(*rows, strict=True))
    print(f"\ncaught {caught} of {len(chosen)}, {by_laws} of them by the laws alone")
    return int(len(chosen) - caught > MISSES_ALLOWED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
