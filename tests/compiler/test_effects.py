"""Effects that the caller sees: writes, versions, views, gradients, random numbers, errors, notes for `explain`."""

import numpy as np
import pytest

import retrograd as rg

from .comparison import assert_same_runs, numbers, observe, state_of


def no_tensors(function):
    """Return what `assert_same_runs` calls for a function that changes its arguments only."""
    return lambda: (function, [])


def test_writes_into_arguments_reach_the_caller():
    def f(x, y):
        x.add_(y)
        x[0] = 7.0
        y.mul_(2).clamp_(max=1.0)
        return x.sum() + y.sum()

    assert_same_runs(no_tensors(f), lambda i: (numbers(3, 2, seed=i), numbers(3, 2, seed=i + 9)))


def test_writes_into_views_of_arguments_reach_the_caller():
    def f(x):
        x[1:].mul_(3)
        x.t()[0] += 1
        return x * 2

    assert_same_runs(no_tensors(f), lambda i: (numbers(3, 2, seed=i),))


VIEWS = {
    "a part of an expanded one": lambda v: v.expand(2, 3, 3)[0],
    "a row of an expanded one": lambda v: v.expand(2, 3, 3).transpose(0, 1)[1][0],
    "the base of an expanded one": lambda v: [v.expand(2, 3, 3), v][1],
    "broadcast tensors": lambda v: rg.broadcast_tensors(v, v)[0],
    "a diagonal": lambda v: v.diagonal(),
    "windows": lambda v: v.unfold(0, 3, 3),
    "a real part": lambda v: v.real,
    "another dtype": lambda v: v.view(rg.int32),
    "the data": lambda v: v.data,
}


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_writes_into_views_of_every_kind_reach_the_base(name, own):
    def f(x):
        v = x * 2 if own else x
        w = VIEWS[name](v)
        w.zero_()
        w.add_(3)
        return v * 1, v

    assert_same_runs(no_tensors(f), lambda i: (numbers(3, 3, seed=i),))


def test_an_expanded_view_of_a_vector_shows_what_is_written_into_one_row():
    def f(x):
        v = x.sum(0).expand(3, 3)
        v[0, 1] += 1.0
        x[0].expand(2, 3)[1] = x[1]
        return v * 1, v

    assert_same_runs(no_tensors(f), lambda i: (numbers(3, 3, seed=i),))


def test_a_gradient_that_is_the_memory_of_an_argument_has_its_own_version():
    leaf = numbers(3).requires_grad_()

    def f(x):
        leaf.grad.detach().add_(x)

    def run(call):
        seen = []
        for i in range(4):
            x = numbers(3, seed=i)
            leaf.grad = x.data if i < 3 else numbers(3, seed=9)
            call(x)
            seen.append(observe([x, leaf.grad]))
        return seen

    assert run(rg.compile(f)) == run(f)


@pytest.mark.parametrize("share", [lambda x: (x, x), lambda x: (x[1:], x[:-1]), lambda x: (x, x.detach())])
def test_arguments_that_share_memory(share):
    def f(x, y):
        x.add_(1.0)
        z = x * y
        y.mul_(z)
        return z + x

    apart = (numbers(4, seed=1), numbers(4, seed=2))
    compiled = rg.compile(f)
    compiled(*apart)
    for _ in range(2):
        mine, its = share(numbers(4)), share(numbers(4))
        if mine[0].shape != apart[0].shape:
            compiled(numbers(3), numbers(3))
        assert observe(compiled(*mine)) == observe(f(*its))
        assert observe(list(mine)) == observe(list(its))


def test_a_program_for_the_same_tensor_twice_is_not_used_for_two_tensors():
    def f(x, y):
        return x + 2 * y

    compiled = rg.compile(f)
    x, y = numbers(3), numbers(3, seed=1)
    assert observe(compiled(x, x)) == observe(f(x, x))
    assert observe(compiled(x, y)) == observe(f(x, y))
    assert observe(compiled(x, x)) == observe(f(x, x))


def test_leaves_that_were_two_and_are_one_accumulate_into_one_gradient():
    def f(x, y):
        (x * y).sum().backward()

    compiled = rg.compile(f)
    leaf = numbers(3).requires_grad_()
    compiled(numbers(3, seed=1).requires_grad_(), numbers(3, seed=2).requires_grad_())
    compiled(leaf, leaf)
    assert leaf.grad.tolist() == (2 * leaf).tolist()


def test_results_are_fresh_and_views_are_views():
    def f(x):
        y = x * 2
        return y, y[1:], x.t(), {"rows": list(x.unbind(0)), "size": x.shape}

    assert_same_runs(no_tensors(f), lambda i: (numbers(3, 2, seed=i),))
    compiled = rg.compile(f)
    x = numbers(3, 2)
    first, second = compiled(x), compiled(x)
    first[1].zero_()
    assert first[0][1:].tolist() == [[0, 0], [0, 0]]
    assert second[0].tolist() == (x * 2).tolist()
    second[2].zero_()
    assert x.tolist() == [[0, 0]] * 3
    assert x._version == second[2]._version


def test_a_result_that_is_an_argument_is_that_tensor():
    compiled = rg.compile(lambda x, y: (x, y + 1, x))
    for seed in range(3):
        x = numbers(2, seed=seed)
        out = compiled(x, x)
        assert out[0] is x
        assert out[2] is x


