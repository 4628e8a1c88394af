"""Defining operators: names, kernels per kind of array, abstract functions, and registration in any order."""

import inspect
import pickle
from types import SimpleNamespace

import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.core.op import namespaces
from retrograd.library import CustomOpDef, CustomOperator, custom_op, get_ctx

Tensor = rg.Tensor
HERE = __file__


def line():
    """Return `file:line` of the caller."""
    return f"{HERE}:{inspect.currentframe().f_back.f_lineno}"


def older(name, schema="(Tensor x) -> Tensor"):
    """Return an operator of the older API, without any kernel."""
    names = [p.split("=")[0].split()[-1] for p in schema[1 : schema.index(") ->")].split(", ") if p != "*"]
    return custom_op(name, schema)(eval(f"lambda {', '.join(names)}: None"))


def scale(x: Tensor, by: float = 2.0) -> Tensor:
    """Multiply."""
    return rg.as_tensor(x.numpy() * by)


# ----------------------------------------------------------------------------------------------------------- names


def test_the_operator_is_listed_and_in_the_registry_of_all():
    op = custom_op("test_define::scale", mutates_args=())(scale)
    assert isinstance(op, CustomOperator)
    assert isinstance(op, rg.ops.Operator)
    assert CustomOpDef is CustomOperator
    assert rg.ops.test_define.scale is op
    assert registry["test_define::scale"] is op
    assert "scale" in dir(rg.ops.test_define)
    assert op.default is op
    assert repr(op) == "<op test_define::scale(Tensor x, float by=2.0) -> Tensor>"
    assert (op.name, op.__doc__, op.__qualname__) == ("test_define::scale", "Multiply.", "scale")


def test_the_function_may_be_an_argument():
    op = custom_op("test_define::scale", scale, mutates_args=())
    assert op(rg.ones(2), by=3).tolist() == [3, 3]


def test_an_operator_is_pickled_by_its_name():
    op = custom_op("test_define::scale", scale, mutates_args=())
    assert pickle.loads(pickle.dumps(op)) is op


@pytest.mark.parametrize("name", ["scale", "", "a::", "::a", "a::b::c", "a b::c", "1a::b", "a.b::c", 3, None])
def test_a_name_has_a_namespace(name):
    with pytest.raises(ValueError, match="expected a name with a namespace, such as 'mylib::scale', got"):
        custom_op(name, scale, mutates_args=())


@pytest.mark.parametrize("namespace", ["view", "linalg", "registry"])
def test_namespaces_that_are_ours_are_refused(namespace):
    with pytest.raises(ValueError, match=f"'{namespace}::f' is taken: rg.ops.{namespace} is something else"):
        custom_op(f"{namespace}::f", scale, mutates_args=())


def test_a_schema_that_is_given_goes_before_the_annotations():
    op = custom_op("test_define::given", scale, mutates_args=(), schema="(Tensor x, float by=5) -> Tensor")
    assert str(op.schema) == "test_define::given(Tensor x, float by=5.0) -> Tensor"
    assert op(rg.ones(1)).item() == 5


@pytest.mark.parametrize("mutates", [("x",), "y"])
def test_a_schema_that_disagrees_with_mutates_args_is_refused(mutates):
    with pytest.raises(ValueError, match=r"test_define::bad: the schema .* suggests that the op mutates"):
        custom_op("test_define::bad", scale, mutates_args=mutates, schema="(Tensor x, float by) -> Tensor")
    assert "test_define::bad" not in registry


def test_a_prototype_that_disagrees_with_the_schema_is_refused():
    with pytest.raises(ValueError, match=r"signature to match the schema .*, but it has the arguments x, by"):
        custom_op("test_define::bad", "(Tensor x, int n) -> Tensor")(lambda x, by: ...)
    with pytest.raises(ValueError, match="default arguments of the function are not supported"):
        custom_op("test_define::bad", "(Tensor x, float by) -> Tensor")(scale)
    with pytest.raises(ValueError, match=r"\*args and \*\*kwargs are not supported"):
        custom_op("test_define::bad", "(Tensor x) -> Tensor")(lambda *args: ...)


def test_unknown_device_types_are_refused_before_anything_is_defined():
    with pytest.raises(ValueError, match=r"a kernel is for one of default, cpu, cuda, .*, not for 'tpu'"):
        custom_op("test_define::tpu", scale, mutates_args=(), device_types=["cpu", "tpu"])
    assert "test_define::tpu" not in registry


