"""`vmap`: a function of one example on a batch, compared with a loop."""

import re
from functools import partial

import pytest

import retrograd as rg
from retrograd.core import NotBatchedError, current
from retrograd.func import PerformanceWarning, grad, jvp, vmap

LOOP = {"fallback": "loop"}


def numbers(*shape):
    """Return 1, 2, 3, ... as float64."""
    size = rg.ones(shape).numel()
    return rg.arange(1, size + 1, dtype=rg.float64).reshape(shape)


def by_hand(f, *args):
    """Loop over the first dimension of every argument."""
    return rg.stack([f(*example) for example in zip(*args, strict=True)])


def same(a, b):
    return a.dtype == b.dtype and a.tolist() == b.tolist()


def mixed(v, w):
    return v * w.sum() - rg.outer(w, v).sum(0)


# ------------------------------------------------------------------------------------------------------ results


def test_it_gives_what_a_loop_gives():
    v, w = numbers(4, 3), numbers(4, 2)
    assert same(vmap(mixed)(v, w), by_hand(mixed, v, w))


def test_examples_may_be_along_any_dimension():
    v, w = numbers(4, 3), numbers(4, 2)
    expected = by_hand(mixed, v, w)
    assert same(vmap(mixed, (1, -1))(v.t(), w.t()), expected)
    assert same(vmap(rg.sin, 2, 1)(rg.stack([v, v * 2])), rg.sin(rg.stack([v, v * 2])).movedim(2, 1))
    assert same(vmap(mixed, out_dims=1)(v, w), expected.t())
    assert same(vmap(mixed, out_dims=-1)(v, w), expected.t())


def test_arguments_with_in_dim_none_are_shared():
    v, w = numbers(4, 3), numbers(2)
    assert same(vmap(mixed, (0, None))(v, w), rg.stack([mixed(x, w) for x in v]))


def test_in_dims_may_begin_like_the_arguments():
    tree = {"a": numbers(4, 3), "b": [numbers(3, 4), 2]}
    out = vmap(lambda d: d["a"] + d["b"][0] * d["b"][1], ({"a": 0, "b": [1, None]},))(tree)
    assert same(out, tree["a"] + tree["b"][0].t() * 2)
    assert same(vmap(lambda d: d["a"] * d["b"][0], ({"a": 0, "b": 0},))({"a": numbers(3), "b": [numbers(3)]}),
                numbers(3) ** 2)  # fmt: skip


def test_results_are_trees_and_out_dims_may_begin_like_them():
    out = vmap(lambda v: {"a": v, "b": (v * 2, v.sum())}, out_dims={"a": 1, "b": (0, 0)})(numbers(4, 3))
    assert (out["a"].shape, out["b"][0].shape, out["b"][1].tolist()) == ((3, 4), (4, 3), [6.0, 15.0, 24.0, 33.0])


def test_keywords_are_shared():
    assert vmap(lambda v, k: v * k.sum())(numbers(3), k=numbers(2)).tolist() == [3.0, 6.0, 9.0]
    assert vmap(lambda v, k: v * k)(numbers(3), k=2).tolist() == [2.0, 4.0, 6.0]


def test_the_program_sees_one_example():
    seen = []
    vmap(lambda v: seen.append((v.shape, v.ndim, v.numel(), len(v))) or v)(numbers(4, 3, 2))
    assert seen == [((3, 2), 2, 6, 3)]


def test_it_runs_the_function_once():
    calls = []
    vmap(lambda v: calls.append(1) or v)(numbers(5))
    assert len(calls) == 1


def test_unbatched_results_are_repeated():
    assert vmap(lambda v: rg.ones(2))(numbers(3)).tolist() == [[1.0, 1.0]] * 3
    assert vmap(lambda v: rg.ones(2), out_dims=None)(numbers(3)).tolist() == [1.0, 1.0]


def test_a_batch_without_examples_has_a_result_without_examples():
    assert vmap(lambda v: v.sum() * rg.ones(2, dtype=v.dtype))(numbers(0, 3)).shape == (0, 2)


def test_dtypes_meet_as_in_one_example():
    double, single = rg.ones(3, dtype=rg.float64), rg.ones(3)
    assert vmap(rg.mul)(single, double).dtype == rg.float64
    assert vmap(rg.mul)(rg.ones(3, 2), double).dtype == rg.float32  # a vector and a scalar
    assert vmap(rg.mul, (0, None))(rg.ones(3, 2), double[0]).dtype == rg.float32


