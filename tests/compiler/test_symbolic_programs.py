"""Programs for sizes between captured ones are made without a capture, and give the eager bits."""

import random
import warnings

import numpy as np
import pytest
from tests.tables import ALL_SAMPLES

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F

from .comparison import classifier_step, numbers, observe, state_of

UNARY = ["{a}.sin()", "{a} * {number}", "{a}.softmax(0)", "{a}.softmax(1)", "{a}.cumsum(0)", "{a} - {a}.mean(0)",
         "{a} - {a}.mean()", "{a}.sum(0).expand_as({a})", "{a} / {a}.std(0)", "{a} + {a}.var()", "{a}.relu()",
         "{a}.sort(0)[0]", "{a}.flip(0)", "{a}.roll(1, 0)", "{a}.cummax(0)[0]", "{a}.logsumexp(0) - {a}", "{a}.t().t()",
         "{a}.contiguous()", "rg.dropout({a}, 0.5, True)", "F.gelu({a})", "F.layer_norm({a}, (4,))", "{a}.norm() + {a}",
         "F.batch_norm({a}, None, None, training=True)", "{a}.reshape(-1).view(-1, 4)", "{a}.log_softmax(0)",
         "rg.cat([{a}[1:], {a}[:1]])", "F.pad({a}, (0, 0, 1, 0))[1:]", "{a}.tril()", "{a}.median(0)[0] * {a}",
         "rg.fft.rfft({a}, dim=0).abs().sum(0) + {a}", "{a}.unflatten(1, (2, 2)).transpose(0, 1).reshape(-1, 4)",
         "F.avg_pool1d({a}.t()[None], 3, 1, 1)[0].t()", "F.max_pool1d({a}.t()[None], 2).sum() * {a}",
         "F.conv1d({a}.t()[None], {a}[:2].t().unsqueeze(0)).mean() + {a}", "{a}[::2].sum(0) - {a}", "{a}.amax(0) + {a}",
         "rg.stack([*{a}.unbind(1)], 1)", "{a}.gather(0, {a}.argsort(0))", "{a}.prod(0) + {a}", "{a}.double().float()",
         "{a}.nan_to_num().quantile(0.5, 0) + {a}", "{a}.unfold(0, 2, 1).mean() * {a}", "{a}.topk(2, 0)[0].sum() + {a}",
         "F.interpolate({a}.t()[None], scale_factor=2.0).mean() + {a}", "{a}.repeat(2, 1).mean(0) + {a}",
         "{a}.masked_fill({a} > {number}, 0.0)", "F.normalize({a}, dim=0)", "{a}.diff(dim=0).sum(0) + {a}"]  # fmt: skip
BINARY = ["{a} + {b}", "{a} * {b}", "{a} @ w", "{a} @ ({b}.t() @ {a})", "rg.maximum({a}, {b})", "{a} * {b}[0]",
          "rg.cat([{a}, {b}]).sum(0) * {a}", "rg.stack([{a}, {b}]).mean(0)", "{a} + rg.rand(4)",
          "F.linear({a}, w, w[0])",
          "rg.lerp({a}, {b}, {number})", "F.mse_loss({a}, {b}) + {a}", "rg.cdist({a}, {b} + 1).mean() + {a}",
          "F.cross_entropy({a}, {b}.argmax(1)) * {b}", "rg.einsum('ij,kj->ik', {a}, {b}).mean(1, keepdim=True) * {a}",
          "F.scaled_dot_product_attention({a}[None], {b}[None], {a}[None])[0]", "rg.where({a} > {b}, {a}, {b})",
          "F.embedding({b}.argmax(1), w) * {a}", "rg.bmm({a}[None], {b}.t()[None])[0] @ {a}"]  # fmt: skip
WRITES = ["{a}.mul_({number})", "{a}.add_({b})", "{a}[0] = {b}[-1]", "{a}[1:].zero_()", "{a}[:, 0] += 1.0"]