def test_the_operators_are_called_like_any_other():
    op = custom_op("test_define::scale", scale, mutates_args=())
    x = rg.ones(2)
    assert op(x).tolist() == op(x=x).tolist() == op(x, 2.0).tolist() == op(x, by=2).tolist() == [2, 2]


def test_an_operator_without_tensor_arguments():
    op = older("test_define::filled", "(int n, float value=1) -> Tensor")
    op.impl_factory()(lambda n, value: rg.full((n,), value))
    assert op(3).tolist() == [1, 1, 1]
    assert op(1, value=2.0).tolist() == [2]


# --------------------------------------------------------------------------------------------------------- kernels


def test_kernels_are_for_kinds_of_arrays():
    op = older("test_define::kinds")
    with pytest.raises(
        NotImplementedError,
        match=r"Could not run 'test_define::kinds' with arguments from the 'CPU' backend: .* \(there is none\)",
    ):
        op(rg.ones(1))
    op.impl("cpu")(lambda x: x + 1)
    assert op(rg.ones(1)).item() == 2


@pytest.mark.parametrize("kind", ["nested", "tpu", ["cpu", "tpu"], []])
def test_a_kernel_for_an_unknown_kind_of_arrays_is_refused(kind):
    op = older("test_define::kinds")
    for register in (op.impl, op.register_kernel, lambda kind: rg.library.register_kernel(op, kind)):
        with pytest.raises(ValueError, match=r"::kinds: a kernel is for one of default, cpu, cuda"):
            register(kind)(lambda x: x)
    with pytest.raises(ValueError, match="a kernel is for one of default, cpu, cuda"):
        custom_op("test_define::k", lambda x: x, mutates_args=(), device_types=kind, schema="(Tensor x) -> Tensor")
    assert not op.registrations.kernels


def test_the_missing_kernel_is_named_with_the_definition():
    op, there = custom_op("test_define::kinds", "(Tensor x) -> Tensor")(lambda x: None), line()
    with pytest.raises(NotImplementedError, match=f"the operator is defined at {there} in "):
        op(rg.ones(1))


class Fake:
    """An array of another library, such as CuPy's."""

    def __init__(self, values):
        self.values = values
        self.dtype, self.shape, self.base = values.dtype, values.shape, None


def test_the_kernel_is_chosen_by_the_arrays(monkeypatch):
    monkeypatch.setitem(namespaces, Fake, SimpleNamespace(__name__="cupy"))
    op = older("test_define::chosen", "(Tensor x, Tensor y) -> Tensor")
    op.impl("cpu")(lambda x, y: x + y)
    array = rg.ones(2).numpy()
    on_device = Tensor(Fake(array))
    with pytest.raises(NotImplementedError, match=r"no kernel is registered for cuda arrays \(there is cpu\)"):
        op(rg.ones(2), on_device)
    op.impl("cuda")(lambda x, y: Tensor(Fake(array * 5)))
    assert op(rg.ones(2), rg.ones(2)).tolist() == [2, 2]


def test_one_kernel_for_several_kinds():
    op = older("test_define::several")
    op.impl(["cpu", "cuda"])(lambda x: x * 3)
    assert op(rg.ones(1)).item() == 3
    assert sorted(op.registrations.kernels) == ["cpu", "cuda"]


@pytest.mark.parametrize("kind", ["default", None])
def test_a_kernel_for_all_kinds_is_used_where_there_is_none_of_the_own(kind):
    op = older("test_define::all")
    op.register_kernel(kind)(lambda x: x * 3)
    assert op(rg.ones(1)).item() == 3
    op.register_kernel("cpu", lambda x: x * 4)
    assert op(rg.ones(1)).item() == 4


def test_kernels_get_tensors_outside_any_graph():
    seen = []

    def kernel(x: Tensor) -> Tensor:
        seen.append((x.requires_grad, x.is_leaf, rg.is_grad_enabled(), x.numpy().shape))
        return x * 2

    op = custom_op("test_define::outside", kernel, mutates_args=())
    op(rg.ones(2, requires_grad=True) * 1)
    rg.func.vmap(op)(rg.ones(2, 3))
    assert seen[:2] == [(False, True, False, (2,)), (False, True, False, (3,))]


