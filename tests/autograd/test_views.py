"""Views and in-place writes in the graph: values, gradients, chains of both, transforms, and refused writes."""

import pytest

import retrograd as rg
from retrograd import func, fx

from ..case_groups import group_cases


def leaf(*values):
    return rg.tensor(list(values), dtype=rg.float64, requires_grad=True)


def matrix():
    return rg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=rg.float64, requires_grad=True)


def numerical(function, x, eps=1e-6):
    """Return the gradient of a scalar function by central differences, as a flat list."""
    flat = x.detach().clone().view(-1).tolist()
    slopes = []
    for i in range(len(flat)):
        ends = []
        for sign in (1, -1):
            moved = [v + sign * eps if j == i else v for j, v in enumerate(flat)]
            ends.append(function(rg.tensor(moved, dtype=rg.float64).view(*x.shape)).item())
        slopes.append((ends[0] - ends[1]) / (2 * eps))
    return slopes


# -------------------------------------------------------------------------------------- views and their bases


VIEWS = {
    "row": lambda x: x[0],
    "element": lambda x: x[1, 2],
    "slice": lambda x: x[:, 1:],
    "step": lambda x: x[:, ::2],
    "new axis": lambda x: x[:, None],
    "view": lambda x: x.view(3, 2),
    "reshape": lambda x: x.reshape(-1),
    "flatten": lambda x: x.flatten(),
    "unflatten": lambda x: x.unflatten(1, (3, 1)),
    "transpose": lambda x: x.transpose(0, 1),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "permute": lambda x: x.permute(1, 0),
    "movedim": lambda x: x.movedim(0, 1),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "select": lambda x: x.select(1, 2),
    "diagonal": lambda x: x.diagonal(),
}
SEVERAL = {
    "unbind": lambda x: x.unbind(0),
    "split": lambda x: x.split(2, dim=1),
    "chunk": lambda x: x.chunk(2, dim=1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shows_the_base_its_memory_and_its_version(name):
    base = rg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    view = VIEWS[name](base)
    assert view._is_view()
    assert view._base is base
    assert (base._base, base._is_view()) == (None, False)
    view.fill_(9)
    assert base._version == view._version == 1
    assert base.view(-1).tolist().count(9.0) == view.numel()


@pytest.mark.parametrize("name", VIEWS)
def test_a_write_through_a_view_reaches_the_history_of_its_base(name):
    x = matrix()

    def f(x):
        y = x * 1
        VIEWS[name](y).mul_(3)
        return (y * y * y).sum()

    f(x).backward()
    assert x.grad.view(-1).tolist() == pytest.approx(numerical(f, x), rel=1e-5)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_follows_a_later_write_to_its_base(name):
    x = matrix()

    def f(x):
        y = x * 1
        view = VIEWS[name](y)
        y.mul_(y)
        return (view * view).sum() + (view * 3).sum()

    f(x).backward()
    assert x.grad.view(-1).tolist() == pytest.approx(numerical(f, x), rel=1e-5)


@pytest.mark.parametrize("name", SEVERAL)
def test_views_that_were_returned_together_are_differentiated_and_refuse_recorded_writes(name):
    x = matrix()
    parts = SEVERAL[name](x * 1)
    (parts[0].sum() * 2 + parts[1].sum() * 3).backward()
    assert set(x.grad.view(-1).tolist()) == {2.0, 3.0}
    with pytest.raises(RuntimeError, match=r"Output 0 of (Unbind|Split) .*modified inplace"):
        parts[0].mul_(2)
    plain = rg.ones(2, 3)
    SEVERAL[name](plain)[1].zero_()
    assert plain.sum().item() < 6


def test_the_parts_of_complex_numbers_are_views_that_may_be_written_to():
    z = rg.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    y = z * 1
    y.real.mul_(2)
    y.imag[1:] = y.real[:1] * 5
    assert y.real._base is y
    assert y.tolist() == [2 + 2j, 6 + 10j]
    (y.real**2 + y.imag**2).sum().backward()  # 4 a0^2 + b0^2 + 4 a1^2 + 100 a0^2
    assert z.grad.tolist() == [208 + 4j, 24 + 0j]


def test_a_view_of_a_view_has_the_same_base():
    base = rg.ones(2, 3)
    assert base.T[0].unsqueeze(0)._base is base


def test_results_that_own_their_memory_are_no_views():
    base = rg.ones(2, 3)
    for result in (base * 1, base.clone(), base[rg.tensor([0, 1])], base.sum(0), base.T.reshape(-1)):
        assert not result._is_view()
        result.zero_()
    assert base.tolist() == [[1.0] * 3] * 2
    assert base.detach()._version == base._version


# ------------------------------------------------------------------------------- recorded writes and chains


WRITES = {
    "add_": lambda y, x: y.add_(x * x),
    "add_ with alpha": lambda y, x: y.add_(x, alpha=3),
    "sub_": lambda y, x: y.sub_(x * x),
    "mul_": lambda y, x: y.mul_(x),
    "mul_ by itself": lambda y, x: y.mul_(y),
    "div_": lambda y, x: y.div_(x + 1),
    "copy_": lambda y, x: y.copy_(x * x * x),
    "copy_ of its own view": lambda y, x: y.copy_(y.flip(1)),
    "zero_": lambda y, x: y.zero_(),
    "fill_": lambda y, x: y.fill_(x.sum()),
    "exp_": lambda y, x: y.mul_(0.1).exp_(),
    "sigmoid_": lambda y, x: y.sigmoid_(),
    "clamp_": lambda y, x: y.clamp_(min=2.5),
    "row": lambda y, x: y.__setitem__(0, x[1] * x[0]),
    "column": lambda y, x: y.__setitem__((slice(None), 1), x[:, 0] * 2),
    "element": lambda y, x: y.__setitem__((1, 2), x[0, 0] * x[0, 1]),
    "broadcast": lambda y, x: y.__setitem__(Ellipsis, x[0] * 2),
    "by tensor": lambda y, x: y.__setitem__(rg.tensor([1]), x[:1] * x[1:]),
    "by mask": lambda y, x: y.__setitem__(y > 2.5, x.sum()),
    "masked_fill_": lambda y, x: y.masked_fill_(y > 2.5, 7.0),
    "row by itself": lambda y, x: y[0].mul_(y[1]),
    "augmented": lambda y, x: y[0].__iadd__(y[1]),
    "diagonal": lambda y, x: y.diagonal().copy_(x[:, 2]),
    "transposed": lambda y, x: y.T.add_(x.T * x.T),
    "shifted": lambda y, x: y[:, 1:].add_(y[:, :-1].clone()),
}


@group_cases
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("through", [None, "T of T", "view"])
def test_a_recorded_write_gives_the_right_gradient(name, through):
    def f(x):
        y = x * 1.5
        target = {None: y, "T of T": y.T.T, "view": y.view(3, 2).view(2, 3)}[through]
        before = target.sum() * 2
        WRITES[name](target, x)
        return (y * y).sum() + target.sin().sum() + before

    x = matrix()
    f(x).backward()
    assert x.grad.view(-1).tolist() == pytest.approx(numerical(f, x), rel=1e-5, abs=1e-7)


def test_chains_of_writes_through_siblings_and_the_base():
    def f(x):
        y = x * 1
        top, left, all_of_it = y[0], y[:, 0], y.view(-1)
        top.mul_(left[1].clone())
        y.add_(top.unsqueeze(0))
        left[1:].mul_(all_of_it[2].clone())
        all_of_it[1:4].copy_(y.T[:, 1] * 2)
        return (y * y).sum() + top.sum() * left.sum() + all_of_it.sin().sum()

    x = matrix()
    f(x).backward()
    assert x.grad.view(-1).tolist() == pytest.approx(numerical(f, x), rel=1e-5)


def test_second_derivatives_pass_through_writes():
    def f(x):
        y = x * 1
        y[:1].mul_(y[1:].clone())
        y.mul_(y)
        return y.sum()

    x = leaf(2.0, 3.0)
    (first,) = rg.autograd.grad(f(x), x, create_graph=True)
    assert first.tolist() == [2 * 2 * 9.0, 2 * 3 * 4 + 2 * 3.0]
    (second,) = rg.autograd.grad(first[0], x)
    assert second.tolist() == [18.0, 24.0]


def test_a_write_makes_a_constant_part_of_the_graph():
    x = leaf(2.0, 3.0)
    total = rg.zeros(2, 2, dtype=rg.float64)
    row = total[1]
    assert not total.requires_grad
    total[0] = x * 2
    row.add_(x)
    assert (total.requires_grad, total.is_leaf, row.requires_grad) == (True, False, True)
    (total * total).sum().backward()
    assert x.grad.tolist() == [2 * 4 * 2 + 2 * 2, 2 * 4 * 3 + 2 * 3]


def test_a_gradient_does_not_flow_to_what_was_overwritten():
    x, w = leaf(2.0), leaf(3.0)
    y = x * 1
    y.copy_(w)
    y.sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([0.0], [1.0])


def test_the_new_history_is_shown():
    x = leaf(1.0, 2.0)
    y = x * 1
    old = y.grad_fn
    y.exp_()
    assert y.grad_fn is not old
    assert "Exp" in y.grad_fn.name()
    view = y[:1]
    y.mul_(2)
    assert "Slice" in view.grad_fn.name()


def test_an_in_place_loop_is_differentiated_step_by_step():
    x = leaf(0.5)
    y = x * 1
    for _ in range(20):
        y.mul_(x)
        y.add_(1)
    value, slope = 0.5, 1.0
    for _ in range(20):
        value, slope = value * 0.5 + 1, slope * 0.5 + value
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([slope])


def test_a_write_under_no_grad_changes_the_value_and_not_the_history():
    x = leaf(1.0, 2.0)
    y = x * 3
    fn = y.grad_fn
    with rg.no_grad():
        y.add_(10)
    assert y.tolist() == [13.0, 16.0]
    assert y.grad_fn is fn
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_conversion_on_writing_is_differentiated_back():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    y = rg.zeros(2, dtype=rg.float64)
    y.copy_(x)
    (y * 3).sum().backward()
    assert x.grad.dtype == rg.float32
    assert x.grad.tolist() == [3.0, 3.0]


# --------------------------------------------------------------------------------------------------- the rules


def no_grad_view(x):
    with rg.no_grad():
        return x[:1]


def inference_view(x):
    with rg.inference_mode():
        return x[:1]


@pytest.mark.parametrize(
    ("write", "facts"),
    [
        (lambda x: x.add_(1), "leaf Variable that requires grad"),
        (lambda x: x.__setitem__(0, 1.0), "view of a leaf Variable that requires grad|leaf Variable"),
        (lambda x: x.__setitem__(rg.tensor([0]), 1.0), "leaf Variable"),
        (lambda x: x[:1].mul_(2), "view of a leaf Variable that requires grad"),
        (lambda x: x.view(2, 1)[0].zero_(), "view of a leaf Variable that requires grad"),
        (lambda x: no_grad_view(x * 1).mul_(x[:1]), "view was created in no_grad mode"),
        (lambda x: no_grad_view(x * 1)[:1].mul_(x[:1]), "view was created in no_grad mode"),
        (lambda x: inference_view(x * 1).mul_(x[:1]), "view was created in inference mode"),
        (lambda x: (x * 1).expand(3, 2).add_(1), "expanded.*more than one element"),
        (lambda x: rg.mul(x, 2, out=rg.zeros(2, dtype=rg.float64)), "mul.*out=.*automatic differentiation"),
        (lambda x: (x * 1)[:1].detach_(), "detach views in-place"),
        (lambda x: (x * 1).add_(rg.ones(3, 2)), r"\[2\] doesn't match the broadcast shape \[3, 2\]"),
        (lambda x: (x * 1).copy_(rg.ones(3, 2)), r"\(3, 2\) does not fit into shape \(2,\)"),
        (lambda x: rg.ones(2, dtype=rg.int64).add_(x), "float64.*int64"),
        (lambda x: (x * 1).fill_(rg.ones(2)), r"fill_.*with 1 dimensions"),
    ],
)
def test_refused_writes_name_the_reason_and_change_nothing(write, facts):
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=facts):
        write(x)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0


def test_leaves_are_written_to_under_no_grad_through_detach_and_data():
    x = leaf(1.0, 2.0)
    with rg.no_grad():
        x.mul_(2)
        x[0] = 7.0
    x.detach().add_(1)
    x.data.mul_(10)
    assert x.tolist() == [80.0, 50.0]
    assert x.is_leaf


def test_detach_in_place_makes_a_leaf_and_is_detected_where_the_input_was_saved():
    x = leaf(2.0)
    y = x * 1
    z = y * y
    y.detach_()
    assert (y.is_leaf, y.requires_grad, y.grad_fn) == (True, False, None)
    with pytest.raises(RuntimeError, match=r"mul.*detach_\(\): its input of shape \(1,\)"):
        z.sum().backward()


def test_out_writes_the_result_where_nothing_is_recorded():
    out = rg.zeros(2)
    result = rg.add(rg.ones(2), 2.0, out=out)
    assert result is out
    assert out.tolist() == [3.0, 3.0]
    with rg.no_grad():
        rg.mul(leaf(1.0, 2.0), 2.0, out=rg.zeros(2, dtype=rg.float64))
    with pytest.raises(RuntimeError, match=r"out has shape \(3,\).*\(2,\)"):
        rg.add(rg.ones(2), 2.0, out=rg.zeros(3))


# ------------------------------------------------------------------------------------------------- transforms


def element(x):
    y = x.clone()
    y[0] = x[1] * x[1]
    return (y * y).sum()


def product(x):
    y = x.clone()
    y.mul_(2)
    y.mul_(y)
    return (y * x).sum()


def views_of_views(x):
    y = x.clone()
    pairs = y.view(2, 2)
    pairs.T[0].mul_(x[3])
    first = pairs[0]
    y[1:].add_(x[0])
    return (first * y[2:]).sum() + pairs.sin().sum()


def stale_views(x):
    y = x * 2
    tail, whole = y[1:], y.view(-1)
    y.copy_(y.flip(0) * x)
    tail.mul_(3)
    return (whole * x).sum() + (tail * tail).sum()


def into_zeros(x):
    y = rg.zeros(2, 4, dtype=x.dtype)
    y[0] = x
    y[1].copy_(x * x)
    y.T[2:] = x[0]
    return (y * y * y).sum()


def functions(x):
    y = x.clone()
    y[1:].sin_()
    y.cos_().add_(x)
    y[:2].exp_()
    return (y * y).sum()


def by_tensor(x):
    y = x.clone()
    y[rg.tensor([2, 0])] = x[:2] * x[2:]
    return (y * y).sum()


PROGRAMS = [element, product, views_of_views, stale_views, into_zeros, functions, by_tensor]


@pytest.mark.parametrize("program", PROGRAMS)
def test_writes_inside_transforms_give_the_derivatives_of_the_eager_program(program):
    values = [0.5, -0.7, 1.3, 2.1]
    x, t = leaf(*values), rg.tensor([1.0, 2.0, -1.0, 0.5], dtype=rg.float64)
    expected = rg.autograd.grad(program(x), x)[0].tolist()
    assert expected == pytest.approx(numerical(program, x), rel=1e-5)
    plain = x.detach()
    assert func.grad(program)(plain).tolist() == pytest.approx(expected)
    value, slope = func.jvp(program, (plain,), (t,))
    assert value.item() == pytest.approx(program(plain).item())
    assert slope.item() == pytest.approx(sum(e * s for e, s in zip(expected, t.tolist(), strict=True)))
    assert plain.tolist() == values


@pytest.mark.parametrize("program", PROGRAMS)
def test_transforms_of_writes_nest(program):
    x, t = leaf(0.5, -0.7, 1.3, 2.1), rg.tensor([1.0, 2.0, -1.0, 0.5], dtype=rg.float64)
    (first,) = rg.autograd.grad(program(x), x, create_graph=True)
    expected = rg.autograd.grad((first * t).sum(), x)[0].tolist()
    plain = x.detach()
    assert func.jvp(func.grad(program), (plain,), (t,))[1].tolist() == pytest.approx(expected)
    assert func.grad(lambda x: func.jvp(program, (x,), (t,))[1])(plain).tolist() == pytest.approx(expected)
    assert func.grad(lambda x: (func.grad(program)(x) * t).sum())(plain).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_trace_of_writes_runs_again_with_other_inputs(program):
    module = fx.trace(program, rg.ones(4, dtype=rg.float64))
    module.graph.lint()
    for values in ([0.5, -0.7, 1.3, 2.1], [3.0, 1.0, -2.0, 0.25]):
        x = leaf(*values)
        assert module(x).item() == pytest.approx(program(x).item())
        got, expected = (rg.autograd.grad(f(x), x)[0].tolist() for f in (module, program))
        assert got == pytest.approx(expected)
        assert x.tolist() == values
        assert func.grad(module)(x.detach()).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: func.grad(f)(x),
        lambda f, x: func.jvp(f, (x,), (rg.ones(2),)),
        lambda f, x: fx.trace(f, x),
    ],
)
@pytest.mark.parametrize(
    "write",
    [
        lambda captured, x: captured.add_(1),
        lambda captured, x: captured.copy_(x),
        lambda captured, x: captured.__setitem__(0, x[0]),
        lambda captured, x: captured[:1].mul_(2),
    ],
)
def test_a_captured_tensor_can_not_be_written_to_in_a_transform(transform, write):
    captured = rg.tensor([3.0, 4.0])

    def f(x):
        write(captured, x)
        return (x * captured).sum()

    with pytest.raises(RuntimeError, match=r"outside a function transform|captured"):
        transform(f, rg.ones(2))
    assert captured.tolist() == [3.0, 4.0]
    assert captured._version == 0


