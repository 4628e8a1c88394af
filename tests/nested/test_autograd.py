"""Reverse mode through nested tensors agrees with a loop over the components; hooks, versions and saved tensors."""

import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import autograd, optim
from retrograd.autograd import GradcheckError, gradcheck, gradgradcheck
from retrograd.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from retrograd.nested import as_nested_tensor, nested_tensor, nested_tensor_from_jagged

LENGTHS = (2, 0, 4, 1)


def rows(lengths=LENGTHS, width=3, seed=0):
    r = np.random.default_rng(seed)
    return [rg.tensor(r.uniform(-1, 1, (n, width))) for n in lengths]


def weight(*shape, seed=5):
    return rg.tensor(np.random.default_rng(seed).uniform(-1, 1, shape), requires_grad=True)


def leaf(**options):
    return nested_tensor(rows(**options), requires_grad=True)


def images(requires_grad=True):
    """Return components with two ragged dimensions: they differ in height and width."""
    r = np.random.default_rng(1)
    parts = [rg.tensor(r.uniform(-1, 1, shape)) for shape in ((2, 3, 2), (1, 4, 2))]
    return parts, nested_tensor(parts, requires_grad=requires_grad)


def assert_close(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-12)


def assert_parts(found, expected):
    assert found.is_nested
    for a, b in zip(found.unbind(), expected, strict=True):
        assert a.shape == b.shape
        assert_close(a, b)


def f(c, w):
    """A function of a component or of all of them."""
    return (c * w).sin() * c


# ------------------------------------------------------------------------------------------------ gradients


def test_gradients_of_nested_leaves_and_of_weights_are_those_of_a_loop():
    x, w = leaf(), weight(3)
    f(x, w).values().sum().backward()
    alone, v = [p.clone().requires_grad_() for p in rows()], weight(3)
    sum(f(c, v).sum() for c in alone).backward()
    assert_parts(x.grad, [c.grad for c in alone])
    assert_close(w.grad, v.grad)


def test_gradients_reach_the_components_that_a_nested_tensor_was_made_of():
    alone, again = ([p.clone().requires_grad_() for p in rows()] for _ in range(2))
    w = weight(3)
    f(as_nested_tensor(alone), w).values().sum().backward()
    sum(f(c, w).sum() for c in again).backward()
    for a, b in zip(alone, again, strict=True):
        assert_close(a.grad, b.grad)


def test_leaves_do_not_share_the_memory_of_their_gradients():
    x, y, g = leaf(), leaf(), rg.ones_like(leaf())
    (x + y).backward(g)
    x.grad.mul_(2)
    assert_parts(y.grad, [rg.ones_like(p) for p in rows()])
    assert_parts(g.detach(), [rg.ones_like(p) for p in rows()])


def test_gradients_accumulate_in_place():
    x, w = leaf(), weight(3)
    f(x, w).values().sum().backward()
    kept, once = x.grad, [c.clone() for c in x.grad.unbind()]
    f(x, w).values().sum().backward()
    assert x.grad is kept
    assert_parts(x.grad, [2 * c for c in once])


def test_a_second_pass_needs_retain_graph():
    x = leaf()
    y = f(x, weight(3)).values().sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match=r"second time|freed"):
        y.backward()


def test_a_nested_cotangent_weighs_the_components():
    x, gs = leaf(), rows(seed=7)
    (g,) = autograd.grad(x.exp(), x, nested_tensor(gs))
    assert_parts(g, [p.exp() * c for p, c in zip(rows(), gs, strict=True)])


def test_backward_takes_a_nested_gradient():
    x = leaf()
    x.exp().backward(rg.ones_like(x))
    assert_parts(x.grad, [p.exp() for p in rows()])


def test_a_cotangent_of_another_structure_is_refused_with_the_first_component_that_differs():
    x = leaf()
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output.*in component 2 the size j is 4 and 3"):
        autograd.grad(x.exp(), x, nested_tensor(rows((2, 0, 3, 2))))
    with pytest.raises(RuntimeError, match=r"there are 4 and 3 components|gradient 0 has shape"):
        autograd.grad(x.exp(), x, nested_tensor(rows((2, 0, 4))))


def test_a_nested_output_needs_a_cotangent():
    with pytest.raises(RuntimeError, match=r"grad can be|outputs of one element"):
        leaf().exp().backward()


def test_gradients_of_gradients_are_those_of_a_loop():
    def second(x, w, total):
        (g,) = autograd.grad(total(f(x, w)), x, create_graph=True)
        return autograd.grad(total(g * g), [x, w])

    x, w = leaf(), weight(3)
    gx, gw = second(x, w, lambda y: y.values().sum())
    expected = [second(p.clone().requires_grad_(), w, lambda y: y.sum()) for p in rows()]
    assert_parts(gx, [e for e, _ in expected])
    assert_close(gw, sum(e for _, e in expected))


