"""Operators that write to their arguments: versions, histories, views, leaves, and the functional variant."""

import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.library import custom_op

Tensor = rg.Tensor


@custom_op("test_mutation::add_", mutates_args=("x",))
def add_(x: Tensor, y: Tensor, n: int = 1) -> None:
    x.numpy()[...] += y.numpy() * n


@custom_op("test_mutation::scale_all_", mutates_args=("xs", "log"))
def scale_all_(xs: list[Tensor], by: float, log: Tensor | None = None) -> int:
    for x in xs:
        x.numpy()[...] *= by
    if log is not None:
        log.numpy()[...] = len(xs)
    return len(xs)


@custom_op("test_mutation::swap_", mutates_args=("x", "y"))
def swap_(x: Tensor, y: Tensor) -> Tensor:
    old = x.clone()
    x.copy_(y)
    y.copy_(old)
    return old + y


add_.functional.register_autograd(
    lambda ctx, nothing, g: (g, g * ctx.n, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[2]),
)
scale_all_.functional.register_autograd(
    lambda ctx, count, gs, g: ([h * ctx.by for h in gs], None, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
)


def leaf(*values):
    return rg.tensor(values, requires_grad=True)


# ------------------------------------------------------------------------------------------------------- versions


def test_it_writes_and_counts():
    x, y = rg.zeros(2), rg.ones(2)
    assert add_(x, y) is None
    assert (x.tolist(), x._version, y._version) == ([1, 1], 1, 0)
    add_(x, y, n=3)
    assert (x.tolist(), x._version) == ([4, 4], 2)


def test_every_argument_that_is_written_to_counts():
    a, b, log, other = rg.ones(1), rg.ones(2), rg.zeros(()), rg.ones(1)
    assert scale_all_([a, b], 3.0, log) == 2
    assert (a.item(), b.tolist(), log.item()) == (3, [3, 3], 2)
    assert [t._version for t in (a, b, log, other)] == [1, 1, 1, 0]
    assert scale_all_([], 3.0) == 0
    assert scale_all_([a], 2.0) == 1
    assert (a._version, a.item()) == (2, 6)


def test_results_come_next_to_what_is_written():
    x, y = rg.tensor([1.0]), rg.tensor([2.0])
    out = swap_(x, y)
    assert (x.item(), y.item(), out.item()) == (2, 1, 2)
    assert (x._version, y._version) == (1, 1)


def test_a_write_by_an_operator_of_ours_in_the_kernel_counts_once():
    x = rg.zeros(1)
    custom_op(
        "test_mutation::ours_", lambda x: x.add_(1).mul_(2) and None, mutates_args=("x",), schema="(Tensor(a!) x) -> ()"
    )(x)
    assert (x.item(), x._version) == (2, 1)


def test_a_kernel_that_fails_may_have_written():
    def kernel(x: Tensor) -> None:
        x.numpy()[...] = 5
        raise KeyError("mine")

    x = rg.zeros(1)
    with pytest.raises(KeyError, match="mine"):
        custom_op("test_mutation::failing_", kernel, mutates_args=("x",))(x)
    assert (x.item(), x._version) == (5, 1)


def test_a_saved_tensor_that_is_written_to_is_detected():
    x, y = leaf(2.0), rg.tensor([3.0])
    out = x * y
    add_(y, rg.ones(1))
    with pytest.raises(
        RuntimeError, match=r"is at version 1; expected version 0 instead. It was written to at .*test_mutation.py"
    ):
        out.backward()


def test_unmarked_arguments_can_not_be_written_to():
    op = custom_op(
        "test_mutation::quiet_",
        lambda x, y: y.add_(1) and None,
        mutates_args=("x",),
        schema="(Tensor(a!) x, Tensor y) -> ()",
    )
    with pytest.raises((ValueError, RuntimeError), match="read-only"):
        op(rg.ones(1), rg.ones(1))


def test_the_argument_itself_is_no_result():
    op = custom_op("test_mutation::returning_", lambda x: x, mutates_args=("x",), schema="(Tensor(a!) x) -> Tensor")
    with pytest.raises(RuntimeError, match=r"a result of shape .* shows the memory of the argument 'x'"):
        op(rg.ones(1))


# ------------------------------------------------------------------------------------------------------ histories


def test_the_new_value_has_the_history_of_the_write():
    x, y = leaf(1.0), leaf(2.0)
    z = x * 5
    add_(z, y, 3)
    assert (z.item(), z._version, z.requires_grad) == (11, 1, True)
    z.sum().backward()
    assert (x.grad.item(), y.grad.item()) == (5, 3)


def test_a_constant_that_takes_up_a_variable_requires_grad():
    y = leaf(2.0)
    z = rg.zeros(1)
    add_(z, y)
    assert z.requires_grad
    (z * 3).sum().backward()
    assert y.grad.item() == 3


def test_a_constant_stays_one():
    z = rg.zeros(1)
    add_(z, rg.ones(1))
    assert not z.requires_grad


def test_the_version_counts_in_a_graph_too():
    z = leaf(1.0) * 1
    add_(z, rg.ones(1))
    add_(z, rg.ones(1))
    assert (z._version, z.item()) == (2, 3)


def test_lists_get_histories():
    x, y = leaf(1.0), leaf(2.0)
    a, b, log = x * 1, y * 1, rg.zeros(())
    assert scale_all_([a, b], 4.0, log) == 2
    (a + b * 10).sum().backward()
    assert (x.grad.item(), y.grad.item(), log.item()) == (4, 40, 2)


def test_without_a_formula_of_the_functional_operator_the_backward_pass_fails():
    z = leaf(1.0) * 1
    other = rg.ones(1)
    swap_(z, other)
    assert (z.item(), other.item()) == (1, 1)
    with pytest.raises(RuntimeError, match=r"test_mutation::swap_\.functional: no gradient formula is registered"):
        z.sum().backward()


@pytest.mark.parametrize("what", ["impl_save_for_backward", "impl_backward", "impl_autograd", "impl_jvp", "impl_vmap"])
def test_formulas_are_for_the_functional_operator(what):
    with pytest.raises(
        RuntimeError, match=rf"add_: {what}: .* register it for the operator's .functional, which returns"
    ):
        getattr(add_, what)()
    with pytest.raises(RuntimeError, match="add_: register_autograd: not for an operator that writes"):
        add_.register_autograd(lambda ctx, g: g)


# ------------------------------------------------------------------------------------------------ views and leaves


def test_a_write_to_a_view_shows_in_the_base():
    base = rg.zeros(2, 2)
    row = base[1]
    add_(row, rg.ones(2))
    assert (base.tolist(), base._version, row._version) == ([[0, 0], [1, 1]], 1, 1)


def test_a_write_to_a_view_in_a_graph_goes_into_the_history_of_the_base():
    x, y = leaf(1.0, 2.0), leaf(3.0)
    base = x * 2
    add_(base[1:], y, 5)
    assert base.tolist() == [2, 19]
    (base * rg.tensor([1.0, 10.0])).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([2, 20], [50])


def test_a_write_to_the_base_goes_into_the_history_of_its_views():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    base = x * 2
    first = base[0]
    add_(base, y)
    assert first.item() == 5
    first.backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([2, 0], [1, 0])


def test_two_views_of_one_base_get_both_writes():
    x = leaf(1.0, 2.0)
    base = x * 1
    scale_all_([base[:1], base[1:]], 3.0)
    assert base.tolist() == [3, 6]
    base.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_targets_that_show_the_same_memory_are_refused_in_a_graph():
    base = leaf(1.0, 2.0) * 1
    with pytest.raises(RuntimeError, match="scale_all_: two of the arguments that it writes to show the same memory"):
        scale_all_([base, base[1:]], 3.0)
    plain = rg.ones(2)
    scale_all_([plain, plain[1:]], 3.0)
    assert plain.tolist() == [3, 9]


def test_a_leaf_that_requires_grad_is_refused():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        add_(x, rg.ones(1))
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        add_(x[:1], rg.ones(1))
    assert (x.item(), x._version) == (1, 0)


def test_under_no_grad_a_leaf_is_written_to():
    x = leaf(1.0)
    with rg.no_grad():
        add_(x, rg.ones(1))
    assert (x.item(), x._version, x.requires_grad, x.is_leaf) == (2, 1, True, True)


def test_a_detached_leaf_is_written_to():
    x = leaf(1.0)
    add_(x.detach(), rg.ones(1))
    assert (x.item(), x._version) == (2, 1)


def test_nothing_is_written_before_all_is_checked():
    fine, x = rg.ones(1), leaf(1.0)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        scale_all_([fine, x], 3.0)
    assert (fine.item(), fine._version) == (1, 0)


def test_expanded_and_read_only_memory_is_refused():
    array = rg.ones(2).numpy().copy()
    array.flags.writeable = False
    for x in (rg.ones(1).expand(2), rg.as_tensor(array)):
        with pytest.raises(RuntimeError, match="add_: this tensor's memory is read-only"):
            add_(x, rg.ones(2))


def test_inference_tensors_are_written_to_in_inference_mode_only():
    with rg.inference_mode():
        x = rg.zeros(1)
        add_(x, rg.ones(1))
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        add_(x, rg.ones(1))


# ----------------------------------------------------------------------------------------------------- transforms


def test_a_gradient_goes_through_a_write_in_a_transform():
    def f(x, y):
        z = x * 2
        add_(z, y, 3)
        return (z * z).sum()

    x, y = rg.tensor([1.0]), rg.tensor([2.0])
    gx, gy = rg.func.grad(f, argnums=(0, 1))(x, y)
    assert (gx.item(), gy.item()) == (32, 48)  # z = 8: 2 z * 2, 2 z * 3
    _, dot = rg.func.jvp(f, (x, y), (rg.ones(1), rg.ones(1)))
    assert dot.item() == 80
    assert rg.func.hessian(f, argnums=1)(x, y).item() == 18


def test_a_write_under_vmap_is_to_each_example():
    def f(x, y):
        z = x * 1
        add_(z, y)
        return z

    assert rg.func.vmap(f)(rg.tensor([[1.0], [2.0]]), rg.tensor([[10.0], [20.0]])).tolist() == [[11], [22]]


def test_a_tensor_from_outside_a_transform_is_refused():
    outside = rg.zeros(1)
    with pytest.raises(
        RuntimeError, match="a tensor from outside a function transform or trace can't be written to inside"
    ):
        rg.func.grad(lambda y: (add_(outside, y), y.sum())[1])(rg.ones(1))
    assert outside.item() == 0


def test_a_graph_holds_the_functional_operator():
    def f(x, y):
        z = x * 1
        add_(z, y)
        return z * 2

    graph = rg.fx.trace(f, rg.ones(2), rg.ones(2))
    assert "test_mutation::add_.functional" in graph.code
    assert graph(rg.ones(2), rg.ones(2) * 3).tolist() == [8, 8]


# ------------------------------------------------------------------------------------------ the functional variant


def test_the_functional_operator_returns_the_new_values_after_the_result():
    x, y = rg.zeros(1), rg.ones(1)
    assert add_.functional(x, y) == (None, rg.ones(1))
    assert (x.item(), x._version) == (0, 0)
    log = rg.zeros(())
    count, xs, new_log = scale_all_.functional([x + 1, y], 3.0, log=log)
    assert (count, [t.item() for t in xs], new_log.item(), log.item()) == (2, [3, 3], 2, 0)
    assert scale_all_.functional([y], 3.0)[2] is None


def test_the_functional_operator_is_in_the_registry_and_goes_with_its_operator():
    name = "test_mutation::gone_"
    op = custom_op(name, lambda x: None, mutates_args=("x",), schema="(Tensor(a!) x) -> ()")
    twin = registry[f"{name}.functional"]
    assert twin is op.functional
    assert twin.functional is twin
    assert str(twin.schema) == f"{name}.functional(Tensor x) -> ((), Tensor)"
    custom_op(name, lambda x: x * 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    assert f"{name}.functional" not in registry


def test_the_functional_operator_has_the_kernels_that_are_registered_later():
    op = custom_op("test_mutation::later_", "(Tensor(a!) x) -> ()")(lambda x: None)
    op.impl("cpu")(lambda x: x.add_(1) and None)
    assert op.functional(rg.zeros(1))[1].item() == 1


def test_the_functional_operator_has_the_abstract_function():
    seen = []

    def fake(x):
        seen.append(x.shape)

    op = custom_op(
        "test_mutation::abstract_", lambda x: x.add_(1) and None, mutates_args=("x",), schema="(Tensor(a!) x) -> ()"
    )
    op.register_fake(fake)
    (aval,) = op.functional.definition.shape(rg.ones(3).aval)
    assert (aval.shape, seen) == ((3,), [(3,)])


def test_arguments_that_must_be_named_are_written_to():
    op = custom_op(
        "test_mutation::out_",
        lambda x, *, out: out.copy_(x * 2) and None,
        mutates_args=("out",),
        schema="(Tensor x, *, Tensor(a!) out) -> ()",
    )
    out = rg.zeros(1)
    op(rg.ones(1), out=out)
    assert (out.item(), out._version) == (2, 1)
    assert op.functional(rg.ones(1), out=out)[1].item() == 2
