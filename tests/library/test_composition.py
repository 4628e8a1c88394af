"""Custom operators under each transform, any two and three of them nested, and autograd's tools."""

import itertools
import pickle
import threading
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import fx, nn, pipelining
from retrograd.autograd import forward_ad, functional, gradcheck, gradgradcheck
from retrograd.autograd.drawing.draw import draw
from retrograd.autograd.explain import explain
from retrograd.core import registry
from retrograd.func import grad, hessian, jacfwd, jacrev, jet, jvp, linearize, sparse_jacobian, vjp, vmap
from retrograd.nn.functional import mse_loss
from retrograd.testing import assert_close
from retrograd.utils.checkpoint import checkpoint

from ..case_groups import group_cases

Tensor = rg.Tensor
X = rg.tensor([0.3, -0.7, 1.1], dtype=rg.float64)
V = rg.tensor([1.0, 0.5, -2.0], dtype=rg.float64)
W = rg.tensor([0.4, 1.5, -0.6], dtype=rg.float64)
ROWS = rg.tensor([[1.0], [-0.5]], dtype=rg.float64)


# --------------------------------------------------------------------------------- operators and their definitions


@rg.library.custom_op("composition::sin", mutates_args=())
def op_sin(x: Tensor) -> Tensor:
    return rg.as_tensor(np.sin(x.numpy()))


@rg.library.custom_op("composition::cos", mutates_args=())
def op_cos(x: Tensor) -> Tensor:
    return rg.as_tensor(np.cos(x.numpy()))


def keep_inputs(ctx, inputs, output):
    ctx.save_for_backward(*[x for x in inputs if isinstance(x, Tensor)])


op_sin.register_autograd(lambda ctx, g: g * op_cos(*ctx.saved_tensors), setup_context=keep_inputs)
op_cos.register_autograd(lambda ctx, g: -g * op_sin(*ctx.saved_tensors), setup_context=keep_inputs)


@rg.library.custom_op("composition::cube", mutates_args=())
def op_cube(x: Tensor) -> Tensor:
    return x * x * x


op_cube.register_autograd(lambda ctx, g: 3 * g * ctx.saved_tensors[0] ** 2, setup_context=keep_inputs)


@rg.library.custom_op("composition::exp", mutates_args=())
def op_exp(x: Tensor) -> Tensor:
    return x.exp()


op_exp.register_autograd(  # keeps its output
    lambda ctx, g: g * ctx.saved_tensors[0], setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output)
)


@rg.library.custom_op("composition::scaled", mutates_args=())
def op_scaled(x: Tensor, y: Tensor, factor: float = 1.0, *, shift: int = 0) -> Tensor:
    return x * y * factor + shift


def keep_factor(ctx, inputs, keyword_only_inputs, output):
    assert keyword_only_inputs.keys() == {"shift"}
    ctx.save_for_backward(*inputs[:2])
    ctx.factor = inputs[2]


def scaled_backward(ctx, g):
    x, y = ctx.saved_tensors
    return g * y * ctx.factor, g * x * ctx.factor, None


op_scaled.register_autograd(scaled_backward, setup_context=keep_factor)


@rg.library.custom_op("composition::tanh", "(Tensor x) -> Tensor")
def op_tanh(x): ...


@op_tanh.impl("cpu")
def _(x):
    return x.tanh()


@op_tanh.impl_save_for_backward()
def _(inputs, output):
    return {"out": [output]}


@op_tanh.impl_backward()
def _(ctx, saved, g):
    return {"x": g * (1 - saved["out"][0] ** 2)}


@rg.library.custom_op(
    "composition::mix",
    "(Tensor x, Tensor[] ys, Tensor? w, int[] n=[1, 2], *, str mode) -> (Tensor, Tensor[], int, Tensor)",
)
def op_mix(x, ys, w, n, *, mode): ...


@op_mix.impl("cpu")
def _(x, ys, w, n=(1, 2), *, mode):
    assert mode == "product"
    total = x if w is None else x * w
    return total * n[0], [y * x * n[1] for y in ys], len(ys), x > 0


@op_mix.impl_save_for_backward()
def _(inputs, output):
    return inputs.x, tuple(inputs.ys), {"w": inputs.w, "n": inputs.n}


