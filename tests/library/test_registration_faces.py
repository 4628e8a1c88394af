"""Kernels by key, overloads, tags, annotations, and the functions of `torch.library` and `torch._custom_ops`."""

import math
from collections.abc import Sequence

import pytest

import retrograd as rg
from retrograd import _custom_ops
from retrograd.library import Library, custom_op, get_kernel, infer_schema

Tensor, CPU = rg.Tensor, rg.device("cpu")


def test_a_kernel_registered_later_may_call_the_one_it_replaces():
    op = custom_op("test_faces::root", lambda x: x.sqrt(), mutates_args=(), schema="(Tensor x) -> Tensor")
    original = get_kernel("test_faces::root", "CPU")
    op.register_kernel("cpu", lambda x: original.call_boxed(None, x.clamp(min=0)))
    assert op(rg.tensor([-1.0, 4.0])).tolist() == [0, 2]
    with pytest.raises(RuntimeError, match="no operator 'test_faces::nothing'"):
        get_kernel("test_faces::nothing", "CPU")
    with pytest.raises(RuntimeError, match="no kernel for Meta for test_faces::root"):
        get_kernel(op, "Meta")
    with pytest.raises(ValueError, match="Invalid dispatch key: Foo"):
        get_kernel(op, "Foo")
    with pytest.raises(ValueError, match="unexpected type for op: <class 'int'>"):
        get_kernel(3, "CPU")


