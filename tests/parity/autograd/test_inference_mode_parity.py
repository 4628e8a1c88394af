"""Inference mode: inference tensors are never recorded; operations they refuse outside."""

import pytest

from .adapter import in_thread, leaf, outcome, parity


def made_inside(m, *values):
    """Return a tensor created in inference mode."""
    with m.inference_mode():
        return m.tensor([float(v) for v in values])


@parity
def test_tensors_made_inside_are_inference_tensors(m):
    x = leaf(m, 1)
    with m.inference_mode():
        made = [m.ones(2), x * 2, x, x[:1], x.clone(), m.ones(2)[0]]
        return [t.is_inference() for t in made], m.is_inference_mode_enabled(), m.is_grad_enabled()


@parity
def test_nothing_is_recorded_inside(m):
    x = leaf(m, 1)
    with m.inference_mode():
        y = x * 2
        with m.enable_grad():
            z = x * 2
    return [(t.requires_grad, t.grad_fn, t.is_leaf) for t in (y, z)]


@parity
def test_the_mode_can_be_switched_off_and_on_inside(m):
    x, seen = leaf(m, 1), []
    with m.inference_mode():
        with m.inference_mode(False):
            y = x * 2
            seen += [m.is_inference_mode_enabled(), y.is_inference(), y.requires_grad]
        seen.append(m.is_inference_mode_enabled())
    return [*seen, m.is_inference_mode_enabled()]


@parity
def test_inference_mode_false_turns_gradients_on(m):
    with m.no_grad(), m.inference_mode(False):
        inside = m.is_grad_enabled()
    with m.inference_mode(False):
        return inside, m.is_grad_enabled(), m.ones(1).is_inference()


@parity
def test_inference_tensors_have_no_version(m):
    t = made_inside(m, 1, 2)
    return outcome(lambda: t._version, "inference")


@parity
def test_inference_tensors_may_be_changed_inside(m):
    with m.inference_mode():
        t = m.ones(2)
        t.add_(1)
        t[:1].mul_(5)
        return t


@parity
def test_inference_tensors_may_not_be_changed_outside(m):
    t = made_inside(m, 1, 2)
    return outcome(lambda: t.add_(1), "inference"), outcome(lambda: t[:1].zero_(), "inference")


@parity
def test_inference_tensors_may_not_be_changed_outside_under_no_grad_either(m):
    t = made_inside(m, 1, 2)
    with m.no_grad():
        return outcome(lambda: t.add_(1), "inference")


@parity
def test_inference_tensors_may_be_read_outside(m):
    t = made_inside(m, 1, 2)
    y = t * 2
    return y, y.is_inference(), t.is_inference(), t[0].is_inference(), t.clone().is_inference()


@parity
def test_inference_tensors_cannot_be_saved(m):
    t, x = made_inside(m, 1, 2), leaf(m, 3, 4)
    return outcome(lambda: x * t, "inference"), outcome(lambda: (x + t).sum().backward()), x.grad


@parity
def test_a_clone_outside_is_a_normal_tensor(m):
    t, x = made_inside(m, 1, 2), leaf(m, 3, 4)
    (x * t.clone()).sum().backward()
    return x.grad


@parity
def test_inference_tensors_and_requires_grad(m):
    t = made_inside(m, 1, 2)
    with m.inference_mode():
        inside = outcome(lambda: m.ones(1).requires_grad_().requires_grad)
    return outcome(t.requires_grad_, "inference"), inside


@parity
def test_views_of_normal_tensors_made_inside_are_normal(m):
    base = m.ones(4)
    with m.inference_mode():
        view = base[:2]
    return view.is_inference(), view._version, view


@parity
def test_a_view_of_a_result_made_inside_refuses_writes_outside(m):
    base = leaf(m, 1, 2) * 1
    with m.inference_mode():
        view = base[:1]
    return outcome(lambda: view.add_(1), "inference")


@parity
def test_a_normal_tensor_changed_inside_counts(m):
    x, w = leaf(m, 1, 2), m.tensor([3.0, 4.0])
    y = (x * w).sum()
    with m.inference_mode():
        w.mul_(10)
    return outcome(y.backward), w._version, w.is_inference()


@parity
def test_a_leaf_may_not_be_changed_inside_either(m):
    x = leaf(m, 1, 2)
    with m.inference_mode():
        return outcome(lambda: x.add_(1), "leaf"), x.requires_grad


@parity(known="refused before anything is written", ours="[RuntimeError, [1.0, 2.0]]")
def test_a_base_of_inference_mode_may_not_get_a_normal_value_outside(m):
    t, x = made_inside(m, 1, 2), leaf(m, 3, 4)
    return outcome(lambda: t.copy_(x)), outcome(lambda: x.detach().copy_(t))