def test_it_nests():
    table = vmap(vmap(lambda a, b: a * 10 + b, (None, 0)), (0, None))(numbers(2), numbers(3))
    assert table.tolist() == [[11.0, 12.0, 13.0], [21.0, 22.0, 23.0]]


def test_the_graph_outside_records_it():
    v, w = numbers(4, 3).requires_grad_(), numbers(3).requires_grad_()
    found = rg.autograd.grad(vmap(lambda a: (a * w).sum() ** 2)(v).sum(), (v, w))
    expected = rg.autograd.grad(((v * w).sum(1) ** 2).sum(), (v, w))
    assert all(same(a, b) for a, b in zip(found, expected, strict=True))


def test_per_sample_gradients():
    w, x, t = numbers(3), numbers(4, 3), numbers(4)

    def loss(w, x, t):
        return (rg.dot(w, x) - t) ** 2

    found = vmap(grad(loss), (None, 0, 0))(w, x, t)
    assert same(found, 2 * (x @ w - t)[:, None] * x)


def test_it_has_its_name_and_goes_by_two():
    def f(v):
        """Doubles."""
        return v * 2

    assert (vmap(f).__name__, vmap(f).__doc__, rg.vmap is vmap) == ("f", "Doubles.", True)


# ----------------------------------------------------------------------------------------------- writing inside


def test_writes_to_fresh_tensors_and_to_views_of_them():
    def f(v):
        out = rg.zeros(3, dtype=v.dtype)
        view = out[1:]
        out[0] = v.sum()
        view += v
        return out, view

    out, view = vmap(f)(numbers(2, 2))
    assert out.tolist() == [[3.0, 1.0, 2.0], [7.0, 3.0, 4.0]]
    assert view.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("options", [{}, {"chunk_size": 2}], ids=["all", "chunks"])
def test_a_write_to_a_batched_argument_reaches_it(options):
    v = numbers(2, 3)
    vmap(lambda a: a.mul_(2), 1, **options)(v)
    assert v.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]


@pytest.mark.parametrize(
    "write",
    [
        lambda v: v.add_(1),
        lambda v: v.zero_(),
        lambda v: (v.__setitem__(0, 3.0), v)[1],
        lambda v: (v[1:].mul_(2), v)[1],
    ],
    ids=["add_", "zero_", "x[0] = 3", "view"],
)
@pytest.mark.parametrize("dim", [0, 1])
def test_an_argument_that_is_written_to_and_returned_is_the_callers(write, dim):
    v = numbers(3, 3)
    result = vmap(write, dim, dim)(v)
    assert result.tolist() == v.tolist() != numbers(3, 3).tolist()
    result.fill_(7)
    assert v.tolist() == [[7.0] * 3] * 3


def test_an_argument_of_nested_batches_that_is_returned_is_the_callers():
    v = numbers(2, 3)
    result, total = vmap(vmap(lambda a: (a.add_(1), a * 2)))(v)
    result.zero_()
    assert v.tolist() == [[0.0] * 3] * 2
    assert total.tolist() == [[4.0, 6.0, 8.0], [10.0, 12.0, 14.0]]


def test_a_returned_argument_has_the_history_of_the_write():
    x = numbers(2, 3).requires_grad_()
    result = vmap(lambda v: v.mul_(3))(x * 2)
    assert rg.autograd.grad(result.sum(), x)[0].tolist() == [[6.0] * 3] * 2


def test_a_write_of_other_values_for_each_example_to_what_is_shared_is_refused():
    w = numbers(3)
    with pytest.raises(RuntimeError, match=r"add_ would write other values .* Use an out-of-place operator"):
        vmap(lambda v, w: w.add_(v), (0, None))(numbers(2), w)
    with pytest.raises(RuntimeError, match=r"x\[\.\.\.\] = value would write other values"):
        vmap(lambda v: w.__setitem__(0, v))(numbers(2))
    assert w.tolist() == [1.0, 2.0, 3.0]


def test_a_write_of_the_same_values_to_what_is_shared_is_made_once():
    w = numbers(3)
    one = rg.tensor(1.0, dtype=rg.float64)

    def f(v):
        w.add_(one)
        w[:2] = 0
        w[rg.tensor([0])] += 5
        return v * w

    assert vmap(f)(numbers(2)).tolist() == [[5.0, 0.0, 4.0], [10.0, 0.0, 8.0]]
    assert w.tolist() == [5.0, 0.0, 4.0]