def test_a_disabled_kernel_does_not_run_within_the_block(caplog):
    op = custom_op("test_faces::which", lambda x: x * 0, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_kernel("cpu", lambda x: x * 1)
    block = op.set_kernel_enabled("cpu", enabled=False)
    assert op(rg.ones(1)).item() == 1  # not entered yet
    with block:
        assert op(rg.ones(1)).item() == 0
        with op.set_kernel_enabled("cpu"):
            assert op(rg.ones(1)).item() == 1
        assert op(rg.ones(1)).item() == 0
    assert op(rg.ones(1)).item() == 1
    with caplog.at_level("WARNING"):
        op.set_kernel_enabled("cuda", enabled=False)
        op.set_kernel_enabled("cpu")
    assert "no kernel was registered for this device type" in caplog.records[0].getMessage()
    assert "already enabled" in caplog.records[1].getMessage()


def test_kernels_for_other_devices_are_stored_and_one_for_the_cpu_may_come_later():
    op = custom_op("test_faces::cuda", lambda x: x, mutates_args=(), device_types="cuda", schema="(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="Could not run 'test_faces::cuda' with arguments from the 'CPU'"):
        op(rg.ones(1))
    op.register_kernel("cpu", lambda x: x * 7)
    assert op(rg.ones(1)).item() == 7


def test_a_fallthrough_removes_what_a_key_has():
    with Library("test_faces", "FRAGMENT") as lib:
        lib.define("through(Tensor x) -> Tensor")
        lib.impl("through", lambda x: x * 2, "CompositeExplicitAutograd")
        lib.impl("through", lambda x: x * 3, "CPU")
        assert rg.ops.test_faces.through(rg.ones(1)).item() == 3
        lib.impl("through", rg.library.fallthrough_kernel, "CPU")
        assert rg.ops.test_faces.through(rg.ones(1)).item() == 2
    with pytest.raises(NotImplementedError, match=r"fallthrough_kernel\(\) should never be called"):
        rg.library.fallthrough_kernel()


def test_a_function_may_receive_its_key():
    with Library("test_faces", "FRAGMENT") as lib:
        lib.define("keyed(Tensor x) -> Tensor")
        keys = []
        lib.impl("keyed", lambda keyset, x: keys.append(keyset) or x * 2, "CPU", with_keyset=True)
        assert rg.ops.test_faces.keyed(rg.ones(1)).item() == 2
        assert keys == [{"CPU"}]


def test_overloads_are_attributes_and_a_call_runs_the_first_that_accepts():
    with Library("test_faces", "FRAGMENT") as lib:
        lib.define("pow.tensor(Tensor x, Tensor n) -> Tensor", tags=rg.Tag.pointwise)
        lib.define("pow.number(Tensor x, float n) -> Tensor")
        lib.impl("pow.tensor", lambda x, n: x**n, "CPU")
        lib.impl("pow.number", lambda x, n: x * 100, "CPU")
        packet = rg.ops.test_faces.pow
        assert packet.overloads() == ["tensor", "number"]
        assert packet(rg.ones(1) * 3, rg.ones(1) * 2).item() == 9
        assert packet(rg.ones(1), 2.0).item() == packet.number(rg.ones(1), 2.0).item() == 100
        assert packet.tensor.tags == [rg.Tag.pointwise]
        assert packet.tensor.name == "test_faces::pow.tensor"
        with pytest.raises(TypeError, match=r"no overload accepts the arguments; there are\n.*pow.tensor"):
            packet("a")
        with pytest.raises(AttributeError, match=r"no overload 'default' .* there are tensor, number"):
            packet.default  # noqa: B018
        lib.define("pow(Tensor x) -> Tensor")
        lib.impl("pow", lambda x: -x, "CPU")
        assert rg.ops.test_faces.pow(rg.ones(1)).item() == -1
        assert rg.ops.test_faces.pow.default.overloads() == ["default"]


def test_annotations_have_pytorchs_types():
    def f(
        x: Tensor,
        xs: Sequence[Tensor],
        ys: "list[Tensor | None]",
        n: int | None = 3,
        device: rg.device = CPU,
        where: rg.device | None = None,
        dtype: rg.dtype = rg.float64,
        a: int | float | bool = 2,
        mode: str = "mean",
        sizes: Sequence[int] | None = None,
    ) -> tuple[Tensor, int | float | bool]: ...

    assert infer_schema(f, mutates_args=()) == (
        '(Tensor x, Tensor[] xs, Tensor?[] ys, SymInt? n=3, Device device="cpu", Device? where=None, '
        'ScalarType dtype=float64, Scalar a=2, str mode="mean", SymInt[]? sizes=None) -> (Tensor, Scalar)'
    )


def test_a_factory_gets_devices_and_dtypes():
    seen = []

    @custom_op("test_faces::factory", mutates_args=())
    def factory(n: int, device: rg.device, dtype: rg.dtype = rg.float64) -> Tensor:
        seen.append(device)
        return rg.zeros(n, device=device, dtype=dtype)

    assert factory(2, "cpu").dtype == rg.float64
    assert factory(2, device=rg.device("cpu"), dtype=rg.int64).dtype == rg.int64
    assert [type(d) for d in seen] == [rg.device] * 2
    with pytest.raises(RuntimeError, match="cuda"):
        factory(2, "cuda")
    assert rg.func.vmap(lambda x: x + factory(2, "cpu"))(rg.ones(3, 2)).shape == (3, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rg.library.triton_op("test_faces::t", mutates_args=()), "triton_op: test_faces::t: .* custom_op"),
        (lambda: rg.library.wrap_triton(math.sin), "wrap_triton: 'sin'"),
    ],
)
def test_options_without_meaning_here_are_refused_by_name(call, message):
    with pytest.raises(NotImplementedError, match=message):
        call()


