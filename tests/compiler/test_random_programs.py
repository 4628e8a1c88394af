"""Random programs with views, writes, random numbers and backward passes: compiled calls equal eager ones."""

import random
import warnings

import pytest

import retrograd as rg

from .comparison import numbers, observe, state_of

SIZE = 3
UNARY = ["{a}.sin()", "{a}.exp().clamp(max=3.0)", "{a}.square()", "{a}.relu()", "{a}.softmax(1)", "{a}.cumsum(0)",
         "-{a}", "{a}.sum(0, keepdim=True).expand(3, 3)", "{a}.sort(1)[0]", "{a} * {number}", "{number} - {a}",
         "rg.where({a} > 0, {a}, 0.5)", "{a}.detach()", "{a}.contiguous()", "rg.dropout({a}, 0.5, True)"]  # fmt: skip
BINARY = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} @ {b}", "rg.maximum({a}, {b})", "{a} / ({b}.abs() + 1)",
          "rg.cat([{a}, {b}])[1:4]", "rg.stack([{a}, {b}]).mean(0)", "{a} + rg.rand(3, 3)", "{a} * {b}[0]"]  # fmt: skip
VIEWS = ["{a}.t()", "{a}[:]", "{a}.view(9).view(3, 3)", "{a}.flip(0)", "{a}[:, [0, 2, 1]]"]
WRITES = ["{a}.mul_({number})", "{a}.add_({b})", "{a}[1] = {b}[0]", "{a}.t()[0].zero_()", "{a}.clamp_(-1.0, 1.0)",
          "{a}[0, 1] += 1.0", "{a}.copy_({b}.t())"]  # fmt: skip


def random_program(seed):
    """Return the code of a function of two tensors and a parameter."""
    choose = random.Random(seed)
    known = ["x", "y", "w"]
    lines = []
    for step in range(choose.randint(3, 14)):
        number = round(choose.uniform(-2, 2), 2)
        a, b = choose.choice(known), choose.choice(known)
        if choose.random() < 0.2 and len(known) > 3:
            a = choose.choice(known[3:])
            lines.append(choose.choice(WRITES).format(a=f"{a}.detach()", b=f"{b}.detach()", number=number))
            continue
        form = choose.choice(choose.choice([UNARY, BINARY, BINARY, VIEWS]))
        known.append(f"v{step}")
        lines.append(f"v{step} = " + form.format(a=a, b=b, number=number))
    lines += [f"loss = ({known[-1]} * {choose.choice(known)}).sum() + w.sum()", "loss.backward()"]
    results = [f"{name}.detach()" for name in choose.sample(known, 2)]
    lines.append(f"return loss.detach(), {', '.join(results)}")
    return "def f(x, y, w):\n" + "".join(f"    {line}\n" for line in lines)


def outcomes(function, calls=3):
    """Return what is observed of calls on different numbers; of a call that fails, its error."""
    rg.manual_seed(0)
    w = numbers(SIZE, SIZE, seed=99).requires_grad_()
    seen = []
    for seed in range(calls):
        x, y = numbers(SIZE, SIZE, seed=seed), numbers(SIZE, SIZE, seed=seed + 50)
        try:
            seen.append(observe(function(x, y, w)))
        except RuntimeError as error:
            seen.append(str(error).partition("written to at")[0])
        seen.append([observe(x), observe(y), state_of([w])])
    return seen


@pytest.mark.parametrize("block", range(10))
def test_random_programs_have_the_eager_results(block):
    programs = 0
    for seed in range(12 * block, 12 * (block + 1)):
        code = random_program(seed)
        scope = {"rg": rg}
        exec(code, scope)
        compiled = rg.compile(scope["f"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert outcomes(compiled) == outcomes(scope["f"]), f"seed {seed}:\n{code}"
        programs += bool(compiled.programs)
    assert programs >= 3  # the others fail, as eager calls do, or return views of a kind that programs cannot make