@op_mix.impl_backward(output_differentiability=[True, True, False, False])
def _(ctx, saved, g, gs, count, sign):
    assert count is None
    x, ys, rest = saved
    w, n = rest["w"], rest["n"]
    gx = g * n[0] if w is None else g * w * n[0]
    for y, gy in zip(ys, gs, strict=True):
        gx = gx + gy * y * n[1]
    return {"x": gx, "ys": [gy * x * n[1] for gy in gs], "w": None if w is None else g * x * n[0]}


@rg.library.custom_op("composition::add_square_", mutates_args=("x",))
def op_add_square_(x: Tensor, y: Tensor) -> None:
    x.numpy()[...] += y.numpy() ** 2


@rg.library.custom_op("composition::fast_sin", mutates_args=())
def op_fast_sin(x: Tensor) -> Tensor:
    return x.sin()


op_fast_sin.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=keep_inputs)


@op_fast_sin.impl_jvp
def _(inputs, tangents, output):
    return tangents.x * inputs.x.cos()


@op_fast_sin.register_vmap
def _(info, in_dims, x):
    return op_fast_sin(x), in_dims[0]


# Tests of all operators take theirs from the registry when they are collected: these are there for the tests here.
OPERATORS = {name: registry.pop(name) for name in list(registry) if name.startswith("composition::")}


@pytest.fixture(autouse=True)
def registered():
    registry.update(OPERATORS)
    yield
    for name in [name for name in registry if name.startswith("composition::")]:
        del registry[name]


def mixed(x):
    product, (first, second), count, _ = op_mix(x, [x, x.cos()], x * x, mode="product")
    return product + count * first * second


# Each is a function of vectors, by custom operators and by ours.
PROGRAMS = {
    "formula of custom operators": (lambda x: op_sin(x * x), lambda x: (x * x).sin()),
    "formula of ours": (lambda x: op_cube(x) * x.sum(), lambda x: x**3 * x.sum()),
    "keeps its output": (lambda x: op_exp(x).cumsum(0), lambda x: x.exp().cumsum(0)),
    "params": (lambda x: op_scaled(x, x.sin(), 0.5, shift=2) * x, lambda x: (x * x.sin() * 0.5 + 2) * x),
    "pair": (lambda x: op_tanh(x) * x, lambda x: x.tanh() * x),
    "lists and nested outputs": (mixed, lambda x: x * x * x + 2 * (2 * x * x) * (2 * x * x.cos())),
    "jvp and vmap by rules": (lambda x: op_fast_sin(x) * x, lambda x: x.sin() * x),
    "one after another": (lambda x: op_sin(op_cube(op_tanh(x))), lambda x: (x.tanh() ** 3).sin()),
}

# Each makes of a function of vectors another one.
TRANSFORMS = {
    "grad": lambda f: grad(lambda x: (f(x) * W).sum()),
    "vjp": lambda f: lambda x: vjp(f, x)[1](W)[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (V,))[1],
    "vmap": lambda f: lambda x: vmap(f)(x * ROWS).prod(0),
    "jacrev": lambda f: lambda x: jacrev(f)(x) @ V,
    "jacfwd": lambda f: lambda x: jacfwd(f)(x) @ V,
    "hessian": lambda f: lambda x: hessian(lambda x: (f(x) * W).sum())(x) @ V,
    "linearize": lambda f: lambda x: linearize(f, x)[1](V),
    "jet": lambda f: lambda x: sum(jet(f, (x,), ([V, W],))[1]),
    "forward_ad": lambda f: lambda x: jvp_of(f, x),
    "autograd.grad": lambda f: lambda x: vjp_of(f, x),
    "is_grads_batched": lambda f: lambda x: pulled_in_batch(f, x),
    "functional": lambda f: lambda x: functional.jacobian(f, x, create_graph=True) @ V,
    "checkpoint": lambda f: lambda x: checkpoint(f, x, use_reentrant=False),
}
INNERMOST = {"forward_ad", "checkpoint"}  # others don't go inside: of ours neither


def jvp_of(f, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, V))).tangent


def vjp_of(f, x):
    x = x * 1 if x.requires_grad else x.clone().requires_grad_()
    return rg.autograd.grad((f(x) * W).sum(), x, create_graph=True)[0]


def pulled_in_batch(f, x):
    x = x * 1 if x.requires_grad else x.clone().requires_grad_()
    cotangents = rg.stack([W, V])
    return rg.autograd.grad(f(x), x, cotangents, is_grads_batched=True, create_graph=True)[0].sum(0)


