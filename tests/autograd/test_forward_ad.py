"""Forward mode: dual tensors, their views and writes, reverse mode over them, nested levels, and the end of a level."""

import gc
import threading
import weakref

import pytest

import retrograd as rg
from retrograd import func, nn
from retrograd.autograd import forward_ad as fwd
from retrograd.autograd.graph import allow_mutation_on_saved_tensors, saved_tensors_hooks
from retrograd.autograd.profiler import profile

X = (1.0, 2.0, -3.0)
T = (3.0, 4.0, 0.5)


def vector(*values, **options):
    return rg.tensor(list(values), dtype=rg.float64, **options)


def tangent(x, **options):
    found = fwd.unpack_dual(x, **options).tangent
    return None if found is None else found.tolist()


def dual(x=X, t=T, **options):
    return fwd.make_dual(vector(*x, **options), vector(*t))


def difference(f, x, t, step=1e-6):
    """Return the derivative of f at x along t, by differences of values outside any level."""
    x, t = vector(*x), vector(*t)
    return ((f(x + step * t) - f(x - step * t)) / (2 * step)).detach()


def close(a, b, rtol=1e-6):
    return rg.allclose(a, b, rtol=rtol, atol=1e-6)


@pytest.fixture
def level():
    with fwd.dual_level() as number:
        yield number


# ------------------------------------------------------------------------------------------------ duals and levels


def test_a_dual_has_the_value_and_the_tangent_that_it_was_made_of(level):
    x, t = vector(*X), vector(*T)
    unpacked = fwd.unpack_dual(fwd.make_dual(x, t))
    assert isinstance(unpacked, fwd.UnpackedDualTensor)
    assert unpacked._fields == ("primal", "tangent")
    assert unpacked.primal.tolist() == list(X)
    assert unpacked.tangent is t


def test_a_result_has_the_derivative_along_the_tangents(level):
    y = dual() * dual(T, X) + 1
    assert tangent(y) == [3 * 3 + 1 * 1, 4 * 4 + 2 * 2, 0.5 * 0.5 + 3 * 3]


def test_results_of_no_dual_have_no_tangent(level):
    x = vector(*X)
    fwd.make_dual(x, vector(*T))
    assert tangent(x) is None
    assert tangent(x * 2) is None
    assert tangent(dual() > 0) is None
    assert tangent(dual().argmax()) is None


def test_each_dual_of_a_tensor_has_its_own_tangent(level):
    x = vector(*X)
    first, second = fwd.make_dual(x, vector(*T)), fwd.make_dual(x, vector(1, 0, 0))
    assert (tangent(first), tangent(second)) == (list(T), [1, 0, 0])
    assert tangent(first + second) == [4, 4, 0.5]


def test_every_output_has_its_tangent(level):
    values, places = dual().sort()
    assert tangent(values) == [0.5, 3, 4]
    assert tangent(places) is None


@pytest.mark.parametrize("values", [rg.linalg.svdvals, rg.linalg.eigvalsh, lambda a: rg.linalg.norm(a, "nuc")])
def test_values_that_are_computed_alone_without_derivatives_have_tangents(level, values):
    a, t = vector(*X).diag() + 1, vector(*T).diag()
    found = fwd.unpack_dual(values(fwd.make_dual(a, t))).tangent
    step = 1e-6
    assert close(found, (values(a + step * t) - values(a - step * t)) / (2 * step))


def test_a_detached_tensor_has_no_tangent(level):
    y = dual() * 2
    assert tangent(y.detach()) is None
    assert tangent(y.data) is None
    assert tangent(nn.Parameter(y)) is None
    assert tangent(y) == [6, 8, 1]


def test_unpacking_gives_a_view_without_the_tangent(level):
    d = dual()
    primal = fwd.unpack_dual(d).primal
    primal[0] = 7.0
    assert d.tolist() == [7, 2, -3]
    assert tangent(primal) is None
    assert tangent(primal[1:] * 2) is None


def test_leaving_the_level_drops_tangents_and_the_tensors_continue():
    with fwd.dual_level():
        d = dual()
        y = d * 2
    assert tangent(d) is None
    assert tangent(y) is None
    assert (d + y).tolist() == [3, 6, -9]
    with fwd.dual_level():
        assert tangent(d * y) is None