def test_a_tag_is_a_member_of_tag():
    with pytest.raises(TypeError, match="got 'pointwise'"):
        custom_op("test_faces::t", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor", tags=["pointwise"])


def test_a_function_for_a_class_runs_instead_of_its_own_rule():
    class Other:
        def __init__(self, value):
            self.value = value

        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs):
            return "own"

    with Library("test_faces", "FRAGMENT") as lib:
        name = "test_faces::doubled"
        rg.library.define(name, "(Tensor x, *, int n=1) -> Tensor", lib=lib)
        rg.library.impl(name, "cpu", lambda x, n: x * 2 * n)
        op = rg.ops.test_faces.doubled
        assert op(Other(1)) == "own"
        with Library("test_faces", "FRAGMENT") as inner:

            @rg.library.register_torch_dispatch(name, Other, lib=inner)
            def rule(cls, func, types, args, kwargs):
                assert (cls, types, kwargs) == (Other, (Other,), {"n": 3})
                return func(args[0].value, **kwargs)

            assert op(Other(rg.ones(1)), n=3).item() == 6
        assert op(Other(1)) == "own"


def test_the_older_functions_define_and_register():
    @_custom_ops.custom_op("test_faces::older")
    def older(x: Tensor, by: float) -> tuple[Tensor, int]: ...

    assert callable(older)

    @_custom_ops.impl("test_faces::older")
    def kernel(x, by):
        return rg.as_tensor(x.numpy() * by), 5

    @_custom_ops.impl_abstract("test_faces::older")
    def shape(x, by):
        return rg.empty_like(x), 5

    x = rg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no gradient formula"):
        rg.ops.test_faces.older(x, 2.0)

    @_custom_ops.impl_save_for_backward("test_faces::older")
    def save(inputs, output):
        return inputs.by

    @_custom_ops.impl_backward("test_faces::older", output_differentiability=[True, False])
    def pull(ctx, saved, g, _):
        return {"x": g * saved}

    rg.ops.test_faces.older(x, 2.0)[0].sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="registered already"):
        _custom_ops.impl("test_faces::older", func=kernel)
    assert _custom_ops.custom_op("test_faces::factory_older", "(int n) -> Tensor") is None
    _custom_ops.impl("test_faces::factory_older", func=lambda n: rg.zeros(n))
    assert rg.ops.test_faces.factory_older(3).shape == (3,)


def test_a_registered_operator_gets_its_inputs_in_the_dtype_of_autocast():
    seen = []

    @rg.library.custom_op("test_faces::autocast", mutates_args=())
    def weighted(x: rg.Tensor, rest: list[rg.Tensor], n: int) -> rg.Tensor:
        seen.append([t.dtype for t in (x, *rest)])
        return x * n

    single, wide, whole = rg.ones(2), rg.ones(2, dtype=rg.float64), rg.ones(2, dtype=rg.int64)
    with Library("test_faces", "FRAGMENT") as lib:
        rg.library.register_autocast(weighted, "cpu", rg.float16, lib=lib)
        rg.library.register_autocast("test_faces::autocast", "cuda", rg.float64)
        with rg.autocast("cpu"):
            assert weighted(single, [wide, whole, single], 3).dtype == rg.float16
            with rg.autocast("cpu", enabled=False):
                weighted(single, [], 3)
        weighted(single, [], 3)
    with rg.autocast("cpu"):
        weighted(single, [], 3)
    assert seen == [[rg.float16, rg.float64, rg.int64, rg.float16], [rg.float32], [rg.float32], [rg.float32]]


def test_the_gradient_of_a_cast_input_has_the_dtype_of_the_input():
    @rg.library.custom_op("test_faces::autocast_gradient", mutates_args=())
    def tripled(x: rg.Tensor) -> rg.Tensor:
        return x * 3

    tripled.register_autograd(lambda ctx, g: g * 3)
    tripled.register_autocast("cpu", rg.float16)
    x = rg.ones(2, requires_grad=True)
    with rg.autocast("cpu"):
        y = tripled(x)
    y.sum().backward()
    assert (y.dtype, x.grad.dtype, x.grad.tolist()) == (rg.float16, rg.float32, [3.0, 3.0])
    with pytest.raises(ValueError, match="a kernel is for one of"):
        tripled.register_autocast("abacus", rg.float16)
    with pytest.raises(TypeError, match="dtype"):
        tripled.register_autocast("cpu", "no dtype")