def nested(names, f):
    for name in names:
        f = TRANSFORMS[name](f)
    return f


PAIRS = [(a, b) for a, b in itertools.product(TRANSFORMS, repeat=2) if b not in INNERMOST]
TRIPLES = list(itertools.product(("grad", "jvp", "vmap", "jacrev", "jacfwd", "linearize", "jet"), repeat=3))


@group_cases
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_each_transform_differentiates_what_users_write(name, program):
    custom, ours = PROGRAMS[program]
    assert_close(nested([name], custom)(X), nested([name], ours)(X))


@group_cases
@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_transforms_nest_over_custom_operators(names):
    for program in ("formula of custom operators", "lists and nested outputs"):
        custom, ours = PROGRAMS[program]
        assert_close(nested(names, custom)(X), nested(names, ours)(X))


@group_cases
@pytest.mark.parametrize("names", TRIPLES, ids="-".join)
def test_three_transforms_nest_over_a_custom_operator(names):
    custom, ours = PROGRAMS["one after another"]
    assert_close(nested(names, custom)(X), nested(names, ours)(X))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_sparse_jacobian_has_all_entries(program):
    custom, ours = PROGRAMS[program]
    assert_close(rg.tensor(sparse_jacobian(custom)(X).toarray()), jacrev(ours)(X))
    assert_close(
        rg.tensor(sparse_jacobian(TRANSFORMS["grad"](custom))(X).toarray()), jacrev(TRANSFORMS["grad"](ours))(X)
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_those_of_differences_in_every_mode(program):
    x = X.clone().requires_grad_()
    f = PROGRAMS[program][0]
    assert gradcheck(f, (x,), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradgradcheck(f, (x,), check_fwd_over_rev=True, check_rev_over_rev=True, check_batched_grad=True)


@pytest.mark.parametrize(("transform", "runs"), [(vmap, 1), (jacrev, 1), (jacfwd, 3)])
def test_backward_inside_a_transform_fills_the_grad_of_what_is_outside(transform, runs):
    w = W.clone().requires_grad_()

    def f(x):
        op_sin(x * w).sum().backward()
        return x * 1

    rows = rg.stack([X, V]) if transform is vmap else X[None]
    transform(f)(rows if transform is vmap else X)
    assert_close(w.grad, runs * (rows * (rows * W).cos()).sum(0))


# ------------------------------------------------------------- rules that are missing: the true derivative, or an error


def triple_in_parts(ctx, g):
    return 2 * g + g


def triple_by_numpy(ctx, g):
    return rg.as_tensor(3 * g.detach().numpy())


def triple_detached(ctx, g):
    return 3 * g.detach()


def triple_detached_in_part(ctx, g):
    return 2 * g + g.detach()


def not_homogeneous(ctx, g):
    return 3 * g + 1


def quadratic(ctx, g):
    return 3 * g * g


def no_gradient(ctx, g):
    return None


def tripled(formula):
    @rg.library.custom_op("composition::tripled", mutates_args=())
    def op(x: Tensor) -> Tensor:
        return 2 * x + x

    op.register_autograd(formula)
    return op


FORWARD = {
    "jvp": TRANSFORMS["jvp"],
    "jvp under vmap": lambda f: lambda x: vmap(TRANSFORMS["jvp"](f))(x * ROWS)[0],
    "vmap under jvp": lambda f: lambda x: TRANSFORMS["jvp"](vmap(f))(x * ROWS, rg.stack([V, V]))[0],
    "jacfwd": TRANSFORMS["jacfwd"],
    "linearize": TRANSFORMS["linearize"],
    "forward_ad": TRANSFORMS["forward_ad"],
    "jet": lambda f: lambda x: jet(f, (x,), ([V],))[1][0],
    "jvp under grad": lambda f: lambda x: grad(lambda x: (x * jvp(f, (x,), (V,))[1]).sum())(x),
    "grad under jvp": lambda f: lambda x: jvp(grad(lambda x: (x * f(x)).sum() / 2), (x,), (V,))[1],
    "jvp under jvp": lambda f: lambda x: jvp(lambda x: x * jvp(f, (x,), (V,))[1], (x,), (x * 0 + 1,))[1],
    "functional": lambda f: lambda x: functional.jacobian(f, x, vectorize=True, strategy="forward-mode") @ V,
}
FORWARD["vmap under jvp"] = lambda f: lambda x: jvp(vmap(f), (x * ROWS,), (rg.stack([V, V]),))[1][0]


@pytest.mark.parametrize("name", FORWARD)
def test_twice_x_plus_x_has_the_derivative_three(name):
    f = FORWARD[name](tripled(triple_in_parts))
    assert_close(f(X), 3 * V)


@pytest.mark.parametrize("name", FORWARD)
def test_a_sum_with_an_operator_of_the_program_loses_no_term(name):
    twice = tripled(lambda ctx, g: 2 * g)  # the rest is the program's
    assert_close(FORWARD[name](lambda x: twice(x) + x)(X), 3 * V)


@group_cases
@pytest.mark.parametrize(
    "formula",
    [triple_by_numpy, triple_detached, triple_detached_in_part, not_homogeneous, quadratic],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("name", FORWARD)
def test_a_formula_that_does_not_say_the_forward_derivative_is_refused(name, formula):
    with pytest.raises((NotImplementedError, RuntimeError), match=r"impl_jvp|detach\(\)|for one example"):
        FORWARD[name](tripled(formula))(X)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [(grad, grad), (jacfwd, grad), (jacrev, grad), (jacrev, jacrev)],
    ids=["grad-grad", "jacfwd-grad", "jacrev-grad", "jacrev-jacrev"],
)
@pytest.mark.parametrize("power", [1, 2])
def test_a_formula_that_goes_through_numpy_is_differentiated_once_only(outer, inner, power):
    f = squared_by_numpy()
    once = inner(lambda x: f(x).sum() ** power)
    x = X[0]
    assert_close(once(x), power * 2 * x ** (2 * power - 1))
    with pytest.raises(NotImplementedError, match=r"composition::by_numpy.*leaves the graph"):
        outer(once)(x)


def squared_by_numpy():
    @rg.library.custom_op("composition::by_numpy", mutates_args=())
    def by_numpy(x: Tensor) -> Tensor:
        return rg.as_tensor(x.numpy() ** 2)

    def backward(ctx, g):
        return rg.as_tensor(2 * ctx.saved_tensors[0].detach().numpy() * g.detach().numpy())

    by_numpy.register_autograd(backward, setup_context=keep_inputs)
    return by_numpy


def test_a_graph_of_gradients_that_went_through_numpy_fails_where_it_is_used():
    f, x = squared_by_numpy(), X.clone().requires_grad_()
    (g,) = rg.autograd.grad(f(x).sum(), x, create_graph=True)
    assert_close(g.detach(), 2 * X)
    with pytest.raises(NotImplementedError, match=r"composition::by_numpy.*leaves the graph"):
        rg.autograd.grad(g.sum(), x)


def test_a_constant_gradient_has_no_derivative_to_be_missed():
    twice = tripled(lambda ctx, g: 3 * g)
    assert_close(hessian(lambda x: twice(x).sum())(X), rg.zeros(3, 3, dtype=rg.float64))
    x = X.clone().requires_grad_()
    (g,) = rg.autograd.grad(twice(x).sum(), x, create_graph=True)
    assert not g.requires_grad


@pytest.mark.parametrize("name", FORWARD)
def test_without_any_formula_there_is_an_error_that_names_the_operator(name):
    @rg.library.custom_op("composition::bare", mutates_args=())
    def bare(x: Tensor) -> Tensor:
        return 2 * x + x

    with pytest.raises((NotImplementedError, RuntimeError), match="composition::bare"):
        FORWARD[name](bare)(X)
    assert_close(vmap(bare)(X), 3 * X)


def test_a_formula_can_read_which_gradients_are_needed_in_forward_mode_too():
    asked = []

    @rg.library.custom_op("composition::asks", mutates_args=())
    def op(x: Tensor, y: Tensor) -> Tensor:
        return x * y

    def backward(ctx, g):
        asked.append(ctx.needs_input_grad)
        x, y = ctx.saved_tensors
        return (g * y if ctx.needs_input_grad[0] else None), (g * x if ctx.needs_input_grad[1] else None)

    op.register_autograd(backward, setup_context=keep_inputs)
    assert_close(jvp(lambda y: op(X, y), (W,), (V,))[1], X * V)
    assert_close(grad(lambda x: op(x, W).sum())(X), W)
    assert asked == [(False, True), (True, False)]


def test_tensors_computed_in_setup_context_count_in_derivatives_of_outer_transforms():
    @rg.library.custom_op("composition::keeps_more", mutates_args=())
    def op(x: Tensor) -> Tensor:
        return x.sin()

    op.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0].cos()),
    )
    for outer, inner in itertools.product(("grad", "jvp"), repeat=2):
        assert_close(nested([inner, outer], op)(X), nested([inner, outer], lambda x: x.sin())(X))