WINDOWS = {
    "unfold": lambda x: x.unfold(0, 0, 1),
    "as_strided": lambda x: x.as_strided((0, 2), (1, 1)),
    "expand": lambda x: x.expand(2, *x.shape),
    "empty slice": lambda x: x[:0],
}


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 3)])
@pytest.mark.parametrize("view", WINDOWS.values(), ids=WINDOWS)
def test_a_view_of_no_elements_is_a_view_too(view, shape):
    x = rg.zeros(shape, requires_grad=True)
    assert view(x)._base is x
    if 0 in view(x).shape:
        with pytest.raises(RuntimeError, match="a view of a leaf"):
            view(x).add_(1)


def test_windows_of_views_of_nothing_are_views():
    part = rg.zeros(0).expand(2, -1).tensor_split(2, 0)[-1]
    assert part.unfold(0, 1, 1)._base is part._base
    assert part.unfold(-1, 0, 1)._base is part._base


def test_the_grad_of_a_view_that_a_write_made_unusable_can_be_read():
    base = leaf(1.0, 2.0) * 1
    part = base.unbind(0)[0]
    base.mul_(leaf(3.0, 4.0))
    assert not part.retains_grad
    with pytest.warns(UserWarning, match="no leaf"):
        assert part.grad is None


def test_a_hook_on_a_view_stays_with_the_old_value_after_every_write():
    for write in (lambda v: v.mul_(1), lambda v: v.__setitem__(rg.tensor([False, False]), 0.0)):
        x = leaf(1.0, 2.0)
        view = (x * 1)[:]
        view.register_hook(lambda g: g * 2)
        write(view)
        view.sum().backward()
        assert x.grad.tolist() == [1, 1]