def test_a_tangent_of_another_layout_is_copied_and_one_of_the_same_is_not(level):
    x, t = rg.zeros(2, 3), rg.ones(3, 2).T
    d = fwd.make_dual(x, t)
    t.zero_()
    found = fwd.unpack_dual(d).tangent
    assert found.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert found.stride() == x.stride()


def test_a_tangent_takes_the_dtype_of_its_tensor(level):
    d = fwd.make_dual(vector(1.0), rg.tensor([2.0]))
    assert fwd.unpack_dual(d).tangent.dtype == rg.float64
    z = fwd.make_dual(rg.tensor([1j]), rg.tensor([2.0]))
    assert fwd.unpack_dual(z * 1j).tangent.tolist() == [2j]


@pytest.mark.parametrize(
    ("call", "error", "pattern"),
    [
        (lambda x: fwd.make_dual(x, rg.ones(2)), RuntimeError, r"different size.*\(3,\).*\(2,\)"),
        (lambda x: fwd.make_dual(x, x.to(rg.complex128)), RuntimeError, "complex128.*float64.*real"),
        (lambda x: fwd.make_dual(rg.tensor([1]), rg.tensor([1])), ValueError, "Expected primal to be floating.*int64"),
        (lambda x: fwd.make_dual(x, rg.tensor([1, 2, 3])), ValueError, "Expected tangent to be floating.*int64"),
        (lambda x: fwd.make_dual(1.0, x), TypeError, "primal must be a Tensor, got float"),
        (lambda x: fwd.make_dual(x, None), TypeError, "tangent must be a Tensor, got NoneType"),
        (lambda x: fwd.unpack_dual(1.0), TypeError, "expected a Tensor, got float"),
        (lambda x: fwd.make_dual(dual(), x), RuntimeError, "already has a forward gradient at the same level 0"),
        (lambda x: fwd.make_dual(x, dual()), RuntimeError, "already has a forward gradient at the same level 0"),
        (lambda x: fwd.make_dual(x, x, level=1), RuntimeError, "invalid level 1"),
        (lambda x: fwd.unpack_dual(x, level=1), RuntimeError, "invalid level 1"),
        (lambda x: fwd.exit_dual_level(level=1), RuntimeError, "level 1, that was not the last one"),
    ],
)
def test_invalid_duals_are_refused(level, call, error, pattern):
    with pytest.raises(error, match=pattern):
        call(vector(*X))


def test_outside_of_any_level_there_are_no_duals():
    x = vector(*X)
    with pytest.raises(RuntimeError, match=r"[Nn]o level exists.*enter_dual_level"):
        fwd.make_dual(x, x)
    with pytest.raises(RuntimeError, match=r"[Nn]o level exists"):
        fwd.exit_dual_level()
    assert fwd.unpack_dual(x) == (x, None)


def test_levels_are_left_in_the_opposite_order():
    outer, inner = fwd.enter_dual_level(), fwd.enter_dual_level()
    assert (outer, inner) == (0, 1)
    with pytest.raises(RuntimeError, match="level 0, that was not the last one"):
        fwd.exit_dual_level(level=outer)
    fwd.exit_dual_level(level=inner)
    with profile(), pytest.raises(RuntimeError, match="was entered inside level 0, which ends first"):
        fwd.exit_dual_level()
    fwd.exit_dual_level()
    with pytest.raises(RuntimeError, match=r"[Nn]o level exists"):
        fwd.exit_dual_level()


def test_an_error_leaves_the_level():
    with pytest.raises(KeyError), fwd.dual_level():
        raise KeyError
    with pytest.raises(RuntimeError, match=r"[Nn]o level exists"):
        dual()


def test_a_level_decorates():
    @fwd.dual_level()
    def derivative(x):
        return tangent(fwd.make_dual(x, rg.ones_like(x)) ** 2)

    assert derivative(vector(1, 2)) == derivative(vector(1, 2)) == [2, 4]


