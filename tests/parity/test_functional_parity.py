"""Autograd.functional gives PyTorch's results, in the same structures, and refuses the same arguments."""

import pytest

from ..functions import cube
from .autograd.adapter import outcome, parity, refused

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # PyTorch's forward mode loads it

PRODUCTS = ("vjp", "jvp", "vhp", "hvp")
MATRICES = ("jacobian", "hessian")


def tensor(m, *values, dtype="float64", grad=False):
    return m.tensor(list(values), dtype=getattr(m, dtype), requires_grad=grad)


def single(m, grad=False):
    """Return one input."""
    return tensor(m, 0.5, -1.5, 2.0, grad=grad)


def pair(m, grad=False):
    """Return two of them."""
    return single(m, grad), tensor(m, 1.0, 3.0, -0.5, grad=grad)


def answers(value, graphs=True):
    """Return a tree of tensors as values (with one kind of zero), dtypes, shapes, and whether they are in a graph."""
    if isinstance(value, (tuple, list)):  # PyTorch's forward mode makes lists of tuples
        return ["tuple", *(answers(v, graphs) for v in value)]
    facts = [value.detach() + 0, str(value.dtype).removeprefix("torch."), list(value.shape)]
    return [*facts, value.requires_grad] if graphs else facts


def call(m, name, *args, **options):
    graphs = "forward-mode" not in options.values()  # where PyTorch retains graphs without create_graph
    return outcome(lambda: answers(getattr(m.autograd.functional, name)(*args, **options), graphs))


# By structure: inputs, a function of them for vjp, jvp and jacobian, a scalar function for the others, and the
# v of vjp.
STRUCTURES = {
    "one and one": (single, lambda m, x: x.sin() * x.sum(), lambda m, x: (x**3).sum() * x[0], single),
    "a tuple of one": (
        lambda m, grad=False: (single(m, grad),),
        lambda m, x: (x.exp(),),
        lambda m, x: x.exp().sum(),
        lambda m: (single(m),),
    ),
    "two and one": (pair, lambda m, x, y: x * y * y, lambda m, x, y: (x * y * y).sum(), single),
    "two and two": (pair, lambda m, x, y: (x * y, y.sum()), lambda m, x, y: (x.sin() * y).sum(),
                    lambda m: (single(m), m.tensor(2.0, dtype=m.float64))),
    "one of them unused": (pair, lambda m, x, y: x * x, lambda m, x, y: (x**3).sum(), single),
    "one of them in the first order only": (pair, lambda m, x, y: x * x + y, lambda m, x, y: (x**3 + y).sum(), single),
    "one output without gradient": (
        pair,
        lambda m, x, y: (x * y, x.detach() * 2),
        lambda m, x, y: (x * y * y).sum(),
        lambda m: (single(m), single(m)),
    ),
    "no dimensions": (
        lambda m, grad=False: m.tensor(0.75, dtype=m.float64, requires_grad=grad),
        lambda m, x: x * x,
        lambda m, x: x**3,
        lambda m: m.tensor(2.0, dtype=m.float64),
    ),
    "a matrix": (
        lambda m, grad=False: m.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=m.float64, requires_grad=grad),
        lambda m, x: (x @ x).sum(1, keepdim=True),
        lambda m, x: (x @ x).sum().reshape(1, 1),
        lambda m: m.tensor([[1.0], [-1.0]], dtype=m.float64),
    ),
    "linear": (single, lambda m, x: x[:2] * 3, lambda m, x: x.sum() * 2, lambda m: tensor(m, 1.0, 2.0)),
}  # fmt: skip


def vector(m, name, inputs, v):
    """Return for vjp a value shaped like the outputs, for the others one like the inputs."""
    if name == "vjp":
        return v(m)
    return tuple(x.detach() * 2 + 1 for x in inputs) if isinstance(inputs, tuple) else inputs.detach() * 2 + 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_products(m, name, structure, create_graph, strict):
    make, many, one, v = STRUCTURES[structure]
    inputs = make(m, grad=create_graph)
    f = many if name in ("vjp", "jvp") else one
    options = {"create_graph": create_graph, "strict": strict}
    return call(m, name, lambda *xs: f(m, *xs), inputs, vector(m, name, inputs, v), **options)


WAYS = {
    "rows": {},
    "rows strictly": {"strict": True},
    "rows with a graph": {"create_graph": True},
    "rows with a graph strictly": {"create_graph": True, "strict": True},
    "rows at once": {"vectorize": True},
    "rows at once with a graph": {"vectorize": True, "create_graph": True},
    "columns at once": {"vectorize": True, "strategy": "forward-mode"},
    "strictly at once": {"vectorize": True, "strict": True},
    "columns one by one": {"strategy": "forward-mode"},
    "columns strictly": {"strategy": "forward-mode", "strict": True, "vectorize": True},
}