def test_a_class_that_handles_operators_is_called():
    class Own:
        @classmethod
        def __tensor_function__(cls, func, types, args=(), kwargs=None):
            return func.name, types, len(args[0]), kwargs

    schema = "(Tensor[] xs, Tensor y, int n=2, *, int m=3) -> (Tensor, int)"
    op = custom_op("test_define::own", lambda xs, y, n, m: (y, 1), mutates_args=(), schema=schema)
    assert op([rg.ones(1), Own()], rg.ones(1)) == ("test_define::own", (Own,), 2, {"m": 3})


def test_errors_of_kernels_reach_the_caller():
    def kernel(x: Tensor) -> Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        custom_op("test_define::raising", kernel, mutates_args=())(rg.ones(1))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda x: (x, x + 1), "a result of shape .* shows the memory of the argument 'x'; return a copy, x.clone()"),
        (lambda x: (x + 1, x[1:]), "a result of shape .* shows the memory of the argument 'x'"),
        (lambda x: (x.T, x + 1), "a result of shape .* shows the memory of the argument 'x'"),
        (lambda x: (lambda y: (y, y))(x + 1), "two results show the same memory"),
        (lambda x: (lambda y: (y, y[0]))(x + 1), "two results show the same memory"),
        (lambda x: (lambda y: (y[0], y))(x + 1), "two results show the same memory"),
    ],
)
@pytest.mark.parametrize("watched", [True, False])
def test_results_that_show_other_memory_are_refused(kernel, message, watched):
    op = custom_op("test_define::alias", kernel, mutates_args=(), schema="(Tensor x) -> (Tensor, Tensor)")
    with rg.library.sanitize(watched), pytest.raises(RuntimeError, match=message):
        op(rg.ones(2, 2))


