"""Random programs on arguments and state that share memory, in other ways at each call: calls equal eager ones."""

import random
import types
import warnings

import pytest
from tests.tables import ALL_SAMPLES

import retrograd as rg

from .comparison import numbers, observe
from .test_common_steps import compile_source

UNARY = ["{a}.sin()", "{a} * 2", "{a}.t()", "{a}[:]", "{a}.detach()", "{a}.data", "{a}.view(9).view(3, 3)",
         "{a}.clone()", "{a}.contiguous()", "{a}.sum(0).expand(3, 3)", "{a}.reshape(3, 3)", "{a}.softmax(1)",
         "{a}.flip(0)"]  # fmt: skip
BINARY = ["{a} + {b}", "{a} * {b}", "{a} @ {b}", "rg.where({a} > 0, {a}, {b})", "rg.maximum({a}, {b})"]
WRITES = ["{a}.mul_(1.5)", "{a}.add_({b})", "{a}[1] = {b}[0]", "{a}.t()[0].zero_()", "{a}.copy_({b}.t())",
          "{a}.clamp_(-1.0, 1.0)", "{a}[0, 1] += 1.0", "{a}.t().add_({b})", "{a}.sub_({b}.sum(0))",
          "{a}[:2] = {b}[1:]"]  # fmt: skip
KEEPS = ["box.kept = {a}", "box.other = {a}", "box.kept.add_({a})", "box.other.mul_({a})", "box.members[0] = {a}"]
KEPT = ["box.kept", "box.other", "box.members[0]"]
SHARED = [lambda t: t[:3], lambda t: t[:3].detach(), lambda t: t[:3].data, lambda t: t[1:4], lambda t: t[1:4].detach(),
          lambda t: t[:3].t(), lambda t: t[:3].t().detach(), lambda t: t[0:6:2], lambda t: t[:3].clone()]  # fmt: skip


def random_program(seed):
    """Return the code of a function of two tensors, which may read and replace what a box has."""
    choose = random.Random(seed)
    known, lines = ["x", "y", *choose.choice([[], [], KEPT[:1], KEPT])], []
    has_state = len(known) > 2
    for i in range(choose.randint(2, 9)):
        a, b, kind = choose.choice(known), choose.choice(known), choose.random()
        if kind < 0.35:
            lines.append(choose.choice(WRITES).format(a=a, b=b))
        elif has_state and kind < 0.45:
            lines.append(choose.choice(KEEPS).format(a=a))
        else:
            lines.append(f"v{i} = " + choose.choice(choose.choice([UNARY, BINARY])).format(a=a, b=b))
            known.append(f"v{i}")
    lines.append(f"return {', '.join(choose.sample(known, 2))}")
    return "def f(x, y):\n" + "".join(f"    {line}\n" for line in lines)


def random_arguments(choose, seed):
    """Return two arguments, which may share the memory of a tensor, and the tensors that they may be views of."""
    bases = numbers(6, 3, seed=seed), numbers(6, 3, seed=seed + 50)
    x = numbers(3, 3, seed=seed)
    pairs = [
        lambda: (x, numbers(3, 3, seed=seed + 9)),
        lambda: (x, x),
        lambda: (x, choose.choice([x.detach(), x.data, x[:], x.t(), x.t().detach()])),
        lambda: tuple(choose.choice(SHARED)(choose.choice([*bases, bases[0]])) for _ in range(2)),
    ]
    return *choose.choice([pairs[0], *pairs, pairs[3]])(), *bases


def replace_state(choose, box, x, y, base, seed):
    """Let a box perhaps have the arguments, or tensors in the same memory."""
    for name in ("kept", "other"):
        if choose.random() < 0.3:
            found = [x, y, x.detach(), y.data, base[:3], base[1:4].detach(), x[:], numbers(3, 3, seed=seed + 99)]
            setattr(box, name, choose.choice(found))
    if choose.random() < 0.2:
        box.members[0] = choose.choice([x, y, box.kept, x.data])


def outcomes(seed, code, compile, calls=7):
    """Return what is observed of calls on arguments that share memory, or its error, and the function."""
    choose = random.Random(seed)
    box = types.SimpleNamespace(
        kept=numbers(3, 3, seed=7), other=numbers(3, 3, seed=8), members=[numbers(3, 3, seed=9)]
    )
    names = {"rg": rg, "box": box, "__name__": "aliases"}
    exec(compile_source(code), names)
    f, seen, found = compile(names["f"]), [], None
    with rg.set_grad_enabled(choose.random() < 0.5):
        for i in range(calls):
            if found is None or i % 2 == 0 or choose.random() < 0.5:
                found = random_arguments(choose, i)
            x, y, base, _ = found
            if choose.random() < 0.5:
                replace_state(choose, box, x, y, base, i)
            try:
                results = f(x, y)
            except (RuntimeError, ValueError) as error:
                results = ()
                seen.append(type(error))
            outside = [*found, box.kept, box.other, box.members[0]]
            seen.append(observe([*results, *outside]))
            seen.append([[r is t or r._base is t for t in (*outside, *results)] for r in (*results, *outside)])
            for result in results if choose.random() < 0.6 else ():
                if result.is_contiguous():  # an expanded one has no elements of its own
                    result.add_(1)
            seen.append(observe([*results, *outside]))
    return seen, f


@pytest.mark.parametrize("block", range(10))
def test_random_programs_on_tensors_that_share_memory_have_the_eager_results(block):
    programs, size = 0, 100 if ALL_SAMPLES else 8
    for seed in range(size * block, size * (block + 1)):
        code = random_program(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, _ = outcomes(seed, code, lambda f: f)
            found, f = outcomes(seed, code, rg.compile)
        assert found == expected, f"seed {seed}:\n{code}"
        programs += bool(f.programs)
    assert programs >= size / 2
