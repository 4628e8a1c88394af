"""Overriding operators: the names of torch.overrides and of dispatch modes, and the same programs in both."""

import inspect

import pytest
import torch
import torch.overrides as their_overrides
from torch.utils import _python_dispatch as their_modes

import retrograd as rg
from retrograd import overrides as our_overrides
from retrograd.utils import _python_dispatch as our_modes

from .programs import assert_agreement
from .signatures import missing

# Public names that are not ours, and why.
ABSENT = {
    "get_testing_overrides": "for PyTorch's own tests",
    "enable_reentrant_dispatch": "a dispatch mode is off in its own method, and calls of operators reach outer modes",
}
MODES_ABSENT = {
    "AliasInfo": "schemas say it: op.schema",
    "SchemaInfo": "schemas say it: op.schema",
    "get_alias_info": "schemas say it: op.schema",
    "TensorWithFlatten": "wrappers of tensors are not supported",
    "TraceableWrapperSubclass": "wrappers of tensors are not supported",
    "is_traceable_wrapper_subclass": "wrappers of tensors are not supported",
    "is_traceable_wrapper_subclass_type": "wrappers of tensors are not supported",
    "transform_subclass": "wrappers of tensors are not supported",
    "autograd_would_have_decomposed": "about PyTorch's compiler",
    "is_in_any_mode_without_ignore_compile_internals": "about PyTorch's compiler",
}
EXTRA = ["TorchFunctionMode", "BaseTorchFunctionMode"]
NAMES = [n for n in [*their_overrides.__all__, *EXTRA] if n not in ABSENT]
MODES = [
    n
    for n, v in vars(their_modes).items()
    if not n.startswith("_") and getattr(v, "__module__", "") == their_modes.__name__ and n not in MODES_ABSENT
]


@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_overrides_have_pytorchs_parameters(name):
    peer, mine = getattr(their_overrides, name), getattr(our_overrides, name)
    assert inspect.isclass(peer) == inspect.isclass(mine)
    if inspect.isfunction(peer):
        assert missing(peer, mine) == []


@pytest.mark.parametrize("name", MODES)
def test_the_names_of_dispatch_modes_have_pytorchs_parameters(name):
    peer, mine = getattr(their_modes, name), getattr(our_modes, name)
    assert missing(peer, mine) == []


@pytest.mark.parametrize(
    ("theirs", "ours", "absent"),
    [(their_overrides, our_overrides, ABSENT), (their_modes, our_modes, MODES_ABSENT)],
)
def test_absent_names_exist_in_pytorch_only(theirs, ours, absent):
    assert [n for n in absent if hasattr(ours, n) or not hasattr(theirs, n)] == []


def overrides_of(m):
    return their_overrides if m is torch else our_overrides


def modes_of(m):
    return their_modes if m is torch else our_modes


