"""Libraries: scopes that clean up, fragments, dispatch keys, and registration by name."""

import gc

import pytest

import retrograd as rg
from retrograd import library
from retrograd.core import registry
from retrograd.library import Library, custom_op, impl

Tensor = rg.Tensor
HERE = __file__


def there(name):
    return f"test_lib::{name}" in registry


# ----------------------------------------------------------------------------------------------------------- scopes


def test_operators_of_a_library_are_removed_with_it():
    with Library("test_lib", "DEF") as lib:
        assert lib.define("one(Tensor x) -> Tensor") == "one"
        lib.impl("one", lambda x: x + 1, "CPU")
        assert rg.ops.test_lib.one(rg.zeros(1)).item() == 1
    assert not there("one")
    with pytest.raises(AttributeError, match="no attribute 'test_lib'"):
        _ = rg.ops.test_lib


def test_it_cleans_up_after_exceptions():
    def fail(lib):
        lib.define("one(Tensor x) -> Tensor")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), Library("test_lib", "DEF") as lib:
        fail(lib)
    assert not there("one")
    with Library("test_lib", "DEF"):
        pass


def test_it_cleans_up_when_nobody_holds_it():
    lib = Library("test_lib", "DEF")
    lib.define("one(Tensor x) -> Tensor")
    assert there("one")
    del lib
    gc.collect()
    assert not there("one")
    Library("test_lib", "DEF")._destroy()


def test_an_operator_that_writes_goes_with_its_functional_operator():
    with Library("test_lib", "FRAGMENT") as lib:
        lib.define("write_(Tensor(a!) x) -> ()")
        assert there("write_.functional")
    assert not there("write_.functional")


