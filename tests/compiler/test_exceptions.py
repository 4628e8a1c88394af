"""Code that handles exceptions: compiled calls do what eager ones do, also where a kernel raises an error later."""

import contextlib
import warnings

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F

from .comparison import numbers, observe, state_of

TABLE = numbers(4, 3)


def looks_up(x, i):
    try:
        return TABLE[i] * 2 + x
    except IndexError:
        return x - 1


def translates(x, i):
    try:
        return TABLE[i] * 2 + x
    except IndexError as error:
        raise KeyError("no such row") from error


def replaces_in_finally(x, i):
    found = False
    try:
        x = TABLE[i] * 2 + x
        found = True
    finally:
        if not found:
            raise KeyError("no such row")
    return x


with warnings.catch_warnings(action="ignore", category=SyntaxWarning):  # of Python 3.14
    exec("""
def returns_in_finally(x, i):
    try:
        x = TABLE[i] * 2 + x
    finally:
        return x
""")
returns_in_finally = globals()["returns_in_finally"]


def catches_all(x, i):
    try:
        return TABLE[i] * 2 + x
    except:  # noqa: E722
        return x - 1


def catches_groups(x, i):
    try:
        x = TABLE[i] * 2 + x
    except* IndexError:
        x = x - 1
    return x


def only_cleans(x, i):
    try:
        return TABLE[i] * 2 + x
    finally:
        x = x * 3


def calls_in_a_try(x, i):
    def row():
        return TABLE[i] * 2

    try:
        return row() + x
    except IndexError:
        return x - 1


def runs_backward_in_a_try(x, i):
    loss = F.nll_loss(x[None], i.clamp(max=2))
    try:
        F.cross_entropy((x * 2)[None], i)
    except Exception:
        return loss - 1
    return loss


class Suppresses:
    def __enter__(self):
        pass

    def __exit__(self, kind, *rest):
        return kind is IndexError


def is_suppressed(x, i):
    with Suppresses():
        x = TABLE[i] * 2 + x
    return x + 1


@contextlib.contextmanager
def ignoring():
    try:
        yield
    except IndexError:
        rg.zeros(1)


def is_suppressed_by_a_generator(x, i):
    with ignoring():
        x = TABLE[i] * 2 + x
    return x + 1


FUNCTIONS = [looks_up, translates, replaces_in_finally, returns_in_finally, catches_all, catches_groups, only_cleans,
             calls_in_a_try, runs_backward_in_a_try, is_suppressed, is_suppressed_by_a_generator]  # fmt: skip


def outcomes(function, indices):
    """Return what is observed of calls with rows of a table, and the kinds of the errors."""
    found = []
    for number, i in enumerate(indices):
        try:
            found.append(observe(function(numbers(3, seed=number), rg.tensor([i]))))
        except Exception as error:
            found.append((type(error).__name__, str(error)[:20]))
    return found


@pytest.mark.parametrize("indices", [(0, 1, 9, 2), (9, 9, 0, 1, 9)], ids=["raises later", "raises first"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_error_of_a_kernel_comes_to_its_handler(function, indices):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert outcomes(rg.compile(function), indices) == outcomes(function, indices)


def test_a_handler_that_ends_errors_of_values_is_a_graph_break_that_names_the_operator():
    with pytest.raises(RuntimeError, match=r"looks_up handles exceptions, and \w+ may raise one, depending on values"):
        rg.compile(looks_up, fullgraph=True)(numbers(3), rg.tensor([0]))


def test_a_handler_around_other_code_does_not_matter():
    def f(x, i):
        try:
            scale = {"a": 2}["b"]
        except KeyError:
            scale = 3
        return TABLE[i] * scale + x

    compiled = rg.compile(f, fullgraph=True)
    for i in range(4):
        assert observe(compiled(numbers(3), rg.tensor([i]))) == observe(f(numbers(3), rg.tensor([i])))
    assert len(compiled.programs) == 1


def test_an_error_in_a_block_leaves_the_mode_as_it_was():
    model = nn.Sequential(nn.Dropout(0.5))

    def f(x, i):
        model.eval()
        try:
            return model(x) + TABLE[i]
        finally:
            model.train()

    compiled = rg.compile(f, fullgraph=True)
    for i in (0, 1, 9, 2):
        with pytest.raises(IndexError) if i == 9 else contextlib.nullcontext():
            compiled(numbers(3), rg.tensor([i]))
        assert model.training


@pytest.mark.parametrize("raises", [False, True])
def test_a_hook_of_an_optimizer_may_raise_what_a_step_catches(raises):
    def run(compile):
        model = nn.Linear(3, 3)
        nn.init.constant_(model.weight, 0.1)
        nn.init.zeros_(model.bias)
        optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
        steps = []

        def check(*_):
            steps.append(0)
            if raises and len(steps) == 3:
                raise ArithmeticError

        optimizer.register_step_post_hook(check)

        def step(x):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            try:
                optimizer.step()
            except ArithmeticError:
                return x * 0
            return x * 2

        called = compile(step)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen = [(observe(called(numbers(3, seed=i))), state_of(model.parameters())) for i in range(5)]
        return seen

    assert run(rg.compile) == run(lambda f: f)