def test_random_numbers_follow_each_other_as_in_eager_calls():
    generator = rg.Generator()

    def make():
        generator.manual_seed(3)

        def f(x):
            noise = rg.randn(2, 3) + rg.rand(3, generator=generator)
            return rg.nn.functional.dropout(x + noise, 0.4), rg.randperm(5), rg.bernoulli(rg.full((4,), 0.5))

        return f, []

    assert_same_runs(make, lambda i: (numbers(2, 3, seed=i),))


def test_tensors_made_of_numbers_are_made_at_each_call():
    def f(x):
        total = rg.tensor(0.5)
        counts = rg.zeros(2)
        for row in x:
            total += row.sum()
            counts[0] += 1.0
        return total, counts, rg.tensor([1, 2])

    assert_same_runs(no_tensors(f), lambda i: (numbers(3, 2, seed=i),))


def test_an_error_of_a_kernel_is_that_of_the_eager_call_and_leaves_what_that_leaves():
    def f(x, index):
        x.add_(1.0)
        y = x[index]
        x.mul_(2.0)
        return y

    def outcome(call):
        x = numbers(3)
        with pytest.raises(IndexError) as caught:
            call(x, rg.tensor([5]))
        return str(caught.value), observe(x)

    compiled = rg.compile(f)
    compiled(numbers(3), rg.tensor([1]))
    compiled(numbers(3), rg.tensor([2]))
    assert len(compiled.programs) == 1
    assert outcome(compiled) == outcome(f)


def test_a_write_into_saved_values_is_found_by_the_backward_pass_outside():
    w = numbers(3).requires_grad_()
    compiled = rg.compile(lambda x: x.mul_(2))
    for _ in range(3):
        x = numbers(3)
        loss = (w * x).sum()
        with rg.no_grad():
            compiled(x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_snapshots_outside_keep_their_content():
    compiled = rg.compile(lambda x: x.zero_())
    compiled(numbers(4))
    gradients = []
    for write in (compiled, lambda x: x.zero_()):
        leaf = numbers(4).requires_grad_()
        x = leaf * 1
        loss = rg.nn.functional.tanhshrink(x).sum()
        write(x.detach())
        loss.backward()
        gradients.append(observe(leaf.grad))
    assert gradients[0] == gradients[1]


def test_numpy_warnings_are_those_of_the_eager_call():
    compiled = rg.compile(lambda x: 1 / x)
    compiled(rg.ones(2))
    with np.errstate(divide="warn"), pytest.warns(RuntimeWarning, match="divide by zero"):
        compiled(rg.zeros(2))
    w = rg.zeros(2, requires_grad=True)

    def step():
        w.sqrt().sum().backward()

    step_compiled = rg.compile(step)
    for _ in range(3):
        step_compiled()  # the slope is infinite, without a warning
    assert w.grad.tolist() == [np.inf, np.inf]


def test_threads_run_one_program_at_the_same_time():
    from concurrent.futures import ThreadPoolExecutor

    compiled = rg.compile(lambda x: (x * 2).exp().sum(0))
    inputs = [numbers(50, 4, seed=i) for i in range(16)]
    expected = [observe((x * 2).exp().sum(0)) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        assert [observe(y) for y in pool.map(compiled, inputs)] == expected


SHARING = {
    "views of one tensor": (
        lambda base, w: (base[1:], base[:-1]),
        lambda a, b, w: (b.add_(1.0), b.detach()),
    ),
    "a detached tensor": (lambda base, w: (base, base.detach()[:]), lambda a, b, w: (b.mul_(2.0), a * 1)),
    "a gradient": (lambda base, w: (w.grad, base), lambda a, b, w: (w.grad.add_(1.0), a * 1)),
    "a view of a gradient": (lambda base, w: (w.grad[:2], base), lambda a, b, w: (a.add_(1.0), w.grad.detach())),
    "the data": (lambda base, w: (base, base.data), lambda a, b, w: b.data * b.data),
    "the data, which is written to": (lambda base, w: (base, base.data), lambda a, b, w: b.data.mul_(2.0) * a),
    "the data of a gradient": (lambda base, w: (w.grad, w.grad.data), lambda a, b, w: b.data * w.grad.data),
    "a parameter": (lambda base, w: (w.detach()[1:], base), lambda a, b, w: (w.detach().add_(1.0), a * 1)),
}


@pytest.mark.filterwarnings("ignore:compile")  # some run eagerly
@pytest.mark.parametrize("name", SHARING)
def test_a_program_for_tensors_that_share_memory_is_not_used_for_others(name):
    share, change = SHARING[name]

    def outcomes(compile):
        w = numbers(4).requires_grad_()
        step, seen = compile(lambda a, b: change(a, b, w)), []
        for i in range(6):
            w.grad = numbers(4, seed=9) if w.grad is None else w.grad
            bases = numbers(4, seed=i), numbers(4, seed=i + 9)
            if i in (0, 1, 4):
                a, b = share(bases[0], w)
            else:  # of the same kinds, and apart from each other
                other = numbers(4).requires_grad_()
                other.grad = numbers(4, seed=7)
                a, b = share(bases[0], other)[0], share(bases[1], other)[1]
            seen.append((observe(step(a, b)), observe([a, b, *bases]), state_of([w])))
        return seen

    assert outcomes(rg.compile) == outcomes(lambda f: f)


@pytest.mark.filterwarnings("ignore:compile")  # it runs eagerly
def test_a_view_of_an_argument_that_is_a_view_is_one_of_the_later_argument():
    base = numbers(5, 3)

    def f(x):
        return x.t(), base * 1

    compiled = rg.compile(f)
    for start in (0, 0, 1, 2):
        assert observe(compiled(base[start : start + 3])) == observe(f(base[start : start + 3]))
