"""Parity cases of schemas: accepted, refused, and inferred ones."""

import typing

from .common import fresh

GOOD = [
    "() -> Tensor",
    "(Tensor x) -> Tensor",
    "(Tensor x, Tensor? w) -> (Tensor, Tensor)",
    "(Tensor[] xs, Tensor?[] ys) -> Tensor[]",
    "(Tensor x, int n=2, float a=0.5, bool b=True, str s='x') -> Tensor",
    "(Tensor x, *, int n, float[] s) -> (Tensor, int)",
    "(Tensor x, int? n=None, int[]? m=None) -> ()",
    "(Tensor(a!) x, Tensor(b!)[] ys) -> ()",
    "(Tensor x, Scalar a, SymInt n, ScalarType t) -> Tensor",
    "(Tensor x, int[] n=[1, 2]) -> Tensor",
]
BROKEN = [
    "(Tensor x) ->",
    "(Tensr x) -> Tensor",
    "(Tensor x -> Tensor",
    "(Tensor x, Tensor) -> Tensor",
    "(Tensor x, int n=) -> Tensor",
    "(Tensor x) -> Tensor Tensor Tensor",
    "Tensor x -> Tensor",
    "(Tensor x, int n='a') -> Tensor",
    "(Tensor x,, Tensor y) -> Tensor",
]


def defining(schema):
    """Return whether an operator can have that schema."""

    def case(m):
        name = fresh()
        with Scope(m) as lib:
            lib.define(name + schema)
            return getattr(m.ops.parity_schemas, name) is not None

    return case


class Scope:
    """A library that is removed at the end, in either."""

    def __init__(self, m, ns="parity_schemas", kind="FRAGMENT"):
        self.lib = m.library.Library(ns, kind)

    def __enter__(self):
        return self.lib

    def __exit__(self, *exception):
        self.lib._destroy()


def annotated(**annotations):
    """Return a function with these annotations, of the library's types; a value after the type is the default."""

    def make(m):
        types = {name: t(m) if callable(t) and not isinstance(t, type) else t for name, t in annotations.items()}

        names = [name for name in types if name != "return"]
        scope = {}
        exec(f"def function({', '.join(names)}): ...", scope)
        function = scope["function"]
        function.__annotations__ = {"return" if n == "return" else n: t for n, t in types.items()}
        return function

    return make


def inferring(make, mutates=()):
    def case(m):
        text = m.library.infer_schema(make(m), mutates_args=mutates)
        for theirs, ours in (("SymInt", "int"), ("ScalarType", "dtype"), ("Scalar", "number"), ('"', "'")):
            text = text.replace(theirs, ours)
        return text

    return case


def T(m):
    return m.Tensor


def default(m):
    def f(
        x: m.Tensor, n: int = 3, a: float = 0.5, b: bool = False, s: str = "x", w: m.Tensor | None = None
    ) -> m.Tensor: ...

    return f


def keywords(m):
    def f(x: m.Tensor, *, n: int, y: m.Tensor) -> None: ...

    return f


def dtype_default(m):
    def f(x: m.Tensor, t: m.dtype = m.float32) -> m.Tensor: ...

    return f


def bare(m):
    return lambda x: x


def rest(m):
    def f(*xs: m.Tensor) -> m.Tensor: ...

    return f


SCHEMAS = {schema: defining(schema) for schema in GOOD}
BAD = {schema: defining(schema) for schema in BROKEN}
INFERRED = {
    "tensors": inferring(annotated(**{"x": T, "y": T, "return": T})),
    "numbers": inferring(annotated(**{"x": T, "n": int, "a": float, "b": bool, "s": str, "return": T})),
    "lists": inferring(
        annotated(**{"xs": lambda m: list[m.Tensor], "n": list[int], "a": list[float], "b": list[bool], "return": T})
    ),
    "sequences": inferring(
        annotated(**{"xs": lambda m: typing.Sequence[m.Tensor], "n": typing.Sequence[int], "return": T})
    ),
    "optionals": inferring(
        annotated(
            **{
                "x": lambda m: m.Tensor | None,
                "xs": lambda m: list[m.Tensor | None],
                "n": typing.Optional[int],  # noqa: UP045
                "m": typing.Optional[list[int]],  # noqa: UP045
                "return": T,
            }
        )
    ),
    "a dtype": inferring(annotated(**{"x": T, "t": lambda m: m.dtype, "return": T})),
    "defaults": inferring(default),
    "a dtype as default": inferring(dtype_default),
    "keywords": inferring(keywords),
    "one that is written to": inferring(keywords, mutates=("y",)),
    "two that are written to": inferring(keywords, mutates=("y", "x")),
    "unknown": inferring(keywords, mutates="unknown"),
    "several results": inferring(annotated(**{"x": T, "return": lambda m: tuple[m.Tensor, m.Tensor, int]})),
    "a list as result": inferring(annotated(**{"x": T, "return": lambda m: list[m.Tensor]})),
    "a number as result": inferring(annotated(**{"x": T, "return": int})),
    "no annotation": inferring(bare),
    "no annotation of the result": inferring(annotated(x=T)),
    "a type that is unknown": inferring(annotated(**{"x": dict, "return": T})),
    "a result that is unknown": inferring(annotated(**{"x": T, "return": dict})),
    "a tuple": inferring(annotated(**{"x": lambda m: tuple[m.Tensor, m.Tensor], "return": T})),
    "the rest of the arguments": inferring(rest),
    "a name that is none": inferring(keywords, mutates=("z",)),
    "a number that is written to": inferring(keywords, mutates=("n",)),
}