def options_of(name, way):
    options = dict(WAYS[way])
    if name == "hessian" and "strategy" in options:
        options["outer_jacobian_strategy"] = options.pop("strategy")
    return options


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("name", MATRICES)
@parity
def test_matrices(m, name, structure, way):
    make, many, one, _ = STRUCTURES[structure]
    options = options_of(name, way)
    f = many if name == "jacobian" else one
    return call(m, name, lambda *xs: f(m, *xs), make(m, grad=options.get("create_graph", False)), **options)


# ------------------------------------------------------------------------------------------------ v, and no v


@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_v_may_be_left_out_where_there_is_one_element(m, name):
    return call(m, name, lambda x: (x**3).sum(), tensor(m, 2.0))


@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_v_may_not_be_left_out_elsewhere(m, name):
    f = getattr(m.autograd.functional, name)
    return [
        outcome(lambda: f(lambda x: x * 2, single(m)), name, "v can only be None"),
        outcome(lambda: f(lambda x, y: (x.sum(), y.sum()), pair(m)), "v can only be None"),
    ]


WRONG = {
    "of another shape": lambda m: tensor(m, 1.0, 2.0),
    "too many": lambda m: (single(m), single(m)),
    "none": lambda m: (),
    "no tensor": lambda m: 3.0,
    "no tensor in a tuple": lambda m: (2.0,),
    "a list": lambda m: [single(m)],
    "complex": lambda m: tensor(m, 1j, 2j, 3j, dtype="complex128"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_a_v_that_does_not_fit_is_refused(m, name, wrong):
    f = (lambda x: x * x) if name in ("vjp", "jvp") else (lambda x: (x**3).sum())
    return outcome(lambda: getattr(m.autograd.functional, name)(f, single(m), WRONG[wrong](m)), name)


@pytest.mark.parametrize("kind", ["float32", "int64"])
@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_a_v_of_another_real_dtype_is_converted(m, name, kind):
    f = (lambda x: x * x) if name in ("vjp", "jvp") else (lambda x: (x**3).sum())
    return call(m, name, f, single(m), tensor(m, 1, 2, 3, dtype=kind))


@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_a_tensor_and_a_tuple_of_it_are_the_same_v(m, name):
    f = (lambda x: x * x) if name in ("vjp", "jvp") else (lambda x: (x**3).sum())
    return call(m, name, f, single(m), (single(m),)), call(m, name, f, (single(m),), single(m))


# ------------------------------------------------------------------------ results that are not tensors, or not scalars


INPUTS = {
    "a number": lambda m: 2.0,
    "a list": lambda m: [single(m)],
    "a number in a tuple": lambda m: (single(m), 2.0),
    "None": lambda m: (None,),
    "integers": lambda m: tensor(m, 1, 2, dtype="int64"),
}


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", PRODUCTS + MATRICES)
@parity
def test_inputs_that_can_not_be_differentiated_by_are_refused(m, name, kind):
    return outcome(lambda: getattr(m.autograd.functional, name)(lambda *xs: xs[0] * 2, INPUTS[kind](m)), name)


OUTPUTS = {
    "a list": lambda x: [x * 2],
    "None": lambda x: None,
    "a number in a tuple": lambda x: (x * 2, 3.0),
    "a dict": lambda x: {"y": x * 2},
}


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("name", PRODUCTS + MATRICES)
@parity
def test_outputs_that_are_no_tensors_are_refused(m, name, kind):
    v = () if name in MATRICES else (tensor(m, 2.0),)
    return outcome(lambda: getattr(m.autograd.functional, name)(OUTPUTS[kind], tensor(m, 2.0), *v), name)


@pytest.mark.parametrize("f", [lambda x: x * x, lambda x: (x.sum(),), lambda x: (x.sum(), x.sum())])
@pytest.mark.parametrize("name", ["vhp", "hvp", "hessian"])
@parity
def test_second_derivatives_are_those_of_one_number(m, name, f):
    v = () if name == "hessian" else (single(m),)
    return outcome(lambda: getattr(m.autograd.functional, name)(f, single(m), *v), name, "single")


@pytest.mark.parametrize("name", MATRICES)
@parity
def test_an_unknown_strategy_is_refused(m, name):
    key = "strategy" if name == "jacobian" else "outer_jacobian_strategy"
    return refused(lambda: getattr(m.autograd.functional, name)(lambda x: x.sum(), single(m), **{key: "sideways"}))


@pytest.mark.parametrize("name", PRODUCTS + MATRICES)
@parity
def test_an_error_of_the_function_is_passed_on(m, name):
    def fail(x):
        raise KeyError("f")

    v = () if name in MATRICES else (single(m),)
    return outcome(lambda: getattr(m.autograd.functional, name)(fail, single(m), *v))


# ------------------------------------------------------------------------------------------------------ strict


INDEPENDENT = {
    "detached": lambda m, x: x.detach(),
    "requiring grad for another reason": lambda m, x: (x.detach() * 2).requires_grad_() * 1,
    "linear": lambda m, x: x * 1,
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("kind", INDEPENDENT)
@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_strict_products(m, name, kind, create_graph):
    x = single(m, grad=create_graph)
    f = INDEPENDENT[kind]
    number = (lambda x: f(m, x)) if name in ("vjp", "jvp") else (lambda x: f(m, x).sum())
    return [
        call(m, name, number, x, single(m), create_graph=create_graph, strict=strict)
        for strict in (False, True)
    ]  # fmt: skip


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("kind", INDEPENDENT)
@pytest.mark.parametrize("name", MATRICES)
@parity
def test_strict_matrices(m, name, kind, create_graph):
    x = single(m, grad=create_graph)
    f = INDEPENDENT[kind]
    number = (lambda x: f(m, x)) if name == "jacobian" else (lambda x: f(m, x).sum())
    return [call(m, name, number, x, create_graph=create_graph, strict=strict) for strict in (False, True)]


@parity
def test_strict_names_what_is_independent(m):
    f = m.autograd.functional
    return [
        outcome(lambda: f.vjp(lambda x, y: x * 2, pair(m), single(m), strict=True), "independent of input 1"),
        outcome(lambda: f.jvp(lambda x, y: x * 2, pair(m), pair(m), strict=True), "independent of input 1"),
        outcome(lambda: f.jacobian(lambda x, y: (y, x * 2), pair(m), strict=True), "output", "independent of input 0"),
        outcome(lambda: f.vhp(lambda x, y: (x**2).sum(), pair(m), pair(m), strict=True), "independent of input 1"),
        outcome(lambda: f.hvp(lambda x, y: (x**2).sum() + y.sum(), pair(m), pair(m), strict=True), "input 1"),
        outcome(lambda: f.hessian(lambda x, y: (x**2).sum() + y.sum(), pair(m), strict=True), "input 1"),
        outcome(lambda: f.vjp(lambda x: (x * 2, x.detach()), single(m), pair(m), strict=True), "output 1"),
    ]


# ------------------------------------------------------------------------------------------------------- graphs


@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_results_with_a_graph_are_differentiable(m, name):
    x, v = single(m, grad=True), tensor(m, 1.0, 2.0, 3.0, grad=True)
    f = (lambda x: x**3 * x.sum()) if name in ("vjp", "jvp") else (lambda x: (x**4).sum() * x.prod())
    out, product = getattr(m.autograd.functional, name)(f, x, v, create_graph=True)
    return m.autograd.grad(product.sum() + out.sum(), (x, v))


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("name", MATRICES)
@parity
def test_matrices_with_a_graph_are_differentiable(m, name, vectorize):
    x = single(m, grad=True)
    f = (lambda x: x**3 * x.sum()) if name == "jacobian" else (lambda x: (x**4).sum() * x.prod())
    found = getattr(m.autograd.functional, name)(f, x, create_graph=True, vectorize=vectorize)
    return m.autograd.grad((found**2).sum(), x)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_products_where_nothing_is_recorded(m, name, create_graph):
    f = (lambda x: x * x) if name in ("vjp", "jvp") else (lambda x: (x**3).sum())
    with m.no_grad():
        return call(m, name, f, single(m, grad=create_graph), single(m), create_graph=create_graph)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", MATRICES)
@parity
def test_matrices_where_nothing_is_recorded(m, name, create_graph):
    f = (lambda x: x * x) if name == "jacobian" else (lambda x: (x**3).sum())
    with m.no_grad():
        return call(m, name, f, single(m, grad=create_graph), create_graph=create_graph)


@pytest.mark.parametrize("name", PRODUCTS + MATRICES)
@parity
def test_inputs_are_left_as_they_were(m, name):
    x, weight = single(m), tensor(m, 2.0, grad=True)
    v = () if name in MATRICES else (single(m),)
    f = (lambda x: x * weight) if name in ("vjp", "jvp", "jacobian") else (lambda x: (x**3 * weight).sum())
    found = answers(getattr(m.autograd.functional, name)(f, x, *v))
    return found, x.requires_grad, x.grad, weight.grad


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian"])
@parity
def test_a_function_sees_inputs_that_require_grad_and_may_differentiate(m, name):
    seen = []

    def slope(x):
        seen.append((x.requires_grad, x.is_leaf))
        return m.autograd.grad((x**4).sum(), x, create_graph=True)[0]

    v = () if name == "jacobian" else (single(m),)
    return call(m, name, slope, single(m), *v), seen


@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_user_defined_functions_need_a_backward_only(m, name):
    f = cube(m).apply if name in ("vjp", "jvp") else (lambda x: cube(m).apply(x).sum())
    return call(m, name, f, single(m), single(m))


@pytest.mark.parametrize("way", ["rows", "rows at once", "columns at once"])
@parity
def test_jacobians_of_user_defined_functions(m, way):
    class Strange(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class WrongJvp(Strange):
        @staticmethod
        def jvp(ctx, t):
            return t * 3

    return [call(m, "jacobian", f.apply, single(m), **WAYS[way]) for f in (Strange, WrongJvp)]


@pytest.mark.parametrize("name", PRODUCTS + MATRICES)
@parity
def test_a_function_may_count_in_a_buffer(m, name):
    seen = m.zeros(3, dtype=m.float64)

    def f(x):
        with m.no_grad():
            seen.add_(x)
        return x * x if name in ("vjp", "jvp", "jacobian") else (x**3).sum()

    v = () if name in MATRICES else (single(m),)
    return call(m, name, f, single(m), *v), seen


# ------------------------------------------------------------------------------------------------ complex numbers


def z(m):
    return tensor(m, 1 + 2j, 3 - 1j, dtype="complex128")


def both(m, value):
    if isinstance(value, tuple):
        return [both(m, v) for v in value]
    return [value.real + 0, value.imag + 0] if "complex" in str(value.dtype) else value + 0


@pytest.mark.parametrize("name", PRODUCTS)
@parity
def test_complex_products(m, name):
    f = (lambda z: z * z.conj() * z) if name in ("vjp", "jvp") else (lambda z: (z * z.conj() * z).real.sum())
    return both(m, getattr(m.autograd.functional, name)(f, z(m), z(m)))


@pytest.mark.parametrize("way", ["rows at once", "columns at once"])
@pytest.mark.parametrize("f", [lambda z: z * z, lambda z: z.abs(), lambda z: z.real])
@parity
def test_complex_matrices(m, f, way):
    return both(m, m.autograd.functional.jacobian(f, z(m), **WAYS[way]))


@parity
def test_rows_of_complex_outputs_are_refused_one_by_one(m):
    return outcome(lambda: m.autograd.functional.jacobian(lambda z: z * z, z(m)), "complex128"), outcome(
        lambda: m.autograd.functional.hessian(lambda z: z.abs().sum(), z(m)), "complex128"
    )


# ------------------------------------------------------------------------------------------- ours, more


@parity(known="PyTorch has no graph through forward mode yet", ours="[12.0, 3.0]")
def test_columns_may_have_a_graph(m):
    x = tensor(m, 2.0, grad=True)

    def slope():
        way = {"vectorize": True, "strategy": "forward-mode", "create_graph": True}
        found = m.autograd.functional.jacobian(lambda x: x**3, x, **way)
        return found.sum(), m.autograd.grad(found.sum() / 4, x)[0].sum()

    return outcome(slope)


def shape(m, f, x, **options):
    return outcome(lambda: list(m.autograd.functional.jacobian(f, x, **options).shape))


@pytest.mark.parametrize("vectorize", [False, True])
@parity(known="PyTorch stacks no rows, or indexes them", ours="[0, 3]")
def test_there_may_be_no_rows(m, vectorize):
    return shape(m, lambda x: x[:0], single(m), vectorize=vectorize)


@pytest.mark.parametrize("way", ["rows", "rows at once"])
@parity
def test_there_may_be_no_columns(m, way):
    return shape(m, lambda x: x.sum() + single(m)[:2], m.zeros(0, dtype=m.float64), **WAYS[way])


@parity(known="PyTorch's tuples hold tensors only", ours="[[3.0], [[4.0], 1.0]]")
def test_tuples_may_be_nested(m):
    x, y = tensor(m, 2.0), tensor(m, 4.0)
    return outcome(lambda: m.autograd.functional.vjp(lambda p: (p[0] + 1, (p[1] * 1, p[0].sum() / 2)), ((x, y),),
                                                     (x / 2, (y / 4, y.sum())))[0])  # fmt: skip
