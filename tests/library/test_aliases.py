"""Results that share memory with arguments: written arguments that are returned, and views."""

import pytest

import retrograd as rg
from retrograd.library import custom_op, infer_schema, opcheck

Tensor, Tag = rg.Tensor, rg.Tag


@custom_op("test_aliases::scale_", mutates_args=("x",), tags=Tag.inplace)
def scale_(x: Tensor, by: float) -> Tensor:
    x.numpy()[...] *= by
    return x


scale_.functional.register_autograd(
    lambda ctx, _, g: (g * ctx.by, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
)


@custom_op("test_aliases::row", mutates_args=(), schema="(Tensor(a) x, int i) -> Tensor(a)")
def row(x, i):
    return x[i]


def _setup(ctx, inputs, output):
    ctx.like, ctx.i = inputs[0].detach(), inputs[1]


def _pull(ctx, g):
    out = rg.zeros_like(ctx.like)
    out[ctx.i] = g
    return out, None


row.register_autograd(_pull, setup_context=_setup)


def test_a_written_argument_is_returned_itself_and_its_version_counts():
    x = rg.ones(2)
    assert scale_(x, 2.0) is x
    assert (x.tolist(), x._version) == ([2, 2], 1)
    assert scale_(by=3.0, x=x) is x


def test_the_gradient_passes_through_a_returned_argument():
    a = rg.ones(3, requires_grad=True)
    b = a * 1
    assert scale_(b, 3.0) is b
    (b * b).sum().backward()
    assert a.grad.tolist() == [18, 18, 18]
    assert rg.func.grad(lambda a: scale_(a * 1, 2.0).sum())(rg.ones(2)).tolist() == [2, 2]
    assert rg.func.vmap(lambda a: scale_(a * 1, 2.0))(rg.ones(2, 3)).tolist() == [[2, 2, 2]] * 2
    graph = rg.fx.trace(lambda a: scale_(a * 1, 2.0), rg.ones(2))
    assert graph(rg.ones(2) * 5).tolist() == [10, 10]


def test_several_returned_arguments_and_other_results_come_in_the_order_of_the_schema():
    schema = "(Tensor x, *, Tensor(a!) y, Tensor(b!) z) -> (Tensor(b!), int, Tensor(a!))"

    @custom_op("test_aliases::several", mutates_args=("y", "z"), schema=schema)
    def several(x, *, y, z):
        y.copy_(x)
        z.copy_(2 * x)
        return z, 7, y

    y, z = rg.zeros(2), rg.zeros(2)
    first, count, last = several(rg.ones(2), y=y, z=z)
    assert first is z
    assert last is y
    assert (count, y.tolist(), z.tolist()) == (7, [1, 1], [2, 2])
    assert several.functional(rg.ones(2), y=y, z=z)[0] == (7,)


def test_a_kernel_that_returns_another_tensor_is_refused():
    op = custom_op("test_aliases::other", mutates_args=("x",), schema="(Tensor(a!) x) -> Tensor(a!)")(lambda x: x + 1)
    with pytest.raises(RuntimeError, match=r"result 0 must be the argument 'x', as the schema says"):
        op(rg.ones(1))


def test_tags_declare_what_is_returned():
    def into(x: Tensor, *, out: Tensor) -> Tensor: ...
    def two(x: Tensor, *, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]: ...
    def fresh(x: Tensor) -> int: ...

    assert infer_schema(into, mutates_args=["out"], tags=Tag.out) == "(Tensor x, *, Tensor(a1!) out) -> Tensor(a1!)"
    found = infer_schema(two, mutates_args=["a", "b"], tags=(Tag.out,))
    assert found == "(Tensor x, *, Tensor(a1!) a, Tensor(a2!) b) -> (Tensor(a1!), Tensor(a2!))"
    for function, mutates, tags, message in [
        (into, ["out"], (Tag.out, Tag.inplace), "mutually exclusive"),
        (into, ["out"], Tag.inplace, "mutates_args to contain exactly the first positional argument"),
        (into, ["x"], Tag.out, "mutable arguments to be keyword-only"),
        (into, [], Tag.out, "at least one mutable keyword-only"),
        (two, ["a"], Tag.out, "return annotation to match"),
        (fresh, ["x"], Tag.inplace, "return annotation to be"),
    ]:
        with pytest.raises(ValueError, match=message):
            infer_schema(function, mutates_args=mutates, tags=tags)


def test_a_view_shares_memory_version_and_base():
    x = rg.zeros(2, 3)
    v = row(x, 1)
    assert v._base is x
    v.add_(5)
    assert (x.tolist(), x._version, v._version) == ([[0, 0, 0], [5, 5, 5]], 1, 1)


def test_a_write_to_a_view_reaches_the_base_in_the_graph():
    a = rg.ones(2, 3, requires_grad=True)
    b = a * 2
    v = row(b, 0)
    v.mul_(3)
    (b.sum() + v.sum()).backward()
    assert a.grad.tolist() == [[12, 12, 12], [2, 2, 2]]

    def program(a):
        b = a * 2
        row(b, 0).mul_(3)
        return b.sum()

    assert rg.func.grad(program)(rg.ones(2, 3)).tolist() == [[6, 6, 6], [2, 2, 2]]
    assert rg.func.jvp(program, (rg.ones(2, 3),), (rg.ones(2, 3),))[1].item() == 24


def test_a_write_to_the_base_gives_the_view_its_new_history():
    a = rg.ones(2, 3, requires_grad=True)
    b = a * 2
    v = row(b, 1)
    b.mul_(5)
    v.sum().backward()
    assert a.grad.tolist() == [[0, 0, 0], [10, 10, 10]]


def test_views_pass_opcheck_and_are_batched_for_reading_only():
    assert set(opcheck(row, (rg.randn(3, 2), 1)).values()) == {"SUCCESS"}
    assert set(opcheck(scale_, (rg.randn(3), 2.0)).values()) == {"SUCCESS"}
    assert rg.func.vmap(lambda x: row(x, 1))(rg.arange(8.0).reshape(2, 2, 2)).tolist() == [[2, 3], [6, 7]]
    with pytest.raises(RuntimeError, match="in-place write to a view that test_aliases::row returns"):
        rg.func.vmap(lambda x: row(x * 1, 0).mul_(2))(rg.ones(2, 3, 2))


@pytest.mark.parametrize(
    "schema",
    [
        "(Tensor(a) x, Tensor y) -> Tensor(a)",
        "(int n, Tensor(a) x) -> Tensor(a)",
        "(Tensor(a) x) -> (Tensor(a), int)",
        "(Tensor(a!)[] xs) -> Tensor(a!)",
    ],
)
def test_views_and_returned_arguments_that_cannot_be_followed_are_refused(schema):
    with pytest.raises(NotImplementedError, match="a view"):
        rg.library.define("test_aliases::refused", schema)
    assert not hasattr(getattr(rg.ops, "test_aliases", None), "refused")
