"""Random programs of operations, views and in-place writes behave as in PyTorch.

A program is text, one step per line, that runs line by line in both.  A line that one library refuses must be refused
by the other, without effect.  At the end everything observable of every value is compared: its elements, flags,
version and gradients.
"""

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as rg

from .adapter import outcome

LEAVES = ["leaf(2, 3)", "leaf(3)", "leaf(2, 1)", "leaf()", "plain(2, 3)", "plain(3)"]
RESULTS = [
    "{a} + {b}",
    "{a} * {b}",
    "{a} / ({b} * {b} + 1)",
    "{a} - 2",
    "{a}.sin()",
    "{a}.tanh()",
    "{a}.sum(0)",
    "{a}.clone()",
    "{a}.flip(0)",
    "m.where({a} > 1, {a}, {b})",
    "m.stack([{a}, {a}])",
]
VIEWS = [
    "{a}[0]",
    "{a}[1:]",
    "{a}[..., 0]",
    "{a}[None]",
    "{a}[:, ::2]",
    "{a}.transpose(0, -1)",
    "{a}.unsqueeze(-1)",
    "{a}.squeeze(-1)",
    "{a}.narrow(0, 0, 1)",
    "{a}.expand(2, 3)",
    "{a}.view(-1)",
    "{a}.diagonal()",
]
RULED_VIEWS = ["{a}.unbind(0)[0]", "{a}.split(1)[0]"]  # of several at once: not to be written to
# A written value never shares part of its memory with the target: that is undefined in PyTorch.
WRITES = [
    "{a}.add_({b} * 0.5)",
    "{a}.sub_(1)",
    "{a}.mul_({b} + 1)",
    "{a}.div_(2)",
    "{a}.copy_({b} * 2)",
    "{a}.mul_(0)",
    "{a}.tanh_()",
    "{a}[0] = {b} * 0.5",
    "{a}[..., 1:] = 3",
    "{a}[1:] *= 2",
    "{a}[{a} > 1] = 0.5",
    "{a}[m.tensor([0])] = {b} * 3",
]
START = ["v0 = leaf(2, 3)", "v1 = leaf(3)", "v2 = v0 * v1", "v3 = plain(2, 3)"]
ALWAYS = [*(f"new = {text}" for text in LEAVES + RESULTS + VIEWS + VIEWS), *WRITES, *WRITES]
UNRECORDED = ["new = {a}.detach()", *(f"with m.no_grad(): {text}" for text in WRITES)]
# Writes without grad, or through detach(), are not mixed with these: PyTorch then refuses the views even where
# nothing was recorded.
RULED = [
    *(f"new = {text}" for text in RULED_VIEWS * 3),
]


def programs(templates):
    """Return a strategy for lists of steps: a template, and the live values it uses, counted from the newest."""
    step = st.tuples(st.sampled_from(templates), st.integers(0, 9), st.integers(0, 9))
    return st.lists(step, min_size=6, max_size=16)


class World:
    """The names that a program defines in one library."""

    def __init__(self, m):
        self.m, self.names, self.leaves = m, {"m": m, "leaf": self.leaf, "plain": self.plain}, []

    def plain(self, *shape):
        """Return values around 1, different in each tensor."""
        count = len(self.names) + math.prod(shape)
        flat = [math.sin(count + k) + 1 for k in range(math.prod(shape))]
        return self.m.tensor(nested(flat, shape), dtype=self.m.float64)

    def leaf(self, *shape):
        """Like plain, with gradients."""
        self.leaves.append(self.plain(*shape).requires_grad_())
        return self.leaves[-1]

    def run(self, line):
        """Run a line; return None, or its error; the kind of a refusal is not compared, as it may have two reasons."""

        def execute():
            try:
                exec(line, self.names)
            except UserWarning as warning:  # PyTorch only warns, for now, of x[indices] = v where x is expanded
                raise RuntimeError from warning

        error = outcome(execute)
        return "refused" if error and error.kind in ("RuntimeError", "ValueError", "IndexError") else error

    def refresh(self):
        """Regenerate views from their bases: PyTorch's check of leaves forgets to, until grad_fn is read."""
        for value in self.values().values():
            outcome(lambda value=value: value.grad_fn)

    def values(self):
        """Return every live value."""
        return {name: value for name, value in self.names.items() if isinstance(value, self.m.Tensor)}

    def state(self, value):
        """Return the observable state of a value, and its gradients."""
        looks = [lambda: value, lambda: value.requires_grad, lambda: value._version, lambda: value.is_leaf]
        return [outcome(look) for look in looks], self.gradients([value])

    def gradients(self, values):
        """Return the gradients of a weighted sum of values, for all leaves."""

        def total():
            parts = [(v * self.m.arange(1, v.numel() + 1).reshape(v.shape)).sum() for v in values]
            return self.m.autograd.grad(sum(parts), self.leaves, retain_graph=True, allow_unused=True)

        return outcome(total)


def nested(flat, shape):
    """Return a flat list as nested lists of a shape."""
    if not shape:
        return flat[0]
    step = len(flat) // shape[0]
    return [nested(flat[k * step : (k + 1) * step], shape[1:]) for k in range(shape[0])]


def line_of(step, names):
    """Return the text of a step, its operands counted from the newest value, and its result named."""
    template, a, b = step
    line = template.format(a=names[-1 - a % len(names)], b=names[-1 - b % len(names)])
    return line.replace("new =", f"v{len(names)} =")


def agree(ours, theirs):
    """Return whether two observations agree up to rounding."""
    if isinstance(theirs, (list, tuple)) and isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if isinstance(theirs, float) and isinstance(ours, float):
        return math.isclose(ours, theirs, rel_tol=1e-5, abs_tol=1e-9) or (math.isnan(ours) and math.isnan(theirs))
    return repr(ours) == repr(theirs)


def check(what, ours, theirs, program):
    """Fail with the program if the two differ."""
    text = "\n    ".join(program)
    assert agree(ours, theirs), f"{what}: ours {ours!r}, PyTorch's {theirs!r} after\n    {text}"


def run(steps):
    """Run a program in both and compare the observable states."""
    our, their = World(rg), World(torch)
    program = []

    def perform(line):
        error = their.run(line)
        their.refresh()
        program.append(f"{line}  # {error}" if error else line)
        check("the last line", our.run(line), error, program)

    for line in START:
        perform(line)
    for step in steps:
        perform(line_of(step, list(their.values())))
    for name, value in their.values().items():
        check(name, our.state(our.names[name]), their.state(value), program)
    check("all gradients", our.gradients(our.values().values()), their.gradients(their.values().values()), program)


as_given = settings(max_examples=800, derandomize=True, database=None)


@as_given
@given(programs(ALWAYS + UNRECORDED))
def test_programs_that_write_with_and_without_grad(steps):
    run(steps)


@as_given
@given(programs(ALWAYS + RULED))
def test_programs_with_views_that_may_not_be_written_to(steps):
    run(steps)