def random_program(seed):
    """Return the code of a function of two tensors with the same varying size, and a parameter."""
    choose = random.Random(seed)
    known, lines = ["x", "y"], []
    for step in range(choose.randint(2, 9)):
        number = round(choose.uniform(-2, 2), 2)
        a, b = choose.choice(known), choose.choice(known)
        if choose.random() < 0.15 and len(known) > 2:
            a = choose.choice(known[2:])
            lines.append(choose.choice(WRITES).format(a=f"{a}.detach()", b=f"{b}.detach()", number=number))
            continue
        known.append(f"v{step}")
        form = choose.choice(choose.choice([UNARY, BINARY]))
        lines.append(f"v{step} = " + form.format(a=a, b=b, number=number))
    lines += ["w.grad = None", f"loss = ({known[-1]} * {choose.choice(known)}).sum() + w.sum()", "loss.backward()"]
    lines.append(f"return loss.detach(), {choose.choice(known)}.detach()")
    return "def f(x, y, w):\n" + "".join(f"    {line}\n" for line in lines)


def outcomes(function, sizes):
    """Return what is observed of calls on different sizes; of a call that fails, its error."""
    rg.manual_seed(0)
    w, found = numbers(4, 4, seed=99).requires_grad_(), []
    for seed, n in enumerate(sizes):
        try:
            out = observe(function(numbers(n, 4, seed=seed), numbers(n, 4, seed=seed + 50), w))
        except (RuntimeError, ValueError, IndexError) as error:
            out = str(error).partition("written to at")[0]
        found.append((n, out, state_of([w])))
    return [*found, str(rg.get_rng_state())]


@pytest.mark.parametrize("block", range(10))
def test_random_programs_at_random_sizes_have_the_eager_bits(block):
    programs, generated, count = 0, 0, 60 if ALL_SAMPLES else 6
    for seed in range(count * block, count * (block + 1)):
        scope = {"rg": rg, "F": F}
        exec(random_program(seed), scope)
        choose = random.Random(seed)
        sizes = [9, 2, 30, 17, *[choose.choice([0, 1, *range(2, 31)]) for _ in range(14)]]
        sizes += sizes[-3:]  # sizes come again: their programs are planned
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = outcomes(scope["f"], sizes)
            compiled = rg.compile(scope["f"])
            actual = outcomes(compiled, sizes)
        for one, other in zip(actual, expected, strict=True):
            assert one == other, f"seed {seed}\n{random_program(seed)}"
        programs += len(compiled.programs)
        generated += sum(p.is_made_from_others for p in compiled.programs)
    assert generated > programs / 4


SIZES = (9, 20, 3, 14)  # of which each program for sizes from 3 to 20 can be made


def made_sizes(f):
    """Return the first sizes of the first arguments of programs that were made without a capture."""
    return [p.arguments.tensors[0].shape[0] for p in f.programs if p.is_made_from_others]


def check(function, sizes, arguments, made):
    """Check the results of compiled calls on sizes, and the sizes for which programs were made without a capture."""
    compiled = rg.compile(function, fullgraph=True)
    for i, n in enumerate(sizes):
        args = arguments(n) if arguments else (numbers(n, 4, seed=i),)
        assert observe(compiled(*args)) == observe(function(*args)), n
    assert made_sizes(compiled) == made
    return compiled


def test_sizes_between_captured_ones_need_no_capture():
    check(lambda x: (x.softmax(0) * 2).mean(0), (*SIZES, 4, 19, 4, 21, 2, 20, 10), None, [4, 19, 10])


def test_sizes_below_two_are_captured():
    check(lambda x: x * x.sum(0), (*SIZES, 1, 0, 5, 1, 0), None, [5])


def test_an_upper_limit_and_a_quotient_of_sizes():
    check(lambda x: rg.fft.rfft(x, dim=0).abs(), (*SIZES, 5, 6, 7, 8, 12), None, [7, 8, 12])
    check(lambda x: x[:10] * x[::3].sum(), (*SIZES, 5, 6, 12), None, [])  # a slice of 10 at some sizes only


def test_even_sizes_say_nothing_about_odd_ones():
    check(lambda x: x * 2, (4, 12, 8, 20, 6, 5), None, [])
    check(lambda x: x * 2, (4, 12, 8, 21, 6, 5), None, [6, 5])


def test_programs_are_planned_when_their_sizes_come_again():
    compiled = check(lambda x: (x * 2).sin().sum(), (*SIZES, 5, 6, 5), None, [5, 6])
    assert [p.is_planned for p in compiled.programs[-2:]] == [True, False]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if x.shape[0] % 4 else x.sin(),
        lambda x: x * len(x),
        lambda x: x.sum(0) / x.size(0),
        lambda x: x * getattr(x, "shape")[0],  # noqa: B009
    ],
)
def test_code_that_reads_sizes_has_a_capture_for_each(function):
    check(function, (*SIZES, 4, 5, 6, 8, 12), None, [])