# ------------------------------------------------------------------------------------------ autograd's tools


def test_modules_and_optimizers_train_through_custom_operators():
    class Net(nn.Module):
        def __init__(self, sin):
            super().__init__()
            self.weight = nn.Parameter(rg.ones(3, dtype=rg.float64) * 0.5)
            self.sin = sin

        def forward(self, x):
            return self.sin(self.weight * x).sum()

    def trained(sin):
        net = Net(sin)
        optimizer = rg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(5):
            optimizer.zero_grad()
            net(X).backward()
            optimizer.step()
        return net.weight

    assert_close(trained(op_sin), trained(rg.sin))


def test_hooks_of_tensors_and_nodes_see_custom_operators():
    x = X.clone().requires_grad_()
    y = op_sin(x)
    seen = []
    y.register_hook(lambda g: seen.append("tensor") or 2 * g)
    y.grad_fn.register_prehook(lambda gs: seen.append("before"))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append("after") or (3 * inputs[0],))
    y.sum().backward()
    assert seen == ["tensor", "before", "after"]
    assert_close(x.grad, 6 * X.cos())


def test_hooks_of_saved_tensors_get_what_formulas_keep():
    packed = []
    with rg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t.numpy(force=True), rg.as_tensor):
        x = X.clone().requires_grad_()
        y = op_tanh(op_sin(x))
    y.sum().backward()
    assert len(packed) == 2
    assert_close(x.grad, (1 - X.sin().tanh() ** 2) * X.cos())