def subclass(m):
    """Return a subclass of Tensor that logs calls, and its log."""
    log = []

    class Logged(m.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if not func.__name__.startswith("__"):  # PyTorch's accesses to attributes
                log.append((func.__name__, [t.__name__ for t in types]))
            return super().__torch_function__(func, types, args, kwargs)

    return Logged, log


def subclass_calls(m):
    cls, log = subclass(m)
    x = m.ones(2, 2).as_subclass(cls)
    results = [m.sin(x), m.matmul(x, x), m.stack([m.ones(2, 2), x]), m.nn.functional.softmax(x, dim=0), m.exp(x).sum()]
    return log, [type(r).__name__ for r in results]


def subclass_gradient(m):
    cls, _ = subclass(m)
    leaf = m.ones(3, requires_grad=True)
    x = leaf.as_subclass(cls)
    (x * x).sum().backward()
    return leaf.grad, type(leaf.grad).__name__, x.is_leaf, x.requires_grad


def subclass_gradient_of_grad(m):
    cls, _ = subclass(m)
    x = m.Tensor._make_subclass(cls, m.ones(2), True)
    (g,) = m.autograd.grad((x * x * x).sum(), x, create_graph=True)
    return g.tolist(), type(g).__name__, x.is_leaf


def subclass_in_place(m):
    cls, log = subclass(m)
    base = m.zeros(2)
    x = base.as_subclass(cls)
    y = x.add_(1)
    return y is x, base, x._version, log[-1]


def reading_class(m):
    """Return a subclass of Tensor that lists functions as it is given them, and the list."""
    calls = []

    class Listed(m.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    return Listed, calls


def subclass_attributes(m):
    cls, calls = reading_class(m)
    x = m.ones(2, 3).as_subclass(cls)
    names = [
        *["H", "T", "mH", "mT", "data", "device", "dtype", "grad", "grad_dtype", "grad_fn", "is_cpu", "is_cuda"],
        *["is_leaf", "is_meta", "is_nested", "is_sparse", "itemsize", "layout", "nbytes", "ndim", "output_nr", "real"],
        *["requires_grad", "retains_grad", "shape", "_base", "_version"],
    ]
    read = {}
    for name in names:
        calls.clear()
        value = getattr(x, name)
        read[name] = (type(value) is cls, [f == getattr(m.Tensor, name).__get__ for f in calls])
    return read


def subclass_writes_attributes(m):
    cls, calls = reading_class(m)
    x = m.ones(2).as_subclass(cls)
    x.requires_grad = True
    x.grad = m.ones(2)
    x.data = m.zeros(2)
    same = x.grad is x.grad
    del x.grad
    expected = [m.Tensor.requires_grad.__set__, m.Tensor.grad.__set__, m.Tensor.data.__set__]
    expected += [m.Tensor.grad.__get__] * 2 + [m.Tensor.grad.__delete__]
    return same, [f == e for f, e in zip(calls, expected, strict=True)]


LIKE = {
    "zeros_like": (),
    "ones_like": (),
    "empty_like": (),
    "full_like": (2,),
    "rand_like": (),
    "randn_like": (),
    "randint_like": (3,),
}


def subclass_like(m):
    cls, calls = reading_class(m)
    x = m.ones(2).as_subclass(cls)
    found = {}
    for name, args in LIKE.items():
        calls.clear()
        out = getattr(m, name)(x, *args, dtype=m.float64, requires_grad=True)
        found[name] = type(out) is cls, [f is getattr(m, name) for f in calls]
    return found


def mode_of_creation(m):
    calls = []

    class Mode(overrides_of(m).TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append((func, args, kwargs))
            return func(*args, **(kwargs or {}))

    makers = [m.zeros, m.ones, m.empty, m.rand, m.randn, m.eye]
    with Mode():
        for make in makers:
            make(2, dtype=m.float64)
        for name, args in LIKE.items():
            getattr(m, name)(m.eye(1), *args)
    expected = makers + [f for name in LIKE for f in (m.eye, getattr(m, name))]
    return [(func is e, len(args), [*(kwargs or {})]) for (func, args, kwargs), e in zip(calls, expected, strict=True)]


def subclass_order(m):
    class A(m.Tensor):
        pass

    class B(A):
        pass

    a, b = m.ones(1).as_subclass(A), m.ones(1).as_subclass(B)
    return type(m.add(a, b)).__name__, type(m.add(b, a)).__name__


def strangers(m):
    class A(m.Tensor):
        pass

    class B(m.Tensor):
        pass

    return m.add(m.ones(1).as_subclass(A), m.ones(1).as_subclass(B))


def disabled(m):
    class A(m.Tensor):
        pass

    block = torch._C.DisableTorchFunctionSubclass if m is torch else our_overrides.DisableTorchFunctionSubclass
    x = m.ones(1).as_subclass(A)
    with block():
        inside = type(m.sin(x)).__name__
    return inside, type(m.sin(x)).__name__


def parameter(m):
    class A(m.Tensor):
        pass

    p = m.nn.Parameter(m.ones(2).as_subclass(A))
    return isinstance(p, A), isinstance(p, m.nn.Parameter), p.requires_grad, p.is_leaf, type(m.mul(p, 2)).__name__


def plain_parameter(m):
    return type(m.mul(m.nn.Parameter(m.ones(2)), 2)).__name__


def foreign_class(m):
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [t.__name__ for t in types], len(args)

    return m.add(m.ones(1), Duck()), m.sin(Duck()), m.stack([m.ones(1), Duck()])[0]


def foreign_refusal(m):
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    return m.add(m.ones(1), Duck())


def function_mode(m):
    log = []

    class Mode(overrides_of(m).TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = m.ones(2, requires_grad=True)
    with Mode():
        y = m.sin(x)
        m.nn.functional.softmax(y, dim=0)
        m.zeros(2)
    return log, y


def function_mode_replaces(m):
    class Mode(overrides_of(m).TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return -1 if func is m.sin else func(*args, **(kwargs or {}))

    with Mode(), Mode():
        return m.sin(m.ones(1)), m.cos(m.zeros(1))


def own_function(m):
    o = overrides_of(m)

    def own(x):
        return o.handle_torch_function(own, (x,), x) if o.has_torch_function((x,)) else "plain"

    class Mode(o.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "mode", func is own, func(*args, **(kwargs or {}))

    with Mode():
        inside = own(m.ones(1))
    return inside, own(m.ones(1)), o.is_tensor_like(m.ones(1)), o.is_tensor_like(3)


def dispatch_mode(m):
    log = []

    class Mode(modes_of(m).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__.partition(".")[0])
            return func(*args, **(kwargs or {}))

    x = m.ones(2, requires_grad=True)
    with Mode():
        y = m.sin(x)
        z = m.cos(y)
    z.sum().backward()
    return log, x.grad


def dispatch_mode_result(m):
    class Mode(modes_of(m).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) * 10

    x = m.ones(2, requires_grad=True)
    with Mode():
        y = m.sin(x)
    y.sum().backward()
    return y.detach(), x.grad


def dispatch_stack(m):
    o = modes_of(m)

    class Mode(o.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Mode() as mode:
        inside = o._get_current_dispatch_mode() is mode, o.is_in_torch_dispatch_mode()
    return inside, o._get_current_dispatch_mode(), o.any_torch_dispatch_mode_on_stack()


def scaled(m, a, b):
    """Return a function that can be overridden, and what it calls."""
    o = overrides_of(m)

    def scaled_mul(a, b):
        if o.has_torch_function((a, b)):
            return o.handle_torch_function(scaled_mul, (a, b), a, b)
        return m.mul(a, b) + 1

    return scaled_mul(a, b)


def redispatch_of_a_class(m):
    log = []

    class Logged(m.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return overrides_of(m).redispatch_function(func, types, args, kwargs)

    x = m.ones(2).as_subclass(Logged)
    y = scaled(m, x, x)
    return list(log), type(y).__name__, y.sum().item(), scaled(m, m.ones(1), m.ones(1))


def redispatch_of_a_mode(m):
    log = []

    class Mode(overrides_of(m).TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            with self:
                return overrides_of(m).redispatch_function(func, types, args, kwargs)

    x = m.ones(2)
    with Mode():
        y = scaled(m, x, x)
    return [name.strip("_") for name in log], y


PROGRAMS = {p.__name__: p for p in [
    subclass_calls, subclass_gradient, subclass_gradient_of_grad, subclass_in_place, subclass_order, strangers,
    disabled, parameter, plain_parameter, foreign_class, foreign_refusal, function_mode, function_mode_replaces,
    own_function, dispatch_mode, dispatch_mode_result, dispatch_stack,
    redispatch_of_a_class, redispatch_of_a_mode,
    subclass_attributes, subclass_writes_attributes, subclass_like, mode_of_creation,
]}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same_in_both(name):
    assert_agreement(PROGRAMS[name])


def test_overrides_of_pytorchs_tensors_are_not_called():
    with pytest.raises(TypeError):
        rg.add(rg.ones(1), torch.ones(1))