def test_several_sizes():
    def pair(n, m):
        return numbers(n, 4, seed=n), numbers(m, 4, seed=m)

    sizes = [(9, 4), (20, 15), (3, 8), (14, 2), (6, 21), (4, 10), (19, 20), (5, 5), (22, 5), (5, 5)]
    compiled = rg.compile(lambda x, y: (x @ y.t()).softmax(1) @ y)
    for pair_of_sizes in sizes:
        args = pair(*pair_of_sizes)
        assert observe(compiled(*args)) == observe((args[0] @ args[1].t()).softmax(1) @ args[1])
    assert made_sizes(compiled) == [4, 19, 5]


def test_dimensions_that_varied_together_vary_apart():
    def arguments(n):
        return numbers(n, 4), numbers(5 if n == 7 else n, 4, seed=1)

    check(lambda x, y: x.mean(0) * y.mean(0), (*SIZES, 7, 8), arguments, [8])


def test_arguments_with_other_strides_are_captured():
    def arguments(n):
        return (numbers(n, 4) if n != 7 else rg.from_numpy(numbers(4, n).numpy().T),)

    check(lambda x: x.exp().cumsum(0), (*SIZES, 7, 8), arguments, [8])


def test_other_values_that_are_read_are_captured():
    layer = nn.Dropout(0.5)
    f = rg.compile(lambda x: layer(x) * 2, fullgraph=True)
    for n in (*SIZES, 5):
        f(numbers(n, 4))
    layer.eval()
    for n in (6, 7):
        assert observe(f(numbers(n, 4))) == observe(numbers(n, 4) * 2)
    assert made_sizes(f) == [5]


def test_integers_among_the_arguments_are_not_generalized():
    def scale(x, n):
        return x * (n if n != 8 else 100)

    f = rg.compile(scale, dynamic=True, fullgraph=True)
    for n in (*SIZES, 4, 5, 8):
        assert observe(f(numbers(3), n)) == observe(scale(numbers(3), n))
    assert made_sizes(f) == []


def test_many_sizes_that_never_come_again_have_programs():
    f = rg.compile(lambda x: x.cumsum(0), fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (2, 301, 40, *range(3, 300)):
            f(numbers(n))
    assert len(f.programs) == 64


def test_batches_of_any_size_train_a_model_by_a_few_captures():
    found = []
    for compile in (lambda f: f, rg.compile):
        rg.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 4))
        optimizer = rg.optim.Adam(model.parameters())
        step = compile(classifier_step(model, optimizer))
        sizes = [16, 16, 40, 5, *[(n * 7) % 36 + 5 for n in range(60)]]
        losses = [observe(step(numbers(n, 3, seed=i), rg.arange(n) % 4)) for i, n in enumerate(sizes)]
        found.append((losses, [observe(p) for p in model.parameters()]))
    assert found[0] == found[1]
    assert len(made_sizes(step)) > 20
    assert len(step.programs) - len(made_sizes(step)) <= 8


def test_errors_are_those_of_eager_calls():
    def f(x, y):
        return F.cross_entropy(x, y)

    compiled = rg.compile(f)
    for n in (*SIZES, 5, 5):
        compiled(numbers(n, 4), rg.arange(n) % 4)
        messages = []
        for run in (f, compiled):
            with pytest.raises(IndexError) as caught:
                run(numbers(n, 4), rg.arange(n) + 2)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
    assert made_sizes(compiled) == [5]


def test_reports_and_profiles_show_the_calls_of_programs_that_are_not_planned():
    f = check(lambda x: (x * 2).sin().sum(), (*SIZES, 5), None, [5])
    report = rg.compiler.explain(f)(numbers(5, 4))
    assert [group.name for group in report.groups] == ["kernel: mul", "kernel: sin", "kernel: sum"]
    with rg.autograd.profiler.profile() as prof:
        f(numbers(5, 4))
    assert [e.name for e in prof.events() if e.name.startswith("kernel")] == [group.name for group in report.groups]
    f(numbers(5, 4))
    assert [group.name for group in rg.compiler.explain(f)(numbers(5, 4)).groups] == ["plan: mul, sin, sum"]