def test_each_thread_has_its_own_levels(level):
    d, seen = dual(), []

    def run():
        seen.append(tangent(d * 2))
        with fwd.dual_level() as number:
            seen.append((number, tangent(dual() * 2)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [None, (0, [6, 8, 1])]
    assert tangent(d * 2) == [6, 8, 1]


def test_switched_off_there_are_no_tangents_and_writes_do_not_change_them(level):
    d = dual()
    with fwd.set_fwd_grad_enabled(False):
        assert not fwd._is_fwd_grad_enabled()
        y = d * 2
        assert tangent(d) is None
        late = dual()
        d.mul_(5)
    assert fwd._is_fwd_grad_enabled()
    assert tangent(y) is None
    assert tangent(d) == tangent(late) == list(T)


def test_the_switch_works_at_once_too(level):
    switch = fwd._set_fwd_grad_enabled(False)
    try:
        assert tangent(dual()) is None
    finally:
        fwd._set_fwd_grad_enabled(True)
    assert tangent(dual()) == list(T)
    assert switch is not None


# ------------------------------------------------------------------------------------------------------ views


def test_a_view_has_the_view_of_the_tangent(level):
    d = fwd.make_dual(rg.zeros(2, 3), rg.tensor([[1.0, 2, 3], [4, 5, 6]]))
    assert tangent(d[1]) == [4, 5, 6]
    assert tangent(d.T[0]) == [1, 4]
    assert tangent(d.reshape(-1)[1:].unsqueeze(0)) == [[2, 3, 4, 5, 6]]
    assert tangent(d.T.reshape(-1)) == [1, 4, 2, 5, 3, 6]
    assert tangent(d[:, 1].expand(2, 2)) == [[2, 5], [2, 5]]


def test_a_write_to_a_view_reaches_the_base_and_its_other_views(level):
    d = dual()
    left, right = d[:2], d[1:]
    right.mul_(2)
    assert tangent(d) == [3, 8, 1]
    assert tangent(left) == [3, 8]
    d.mul_(10)
    assert (tangent(left), tangent(right)) == ([30, 80], [80, 10])


def test_a_dual_value_written_to_an_outside_tensor_gives_it_a_tangent():
    z = rg.zeros(2, 3, dtype=rg.float64)
    row, column, apart = z[0], z[:, 1], z.detach()
    with fwd.dual_level():
        row.copy_(dual())
        assert tangent(z) == [list(T), [0, 0, 0]]
        assert tangent(column) == [4, 0]
        assert tangent(apart) is None
        z.zero_()
        assert tangent(row) == [0, 0, 0]
    assert tangent(z) is None


def test_a_write_to_a_dual_reaches_the_memory_of_its_tensor_but_gives_it_no_tangent(level):
    x = vector(*X)
    fwd.make_dual(x, vector(*T)).mul_(2)
    assert x.tolist() == [2, 4, -6]
    assert tangent(x) is None


def test_writes_update_the_tangent_that_the_dual_was_made_of(level):
    t = vector(*T)
    d = fwd.make_dual(vector(*X), t)
    d.mul_(2)
    assert tangent(d) == [6, 8, 1]
    assert t.tolist() == [6, 8, 1]


def test_a_write_to_the_tangent_itself_counts(level):
    d = dual()
    fwd.unpack_dual(d[1:]).tangent.zero_()
    assert tangent(d) == [3, 0, 0]


def test_setting_items_scatters_tangents(level):
    b = rg.zeros(3, dtype=rg.float64)
    b[0] = fwd.make_dual(vector(1.0)[0], vector(5.0)[0])
    assert tangent(b) == [5, 0, 0]
    b[rg.tensor([2, 1])] = dual((1, 1), (6, 7))
    assert tangent(b) == [5, 7, 6]
    b[rg.tensor([True, False, True])] = 4.0
    assert tangent(b) == [0, 7, 0]


def test_a_value_without_tangent_writes_zeros(level):
    d = dual()
    d[1:].copy_(rg.ones(2))
    assert tangent(d) == [3, 0, 0]
    d.zero_()
    assert tangent(d) == [0, 0, 0]


def test_detach_in_place_drops_the_tangent(level):
    y = dual() * 2
    y.detach_()
    assert tangent(y) is None


def test_written_random_numbers_have_no_tangent(level):
    y = dual() * 2
    y.normal_()
    assert tangent(y) == [0, 0, 0]


# ------------------------------------------------------------------------------------------- programs with writes


def writes(x):
    y = x * 1
    y.mul_(x).add_(x.sum())
    y[0] = y[1].clone() * x[2]
    tail = y[1:]
    tail.mul_(x[:2].exp())
    y[rg.tensor([2, 0])] = x[:2] * y[:2].clone()
    return (y.reshape(3, 1) * y / 100).tanh()


def joins(x):
    out = rg.zeros(2, 3, dtype=rg.float64)
    out.T[1] = x[:2]
    out[1].copy_(x.sin())
    out.mul_(x)
    return rg.cat([out, out.flip(0)]).cumsum(0)


def grows(x):
    total = x.new_zeros(3)
    for row in (x * 1, x.exp() + 1, x * x):
        total += row.clamp_(max=2.5)
    return total.sub_(x, alpha=2).relu_().sum()


PROGRAMS = [writes, joins, grows]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_write_have_the_derivative_of_their_values(program):
    with fwd.dual_level():
        found = fwd.unpack_dual(program(dual())).tangent
    assert close(found, difference(program, X, T))


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_of_programs_that_write_have_tangents(program):
    def gradient(x):
        x = x.detach().requires_grad_() if not fwd.forward_levels() else x
        return rg.autograd.grad(program(x).sum(), x)[0]

    with fwd.dual_level():
        found = fwd.unpack_dual(gradient(dual(requires_grad=True))).tangent
    assert close(found, difference(gradient, X, T))


@pytest.mark.parametrize("program", PROGRAMS)
def test_tangents_of_programs_that_write_have_gradients(program):
    x = vector(*X, requires_grad=True)
    with fwd.dual_level():
        along = fwd.unpack_dual(program(fwd.make_dual(x, vector(*T)))).tangent.sum()
        assert close(rg.autograd.grad(along, x)[0], func.jvp(gradient_of(program), (x.detach(),), (vector(*T),))[1])


def gradient_of(program):
    return func.grad(lambda x: program(x).sum())


@pytest.mark.parametrize("program", [writes, grows])  # the other one writes to a tensor from outside
def test_a_level_inside_a_transform_sees_writes(program):
    def along(x):
        with fwd.dual_level():
            return fwd.unpack_dual(program(fwd.make_dual(x, vector(*T)))).tangent.sum()

    expected = func.jvp(gradient_of(program), (vector(*X),), (vector(*T),))[1]
    assert close(func.grad(along)(vector(*X)), expected)
    assert close(func.vmap(along)(rg.stack([vector(*X), vector(*T)]))[0], along(vector(*X)))


@pytest.mark.parametrize("program", [writes, grows])
def test_a_transform_inside_a_level_handles_writes(level, program):
    found = fwd.unpack_dual(gradient_of(program)(dual())).tangent
    assert close(found, func.jvp(gradient_of(program), (vector(*X),), (vector(*T),))[1])


# ---------------------------------------------------------------------------------------------- with reverse mode


def test_forward_over_reverse_is_the_product_with_the_hessian(level):
    w = vector(1.0, 2.0, requires_grad=True)
    d = fwd.make_dual(w, vector(1.0, 1.0))
    (g,) = rg.autograd.grad((d**3).sum(), w)
    assert g.tolist() == [3, 12]
    assert tangent(g) == [6, 12]


def test_reverse_over_forward_is_too_with_the_gradient_of_the_tangent(level):
    w, v = vector(1.0, 2.0, requires_grad=True), vector(1.0, 1.0, requires_grad=True)
    along = fwd.unpack_dual((fwd.make_dual(w, v) ** 3).sum()).tangent
    by_w, by_v = rg.autograd.grad(along, (w, v))
    assert (by_w.tolist(), by_v.tolist()) == ([6, 12], [3, 12])


def test_a_dual_is_in_the_graph_and_its_gradient_may_be_requested(level):
    w = vector(1.0, 2.0, requires_grad=True)
    d = fwd.make_dual(w, vector(1.0, 0.0))
    assert d.requires_grad
    assert not d.is_leaf
    (g,) = rg.autograd.grad((d * d).sum(), d)
    assert tangent(g) == [2, 0]
    with rg.no_grad():
        assert tangent(fwd.make_dual(w, w.detach()) * 2) == [2, 4]


def test_saved_results_and_sums_of_cotangents_keep_tangents(level):
    w = vector(0.5, requires_grad=True)
    d = fwd.make_dual(w, vector(1.0))
    y = d.exp().tanh().sigmoid() * d + d.exp()
    (g,) = rg.autograd.grad(y.sum(), w)
    second = func.grad(func.grad(lambda x: x.exp().tanh().sigmoid() * x + x.exp()))
    assert close(fwd.unpack_dual(g).tangent[0], second(vector(0.5)[0]))


def test_backward_adds_gradients_without_tangents_to_leaves(level):
    w = vector(1.0, 2.0, requires_grad=True)
    y = (fwd.make_dual(w, vector(1.0, 1.0)) ** 3).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert w.grad.tolist() == [6, 24]
    assert tangent(w.grad) is None


def test_hooks_that_keep_saved_tensors_in_another_form_keep_tangents(level):
    w = vector(*X, requires_grad=True)
    with saved_tensors_hooks(lambda t: t.numpy().copy(), rg.tensor):
        d = fwd.make_dual(w, vector(*T))
        y = (d[1:] ** 3).sum() * d[0].exp()
    (g,) = rg.autograd.grad(y, w)
    expected = func.jvp(func.grad(lambda x: (x[1:] ** 3).sum() * x[0].exp()), (vector(*X),), (vector(*T),))[1]
    assert close(fwd.unpack_dual(g).tangent, expected)


def test_copies_of_what_was_written_over_keep_tangents(level):
    w = vector(1.0, 2.0, requires_grad=True)
    with allow_mutation_on_saved_tensors():
        a = fwd.make_dual(w, vector(1.0, 10.0)) * 1
        y = (a**3).sum()
        a.zero_()
        (g,) = rg.autograd.grad(y, w)
    assert tangent(g) == [6, 120]


# ------------------------------------------------------------------------------------------------------- nested


def test_nested_levels_give_second_derivatives():
    with fwd.dual_level():
        x = dual()
        with fwd.dual_level():
            y = fwd.make_dual(x, rg.ones(3, dtype=rg.float64)) ** 3
            first = fwd.unpack_dual(y).tangent
        assert first.tolist() == [3, 12, 27]
        assert tangent(first) == [6 * 3, 12 * 4, -18 * 0.5]
        assert tangent(y) == [3 * 3, 12 * 4, 27 * 0.5]


def test_perturbations_of_nested_levels_are_not_confused():
    one = vector(1.0)
    with fwd.dual_level():
        x = fwd.make_dual(vector(5.0), one)
        with fwd.dual_level():
            inner = fwd.unpack_dual(x + fwd.make_dual(vector(7.0), one)).tangent
        assert tangent(inner) is None
        assert tangent(x * inner) == [1]


def test_outer_levels_are_reached_by_their_numbers():
    with fwd.dual_level() as outer:
        with fwd.dual_level() as inner:
            x = fwd.make_dual(vector(2.0), vector(1.0), level=outer)
            x = fwd.make_dual(x, vector(10.0), level=inner)
            y = x**3
            assert tangent(y, level=outer) == [12]
            assert tangent(y, level=inner) == [120]
            assert tangent(y) == [120]
            mixed = fwd.unpack_dual(fwd.unpack_dual(y, level=inner).tangent, level=outer)
            assert mixed.tangent.tolist() == [120]
            only = fwd.unpack_dual(y, level=outer).primal
            assert (tangent(only, level=outer), tangent(only, level=inner)) == ([0], [120])
        assert tangent(y) == [12]


def test_a_dual_of_an_outer_level_keeps_its_dependence_on_the_inner_one():
    with fwd.dual_level() as outer, fwd.dual_level() as inner:
        x, t = dual((2.0,), (1.0,)), dual((3.0,), (5.0,))
        y = fwd.make_dual(x, t, level=outer) ** 2
        assert tangent(y, level=outer) == [12]
        assert tangent(y, level=inner) == [4]
        assert tangent(fwd.unpack_dual(y, level=outer).tangent, level=inner) == [2 * (1 * 3 + 2 * 5)]


def test_writes_reach_all_nested_levels():
    with fwd.dual_level():
        x = dual()
        with fwd.dual_level():
            found = fwd.unpack_dual(writes(fwd.make_dual(x, vector(*T)))).tangent
        second = fwd.unpack_dual(found).tangent
    along = lambda x: func.jvp(writes, (x,), (vector(*T),))[1]  # noqa: E731
    assert close(second, func.jvp(along, (vector(*X),), (vector(*T),))[1])


# ------------------------------------------------------------------------------------------ with function transforms


def test_transforms_inside_a_level_pass_tangents_on(level):
    d = dual()
    assert tangent(func.grad(lambda x: (x**3).sum())(d)) == [6 * 3, 12 * 4, -18 * 0.5]
    assert tangent(func.vmap(lambda x: x * x)(d)) == [6, 16, -3]
    out, along = func.jvp(lambda x: x * x, (d,), (vector(1, 1, 1),))
    assert (tangent(out), tangent(along)) == ([6, 16, -3], [6, 8, 1])


def test_duals_may_be_made_of_the_tensors_of_an_inner_vmap_or_jvp(level):
    def along(x, t):
        return fwd.unpack_dual(fwd.make_dual(x, t) ** 3).tangent

    x, t = vector(*X), vector(*T)
    assert func.vmap(along)(x, t).tolist() == [9, 48, 13.5]
    assert func.vmap(along, in_dims=(None, 0))(x[1], t).tolist() == [36, 48, 6]
    assert func.jvp(along, (x, t), (t, x))[1].tolist() == [6 * 9 + 3, 12 * 16 + 24, -18 * 0.25 - 81]


def test_a_grad_inside_a_level_refuses_to_differentiate_that_levels_tangents(level):
    def along(x):
        return fwd.unpack_dual(fwd.make_dual(x, vector(*T)) ** 3).tangent.sum()

    with pytest.raises(NotImplementedError, match="enter the dual_level inside"):
        func.grad(along)(vector(*X))


def test_levels_inside_transforms(level):
    def along(x, t):
        with fwd.dual_level():
            return fwd.unpack_dual(fwd.make_dual(x, t) ** 3).tangent

    x, t = vector(*X), vector(*T)
    assert func.grad(lambda x: along(x, t).sum())(x).tolist() == [18, 48, -9]
    assert func.jvp(lambda x: along(x, t), (x,), (t,))[1].tolist() == [54, 192, -4.5]
    jacobian = func.vmap(lambda t: along(x, t))(rg.eye(3, dtype=rg.float64))
    assert jacobian.tolist() == [[3, 0, 0], [0, 12, 0], [0, 0, 27]]


def test_a_profile_inside_a_level_changes_nothing(level):
    with profile():
        d = dual()
        assert tangent(d * 2) == [6, 8, 1]
        assert tangent(vector(1.0)) is None
        d.mul_(2)
    assert tangent(d) == [6, 8, 1]


# ------------------------------------------------------------------------------------------------------- modules


def test_parameters_may_be_replaced_by_duals(level):
    model = nn.Linear(3, 2)
    x = rg.rand(4, 3)
    tangents = {name: rg.rand(*p.shape) for name, p in model.named_parameters()}
    for name, p in list(model.named_parameters()):
        delattr(model, name)
        setattr(model, name, fwd.make_dual(p, tangents[name]))
    found = fwd.unpack_dual(model(x)).tangent
    assert rg.allclose(found, x @ tangents["weight"].T + tangents["bias"])


def test_products_with_the_hessian_of_a_model(level):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(rg.float64)
    x = rg.rand(5, 3, dtype=rg.float64)
    names = [name for name, _ in model.named_parameters()]
    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]
    along = [rg.rand(*w.shape, dtype=rg.float64) for w in weights]

    def loss(a, b, c, d):
        return ((rg.tanh(x @ a.T + b) @ c.T + d) ** 2).sum()

    duals = [fwd.make_dual(w, t) for w, t in zip(weights, along, strict=True)]
    products = [fwd.unpack_dual(g).tangent for g in rg.autograd.grad(loss(*duals), weights)]
    expected = func.jvp(func.grad(loss, (0, 1, 2, 3)), tuple(weights), tuple(along))[1]
    assert len(names) == 4
    assert all(close(p, e) for p, e in zip(products, expected, strict=True))


# --------------------------------------------------------------------------------------------------------- leaks


def test_tangents_die_with_their_tensors(level):
    d = dual()
    y = d * 2
    found = weakref.ref(fwd.unpack_dual(y).tangent.value)
    view = y[1:]
    del y
    assert found() is not None  # the view shows it
    del view
    assert found() is None
    made = weakref.ref(fwd.unpack_dual(d).tangent)
    del d
    assert made() is None


def test_nothing_is_retained_after_the_level():
    with fwd.dual_level():
        w = vector(0.5, requires_grad=True)
        y = fwd.make_dual(w, vector(1.0)).exp()  # the graph of its tangent holds the result
        found = weakref.ref(fwd.unpack_dual(y).tangent.value)
    gc.collect()
    assert found() is None
    assert y.requires_grad


def test_a_long_loop_keeps_the_tangents_of_what_is_alive_only(level):
    x = dual()
    (kept,) = fwd.forward_levels()
    for _ in range(100):
        x = (x * 0.5).sin()[:] + 1
    assert len(kept._tangents) + len(kept._views) < 10