def test_a_write_to_what_is_outside_two_batches_is_made_once():
    w = numbers(2)
    vmap(vmap(lambda v: w.mul_(2) + v))(numbers(2, 3))
    assert w.tolist() == [2.0, 4.0]


def test_an_argument_keeps_its_shape_whatever_the_program_does_to_its_own():
    x = numbers(2, 1, 3)

    def f(v):
        v.squeeze_(0)
        v.mul_(2)
        return v.unsqueeze_(1)

    assert vmap(f)(x).shape == (2, 3, 1)
    assert x.tolist() == [[[2.0, 4.0, 6.0]], [[8.0, 10.0, 12.0]]]


def test_strides_in_a_batch_are_those_of_one_example():
    seen = []

    def f(v):
        seen.append((v.stride(), v.is_contiguous(), v.contiguous() is v))
        return v

    vmap(f)(numbers(2, 3, 4))
    vmap(f, 1)(numbers(2, 3, 4))
    vmap(vmap(f), 1)(numbers(2, 3, 4))
    assert seen == [((4, 1), True, True), ((12, 1), False, False), ((1,), True, True)]


# ------------------------------------------------------------------------------------------------------- chunks


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
def test_chunks_change_nothing_but_how_many_run_together(size):
    runs = []

    def f(d, s):
        runs.append(rg.func.debug_unwrap(d["a"]).shape[1])
        return d["a"] * s, d["a"].sum()

    v = numbers(3, 4)
    out = vmap(f, ({"a": 1}, None), (1, 0), chunk_size=size)({"a": v}, 2)
    assert (out[0].tolist(), out[1].tolist()) == ((v * 2).tolist(), v.sum(0).tolist())
    assert runs == [size] * (4 // size) + [4 % size] * bool(4 % size)


def test_a_chunk_has_at_least_one_example():
    with pytest.raises(ValueError, match="chunk_size must be at least 1, got 0"):
        vmap(rg.sin, chunk_size=0)


# ------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("in_dims", "text"),
    [
        ([0], "in_dims must be an int, or a tuple with an entry for each argument, got list"),
        (None, "got NoneType"),
        ("0", "got str"),
        (0.0, "got float"),
        ((0, 0), r"in_dims \(0, 0\) does not fit the 1 arguments"),
        (({"a": 0},), "does not fit"),
        ((0.5,), "may hold ints and None, got 0.5"),
        (2, r"in_dim 2 is out of range for an argument of shape \(4, 3\)"),
        (-3, "in_dim -3 is out of range"),
        ((None,), "no argument of .* is batched"),
    ],
    ids=str,
)
def test_in_dims_that_do_not_fit_are_refused(in_dims, text):
    with pytest.raises(ValueError, match=text):
        vmap(lambda v: v, in_dims)(numbers(4, 3))


@pytest.mark.parametrize(
    ("out_dims", "error", "text"),
    [
        ((0, 0), ValueError, r"out_dims \(0, 0\) does not fit what the function returned"),
        ("0", ValueError, "out_dims may hold ints and None, got '0'"),
        (0.0, ValueError, "got 0.0"),
        (None, ValueError, "out_dims is None for a result that differs between examples"),
        (2, IndexError, "out_dims: dim 2 is out of range for a tensor of 2 dimensions"),
    ],
    ids=str,
)
def test_out_dims_that_do_not_fit_are_refused(out_dims, error, text):
    with pytest.raises(error, match=text):
        vmap(lambda v: v * 2, out_dims=out_dims)(numbers(4, 3))


def test_examples_must_be_as_many_in_all_arguments():
    with pytest.raises(ValueError, match=r"as many examples, got \(4, 3\) along 0, \(3,\) along 0"):
        vmap(rg.mul)(numbers(4, 3), numbers(3))


@pytest.mark.parametrize("args", [(), (3.0,)])
def test_something_must_be_batched(args):
    with pytest.raises(ValueError, match=r"no argument|a float among the arguments"):
        vmap(lambda *a: rg.ones(2))(*args)


@pytest.mark.parametrize("result", [3.0, None, "a", (3.0,)], ids=str)
def test_results_must_be_tensors(result):
    with pytest.raises(ValueError, match="must only return Tensors, got type <class"):
        vmap(lambda v: result)(numbers(3))


