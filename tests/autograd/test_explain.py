"""`explain`: its report names the facts of each case and a solution."""

import re

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.autograd.explain import explain


def leaf(*shape):
    return rg.ones(*shape, requires_grad=True)


def line_of(text):
    """Return the number of the line in this file that contains a text."""
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def test_a_result_names_the_leaves_that_it_reaches_and_the_way_to_each():
    w, b = leaf(3, 4), leaf(4)
    found = explain((w.exp() + b).sum())
    assert [id(reached) for reached in found.leaves] == [id(b), id(w)]
    assert "float32[], requires grad: sum made it" in found.text
    assert "reaches 2 leaves" in found.text
    assert "float32[3, 4]: sum → add → exp → leaf" in found.text
    assert "float32[4]: sum → add → leaf" in found.text


def test_its_own_gradient_is_none_unless_it_is_retained():
    loss = leaf(3).sum()
    assert ".retain_grad()" in str(explain(loss))
    assert "autograd.grad(result, tensor)" in str(explain(loss))
    loss.retain_grad()
    assert "retain_grad" not in str(explain(loss))


def test_the_text_is_what_is_printed_and_shown():
    found = explain(leaf(3).sum())
    assert str(found) == repr(found) == found.text
    assert "\n\n" not in found.text


def test_a_long_way_is_shortened():
    x = leaf(3)
    for _ in range(1000):
        x = x * 1.0
    assert "sum → mul × 1,000 → leaf" in str(explain(x.sum()))
    y = leaf(3)
    for _ in range(50):
        y = y.sin().cos()
    assert "cos → sin → cos → … 94 operators … → sin → cos → sin → leaf" in str(explain(y))


def test_many_leaves_are_counted_and_a_dozen_shown():
    model = nn.Sequential(*[nn.Linear(3, 3) for _ in range(20)])
    found = explain(model(rg.ones(1, 3)).sum())
    assert "reaches 40 leaves" in found.text
    assert found.text.count("→ leaf") == 12
    assert "and 28 more" in found.text
    assert {id(p) for p in model.parameters()} == {id(reached) for reached in found.leaves}


def test_a_leaf_is_reached_by_the_shortest_way():
    w = leaf(3)
    found = explain((w.sin().cos() * w).sum(), w)
    assert found.text.startswith(
        "The gradient of this tensor, float32[], reaches the leaf float32[3]: sum → mul → leaf."
    )
    assert "no backward pass has reached it yet" in found.text
    assert "Call .backward() on this tensor" in found.text
    assert "add → tanh → leaf" in str(explain(w.tanh() + w.sin().cos().exp(), w))
    assert "add → tanh → leaf" in str(explain(w.sin().cos().exp() + w.tanh(), w))


def test_a_result_inside_the_graph_is_reached_too():
    w = leaf(3)
    inner = w.exp()
    found = explain(inner.sum(), inner)
    assert "reaches the result float32[3] of exp: sum → result." in found.text
    assert ".retain_grad()" in found.text


def test_a_leaf_that_is_not_used_is_reported():
    w, other = leaf(3), leaf(4)
    text = str(explain(w.exp().sum(), other))
    assert "No gradient goes from this tensor, float32[], to the leaf float32[4]" in text
    assert "of the 2 operators that computed it, none got a value that depends on it" in text
    assert "Way out" in text


def test_a_cut_inside_a_graph_is_found_with_its_line():
    w, other = leaf(3), leaf(3)
    cut = w.detach()  # the cut inside
    text = str(explain((cut * other).sum(), w))
    assert f"cut off by detach() at {__file__}:{line_of('# the cut inside')} in test_a_cut_inside" in text
    assert "that is where the gradient is lost" in text
    assert "cut off by detach()" in str(explain((cut * other).sum()))


