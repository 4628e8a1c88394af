"""Parity cases of libraries, and of the functions that define and register by name."""

from .common import fresh, leaf, plain
from .schemas import Scope

NS = "parity_scopes"


def registered(key, **kwargs):
    """Return an operator of a library with a kernel under a dispatch key."""

    def case(m):
        with Scope(m, NS) as lib:
            name = fresh()
            lib.define(f"{name}(Tensor x) -> Tensor")
            lib.impl(name, lambda x: x * 2, key, **kwargs)
            return getattr(m.ops.parity_scopes, name)(plain(m, 1.0))

    return case


def composite(m):
    with Scope(m, NS) as lib:
        name = fresh()
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x**3, "CompositeImplicitAutograd")
        x = leaf(m, 2.0)
        getattr(m.ops.parity_scopes, name)(x).sum().backward()
        return x.grad


def gone(m):
    name = fresh()
    with Scope(m, NS) as lib:
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x * 2, "CPU")
        before = hasattr(m.ops.parity_scopes, name)
    return before, hasattr(getattr(m.ops, NS, None), name)


def twice(m):
    with Scope(m, NS) as lib:
        name = fresh()
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.define(f"{name}(Tensor x) -> Tensor")


def two_namespaces(m):
    with Scope(m, f"{NS}_once", "DEF"), Scope(m, f"{NS}_once", "DEF"):
        pass


def again(m):
    for _ in range(2):
        with Scope(m, f"{NS}_again", "DEF") as lib:
            lib.define("f(Tensor x) -> Tensor")
    return True


def unprotected(m):
    with Scope(m, NS) as lib:
        name = fresh()
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x * 2, "CPU")
        lib.impl(name, lambda x: x * 2, "CPU", allow_override=False)


def by_name(m):
    name = f"{NS}::{fresh()}"
    m.library.define(name, "(Tensor x, float by) -> Tensor")

    @m.library.impl(name, "cpu")
    def _(x, by):
        return x * by

    @m.library.register_fake(name)
    def _(x, by):
        return m.empty_like(x)

    def setup_context(ctx, inputs, output):
        ctx.by = inputs[1]

    m.library.register_autograd(name, lambda ctx, g: (g * ctx.by, None), setup_context=setup_context)
    x = leaf(m, 2.0)
    out = getattr(m.ops.parity_scopes, name.partition("::")[2])(x, 3.0)
    out.sum().backward()
    return out, x.grad


def for_a_library(m):
    with Scope(m, NS) as lib:
        name = fresh()
        m.library.define(f"{NS}::{name}", "(Tensor x) -> Tensor", lib=lib)
        m.library.impl(f"{NS}::{name}", "default", lambda x: x * 5, lib=lib)
        return getattr(m.ops.parity_scopes, name)(plain(m, 1.0))


def older_forms(m):
    with Scope(m, NS) as lib:
        one, two = fresh(), fresh()

        @m.library.define(lib, f"{one}(Tensor x) -> Tensor")
        def _(x):
            return x * 2

        lib.define(f"{two}(Tensor x) -> Tensor")

        @m.library.impl(lib, two, "CPU")
        def _(x):
            return x * 3

        ops = m.ops.parity_scopes
        return getattr(ops, one)(plain(m, 1.0)), getattr(ops, two)(plain(m, 1.0))


def kernel_later(m):
    op = m.library.custom_op(f"{NS}::{fresh()}", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    m.library.register_kernel(op, "cpu", lambda x: x * 3)
    return op(plain(m, 1.0))


SCOPES = {
    "a kernel for the CPU": registered("CPU"),
    "a kernel for all": registered("CompositeExplicitAutograd"),
    "a function of operators": registered("CompositeImplicitAutograd"),
    "no key": registered(""),
    "an unknown key": registered("Toaster"),
    "a kernel for another kind": registered("CUDA"),
    "what is differentiated through": composite,
    "what is gone at the end": gone,
    "two definitions": twice,
    "two libraries that define a namespace": two_namespaces,
    "a library after a library": again,
    "a kernel that is protected": unprotected,
    "an unknown kind": lambda m: m.library.Library(NS, "OTHER"),
    "a library for what is ours": lambda m: m.library.Library(
        "prim" if m.__name__ == "torch" else "linalg", "FRAGMENT"
    ),
    "what a definition returns": lambda m: Scope(m, NS).lib.define(f"scopes_{m.__name__}(Tensor x) -> Tensor")[:6],
    "a schema without a name": lambda m: Scope(m, NS).lib.define("(Tensor x) -> Tensor"),
    "an implementation that defines": lambda m: Scope(m, NS, "IMPL").lib.define("f(Tensor x) -> Tensor"),
    "by name": by_name,
    "for a library": for_a_library,
    "the older forms": older_forms,
    "a kernel registered later": kernel_later,
    "a name without namespace": lambda m: m.library.define("nothing", "(Tensor x) -> Tensor"),
    "a formula for what is not defined": lambda m: m.library.register_autograd(f"{NS}::nothing", lambda ctx, g: g),
    "a shape for what is not defined": lambda m: m.library.register_fake(f"{NS}::nothing", lambda x: x),
}