HIDDEN = {
    "min": lambda x: x.min(0)[0],
    "max": lambda x: x.max(0)[0],
    "median": lambda x: x.median(0)[0],
    "kthvalue": lambda x: x.kthvalue(1, 0)[0],
    "rot90": lambda x: x.rot90(),
    "sort": lambda x: x.sort(0)[0],
}


@pytest.mark.parametrize("function", HIDDEN.values(), ids=HIDDEN)
def test_a_hook_on_a_result_stays_in_the_graph_after_a_write_to_it(function):
    """A result may be computed as a view of a tensor that nobody else holds: it is a view of nothing, then."""
    x = matrix()
    y = function(x)
    y.register_hook(lambda g: g * 2)
    assert y._base is None
    y.add_(1).sum().backward()
    once = rg.autograd.grad(function(x).sum(), x)[0]
    assert x.grad.tolist() == (2 * once).tolist()
    y.detach_()
    assert y.is_leaf


def test_a_view_of_a_tensor_does_not_follow_the_shape_of_another_tensor_with_the_same_memory():
    x = matrix()
    part = x[0]
    other = x.detach()
    other.t_().mul_(leaf(2.0))
    weight = rg.arange(float(part.numel()))
    assert rg.autograd.grad(part, x, weight)[0].tolist() == rg.autograd.grad(x[0], x, weight)[0].tolist()
