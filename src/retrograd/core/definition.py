"""Defining operators: one class holds all rules of one operator; families are base classes with shared rules."""

import inspect
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from retrograd.core import dtype as dtypes
from retrograd.core.aval import Aval
from retrograd.core.dispatch import Op, unbound_methods
from retrograd.core.level import NotBatchedError
from retrograd.core.op import namespaces, operator_named, registry
from retrograd.core.overrides import call_arguments
from retrograd.core.schema import REQUIRED
from retrograd.core.schema_parser import parse
from retrograd.core.widening import rule_in_single, widened_kernel
from retrograd.foundation.result_classes import result_class
from retrograd.foundation.source_location import user_line


class Function:
    """A function of the namespace that the arrays come from: `xp.multiply` in a class body."""

    def __init__(self, name):
        self.name = name


class _Namespace:
    def __getattr__(self, name):
        return Function(name)


xp = _Namespace()


@unbound_methods
class Operator(Op):
    """A registered operator, as `rg.<name>` and as a method of tensors."""

    __slots__ = ()

    __doc__ = property(lambda self: self.definition.__doc__)
    __name__ = property(lambda self: self.name)

    @property
    def __signature__(self):
        """The signature that `help()` and `inspect.signature` show."""
        return inspect.Signature([_python_parameter(p) for p in self.called_as.parameters])

    @property
    def called_as(self):
        """The schema of calls: that of the overload that takes keywords, if there is one."""
        overload = self.definition.keyword_overload
        return registry[overload].schema if overload else self.schema

    @property
    def public_names(self):
        """The dotted names of the operator below `rg.`: its own, and its aliases."""
        of = self.definition
        return () if issubclass(of, Internal) else (f"{of.home}.{self.name}".lstrip("."), *of.aliases.split())

    @property
    def method_names(self):
        """The names of the tensors' methods that call the operator: its public names without dots."""
        is_method = self.definition.method and self.schema.inputs
        return tuple([name for name in self.public_names if "." not in name]) if is_method else ()

    def call_arguments(self, args, params):
        """Return the positional and the keyword arguments by which a call has these flat inputs and params."""
        return call_arguments(self.schema, args, params)

    def override_for_class(self, kind):
        """Return the function that is registered for a mode of a class; None, as built-in operators have none."""
        return None

    def flat_result(self, result):
        """Return the result of a call as levels pass it: a tensor, or a flat tuple."""
        return result

    def __repr__(self):
        return f"<op {self.schema}>"

    def __reduce__(self):
        return operator_named, (self.name,)