def test_writing_over_what_a_formula_keeps_is_an_error():
    x = X.clone().requires_grad_()
    y = x * 1
    out = op_sin(y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_graph_is_freed_by_its_pass_and_may_be_retained():
    x = X.clone().requires_grad_()
    out = op_sin(x).sum()
    out.backward(retain_graph=True)
    out.backward()
    assert_close(x.grad, 2 * X.cos())
    with pytest.raises(RuntimeError, match="a second time"):
        out.backward()


def test_anomaly_mode_names_the_operator():
    @rg.library.custom_op("composition::nan", mutates_args=())
    def op(x: Tensor) -> Tensor:
        return x.clone()

    op.register_autograd(lambda ctx, g: g * float("nan"))
    x = X.clone().requires_grad_()
    refusal = r"composition::nanBackward.*returned nan values in its 0th output"
    ignored = warnings.catch_warnings(action="ignore")
    with ignored, rg.autograd.detect_anomaly(), pytest.raises(RuntimeError, match=refusal):
        op(x).sum().backward()


def test_the_profiler_counts_custom_operators():
    x = X.clone().requires_grad_()
    with rg.autograd.profiler.profile() as profile:
        op_exp(x).sum().backward()
    assert "composition::exp" in {event.key for event in profile.key_averages()}


def test_explanations_and_drawings_name_custom_operators():
    x = X.clone().requires_grad_()
    y = op_sin(x).sum()
    assert "composition::sin" in str(explain(y, x))
    assert "composition::sin" in str(draw(y))
    with rg.no_grad():
        cut = op_sin(x)
    assert "no_grad" in str(explain(cut))


@pytest.mark.parametrize("mode", [rg.no_grad, rg.inference_mode])
def test_modes_without_graphs_leave_no_graph(mode):
    x = X.clone().requires_grad_()
    with mode():
        y = op_sin(x)
        product, pair, _, _ = op_mix(x, [x, x], None, mode="product")
    assert not any(t.requires_grad for t in (y, product, *pair))
    assert_close(y, X.sin())
    assert y.is_inference() == product.is_inference() == (mode is rg.inference_mode)


def test_threads_differentiate_side_by_side():
    found = {}

    def work(i):
        x = (X * i).requires_grad_()
        op_sin(x).sum().backward()
        found[i] = x.grad, jvp(op_sin, (X * i,), (V,))[1]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i in range(4):
        assert_close(found[i][0], (X * i).cos())
        assert_close(found[i][1], V * (X * i).cos())


def test_complex_numbers_pass_in_both_modes():
    @rg.library.custom_op("composition::square", mutates_args=())
    def op(z: Tensor) -> Tensor:
        return z * z

    op.register_autograd(lambda ctx, g: g * 2 * ctx.saved_tensors[0].conj(), setup_context=keep_inputs)
    z = rg.complex(X, W)
    t = rg.complex(V, X)
    assert_close(jvp(op, (z,), (t,))[1], 2 * z * t)
    assert gradcheck(op, (z.clone().requires_grad_(),), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(op, (z.clone().requires_grad_(),))


def test_a_function_of_complex_numbers_that_is_not_holomorphic_has_a_tangent_too():
    @rg.library.custom_op("composition::size", mutates_args=())
    def op(z: Tensor) -> Tensor:
        return z.real**2 + z.imag**2

    op.register_autograd(lambda ctx, g: 2 * g * ctx.saved_tensors[0], setup_context=keep_inputs)
    z, t = rg.complex(X, W), rg.complex(V, X)
    assert_close(jvp(op, (z,), (t,))[1], 2 * (X * V + W * X))
    assert gradcheck(op, (z.clone().requires_grad_(),), check_forward_ad=True)


def test_integers_take_part_without_gradients():
    @rg.library.custom_op("composition::take", mutates_args=())
    def take(x: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        return x[places], places + 1

    def setup(ctx, inputs, output):
        ctx.n = inputs[0].shape[0]
        ctx.save_for_backward(inputs[1])

    take.register_autograd(
        lambda ctx, g, h: (rg.zeros(ctx.n, dtype=g.dtype).index_add(0, ctx.saved_tensors[0], g), None),
        setup_context=setup,
    )
    places = rg.tensor([2, 0, 2])
    for name in ("grad", "jvp", "vmap", "jacfwd", "jet"):
        actual = nested([name], lambda x: take(x, places)[0])(X)
        assert_close(actual, nested([name], lambda x: x[places])(X))
    values, more = take(X.clone().requires_grad_(), places)
    assert values.requires_grad
    assert not more.requires_grad


def test_an_optional_tensor_may_be_there_or_not():
    def f(x):
        (product, _, _, _), (other, _, _, _) = (op_mix(x, [], w, mode="product") for w in (None, W))
        return product * other

    for name in TRANSFORMS:
        assert_close(nested([name], f)(X), nested([name], lambda x: x * x * W)(X))


def test_any_output_of_an_operator_goes_into_another():
    def f(x):
        _, (first, second), _, _ = op_mix(x, [x, x.cos()], None, mode="product")
        return op_sin(second) - op_sin(first)

    for name in TRANSFORMS:
        ours = nested([name], lambda x: (2 * x * x.cos()).sin() - (2 * x * x).sin())
        assert_close(nested([name], f)(X), ours(X))


# -------------------------------------------------------------------------------------------------- writing


def written(x):
    y = x * 1
    op_add_square_(y, x)
    return y * x


def test_an_operator_that_writes_is_refused_a_gradient_and_runs_under_the_rest():
    assert_close(written(X), (X + X**2) * X)
    assert_close(vmap(written)(rg.stack([X, V])), rg.stack([(z + z**2) * z for z in (X, V)]))
    module = fx.trace(written, X)
    assert_close(module(V), (V + V**2) * V)
    y = X.clone()
    op_add_square_(y, X)
    assert y._version == 1
    for transform in ("grad", "jvp", "jacrev", "jacfwd", "linearize", "jet"):
        with pytest.raises((RuntimeError, NotImplementedError), match="composition::add_square_"):
            nested([transform], written)(X)
    with pytest.raises(RuntimeError, match="composition::add_square_"):
        written(X.clone().requires_grad_()).sum().backward()


# ------------------------------------------------------------------------------------------------- graphs


@pytest.mark.parametrize("program", PROGRAMS)
def test_traced_programs_run_differentiate_and_trace_again(program):
    custom, ours = PROGRAMS[program]
    module = fx.trace(custom, X)
    assert "composition::" in module.code
    for f in (module, fx.trace(module, X), fx.trace(lambda x: module(x), X), pickle.loads(pickle.dumps(module))):
        assert_close(f(V), ours(V))
        for name in ("grad", "jvp", "vmap", "jacfwd", "jet"):
            assert_close(nested([name], f)(V), nested([name], ours)(V))
    for name in ("grad", "jvp", "vmap", "hessian", "linearize"):
        assert_close(fx.trace(nested([name], custom), X)(V), nested([name], ours)(V))


def test_a_graph_with_an_operator_that_is_not_registered_says_which():
    @rg.library.custom_op("composition::passing", mutates_args=())
    def passing(x: Tensor) -> Tensor:
        return x.clone()

    data = pickle.dumps(fx.trace(lambda x: passing(x) + 1, X))
    known = registry.pop("composition::passing")
    try:
        with pytest.raises((KeyError, RuntimeError), match="composition::passing"):
            pickle.loads(data)
    finally:
        registry["composition::passing"] = known
    assert_close(pickle.loads(data)(X), X + 1)


class Stages(nn.Module):
    def __init__(self, sin, mix):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.sin, self.mix = sin, mix

    def forward(self, x):
        y = self.sin(self.a(x))
        pipelining.pipe_split()
        return self.mix(self.b(y)) + y


def test_stages_of_a_pipeline_hold_custom_operators():
    rg.manual_seed(0)
    model = Stages(op_sin, mixed)
    x, y = rg.rand(4, 3), rg.rand(4, 3)
    ours = Stages(rg.sin, PROGRAMS["lists and nested outputs"][1])
    ours.load_state_dict(model.state_dict())
    expected = mse_loss(ours(x), y)
    expected.backward()
    pipeline = pipelining.Pipeline(model, schedule="1f1b", micro_batches=2, loss_fn=mse_loss)
    assert_close(pipeline.step(x, target=y).detach(), expected.detach())
    assert "composition::mix" in pipeline.pipe.stages[1].submod.code
    for p, q in zip(ours.parameters(), model.parameters(), strict=True):
        assert_close(q.grad, p.grad, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------------------- calls without the watch of the tests


@pytest.fixture
def unwatched():
    with rg.library.sanitize(False):
        yield


@pytest.mark.parametrize("program", PROGRAMS)
def test_transforms_differentiate_kernels_that_nobody_watches(unwatched, program):
    custom, ours = PROGRAMS[program]
    assert_close(custom(X), ours(X))
    for name in TRANSFORMS:
        assert_close(nested([name], custom)(X), nested([name], ours)(X))


def kernel_of(function):
    function.__annotations__ = {"x": Tensor, "return": Tensor}
    return rg.library.custom_op("composition::kernel", function, mutates_args=())


@pytest.mark.parametrize("kernel", [lambda x: x, lambda x: rg.as_tensor(x.numpy()), lambda x: x[:2], lambda x: 3.0])
def test_a_kernel_returns_a_tensor_with_memory_of_its_own(unwatched, kernel):
    op = kernel_of(kernel)
    for x in (X, X.clone().requires_grad_()):
        with pytest.raises(RuntimeError, match="composition::kernel"):
            op(x)


def test_a_kernel_runs_outside_graphs_and_the_mode_comes_back(unwatched):
    w, modes = W.clone().requires_grad_(), []

    def kernel(x):
        modes.append(rg.is_grad_enabled())
        if len(modes) > 1:
            raise ValueError("stop")
        return x * w

    op = kernel_of(kernel)
    assert not op(X).requires_grad
    assert rg.is_grad_enabled()
    with pytest.raises(ValueError, match="stop"):
        op(X)
    assert rg.is_grad_enabled()
    assert modes == [False, False]


def test_tensors_that_a_kernel_keeps_are_no_results_of_another_call(unwatched):
    kept = rg.zeros(3)
    op = kernel_of(lambda x: kept)
    op(X).requires_grad_()
    assert not kept.requires_grad


def test_simple_calls_know_of_modes_and_of_values_that_were_cut_off(unwatched):
    op = kernel_of(lambda x: rg.as_tensor(x.numpy() * 2))
    with rg.inference_mode():
        assert op(X).is_inference()
    with rg.no_grad():
        cut = X.clone().requires_grad_() * 2
    assert "no_grad" in str(explain(op(cut)))
    kept = []
    grad(lambda x: kept.append(x.detach() * 1) or x.sum())(X)
    with pytest.raises(RuntimeError, match="escaped"):
        kernel_of(lambda x: rg.ones(3))(kept[0])
    base = X.clone()
    view = base[:2]
    base.mul_(X.clone().requires_grad_())
    with pytest.raises(RuntimeError, match="no gradient formula"):
        op(view).sum().backward()