@pytest.mark.parametrize(("make", "told", "way_out"), [
    (lambda w: w.detach(), r"detach\(\)", r"leave out detach\(\)"),
    (lambda w: w.detach().exp().sum(), r"detach\(\)", r"leave out detach\(\)"),
    (lambda w: w.argmax(), "argmax, which has no gradient,", "take the gradient of what goes into argmax"),
    (lambda w: w > 0, "gt, which has no gradient,", "take the gradient of what goes into gt"),
])  # fmt: skip
def test_missing_gradients_name_the_line_and_the_way_out(make, told, way_out):
    found = explain(make(leaf(3)))
    assert re.search(
        rf"does not require grad: .*cut off from the graph by {told} at .*test_explain\.py:\d+ in", found.text
    )
    assert re.search(rf"Way out: .*{way_out}", found.text)
    assert found.cut is not None
    assert found.cut.line in found.text
    assert found.leaves == ()


def test_tensors_made_under_no_grad_name_the_line():
    w = leaf(3)
    with rg.no_grad():
        made = w * 2  # the line under no_grad
    text = str(explain(made + 1))
    assert f"no_grad() at {__file__}:{line_of('# the line under no_grad')}" in text
    assert "outside of no_grad()" in text


def test_tensors_made_in_inference_mode_are_reported():
    w = leaf(3)
    with rg.inference_mode():
        made, fresh = w * 2, rg.ones(3)
    assert "inference_mode()" in str(explain(made))
    assert "made under inference_mode(), where nothing is recorded" in str(explain(fresh))
    assert "clone()" in str(explain(fresh))


def test_a_dtype_without_gradients_is_reported():
    text = str(explain(rg.tensor([1, 2])))
    assert "its dtype is int64, and only floating and complex numbers have gradients" in text
    assert "Way out: make it floating" in text


def test_nothing_that_requires_grad_went_into_it():
    found = explain((rg.ones(3) * 2).sum())
    assert "float32[], does not require grad: nothing that requires grad went into it" in found.text
    assert "requires_grad_()" in found.text
    assert found.cut is None


def test_a_tensor_without_a_graph_reaches_no_leaf():
    text = str(explain(rg.ones(2), leaf(3)))
    assert "float32[2], does not require grad" in text
    assert "no gradient goes from it to the leaf float32[3]" in text


def test_a_leaf_that_does_not_require_grad_is_the_reason():
    x = rg.ones(3)
    text = str(explain((leaf(3) * x).sum(), x))
    assert "to the leaf float32[3], which does not require grad: nothing that requires grad went into it" in text


def test_a_leaf_without_gradient_was_not_reached_yet():
    w = leaf(3)
    text = str(explain(w))
    assert "is a leaf that requires grad" in text
    assert ".grad is None: no backward pass has reached it" in text
    assert "explain(result, leaf)" in text
    w.sum().backward()
    assert ".grad holds the sum" in str(explain(w))
    assert "None" not in str(explain(w))


def test_a_hook_that_may_clear_the_gradient_is_named():
    w = leaf(3)
    w.register_post_accumulate_grad_hook(lambda tensor: setattr(tensor, "grad", None))
    w.sum().backward()
    assert "post-accumulate-grad hooks has cleared" in str(explain(w))
    other = leaf(3)
    other.register_hook(lambda grad: grad)
    assert "post-accumulate-grad" not in str(explain(other))


def test_a_freed_graph_is_reported():
    w = leaf(3)
    loss = w.exp().sum()
    assert "freed" not in str(explain(loss))
    loss.backward()
    for text in (str(explain(loss)), str(explain(loss, w))):
        assert "freed the saved values" in text
        assert "retain_graph=True" in text


def test_explaining_changes_nothing():
    w = leaf(3)
    loss = w.exp().sum()
    explain(loss), explain(loss, w), explain(w)
    assert w._hooks is None
    loss.backward()
    assert w.grad is not None


def test_a_deep_graph_is_explained_without_recursion():
    x = leaf(1)
    for _ in range(20_000):
        x = x * 1.0
    assert "mul × 20,000" in str(explain(x))


def test_only_tensors_are_explained():
    with pytest.raises(TypeError, match="tensor must be a Tensor, got int"):
        explain(3)
    with pytest.raises(TypeError, match="leaf must be a Tensor, got str"):
        explain(leaf(3), "w")