def test_gradients_pass_through_two_ragged_dimensions():
    parts, x = images()
    w = weight(2)
    f(x, w).values().sum().backward()
    alone = [p.clone().requires_grad_() for p in parts]
    sum(f(c, w).sum() for c in alone).backward()
    assert_parts(x.grad, [c.grad for c in alone])


def test_gradients_pass_through_sets_of_sets():
    inner = [rows((2, 1)), rows((3,), seed=2)]
    x = nested_tensor([nested_tensor(parts) for parts in inner], requires_grad=True)
    f(x, weight(3)).values().values().sum().backward()
    for found, parts in zip(x.grad.unbind(), inner, strict=True):
        alone = [p.clone().requires_grad_() for p in parts]
        sum(f(c, weight(3)).sum() for c in alone).backward()
        assert_parts(found, [c.grad for c in alone])


def test_gradients_of_no_components_and_of_empty_ones_are_empty():
    for lengths in ((), (0, 0)):
        x = nested_tensor_from_jagged(
            rg.zeros(0, 3, dtype="float64"), rg.zeros(len(lengths) + 1, dtype="int64")
        ).detach()
        x.requires_grad_()
        (x * weight(3)).values().sum().backward()
        assert x.grad.shape == x.shape


def test_rows_in_holes_get_no_gradient():
    values = weight(5, 2)
    x = nested_tensor_from_jagged(values, rg.tensor([0, 3, 5]), lengths=rg.tensor([2, 1]))
    (x * 3).values().sum().backward()
    assert values.grad[:, 0].tolist() == [3.0, 3.0, 0.0, 3.0, 0.0]


# ----------------------------------------------------------------------------------------- hooks, modes, saving


def test_tensor_hooks_get_and_replace_nested_gradients():
    x = leaf()
    y, seen = x * 2, []
    y.register_hook(lambda g: (seen.append(g.shape), g * 3)[1])
    x.register_hook(lambda g: seen.append(g.is_nested))
    y.values().sum().backward()
    assert seen == [y.shape, True]
    assert_parts(x.grad, [rg.full_like(p, 6.0) for p in rows()])


def test_node_and_accumulation_hooks_get_nested_gradients():
    x, seen = leaf(), []
    y = x * 2
    y.grad_fn.register_hook(lambda gs, outs: seen.append([g.shape for g in outs]))
    y.grad_fn.register_prehook(lambda outs: seen.append([g.is_nested for g in outs]))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.shape))
    y.values().sum().backward()
    assert seen == [[True], [y.shape], x.shape]


def test_retain_grad_keeps_a_nested_gradient():
    x = leaf()
    y = x * 2
    y.retain_grad()
    (y * y).values().sum().backward()
    assert_parts(y.grad, [4 * p for p in rows()])


def test_modes_and_detach_end_a_graph():
    x = leaf()
    with rg.no_grad():
        assert not (x * 2).requires_grad
    with rg.inference_mode():
        y = x * 2
        assert y.is_inference()
        assert y.values().is_inference()
    assert not x.detach().requires_grad
    assert_parts(x.detach(), rows())


def test_saved_tensors_pass_hooks():
    x, packed = leaf(), []
    with autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t.clone(), lambda t: t):
        y = x.sin()
    y.values().sum().backward()
    assert packed
    assert_parts(x.grad, [p.cos() for p in rows()])


def test_writing_to_what_was_saved_is_an_error_that_names_the_line():
    y = leaf().exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*test_autograd\.py"):
        y.values().sum().backward()


def test_a_write_in_place_is_recorded():
    x = leaf()
    y = x * 1
    y.mul_(x)
    y.values().sum().backward()
    assert_parts(x.grad, [2 * p for p in rows()])


def test_a_leaf_that_requires_grad_is_not_written_to():
    with pytest.raises(RuntimeError, match="leaf"):
        leaf().add_(1)


def test_a_write_to_the_buffer_shows_in_the_nested_tensor_and_in_its_gradients():
    x = leaf()
    y = x * 1
    y.values().mul_(3)
    y.values().sum().backward()
    assert_parts(y.detach(), [3 * p for p in rows()])
    assert_parts(x.grad, [rg.full_like(p, 3.0) for p in rows()])


def test_a_write_to_one_component_shows_in_the_whole():
    x = nested_tensor(rows())
    with rg.no_grad():
        x.unbind()[2].zero_()
    assert x.unbind()[2].abs().sum().item() == 0.0
    assert_close(x.unbind()[0], rows()[0])