def test_a_single_result_that_is_the_argument_is_refused():
    op = custom_op("test_define::same", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")
    with rg.library.sanitize(False), pytest.raises(RuntimeError, match="shows the memory of the argument 'x'"):
        op(rg.ones(2))


def test_parts_of_new_memory_are_results_like_others():
    def kernel(x):
        both = rg.stack([x + 1, x + 2])
        return both[0], both[1], both.sum().expand(3)

    op = custom_op("test_define::parts", kernel, mutates_args=(), schema="(Tensor x) -> (Tensor, Tensor, Tensor)")
    a, b, c = op(rg.zeros(2))
    assert (a.tolist(), b.tolist(), c.tolist()) == ([1, 1], [2, 2], [6, 6, 6])


# ------------------------------------------------------------------------------------------------ abstract functions


def test_an_abstract_function_says_shapes_without_memory():
    op = older("test_define::rows")
    op.impl("cpu")(lambda x: x.sum(-1))
    seen = []

    @op.impl_abstract()
    def rows(x):
        seen.append(x.shape)
        return rg.empty(x.shape[:-1], dtype=x.dtype)

    aval = op.definition.shape(rg.ones(5, 2, dtype=rg.float64).aval)
    assert (aval.shape, aval.dtype, seen) == ((5,), rg.float64, [(5, 2)])


def test_without_one_the_kernel_runs_on_zeros():
    op = custom_op("test_define::scale", scale, mutates_args=())
    aval = op.definition.shape(rg.ones(5, 2).aval, by=3.0)
    assert (aval.shape, aval.dtype) == ((5, 2), rg.float32)


def test_an_abstract_result_is_checked():
    op = custom_op("test_define::scale", scale, mutates_args=())
    op.register_fake(lambda x, by: 3)
    with pytest.raises(
        RuntimeError, match="test_define::scale: the result must be Tensor, as the schema says, got int"
    ):
        op.definition.shape(rg.ones(2).aval, by=3.0)


def test_a_size_that_depends_on_values_is_refused_where_it_is_requested():
    op = custom_op("test_define::found", lambda x: x[x != 0], mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_fake(lambda x: rg.empty(get_ctx().new_dynamic_size()))
    assert op(rg.tensor([1.0, 0.0])).tolist() == [1]
    with pytest.raises(NotImplementedError, match="test_define::found: the size of its result depends on values"):
        op.definition.shape(rg.ones(2).aval)


def test_get_ctx_is_for_abstract_functions():
    with pytest.raises(RuntimeError, match="no function registered by register_fake or impl_abstract is running"):
        get_ctx()


def test_get_ctx_is_of_the_innermost_operator():
    names = []

    def asking(x):
        names.append(get_ctx()._name)
        return x.clone()

    inner = custom_op("test_define::inner", lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor")
    outer = custom_op("test_define::outer", lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor")
    inner.register_fake(asking)

    @outer.register_fake
    def _(x):
        inner.definition.shape(x.aval)
        return asking(x)

    outer.definition.shape(rg.ones(1).aval)
    assert names == ["test_define::inner", "test_define::outer"]


# --------------------------------------------------------------------------------------- registered again, in any order


def test_two_definitions_of_one_name_are_refused_with_both_locations():
    first, there = custom_op("test_define::twice", "(Tensor x) -> Tensor")(lambda x: None), line()
    with pytest.raises(RuntimeError) as caught:
        custom_op("test_define::twice", "(Tensor x) -> Tensor")(lambda x: None)
    again = f"{HERE}:{caught.traceback[0].lineno + 1}"
    message = str(caught.value)
    assert f"multiple times: defined already, at {there} in " in message
    assert f"this is a second definition, at {again} in " in message
    assert rg.ops.test_define.twice is first


def test_the_newer_face_does_not_replace_what_the_older_has_defined():
    older("test_define::twice")
    with pytest.raises(RuntimeError, match="this is a second definition"):
        custom_op("test_define::twice", scale, mutates_args=())


def test_in_the_newer_face_a_second_definition_replaces_the_first():
    first = custom_op("test_define::again", scale, mutates_args=())
    second = custom_op("test_define::again", lambda x: x * 7, mutates_args=(), schema="(Tensor x) -> Tensor")
    assert rg.ops.test_define.again is second
    assert (first(rg.ones(1)).item(), second(rg.ones(1)).item()) == (2, 7)


@pytest.mark.parametrize(
    "register",
    [
        lambda op: op.impl("cpu")(lambda x: x),
        lambda op: op.impl_abstract()(lambda x: x),
        lambda op: op.impl_save_for_backward()(lambda inputs, output: None),
        lambda op: op.impl_backward()(lambda ctx, saved, g: {"x": g}),
        lambda op: op.impl_autograd()(lambda x: x),
        lambda op: op.impl_jvp()(lambda inputs, tangents, output: None),
        lambda op: op.impl_vmap()(lambda info, in_dims, x: None),
    ],
)
def test_in_the_older_face_nothing_is_registered_twice(register):
    op = older("test_define::parts")
    register(op)
    with pytest.raises(
        RuntimeError, match=r"test_define::parts: .*: registered already, at .*; this is a second one, at"
    ) as caught:
        register(op)
    assert str(caught.value).count(HERE) == 2


def test_in_the_newer_face_everything_is_replaced():
    op = custom_op("test_define::replaced", scale, mutates_args=())
    op.register_kernel("cpu", lambda x, by: x * 10)
    op.register_kernel("cpu", lambda x, by: x * 20)
    assert op(rg.ones(1)).item() == 20
    op.register_autograd(lambda ctx, g: (g * 3, None))
    op.register_autograd(lambda ctx, g: (g * 4, None))
    assert rg.func.grad(op)(rg.tensor(1.0)).item() == 4


@pytest.mark.parametrize(
    "what", ["impl", "impl_abstract", "impl_backward", "register_autograd", "impl_vmap", "impl_jvp"]
)
def test_objects_that_are_no_functions_are_refused(what):
    op = custom_op("test_define::functions", lambda x: x * 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    register = {"impl": lambda: op.impl("cpu", 3), "impl_backward": lambda: op.impl_backward()(3)}
    with pytest.raises(TypeError, match=r"test_define::functions: .*: expected a function, got int"):
        register.get(what, lambda: getattr(op, what)(3))()


def test_the_parts_come_in_any_order():
    op = older("test_define::order", "(Tensor x, float by) -> Tensor")
    op.impl_backward()(lambda ctx, saved, g: {"x": g * saved})
    op.impl_abstract()(lambda x, by: x)
    op.impl_save_for_backward()(lambda inputs, output: inputs.by)
    op.impl("cpu")(lambda x, by: x * by)
    x = rg.ones(2, requires_grad=True)
    op(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_decorators_return_what_they_decorate():
    op = older("test_define::decorated")

    def function(*args): ...

    assert op.impl("cpu")(function) is function
    assert op.impl_abstract()(function) is function
    assert op.impl_save_for_backward()(function) is function
    assert op.impl_backward()(function) is function
    assert op.impl_vmap(function) is function