def test_kernels_that_a_library_replaced_are_restored():
    op = custom_op("test_lib_kept::f", lambda x: x * 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_kernel("cpu", lambda x: x * 2)
    op.register_fake(old := (lambda x: x))
    with Library("test_lib_kept", "IMPL") as lib:
        lib.impl("f", lambda x: x * 3, "CPU")
        lib.impl("f", lambda x: x * 4, "CPU")
        lib.impl("f", lambda x: None, "Meta")
        assert op(rg.ones(1)).item() == 4
        assert op.registrations.abstract.function is not old
    assert op(rg.ones(1)).item() == 2
    assert op.registrations.abstract.function is old


def test_registrations_that_were_missing_are_missing_again():
    op = custom_op("test_lib_kept::g", "(Tensor x) -> Tensor")(lambda x: None)
    with Library("test_lib_kept", "IMPL", "CPU") as lib:
        lib.impl(op, lambda x: x * 3)
        assert op(rg.ones(1)).item() == 3
    with pytest.raises(NotImplementedError, match="no kernel is registered for cpu arrays"):
        op(rg.ones(1))


def test_a_formula_comes_back_with_its_setup():
    @custom_op("test_lib_setup::square", mutates_args=())
    def square(x: rg.Tensor) -> rg.Tensor:
        return x * x

    square.register_autograd(
        lambda ctx, g: 2 * g * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    with Library("test_lib_setup", "FRAGMENT") as lib:
        library.register_autograd(square, lambda ctx, g: g * 7, lib=lib)
        assert rg.func.grad(square)(rg.tensor(3.0)).item() == 7
    assert rg.func.grad(square)(rg.tensor(3.0)).item() == 6


def test_kernels_that_others_replaced_since_stay():
    op = custom_op("test_lib_kept::f", lambda x: x * 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    with Library("test_lib_kept", "IMPL") as lib:
        lib.impl("f", lambda x: x * 3, "CPU")
        op.register_kernel("cpu", lambda x: x * 5)
    assert op(rg.ones(1)).item() == 5


def test_an_operator_that_somebody_else_has_defined_since_stays():
    with Library("test_lib", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        op = custom_op("test_lib::f", lambda x: x * 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    assert rg.ops.test_lib.f is op
    del registry["test_lib::f"]


def test_everything_registered_for_a_library_goes_with_it():
    op = custom_op("test_lib_kept::f", lambda x: x * 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    with Library("test_lib_kept", "IMPL") as lib:
        library.register_autograd(op, lambda ctx, g: g * 2, setup_context=lambda ctx, inputs, output: None, lib=lib)
        library.register_fake(op, lambda x: x, lib=lib)
        library.register_vmap("test_lib_kept::f", lambda info, in_dims, x: (x, 0), lib=lib)
        library.register_kernel(op, "cpu", lambda x: x * 7, lib=lib)
        impl("test_lib_kept::f", ("cpu", "cuda"), lambda x: x * 7, lib=lib)
        assert rg.func.grad(op)(rg.tensor(1.0)).item() == 2
        assert op(rg.ones(1)).item() == 7
    registrations = op.registrations
    assert [registrations.pull, registrations.setup, registrations.abstract, registrations.vmap] == [None] * 4
    assert list(registrations.kernels) == [""]
    assert op(rg.ones(1)).item() == 1


# ------------------------------------------------------------------------------------------------ kinds and names


def test_a_namespace_is_defined_once():
    with Library("test_lib", "DEF"):
        with pytest.raises(
            RuntimeError, match=f"the namespace 'test_lib' is defined already, at {HERE}:.*; use FRAGMENT"
        ):
            Library("test_lib", "DEF")
        with Library("test_lib", "FRAGMENT") as more:
            more.define("two(Tensor x) -> Tensor")
            assert there("two")
        assert not there("two")


def test_an_impl_library_defines_nothing():
    with Library("test_lib", "IMPL") as lib, pytest.raises(RuntimeError, match="an IMPL library defines nothing"):
        lib.define("f(Tensor x) -> Tensor")


@pytest.mark.parametrize(
    ("ns", "kind", "message"),
    [
        ("test_lib", "OTHER", "kind must be one of DEF, IMPL, FRAGMENT, got 'OTHER'"),
        ("a b", "DEF", "expected a name with a namespace"),
        ("linalg", "FRAGMENT", "rg.ops.linalg is something else"),
    ],
)
def test_other_kinds_and_names_are_refused(ns, kind, message):
    with pytest.raises(ValueError, match=message):
        Library(ns, kind)


@pytest.mark.parametrize(
    "schema", ["(Tensor x) -> Tensor", "f(Tensor x) ->", "f", "f(Tensr x) -> Tensor", "1(Tensor x) -> Tensor"]
)
def test_a_schema_that_is_none_is_refused(schema):
    with Library("test_lib", "FRAGMENT") as lib, pytest.raises(ValueError, match=r"schema|name"):
        lib.define(schema)


def test_two_definitions_are_refused_with_both_locations():
    with Library("test_lib", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        with pytest.raises(
            RuntimeError,
            match=f"test_lib::f: .* multiple times: defined already, at {HERE}:.*; this is a second .* at {HERE}:",
        ):
            lib.define("f(Tensor x, int n) -> Tensor")
        with pytest.raises(RuntimeError, match="this is a second definition"):
            library.define("test_lib::f", "(Tensor x) -> Tensor")


def test_a_library_shows_what_it_is():
    assert repr(Library("test_lib", "FRAGMENT")) == "Library('test_lib', 'FRAGMENT')"


# ------------------------------------------------------------------------------------------------------ dispatch keys


@pytest.fixture(name="lib")
def lib_fixture():
    with Library("test_lib", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        yield lib


def test_explicit_kernels_have_no_derivative_of_their_own(lib):
    lib.impl("f", lambda x: x * 2, "CompositeExplicitAutograd")
    f = rg.ops.test_lib.f
    out = f(rg.ones(1, requires_grad=True))
    with pytest.raises(RuntimeError, match="no gradient formula"):
        out.backward()


@pytest.mark.parametrize("key", ["CompositeImplicitAutograd", ""])
def test_a_composite_is_made_of_the_operators_in_it(lib, key):
    lib.impl("f", lambda x: x**3, key)
    f = rg.ops.test_lib.f
    x = rg.tensor(2.0, requires_grad=True)
    f(x).backward()
    assert x.grad.item() == 12
    assert rg.func.hessian(f)(rg.tensor(2.0)).item() == 12
    assert "pow" in rg.fx.trace(f, rg.ones(1)).code


def test_a_kernel_goes_before_a_composite(lib):
    lib.impl("f", lambda x: x * 2)
    lib.impl("f", lambda x: x * 3, "CPU")
    assert rg.ops.test_lib.f(rg.ones(1)).item() == 3


def test_the_key_autograd_is_for_what_runs_where_a_gradient_is_needed(lib):
    lib.impl("f", lambda x: x * 2, "CPU")
    lib.impl("f", lambda x: x * 5, "Autograd")
    f = rg.ops.test_lib.f
    x = rg.ones(1, requires_grad=True)
    assert (f(rg.ones(1)).item(), f(x).item()) == (2, 5)
    f(x).backward()
    assert x.grad.item() == 5


def test_the_key_of_the_library_is_meant_without_one():
    with Library("test_lib", "FRAGMENT", "CPU") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x * 3)
        lib.impl("test_lib::f", lambda x: x, "Meta")
        assert list(rg.ops.test_lib.f.registrations.kernels) == ["cpu"]


def test_an_unknown_key_is_refused(lib):
    with pytest.raises(ValueError, match="unknown dispatch key 'XLA'; known are CPU, CUDA"):
        lib.impl("f", lambda x: x, "XLA")


@pytest.mark.parametrize("key", ["CPU", "CompositeExplicitAutograd", "Meta", "Autograd"])
def test_existing_registrations_can_be_protected(lib, key):
    lib.impl("f", lambda x: x, key, allow_override=False)
    with pytest.raises(RuntimeError, match=f"test_lib::f: Library.impl: {key} is registered already, at {HERE}:"):
        lib.impl("f", lambda x: x, key, allow_override=False)
    lib.impl("f", lambda x: x, key)


def test_a_function_for_an_operator_of_pytorch_is_refused(lib):
    with pytest.raises(RuntimeError, match="no operator 'aten::nothing' is defined; define it first"):
        lib.impl("aten::nothing", lambda x: x, "CPU")


def test_a_function_for_a_later_operator_is_registered_when_that_is_defined_until_its_library_ends(lib):
    with library.Library("test_lib", "IMPL") as other:
        other.impl("later", lambda x: x * 2, "CPU")
        lib.define("later(Tensor x) -> Tensor")
        assert rg.ops.test_lib.later(rg.ones(1)).item() == 2
    with pytest.raises(NotImplementedError):
        rg.ops.test_lib.later(rg.ones(1))


@pytest.mark.parametrize("end", [lambda other: other._destroy(), lambda other: None])
def test_a_library_that_has_ended_registers_nothing_for_a_later_operator(lib, end):
    other = library.Library("test_lib", "IMPL")
    other.impl("later", lambda x: x * 2, "CPU")
    end(other)
    del other
    gc.collect()
    lib.define("later(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError):
        rg.ops.test_lib.later(rg.ones(1))


# -------------------------------------------------------------------------------------------------- by name


def test_define_and_impl_without_a_library_stay():
    if "test_lib_kept::h" not in registry:
        assert library.define("test_lib_kept::h", "(Tensor x, *, float by=2) -> Tensor") == "h"

    @impl("test_lib_kept::h", ("cpu", "cuda"))
    def h(x, *, by=2.0):
        return x * by

    gc.collect()
    assert rg.ops.test_lib_kept.h(rg.ones(1)).item() == 2
    assert rg.ops.test_lib_kept.h(rg.ones(1), by=3).item() == 3
    assert impl("test_lib_kept::h", "default", h) is h


def test_define_and_impl_for_a_library_go_with_it():
    with Library("test_lib", "FRAGMENT") as lib:
        library.define("test_lib::h", "(Tensor x) -> Tensor", lib=lib)
        impl("test_lib::h", "cpu", lambda x: x * 2, lib=lib)
        assert rg.ops.test_lib.h(rg.ones(1)).item() == 2
    assert not there("h")


def test_pytorchs_older_way_with_the_library_first():
    with Library("test_lib", "FRAGMENT") as lib:

        @library.define(lib, "f(Tensor x) -> Tensor")
        def f(x):
            return x**2

        assert rg.func.grad(rg.ops.test_lib.f)(rg.tensor(3.0)).item() == 6
        lib.define("g(Tensor x) -> Tensor")

        @impl(lib, "g", "CPU")
        def g(x):
            return x + 1

        assert rg.ops.test_lib.g(rg.ones(1)).item() == 2
        assert (f(3), g(3)) == (9, 4)


@pytest.mark.parametrize(
    "register",
    [
        lambda name: library.register_fake(name)(lambda x: x),
        lambda name: library.impl_abstract(name, lambda x: x),
        lambda name: library.register_kernel(name, "cpu")(lambda x: x),
        lambda name: library.register_autograd(name, lambda ctx, g: g),
        lambda name: library.register_vmap(name)(lambda info, in_dims, x: x),
    ],
)
def test_registering_for_what_is_not_defined_names_it(register):
    with pytest.raises(RuntimeError, match="no operator 'test_lib::nothing' is defined"):
        register("test_lib::nothing")


def test_registering_for_an_operator_of_ours_is_refused():
    with pytest.raises(RuntimeError, match="no operator 'mul' is defined"):
        library.register_autograd("mul", lambda ctx, g: g)
    with pytest.raises(RuntimeError, match=r"no operator <op mul\(.*> is defined"):
        library.register_fake(rg.mul, lambda x: x)


def test_functions_by_name_register_for_good():
    op = custom_op("test_lib_kept::f", lambda x: x * 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    library.register_autograd("test_lib_kept::f", lambda ctx, g: g * 3)
    library.register_kernel("test_lib_kept::f", None, lambda x: x * 2)

    @library.register_fake("test_lib_kept::f")
    def fake(x):
        return rg.empty(x.shape)

    @library.register_vmap(op)
    def batch(info, in_dims, x):
        return x * 2 + info.batch_size, in_dims[0]

    assert rg.func.grad(op)(rg.tensor(1.0)).item() == 3
    assert op(rg.ones(1)).item() == 2
    assert rg.func.vmap(op)(rg.ones(3)).tolist() == [5, 5, 5]
    assert op.registrations.abstract.function is fake
    with pytest.raises(RuntimeError, match=f"test_lib_kept::f: register_fake: registered already, at {HERE}:"):
        library.register_fake(op, lambda x: x, allow_override=False)
    library.register_fake(op, lambda x: x)
    assert batch is op.registrations.vmap.function


@pytest.mark.parametrize("name", library.__all__)
def test_every_public_name_is_there(name):
    assert getattr(library, name) is not None