@parity
def test_a_graph_made_outside_may_be_walked_inside(m):
    x = leaf(m, 3)
    y = x * x
    with m.inference_mode():
        return outcome(y.backward), x.grad, None if x.grad is None else x.grad.is_inference()


@parity
def test_the_mode_is_that_of_its_thread(m):
    with m.inference_mode():
        return in_thread(m.is_inference_mode_enabled), m.is_inference_mode_enabled()


@parity
def test_as_a_decorator(m):
    @m.inference_mode()
    def decorated():
        return m.is_inference_mode_enabled(), m.ones(1).is_inference()

    return decorated(), m.is_inference_mode_enabled()


@parity
def test_as_a_decorator_without_parentheses(m):
    @m.inference_mode
    def decorated():
        return m.is_inference_mode_enabled()

    return decorated(), m.is_inference_mode_enabled()


@parity
def test_as_a_decorator_of_a_generator(m):
    @m.inference_mode()
    def generate():
        for _ in range(2):
            yield m.is_inference_mode_enabled()

    return [(inside, m.is_inference_mode_enabled()) for inside in generate()]


@parity
def test_the_mode_ends_with_an_exception(m):
    def fail():
        with m.inference_mode():
            raise ValueError

    return outcome(fail), m.is_inference_mode_enabled(), m.is_grad_enabled()


@parity
def test_detached_and_data_of_inference_tensors(m):
    t = made_inside(m, 1, 2)
    return t.detach().is_inference(), t.data.is_inference()


@parity
def test_the_grad_of_an_inference_tensor(m):
    t = made_inside(m, 1, 2)
    return t.grad, t.is_leaf, t.requires_grad


@parity
def test_hooks_on_inference_tensors_are_refused(m):
    return outcome(lambda: made_inside(m, 1).register_hook(print), "require")


def facts(t):
    """Return what a program can ask about the place of a tensor in graphs."""
    return t.requires_grad, t.is_leaf, t.is_inference(), t.grad_fn is None, t._is_view()


VIEWS = {
    "view": lambda x: x.view(3),
    "part": lambda x: x[1:],
    "expanded": lambda x: x.expand(2, 3),
    "view of a view": lambda x: x.view(3)[:2],
    "detached": lambda x: x.detach(),
    "one of several": lambda x: x.unbind()[0],
    "product": lambda x: x * 2,
    "diagonal": lambda x: x.expand(3, 3).diagonal(),
}
SOURCES = {
    "leaf": lambda m: leaf(m, 1, 2, 3),
    "result": lambda m: leaf(m, 1, 2, 3) * 2,
    "constant": lambda m: m.ones(3),
    "inference tensor": lambda m: made_inside(m, 1, 2, 3),
}


@parity
def test_views_of_tensors_from_outside_are_leaves_that_require_grad(m):
    found = {}
    for source, make in SOURCES.items():
        for name, view in VIEWS.items():
            x = make(m)
            with m.inference_mode():
                v = view(x)
                found[source, name] = facts(v)
            if source != "inference tensor":
                found[source, name, "outside"] = (*facts(v), facts(v.view(-1)) if v.is_contiguous() else None)
    with m.inference_mode():
        x = leaf(m, 1, 2, 3)
        found |= {name: facts(view(x))[:-1] for name, view in VIEWS.items()}
    return found


@parity
def test_a_leaf_made_inside_refuses_writes_outside_as_a_leaf(m):
    with m.inference_mode():
        x = leaf(m, 1, 2)
    return outcome(lambda: x.add_(1), "a leaf Variable that requires grad")


def square(x):
    return (x * x).sum()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@parity
def test_function_transforms_record_inside(m):
    with m.inference_mode():
        x = m.ones(2) * 3
        out, pull = m.func.vjp(square, x)
        found = [
            m.func.grad(square)(x).tolist(),
            pull(m.ones(()))[0].tolist(),
            m.func.jacrev(square)(x).tolist(),
            m.func.hessian(square)(x).tolist(),
            m.func.vmap(m.func.grad(square))(m.ones(2, 2)).tolist(),
            m.func.grad(lambda x: m.func.vmap(square)(x).sum())(m.ones(2, 2)).tolist(),
            m.func.jvp(m.func.grad(square), (x,), (x,))[1].tolist(),
            out.requires_grad,
            m.is_inference_mode_enabled(),
            m.is_grad_enabled(),
        ]
        with m.enable_grad():
            found += [m.func.grad(square)(x).tolist(), m.is_grad_enabled()]
        return [*found, m.is_grad_enabled(), m.ones(1).is_inference()]