def test_results_that_are_shared_may_be_anything():
    out = vmap(lambda v: (v * 2, {"name": "a", "shape": v.shape}), out_dims=(0, None), chunk_size=2)(numbers(3))
    assert (out[0].tolist(), out[1]) == ([2.0, 4.0, 6.0], {"name": "a", "shape": ()})
    assert vmap(lambda v: None, out_dims=None)(numbers(3)) is None


@pytest.mark.parametrize(
    "f",
    [
        lambda v: v if v.sum() > 0 else -v,
        lambda v: v * v.sum().item(),
        lambda v: v * float(v.sum()),
        lambda v: v * int(v.sum()),
        lambda v: v * len(v.tolist()),
        lambda v: v * sum(1 for _ in range(int(v[0]))),
    ],
    ids=["if", "item", "float", "int", "tolist", "range"],
)
def test_a_program_that_asks_for_the_value_of_one_example_is_refused_by_line(f):
    with pytest.raises(NotBatchedError, match=r"at .*test_vmap\.py:\d+ in .*the result of .*fallback='loop'"):
        vmap(f)(numbers(4, 3))


def test_the_value_of_what_is_shared_may_be_requested():
    c = numbers(3)
    assert vmap(lambda v: v * 2 if c.sum() > 0 else v)(numbers(2)).tolist() == [2.0, 4.0]
    assert vmap(lambda v, w: v * w.sum().item(), (0, None))(numbers(2), c).tolist() == [6.0, 12.0]


def test_an_operator_whose_result_differs_in_size_is_refused():
    with pytest.raises(NotBatchedError, match="nonzero"):
        vmap(rg.nonzero)(numbers(4, 3))


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (rg.add, [(2,), (5,)]),
        (rg.matmul, [(2,), (5,)]),
        (rg.matmul, [(), ()]),
        (rg.matmul, [(), (2, 2)]),
        (rg.linear, [(2,), (4, 5)]),
        (lambda x, w: rg.linear(x, w, rg.ones(2, dtype="float32")), [(3, 4), (2, 4)]),
        (lambda x, y: rg.cat([x, y]), [(2, 2), (4, 5)]),
        (lambda x: x[5], [(2,)]),
        (lambda x: x.permute(0, 2, 1), [(2, 2)]),
        (rg.tril, [(3,)]),
        (rg.triu, [(3,)]),
        (rg.linalg.pinv, [(3,)]),
        (rg.linalg.inv, [(3,)]),
        (rg.linalg.cholesky, [(3,)]),
        (rg.view_as_complex, [()]),
        (lambda x: rg.constant_pad_nd(x, (1, 2)), [()]),
        (lambda x: rg.bincount(x.to("int64"), minlength=9), [(2, 3)]),
        (rg.searchsorted, [(), (3,)]),
        (rg.searchsorted, [(2, 5), (3, 2, 2)]),
        (rg.nn.functional.embedding, [(3,), (4, 2)]),
        (lambda x: rg.gather(x, 0, rg.tensor([[0]])), [(2,)]),
        (lambda x: rg.linalg.cross(x, x), [(2,)]),
    ],
)
def test_a_call_that_does_not_fit_is_refused_in_the_words_of_a_loop(f, shapes):
    with pytest.raises((ValueError, TypeError, IndexError, RuntimeError)) as alone:
        f(*[numbers(*shape) for shape in shapes])
    for depth in (1, 2):
        batched = f
        for _ in range(depth):
            batched = vmap(batched)
        with pytest.raises(type(alone.value)) as together:
            batched(*[numbers(*(3,) * depth, *shape) for shape in shapes])
        assert str(together.value) == str(alone.value)


def test_an_escaped_tensor_is_an_error_that_names_the_function():
    kept = []

    def leaking(v):
        kept.append(v)
        return v

    vmap(leaking)(numbers(3))
    with pytest.raises(RuntimeError, match=r"escaped the function .*leaking \(.*test_vmap\.py:\d+\)"):
        kept[0] * 2
    with pytest.raises(RuntimeError, match="escaped"):
        kept[0].tolist()


def test_a_failing_function_leaves_no_level_active():
    def fails(v):
        raise KeyError

    for options in ({}, {"chunk_size": 2}):
        with pytest.raises(KeyError):
            vmap(vmap(fails), **options)(numbers(3, 2))
        assert current().level is None