def test_anomaly_mode_names_the_line_of_a_nan():
    x = nested_tensor([rg.zeros(2), rg.zeros(1)], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with autograd.detect_anomaly(), pytest.raises(RuntimeError, match=r"nan.*test_autograd\.py"):
            (x.sqrt() * 0).values().sum().backward()


# ------------------------------------------------------------------------------------------------- gradcheck


def test_gradcheck_checks_nested_inputs_and_outputs_in_all_modes():
    modes = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(f, (leaf(), weight(3)), **modes)
    assert gradcheck(lambda x: (x.exp(), x.values().sum()), leaf(), fast_mode=True)
    assert gradcheck(lambda x: x.sin(), images()[1])


def test_gradgradcheck_checks_nested_inputs_and_outputs():
    assert gradgradcheck(f, (leaf(lengths=(2, 0, 1)), weight(3)), check_fwd_over_rev=True)
    x = leaf(lengths=(1, 2))
    assert gradgradcheck(lambda x: x.sin(), x, rg.ones_like(x).requires_grad_())


def test_gradcheck_finds_a_wrong_gradient_of_a_nested_tensor():
    class Wrong(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, leaf())


# --------------------------------------------------------------------------------------- derivatives at a point


def test_products_with_jacobians_and_hessians_of_nested_inputs_are_those_of_a_loop():
    x, v = nested_tensor(rows()), nested_tensor(rows(seed=3))
    pairs = list(zip(rows(), rows(seed=3), strict=True))
    w = weight(3).detach()
    assert_parts(vjp(lambda c: f(c, w), x, v)[1], [vjp(lambda c: f(c, w), c, g)[1] for c, g in pairs])
    assert_parts(jvp(lambda c: f(c, w), x, v)[1], [jvp(lambda c: f(c, w), c, g)[1] for c, g in pairs])
    expected = [hvp(lambda c: f(c, w).sum(), c, g)[1] for c, g in pairs]
    for product in (hvp, vhp):
        assert_parts(product(lambda c: f(c, w).values().sum(), x, v)[1], expected)


def test_a_product_with_a_vector_of_another_structure_is_refused():
    with pytest.raises(RuntimeError, match=r"invalid size: .* for output 0: in component 0 the size j is 2 and 1"):
        vjp(lambda x: x.sin(), nested_tensor(rows()), nested_tensor(rows((1, 1, 4, 1))))


MODES = [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}]


@pytest.mark.parametrize("options", MODES)
def test_the_jacobian_of_a_plain_output_by_a_nested_input_is_nested_after_the_dimensions_of_the_output(options):
    w = weight(3).detach()
    x = nested_tensor(rows())
    J = jacobian(lambda x: f(x, w).values().sum(0), x, **options)
    assert J.shape == (3, *x.shape)
    expected = [jacobian(lambda c: f(c, w).sum(0), c) for c in rows()]
    for k in range(3):
        assert_parts(J[k], [e[k] for e in expected])


@pytest.mark.parametrize("options", MODES)
def test_the_jacobian_of_a_nested_output_by_a_plain_input_is_nested_in_front_of_the_dimensions_of_the_input(options):
    x = nested_tensor(rows())
    J = jacobian(lambda w: f(x, w), weight(3).detach(), **options)
    assert_parts(J, [jacobian(lambda w, c=c: f(c, w), weight(3).detach()) for c in rows()])


@pytest.mark.parametrize("options", MODES)
def test_the_jacobian_of_a_nested_output_by_a_nested_input_is_refused_with_the_way_out(options):
    with pytest.raises(RuntimeError, match=r"is no tensor; ask for that of each example, by vmap\(.*fallback='loop'"):
        jacobian(lambda x: x.sin(), nested_tensor(rows()), **options)


def test_the_hessian_by_a_nested_input_is_refused_with_the_way_out():
    with pytest.raises(RuntimeError, match=r"hessian: the Jacobian of .* is no tensor"):
        hessian(lambda x: x.sin().values().sum(), nested_tensor(rows()))


# ------------------------------------------------------------------------------------------- optimisers, showing


@pytest.mark.parametrize(
    "make",
    [
        lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.1),
        lambda ps: optim.Adam(ps, lr=0.1),
        lambda ps: optim.AdamW(ps, lr=0.1),
    ],
    ids=["SGD", "Adam", "AdamW"],
)
def test_optimisers_step_nested_parameters_as_their_components(make):
    x, alone = leaf(), [p.clone().requires_grad_() for p in rows()]
    mine, its = make([x]), make(alone)
    for _ in range(3):
        for optimizer, loss in (
            (mine, lambda: f(x, 2.0).values().sum()),
            (its, lambda: sum(f(c, 2.0).sum() for c in alone)),
        ):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    assert_parts(x, alone)


def test_a_profile_shows_ragged_sizes():
    x = leaf()
    with autograd.profiler.profile(record_shapes=True) as profile:
        x.sin().values().sum().backward()
    assert "[[4, j, 3]]" in profile.key_averages(group_by_input_shape=True).table()


def test_explanations_and_drawings_show_ragged_sizes():
    y = leaf().sin()
    assert "float64[4, j, 3]" in str(autograd.explain(y))
    assert "j" in str(autograd.graph.draw(y))
