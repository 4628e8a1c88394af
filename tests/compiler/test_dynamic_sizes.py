"""Dynamic sizes: one program for each size, which count as one for the limit, and the latest of which are kept."""

import threading
import warnings

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.compiler.program_kind import MOST_SIZES, MOST_UNUSED

from .comparison import numbers, observe

CAPTURE = "retrograd.compiler.compiled_function.Capture"


def double(x):
    return x * 2 + 1


@pytest.fixture
def captures(monkeypatch):
    """Return the list of the shapes of first arguments of all captures."""
    from retrograd.compiler import compiled_function

    found, capture = [], compiled_function.Capture
    monkeypatch.setattr(CAPTURE, lambda f, args, kwargs: (found.append(args[0].shape), capture(f, args, kwargs))[1])
    return found


@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_do_not_count_for_the_limit(dynamic, captures):
    f = rg.compile(double, dynamic=dynamic, fullgraph=True)
    for _ in range(2):
        for n in range(1, 41):
            assert observe(f(numbers(n, 3))) == observe(double(numbers(n, 3)))
    assert len(f.programs) == len(captures) == 40


def test_without_dynamic_sizes_they_do():
    f = rg.compile(double, dynamic=False)
    for n in range(1, 9):
        f(numbers(n))
    with pytest.warns(UserWarning, match=r"the shape changed from \(8,\) to \(9,\) of argument 0"):
        f(numbers(9))


def test_dimensions_dtypes_and_other_properties_count():
    f = rg.compile(lambda x: x * 1, recompile_limit=3)
    f(numbers(3)), f(numbers(4)), f(numbers(3, 3)), f(numbers(3).to(rg.float64)), f(numbers(5))
    with pytest.warns(UserWarning, match="there are 3 programs already"):
        f(numbers(3).requires_grad_())
    assert len(f.programs) == 5


def test_integers_are_sizes_only_if_dynamic_is_true():
    x = numbers(3)
    f = rg.compile(lambda x, n: x * n, dynamic=True, fullgraph=True)
    for n in range(20):
        assert observe(f(x, n)) == observe(x * n)
    g = rg.compile(lambda x, n: x * n, fullgraph=True)
    for n in range(8):
        g(x, n)
    with pytest.raises(RuntimeError, match="argument 1 changed from 7 to 8"):
        g(x, 8)


def test_the_latest_programs_are_kept(captures):
    f = rg.compile(double, fullgraph=True)
    for n in range(1, MOST_SIZES + 1):
        f(numbers(n))
    f(numbers(1))  # 2 is the oldest one now
    f(numbers(MOST_SIZES + 1))
    assert len(f.programs) == MOST_SIZES
    before = len(captures)
    f(numbers(1)), f(numbers(3))
    assert len(captures) == before
    f(numbers(2))
    assert len(captures) == before + 1


def test_sizes_that_never_come_again_run_eagerly_in_the_end(captures):
    f = rg.compile(double)
    most = MOST_SIZES + MOST_UNUSED
    for n in range(1, most + 1):
        f(numbers(n))
    with pytest.warns(UserWarning, match="sizes that did not come again"):
        assert observe(f(numbers(most + 1))) == observe(double(numbers(most + 1)))
    assert len(captures) == most
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(numbers(most))


def test_a_mark_holds_for_later_arguments_and_in_its_range():
    f = rg.compile(double, dynamic=False, recompile_limit=1)
    x = numbers(3, 2)
    rg.compiler.mark_dynamic(x, 0, min=2, max=5)
    f(x), f(numbers(5, 2)), f(numbers(2, 2))
    assert len(f.programs) == 3
    with pytest.warns(UserWarning, match=r"changed from \(2, 2\) to \(6, 2\)"):
        f(numbers(6, 2))
    with pytest.warns(UserWarning, match=r"changed from \(2, 2\) to \(3, 3\)"):
        f(numbers(3, 3))


def test_static_dimensions_count():
    f = rg.compile(double, recompile_limit=1)
    x = numbers(3, 2)
    rg.compiler.mark_static(x, 1)
    f(x), f(numbers(4, 2))
    with pytest.warns(UserWarning, match=r"changed from \(4, 2\) to \(4, 3\)"):
        f(numbers(4, 3))
    y = numbers(3, 2)
    rg.compiler.mark_static(y)
    g = rg.compile(double, recompile_limit=1, fullgraph=True)
    g(y)
    with pytest.raises(RuntimeError, match=r"changed from \(3, 2\) to \(4, 2\)"):
        g(numbers(4, 2))


@pytest.mark.parametrize("mark", [rg.compiler.mark_dynamic, rg.compiler.maybe_mark_dynamic, rg.compiler.mark_static])
def test_marks_of_dimensions_that_are_not_there_are_refused(mark):
    with pytest.raises(IndexError, match=f"{mark.__name__}: dimension 2 of a tensor with 2 dimensions"):
        mark(numbers(2, 2), [0, 2])


def test_batches_of_any_size_train_a_model_like_eager_code():
    seen = []
    for compile in (lambda f: f, rg.compile):
        rg.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
        optimizer = rg.optim.Adam(model.parameters())

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = compile(step)
        losses = [observe(step(numbers(n % 13 + 1, 3, seed=n))) for n in range(30)]
        seen.append((losses, [observe(p) for p in model.parameters()]))
    assert seen[0] == seen[1]


def test_threads_with_other_sizes_get_their_own_results():
    f, wrong = rg.compile(double, fullgraph=True), []

    def work(first):
        for i in range(60):
            x = numbers((first + i) % 17 + 1, seed=i)
            if observe(f(x)) != observe(double(x)):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(k * 5,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len({p.arguments.tensors[0].shape for p in f.programs}) == 17