# --------------------------------------------------------------------------------------------------- randomness


def test_random_operators_are_refused_unless_it_is_said_what_they_do():
    with pytest.raises(RuntimeError, match="rand draws random numbers; pass randomness="):
        vmap(lambda v: v + rg.rand(2))(numbers(3))
    with pytest.raises(RuntimeError, match="randomness must be one of error, different, same, got 'some'"):
        vmap(rg.sin, randomness="some")


def test_random_numbers_differ_between_examples_or_are_the_same():
    draw = {way: vmap(lambda v: v * 0 + rg.rand(5), randomness=way)(numbers(4)) for way in ("different", "same")}
    assert len({tuple(row) for row in draw["different"].tolist()}) == 4
    assert len({tuple(row) for row in draw["same"].tolist()}) == 1


def test_the_same_numbers_are_those_that_one_example_would_draw():
    rg.manual_seed(3)
    alone = rg.rand(5)
    rg.manual_seed(3)
    assert vmap(lambda v: rg.rand(5), randomness="same")(numbers(2))[1].tolist() == alone.tolist()


# -------------------------------------------------------------------------------------------------- the fallback


def signed(v):
    return v if v.sum() > 0 else -v * 2


def test_the_loop_runs_what_no_batch_can_and_warns():
    v = numbers(3, 2) - 3
    with pytest.warns(PerformanceWarning, match=r"signed \(.*test_vmap\.py:\d+\) runs example by example: vmap: .*at"):
        out = vmap(signed, **LOOP)(v)
    assert same(out, by_hand(signed, v))


def test_the_loop_is_silent_where_it_is_not_needed():
    assert vmap(rg.sin, **LOOP)(numbers(2)).shape == (2,)


def test_the_loop_runs_the_function_again_from_the_start():
    calls = []

    def f(v):
        calls.append(v.level is None)
        return signed(v)

    with pytest.warns(PerformanceWarning):
        vmap(f, **LOOP)(numbers(3, 2))
    assert calls == [False, True, True, True]


def test_the_loop_follows_in_dims_and_out_dims():
    def f(d, s):
        return {"a": signed(d["v"]) * s, "b": s * 2}

    v = numbers(2, 3) - 4
    with pytest.warns(PerformanceWarning):
        out = vmap(f, ({"v": 1}, None), {"a": -1, "b": None}, **LOOP)({"v": v}, rg.tensor(2.0))
    assert out["a"].tolist() == rg.stack([signed(c) * 2 for c in v.t()], 1).tolist()
    assert out["b"].tolist() == 4.0


def test_the_loop_gives_a_nested_tensor_of_results_of_different_shapes():
    with pytest.warns(PerformanceWarning):
        out = vmap(rg.nonzero, **LOOP)(rg.tensor([[0.0, 1.0], [2.0, 3.0]]))
    assert out.is_nested
    assert out.tolist() == [[[1]], [[0], [1]]]


def test_the_loop_writes_to_the_arguments_once():
    def f(v):
        v.add_(1)
        return signed(v)

    v = numbers(2, 2)
    with pytest.warns(PerformanceWarning):
        vmap(f, **LOOP)(v)
    assert v.tolist() == [[2.0, 3.0], [4.0, 5.0]]


def test_the_loop_draws_as_the_batch_does():
    def f(v):
        return rg.rand(2) + 0 * signed(v)

    with pytest.warns(PerformanceWarning):
        alike = vmap(f, randomness="same", **LOOP)(numbers(2, 2))
    with pytest.warns(PerformanceWarning):
        unlike = vmap(f, randomness="different", **LOOP)(numbers(2, 2))
    assert same(alike[0], alike[1])
    assert not same(unlike[0], unlike[1])


def test_the_loop_can_be_differentiated():
    v, ones = numbers(3, 2) - 3, rg.ones(3, 2, dtype=rg.float64)
    looped = partial(vmap(signed, **LOOP))
    with pytest.warns(PerformanceWarning):
        _, along = jvp(looped, (v,), (ones,))
    assert along.tolist() == [[-2.0, -2.0], [1.0, 1.0], [1.0, 1.0]]


def test_there_is_no_other_fallback():
    with pytest.raises(ValueError, match=re.escape("fallback must be None or 'loop', got 'slow'")):
        vmap(rg.sin, fallback="slow")
