"""Results that require grad: a compiled call is a node of the graph, whose backward pass has the eager run's bits."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.autograd.split_backward import backward_input, backward_weight

from .comparison import numbers, observe, state_of


def check(f, use, leaves=lambda: [numbers(3, 3, seed=i).requires_grad_() for i in range(2)], calls=3):
    """Check that `use(call, *leaves)` gives the same with the compiled function, at each of several calls."""
    compiled = rg.compile(f)
    for number in range(calls):
        outcomes = []
        for call in (f, compiled):
            made = leaves()
            try:
                outcome = observe(use(call, *made))
            except RuntimeError as error:
                outcome = str(error).partition("written to at")[0]
            outcomes.append((outcome, state_of(made)))
        assert outcomes[0] == outcomes[1], number
    assert compiled.programs, "the function runs eagerly"
    for program in compiled.programs:
        assert program.graph is not None
        assert None not in program.graph.programs.values(), "a backward pass runs eagerly"
    return compiled


def mixed(x, w):
    """Return values that need saved inputs, outputs and snapshots, of which the leaves are used several times."""
    h = (x @ w).tanh() * w
    return h.softmax(1), (h + x).exp() * w.sum(0), nn.functional.tanhshrink(h)


def test_a_backward_pass_after_the_call():
    check(mixed, lambda call, x, w: sum(out.sum() for out in call(x, w)).backward())


@pytest.mark.parametrize("chosen", [(0,), (1,), (2,), (0, 2), (2, 1)])
def test_a_backward_pass_from_some_of_the_results(chosen):
    def use(call, x, w):
        outs = call(x, w)
        rg.autograd.backward([outs[i] for i in chosen], [rg.ones(3, 3).t() for _ in chosen])
        return outs[0].detach()

    check(mixed, use)


def test_gradients_of_some_inputs_and_of_inputs_that_a_result_does_not_depend_on():
    def f(x, w):
        return x.sin() * 2, (x * w).cos()

    def use(call, x, w):
        first, second = call(x, w)
        none = rg.autograd.grad(first.sum(), [x, w], retain_graph=True, allow_unused=True)
        assert none[1] is None
        return none[0], rg.autograd.grad(second.sum() + first.sum(), [w]), w.grad

    check(f, use)


def test_leaves_that_are_used_outside_too_are_summed_in_the_eager_order():
    def f(x, w):
        return (x * w).sin() * w + w.exp() * x

    def use(call, x, w):
        a = (w * 0.3).cos()
        b = call(x, w) * w * a
        (b + call(b, w) * w).sum().backward()

    check(f, use)


def test_several_passes_and_the_error_after_the_last():
    def use(call, x, w):
        loss = sum(out.sum() for out in call(x, w))
        loss.backward(retain_graph=True)
        loss.backward()
        loss.backward()

    check(mixed, use)


def test_a_loss_whose_backward_pass_has_run_in_the_call():
    weight = numbers(3, 3).requires_grad_()

    def f(x, w):
        weight.grad = None
        loss, other = (rg.tanh(x @ weight).sum() * w).sum(), (w * w).sum()
        loss.backward(inputs=[weight])
        return loss, loss + other, other

    def use(call, x, w):
        freed, both, kept = call(x, w)
        assert freed.requires_grad
        assert weight.grad is not None
        kept.backward()
        with pytest.raises(RuntimeError, match="a second time"):
            freed.backward()
        both.backward()  # the same error

    check(f, use)


def test_values_are_freed_node_by_node():
    def f(x, w):
        return x + w, (x * w).exp()

    def use(call, x, w):
        first, second = call(x, w)
        first.sum().backward()
        first.sum().backward()  # nothing was saved
        second.sum().backward()
        first.sum().backward()
        second.sum().backward()  # an error

    check(f, use)


def test_gradients_of_gradients():
    def use(call, x, w):
        outs = call(x, w)
        slopes = rg.autograd.grad(sum((out * out).sum() for out in outs), [x, w], create_graph=True)
        assert slopes[0].requires_grad
        (sum((slope * slope * w).sum() for slope in slopes) + outs[0].sum()).backward()

    check(mixed, use)


def test_third_derivatives():
    def use(call, x, w):
        g = call(x, w).sum()
        for _ in range(2):
            (g,) = rg.autograd.grad(g, x, create_graph=True)
            g = (g * w).sum()
        g.backward()

    check(lambda x, w: (x**3 * w).sin(), use)


def test_derivatives_through_a_backward_pass_inside():
    def f(x, w):
        (slope,) = rg.autograd.grad((x.sin() * w).sum(), x, create_graph=True)
        return (slope**2).sum() + x.relu().sum()

    check(f, lambda call, x, w: call(x, w).backward())


def test_vector_jacobian_products_of_a_batch():
    def use(call, x, w):
        return rg.autograd.grad(call(x, w)[0], x, rg.stack([rg.ones(3, 3), numbers(3, 3)]), is_grads_batched=True)

    check(mixed, use)


def test_hooks_of_leaves_of_results_and_of_nodes():
    def use(call, x, w):
        seen = []
        w.register_hook(lambda g: seen.append(g.detach()) or g * 2)
        x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.detach().clone()))
        out = call(x, w)[1]
        out.register_hook(lambda g: seen.append(g.detach()) or g * 3)
        out.retain_grad()
        out.sum().backward()
        return seen, out.grad

    check(mixed, use)


@pytest.mark.parametrize("write", ["x", "w", "result"])
def test_a_write_to_a_saved_value_before_the_backward_pass_is_the_eager_error(write):
    def f(x, w):
        h = (x @ w).exp()
        return h * w, h

    def use(call, x, w):
        out, h = call(x, w)
        with rg.no_grad():
            {"x": x, "w": w, "result": h}[write].mul_(2)
        out.sum().backward()

    check(f, use)


def test_writes_to_values_that_no_pass_needs_and_to_snapshots():
    def use(call, x, w):
        h = x * 2
        out = call(h, w)
        h.detach().zero_()  # the call has saved a snapshot of it
        out.sum().backward()

    check(lambda h, w: nn.functional.tanhshrink(h) + w, use)


def test_new_data_of_a_parameter_before_the_backward_pass():
    def use(call, x, w):
        out = call(x, w)
        w.data = numbers(3, 3, seed=9)
        out.sum().backward()

    check(lambda x, w: (x * w).sin(), use)


def test_results_are_written_in_place_afterwards():
    def f(x, w):
        y = x * w
        return y, y[1:], y.exp().t()

    def use(call, x, w):
        y, part, other = call(x, w)
        part.mul_(3)
        other.add_(1)
        (y.sin().sum() + part.sum() + other.sum()).backward()
        return y.detach(), part.detach()

    check(f, use)


def test_views_of_arguments():
    def use(call, x, w):
        h = x * 1
        view, same, total = call(h, w)
        assert same is h
        assert view._base is h
        (view * 2 + total).sum().backward()
        return view.detach(), view._version

    check(lambda h, w: (h[1:], h, (h[1:] * w[0]).sum()), use)


def test_arguments_that_are_part_of_a_graph():
    def use(call, x, w):
        parts = (x * w).split(1)
        y = call(parts[1].expand(3, 3), parts[2] * w)
        sum(call(y[0], w)[0] + parts[0].sum() for _ in range(2)).sum().backward()

    check(lambda x, w: mixed(x, w)[:2], use)


def test_results_that_require_grad_and_others():
    def f(x, w):
        y = (x * w).detach()
        with rg.no_grad():
            z = w * 2
        top, index = (x * w).max(1)
        return y, z, top, index, (x > w)

    def use(call, x, w):
        y, z, top, index, mask = call(x, w)
        assert [t.requires_grad for t in (y, z, top, index, mask)] == [False, False, True, False, False]
        top.sum().backward()
        return y, z, top.detach(), index, mask

    check(f, use)


def test_writes_inside_the_call():
    def f(x, w):
        y = x * 1
        y[0] = w[1]
        y.mul_(w)
        z = rg.zeros(3, 3)
        z[:, 1] = y[1].exp()
        return y + z

    check(f, lambda call, x, w: call(x, w).square().sum().backward())


def test_grad_modes():
    compiled = check(mixed, lambda call, x, w: call(x, w)[0].sum().backward())
    x, w = numbers(3, 3).requires_grad_(), numbers(3, 3)
    with rg.no_grad():
        assert not compiled(x, w)[0].requires_grad
    assert compiled(x, w)[0].requires_grad
    assert not compiled(x.detach(), w)[0].requires_grad
    with rg.inference_mode(), pytest.warns(UserWarning, match="inference"):
        compiled(x, w)


def test_profilers_and_anomaly_mode_see_the_nodes_inside():
    compiled = check(mixed, lambda call, x, w: call(x, w)[0].sum().backward())
    x, w = numbers(3, 3).requires_grad_(), numbers(3, 3)
    loss = compiled(x, w)[0].sum()
    with rg.autograd.profiler.profile() as prof:
        loss.backward()
    assert any("softmax" in event.name.lower() for event in prof.events())


def test_a_backward_pass_that_reads_values_runs_eagerly():
    def f(a, b):
        return rg.linalg.lstsq(a, b).solution

    a, b = numbers(4, 2).double(), numbers(4, 1, seed=1).double()
    compiled, grads = rg.compile(f), []
    for call in (f, compiled, compiled, compiled):
        leaf = a.clone().requires_grad_()
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            call(leaf, b).sum().backward()
        grads.append(observe(leaf.grad))
    assert grads[1:] == grads[:1] * 3


def test_a_users_backward_runs_as_often_as_in_eager_calls():
    calls = []

    class Double(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * 2

    compiled = rg.compile(lambda x: Double.apply(x))
    x = numbers(3).requires_grad_()
    compiled(x).sum().backward()
    x.grad = None
    with pytest.warns(UserWarning, match="changes the length of calls"):
        compiled(x).sum().backward()
    x.grad = None
    compiled(x).sum().backward()
    assert len(calls) == 3


def test_a_model_in_a_training_loop():
    def train(compiled):
        rg.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
        optimizer = rg.optim.AdamW(model.parameters(), lr=0.05)
        call = rg.compile(model) if compiled else model
        for i in range(20):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(call(numbers(5, 4, seed=i)), rg.arange(5) % 3)
            loss.backward()
            optimizer.step()
        programs = call._compiled_call.programs if compiled else []
        return state_of([*model.parameters(), *model.buffers()]), str(rg.get_rng_state()), len(programs)

    eager, compiled = train(False), train(True)
    assert compiled[:2] == eager[:2]
    assert compiled[2] > 0


def test_threads_run_backward_passes_at_the_same_time():
    compiled = rg.compile(mixed)

    def slopes(call, seed):
        x, w = numbers(3, 3, seed=seed).requires_grad_(), numbers(3, 3, seed=seed + 1).requires_grad_()
        sum(out.sum() for out in call(x, w)).backward()
        return state_of([x, w])

    expected = [slopes(mixed, seed) for seed in range(12)]
    assert slopes(compiled, 0) == expected[0]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda seed: slopes(compiled, seed), range(12))) == expected


def test_the_memory_of_a_call_is_freed_with_its_results():
    import gc
    import weakref

    compiled = rg.compile(mixed)
    x, w = numbers(3, 3).requires_grad_(), numbers(3, 3)
    compiled(x, w)
    gc.disable()
    try:
        outs = compiled(x, w)
        calls = [weakref.ref(outs[0]._grad_fn), weakref.ref(outs[0])]
        outs[0].sum().backward()
        del outs
        assert [call() for call in calls] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "f",
    [lambda x, w: x + w, lambda x, w: x.exp() + w.t(), lambda x, w: (x * w).t() + x, lambda x, w: (x + 1) + (w + 2)],
    ids=["one cotangent for both", "a transposed one", "two uses", "through other operators"],
)
def test_gradients_of_a_call_share_no_memory(f):
    x, w = (numbers(3, 3, seed=i).requires_grad_() for i in range(2))
    call = rg.compile(f)
    for _ in range(3):
        x.grad = w.grad = None
        seed = rg.ones(3, 3)
        call(x, w).backward(seed, retain_graph=True)
        before = w.grad.clone()
        x.grad.add_(100)
        assert w.grad.equal(before)
        assert seed.equal(rg.ones(3, 3))


@pytest.mark.parametrize("wants_input", [True, False])
def test_halves_of_a_backward_pass_have_the_eager_gradients(wants_input):
    layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3))
    compiled, found = rg.compile(layers), []
    for function in (layers, compiled, compiled, compiled):
        layers.zero_grad()
        x = numbers(5, 4).requires_grad_(wants_input)
        out, inputs = function(x), [x] if wants_input else []
        grads, groups = backward_input([out], [rg.ones(5, 3)], inputs, list(layers.parameters()))
        assert all(p.grad is None for p in layers.parameters())
        backward_weight(groups)
        found.append([g.tolist() for g in (*grads, *[p.grad for p in layers.parameters()])])
    assert found == [found[0]] * 4


class Residual(nn.Module):
    """Attention and a layer that is used twice."""

    def __init__(self):
        super().__init__()
        self.norm, self.attention, self.layer = nn.LayerNorm(4), nn.MultiheadAttention(4, 2), nn.Linear(4, 4)

    def forward(self, x):
        y = self.norm(x)
        y = x + self.attention(y, y, y, need_weights=False)[0]
        return y + self.layer(nn.functional.gelu(self.layer(y)))


def halves_of(function, module, x):
    """Return the result of a call and the gradient of x after the first half, and the groups for the second half."""
    x = x.clone().requires_grad_()
    out = function(x)
    (g,), groups = backward_input([out], [out.detach().cos()], [x], list(module.parameters()))
    return [out.detach(), g], groups


def test_halves_of_several_calls_are_programs_with_the_eager_bits():
    rg.manual_seed(0)
    module, found = Residual(), []
    compiled = rg.compile(module)
    for function in (module, compiled, compiled, compiled):
        module.zero_grad()
        given = [halves_of(function, module, numbers(3, 2, 4, seed=i)) for i in range(3)]  # all before any weights
        for _, groups in given:
            backward_weight(groups)
        arrays = [t for tensors, _ in given for t in tensors] + [p.grad for p in module.parameters()]
        found.append([a.numpy().tobytes() for a in arrays])
    assert found == [found[0]] * 4
    (programs,) = [halves for p in compiled._compiled_call.programs for halves in p.graph.halves.values()]
    assert programs.first is not None
    assert programs.second is not None
    assert programs.reads


def test_a_second_half_finds_values_written_to_since_the_first():
    module = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3))
    compiled = rg.compile(module)
    for _ in range(3):
        _, groups = halves_of(compiled, module, numbers(5, 4))
        backward_weight(groups)
    x = numbers(5, 4).requires_grad_()
    copy = x * 1
    out = compiled(copy)
    _, groups = backward_input([out], [rg.ones(5, 3)], [x], list(module.parameters()))
    with rg.no_grad():
        copy.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        backward_weight(groups)