class Definition:
    """The base class of all families; an operator is a class that states what is particular to it.

    - `impl`: the kernel, `xp.name` or a function `(xp, *arrays, **params)`; the one part that sees raw arrays.
    - `shape(*avals, **params)`: avals to aval, with an error that says what does not fit.
    - `vjp_<input>(g, ...)`, `jvp_<input>(t, ...)`: the derivative rules, in operators on tensors.
    - `jvp(op, primals, tangents, out, params)`: the forward rule of all inputs at once, in place of `jvp_<input>`.
    - `derived_jvp(op, index, t, primals, out, params)`: a family's forward rule of an input without `jvp_<input>`.
    - `fit(g, aval)`: a cotangent reduced to the shape and dtype of its input, where these may differ from the output's.
    - `batch(batched, n, *args, **params)`: the batching rule, in operators too: the operator on n examples at once.
    - `compose(*tensors, **params)`: other operators, which are dispatched and recorded in place of this one.
    - `dependence(i, out, *avals, **params)`: which elements of input i the elements of the result depend on.
    - `mapped(i, out, *avals, **params)`: the dimensions over which it maps, where `dependence` does not say them.
    - `summed(*avals, **params)`: the dimensions over which it sums, for tensors that are divided among ranks.
    - `indexed(*avals, **params)`, `select_part(part, *args, **params)`, `compose_divided(*tensors, **params)`: too.
    - `older_form(name, args, kwargs)`: the arguments of a call in a form that PyTorch has deprecated, as today's.
    - `samples(r)`: yields `(args, params)`; each becomes a test of every law.
    - `oracle`: computes the same numbers in another way: a function `(np, *arrays, **params)`, or the dotted name of a
      function `(*arrays, **params)`, such as "numpy.name".
    - `errors(r)`: yields `(args, params, exception, pattern)`.
    """

    # The traits: docs/operators.md says what each of them means.
    differentiable = True
    linear = ""
    promotion: str | None = None
    view = ""
    memory = ""
    in_place: bool | str = False
    saves_input = False
    snapshots = ""
    impure = False
    crosses_devices = False
    in_host_memory = False
    elements = ""
    accepts_nested = False
    home = ""
    aliases = ""
    method = True
    keyword_overload = ""
    node_name: Any = ""
    result_fields = ""

    # The rules that an operator or its family may have.
    impl: Any = None
    fit: Any = None
    jvp: Any = None
    derived_jvp: Any = None
    compose: Any = None
    compose_divided: Any = None  # the same in other operators, which need less of divided tensors than this one
    oracle: Any = None
    older_form: Any = staticmethod(lambda name, args, kwargs: None)
    result_class: Any = None  # of several named results
    exempt: dict[str, str] = {}  # why laws are not checked: {"strides": "why", "jvp vjp": "why"}

    if TYPE_CHECKING:  # an operator replaces a class decorated with `op`, so rules use attributes and calls of it
        definition: type[Any]
        name: str

        def __new__(cls, *args: Any, **params: Any) -> Any: ...

    def __init_subclass__(cls, **traits):
        super().__init_subclass__()
        for name, value in traits.items():
            if not hasattr(cls, name):
                raise TypeError(f"{cls.__name__}: {name!r} is no trait of an operator")
            setattr(cls, name, value)
        if cls.promotion is not None and not hasattr(cls, "promote"):
            raise TypeError(f"{cls.__name__}: promotion={cls.promotion!r}, but its family does not promote operands")

    @classmethod
    def bind(cls, namespace):
        """Return the kernel over one namespace."""
        if isinstance(cls.impl, Function):
            return getattr(namespace, cls.impl.name)
        if cls.impl is None:
            raise NotImplementedError(f"{cls.__name__}: no kernel for {namespace.__name__}")
        if cls.in_host_memory and getattr(namespace, "on_device", False):
            return partial(namespace.run_on_host, partial(cls.impl, namespaces[ndarray]))
        return partial(cls.impl, namespace)

    @classmethod
    def bind_widened(cls, namespace):
        """Return the kernel for arrays of bfloat16 and of dtypes that only store numbers.

        It computes in float32 from bfloat16 and refuses the others, unless it only moves elements.
        """
        kernel = cls.bind(namespace)
        takes_all = cls.view or cls.elements == "moved"
        return kernel if takes_all else widened_kernel(cls.__name__, kernel)

    @classmethod
    def widened_rules(cls, op):
        """Return the vjp rules for results of bfloat16: they compute in float32, except of linear inputs."""
        linear = cls.linear.replace(",", " ").split()
        pairs = zip(op.schema.inputs, op.rules, strict=True)
        return tuple([r and (r if p.name in linear else r.replaced(rule_in_single(r.fn))) for p, r in pairs])

    @classmethod
    def prepare(cls, schema):
        """Adapt the rules to the schema, before the operator is registered; families may need it."""

    @classmethod
    def work(cls, avals, out):
        """Return the approximate number of multiplications of the kernel: one per output element by default."""
        return math.prod(out.shape) if isinstance(out, Aval) else sum(math.prod(o.shape) for o in out)

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """Run the operator on n examples at once; they are the first dimension of the result, or of each result.

        The inputs that `batched` marks have it too; the others are the same for all examples.
        """
        raise cls.not_batched("there is no batching rule for it")

    @classmethod
    def not_batched(cls, why):
        """Return the error of an operator that can't run on a batch."""
        return NotBatchedError(
            f"{cls.__name__}: at {user_line()}: can't run on a batch, since {why}; use vmap(..., fallback='loop')"
        )

    @classmethod
    def dependence(cls, i, out, /, *avals, **params):
        """Return which dimensions of the result depend elementwise on which dimensions of input i.

        The result is a dict from dimensions of the input to those of the result, where sizes of 1 broadcast; or
        `Labels` (ops/sparsity_rules.py). For tensors a rule gets avals; for constant tensors of integers or booleans,
        the tensors. By default all elements depend on all. Operators that move or sum elements need no such rule.
        """
        return {}

    @classmethod
    def mapped(cls, i, out, /, *avals, **params):
        """Return the dimensions of input i over which the operator maps, with those of the result.

        They are the dict of `dependence`. An operator whose rule gives `Labels` may say them, without the labels.
        """
        found = cls.dependence(i, out, *avals, **params)
        return found if isinstance(found, dict) else {}

    @classmethod
    def summed(cls, *avals, **params):
        """Return the dimensions over which the operator sums products of its inputs.

        Each entry is a dict from inputs, by their numbers, to their dimensions that are summed together. Inputs that it
        lacks are added to the sum, or have no tensor.
        """
        return ()

    @classmethod
    def indexed(cls, *avals, **params):
        """Return the dimension of the first input in which integers of others are indices; None: there is none.

        An operator with such a dimension defines `select_part(part, *tensors, **params)`: the result for a first input
        with a `Part` of the indices (ops/gather.py), and 0 for other indices.
        """
        return None


class Internal(Definition):
    """The base class of operators that only others call: they have no public name, and are no methods."""

    method = False


def op(schema):
    """Class decorator: register the operator that the class defines, and replace the class by it."""
    parsed = parse(schema)

    def register(cls):
        if registry.has(parsed.name):
            there = registry[parsed.name].definition.__module__
            raise ValueError(f"operator {parsed.name!r} is registered already, by {there}")
        cls.__name__ = parsed.name  # the families' errors name it
        cls.prepare(parsed)
        fields = parsed.outputs or tuple(cls.result_fields.split())
        if fields and cls.compose is not None and not issubclass(cls, Internal):
            cls.result_class = result_class(f"{cls.home}.{parsed.name}".lstrip(".").replace(".", "_"), fields)
        operator = Operator(parsed, cls)
        registry.add(parsed.name, operator)
        return operator

    return register


def _python_parameter(parameter):
    """Return a schema's parameter as a Python one; `int...` becomes `*args`."""
    if parameter.type == "int...":
        return inspect.Parameter(parameter.name, inspect.Parameter.VAR_POSITIONAL, annotation="int")
    kind = inspect.Parameter.KEYWORD_ONLY if parameter.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    default = inspect.Parameter.empty if parameter.default is REQUIRED else parameter.default
    return inspect.Parameter(parameter.name, kind, default=default, annotation=parameter.type)


def dtype_of(operand):
    """Return the dtype of an aval, tensor or Python number."""
    return operand.dtype if hasattr(operand, "dtype") else dtypes.of_scalar(operand)


def shape_of(operand):
    """Return the shape of an aval or tensor; () for a Python number."""
    return getattr(operand, "shape", ())


__all__ = ["Aval", "Definition", "Internal", "Operator", "dtype_of", "op", "shape_of", "xp"]
