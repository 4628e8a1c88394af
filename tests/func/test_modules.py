"""functional_call, functionalize and related functions: modules as functions, functions without writes."""

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.core import current
from retrograd.func import debug_unwrap, functional_call, functionalize, grad, jvp, stack_module_state, vmap


def t(*values):
    return rg.tensor([float(v) for v in values])


class Scale(nn.Module):
    """Multiply x by a weight, with a counter that is replaced and a total that is written to."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(t(1, 1))
        self.register_buffer("count", rg.zeros(()))
        self.register_buffer("total", rg.zeros(2))

    def forward(self, x, fail=False):
        self.count = self.count + 1
        self.total.add_(x)
        if fail:
            raise KeyError("after the writes")
        return x * self.weight


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.inner = Scale(), nn.Sequential(Scale(), nn.Identity())

    def forward(self, x):
        return self.inner(self.first(x))


class Tied(nn.Module):
    """One weight under two names."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(t(1, 1))
        self.b = self.a

    def forward(self, x):
        return x * self.a + self.b


def snapshot(module):
    """Return the tensors of a module by path, and their values."""
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    return [(name, id(x), type(x), x.tolist()) for name, x in named]


# ---------------------------------------------------------------------------------------------- functional_call


def test_a_module_runs_with_the_tensors_given():
    module = Outer()
    before = [x for x in snapshot(module) if "weight" in x[0]]
    given = {"first.weight": t(2, 3), "inner.0.weight": t(5, 7)}
    assert functional_call(module, given, t(1, 10)).tolist() == [10.0, 210.0]
    assert functional_call(module, {"inner.0.weight": t(5, 7)}, t(1, 10)).tolist() == [5.0, 70.0]
    assert [x for x in snapshot(module) if "weight" in x[0]] == before


def test_arguments_are_a_tuple_or_a_single_one_and_keywords():
    layer = nn.Linear(2, 2)
    zeros = {"weight": rg.zeros(2, 2), "bias": t(1, 2)}
    for args, kwargs in ((t(3, 4), None), ((t(3, 4),), {}), (None, {"input": t(3, 4)}), ((), {"input": t(3, 4)})):
        assert functional_call(layer, zeros, args, kwargs).tolist() == [1.0, 2.0]


def test_several_dicts_are_taken_together():
    given = ({"weight": t(2, 3)}, {"count": t(1), "total": t(0, 0)})
    for dicts in (given, list(given)):
        assert functional_call(Scale(), dicts, t(1, 1)).tolist() == [2.0, 3.0]
    assert functional_call(Scale(), (), t(1, 1)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (3, ValueError, "to be a dict, or a list/tuple of dicts, but got <class 'int'>"),
        (None, ValueError, "got <class 'NoneType'>"),
        ([{}, 3], ValueError, "to be a dict, or a list/tuple of dicts"),
        (({"weight": t(1, 1)}, {"weight": t(1, 1)}), ValueError, "weight appeared in more than one dict"),
        ({"weight": 1.0}, TypeError, "'weight' is to be replaced by a tensor, but float is no tensor"),
        ({"training": t(1)}, TypeError, "'training' .* bool is no tensor"),
        ({"forward": t(1)}, TypeError, "'forward' .* method is no tensor"),
        ({"other.weight": t(1)}, AttributeError, "no module 'other'"),
        ({"": t(1)}, KeyError, "'' is no name of a tensor"),
    ],
)
def test_states_that_do_not_fit_the_module_are_refused_before_it_changes(given, error, text):
    module = Scale()
    before = snapshot(module)
    with pytest.raises(error, match=text):
        functional_call(module, given, t(1, 1))
    assert snapshot(module) == before


def test_buffers_replaced_or_written_by_forward_are_in_the_returned_dict():
    module = Outer()
    given = {"first.count": t(5), "first.total": t(1, 1), "inner.0.count": t(7)}
    total = given["first.total"]
    functional_call(module, given, t(2, 3))
    assert {k: v.tolist() for k, v in given.items()} == {
        "first.count": [6.0], "first.total": [3.0, 4.0], "inner.0.count": [8.0]
    }  # fmt: skip
    assert given["first.total"] is total


def test_it_comes_back_in_each_of_several_dicts():
    given = ({"weight": t(2, 2)}, {"count": t(5)}, {"total": t(1, 1)})
    functional_call(Scale(), given, t(2, 3))
    assert [d["count"].tolist() if "count" in d else None for d in given] == [None, [6.0], None]
    assert given[2]["total"].tolist() == [3.0, 4.0]


def test_the_module_is_as_it_was_even_after_a_failure():
    module = Scale()
    before = snapshot(module)
    given = {"weight": t(2, 2), "count": t(5), "total": t(0, 0)}
    with pytest.raises(KeyError):
        functional_call(module, given, (t(1, 1), True))
    assert snapshot(module) == before
    assert (given["count"].tolist(), given["total"].tolist()) == ([6.0], [1.0, 1.0])
    functional_call(module, given, t(1, 1))
    assert snapshot(module) == before


def test_a_name_that_the_module_does_not_have_is_there_during_the_call():
    class Uses(nn.Module):
        def forward(self, x):
            return x + self.extra

    module = Uses()
    assert functional_call(module, {"extra": t(5)}, t(1)).tolist() == [6.0]
    assert not hasattr(module, "extra")


def test_strict_requires_all_names_and_no_others():
    full = {"weight": t(2, 2), "count": t(0), "total": t(0, 0)}
    assert functional_call(Scale(), full, t(1, 1), strict=True).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="do not fit Scale: unexpected: extra; missing: count, total"):
        functional_call(Scale(), {"weight": t(2, 2), "extra": t(1)}, t(1, 1), strict=True)


def test_tied_weights_are_replaced_together():
    for name in ("a", "b"):
        assert functional_call(Tied(), {name: t(2, 3)}, t(10, 10)).tolist() == [22.0, 33.0]
        assert functional_call(Tied(), {name: t(2, 3)}, t(10, 10), strict=True).tolist() == [22.0, 33.0]
    one = t(2, 3)
    assert functional_call(Tied(), {"a": one, "b": one}, t(10, 10)).tolist() == [22.0, 33.0]
    with pytest.raises(ValueError, match="a, b are tied, but have different values"):
        functional_call(Tied(), {"a": t(2, 3), "b": t(2, 3)}, t(1, 1))


def test_without_tie_weights_each_name_is_its_own():
    module = Tied()
    assert functional_call(module, {"a": t(2, 3)}, t(10, 10), tie_weights=False).tolist() == [21.0, 31.0]
    both = {"a": t(2, 3), "b": t(0, 0)}
    assert functional_call(module, both, t(10, 10), tie_weights=False).tolist() == [20.0, 30.0]
    with pytest.raises(RuntimeError, match="missing: b"):
        functional_call(module, {"a": t(2, 3)}, t(1, 1), tie_weights=False, strict=True)
    assert module.a is module.b


def test_a_module_under_two_names_is_restored():
    module = nn.Sequential(Scale(), nn.Identity())
    module.append(module[0])
    before = snapshot(module)
    values = {"0.weight": t(2, 2), "2.weight": t(3, 3)}
    assert functional_call(module, values, t(1, 1), tie_weights=False).tolist() == [9.0, 9.0]
    assert [x for x in snapshot(module) if "weight" in x[0]] == [x for x in before if "weight" in x[0]]


def test_gradients_are_those_of_the_tensors_given():
    layer = nn.Linear(2, 1)
    params = {"weight": rg.zeros(1, 2), "bias": rg.ones(1)}
    found = grad(lambda p: (functional_call(layer, p, t(3, 4)) ** 2).sum())(params)
    assert {k: v.tolist() for k, v in found.items()} == {"weight": [[6.0, 8.0]], "bias": [2.0]}
    assert layer.weight.grad is None
    leaves = {k: v.requires_grad_() for k, v in params.items()}
    functional_call(layer, leaves, t(3, 4)).sum().backward()
    assert (leaves["weight"].grad.tolist(), layer.weight.grad) == ([[3.0, 4.0]], None)


# ------------------------------------------------------------------------------------------- stack_module_state


def test_an_ensemble_runs_as_one():
    models = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(5)]
    params, buffers = stack_module_state(models)
    x = rg.randn(6, 3)
    out = vmap(lambda p, b: functional_call(models[0], (p, b), x))(params, buffers)
    assert rg.allclose(out, rg.stack([model(x) for model in models]), rtol=1e-6)
    assert [p.shape[0] for p in params.values()] == [5] * 4


def test_stacked_states_are_new_leaves():
    models = [Scale(), Scale()]
    params, buffers = stack_module_state(models)
    assert (list(params), list(buffers)) == (["weight"], ["count", "total"])
    assert all(p.is_leaf and p.requires_grad and p.shape == (2, 2) for p in params.values())
    assert not any(b.requires_grad for b in buffers.values())
    with rg.no_grad():
        params["weight"].zero_()
    assert models[0].weight.tolist() == [1.0, 1.0]
    frozen, _ = stack_module_state([Scale().requires_grad_(False) for _ in range(2)])
    assert not frozen["weight"].requires_grad


def test_statistics_of_an_ensemble_are_written_in_place():
    models = [Scale(), Scale()]
    params, buffers = stack_module_state(models)
    vmap(lambda p, b, x: functional_call(models[0], {**p, **b}, x))(
        params, buffers, rg.tensor([[1.0, 2.0], [3.0, 4.0]])
    )
    assert buffers["total"].tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("models", "text"),
    [
        (lambda: [], "Expected at least one model, got 0"),
        (lambda: [Scale(), Tied()], "must be of one class, got Scale, Tied"),
        (lambda: [Scale(), Scale().eval()], "some models are in training mode and some in evaluation mode"),
        (lambda: [nn.Linear(2, 2), nn.Linear(2, 2, bias=False)], "models 0 and 1 differ in what they have: bias"),
        (lambda: [Scale(), Scale().requires_grad_(False)], "weight requires gradients in some models"),
    ],
)
def test_models_that_differ_are_refused(models, text):
    with pytest.raises(RuntimeError, match=f"stack_module_state: .*{text}"):
        stack_module_state(models())


# ------------------------------------------------------------------------------------------------- functionalize


def written(x):
    view = x[:2]
    view.mul_(3)
    x.add_(1)
    return x * 2, view


def test_functionalize_changes_nothing_that_is_observable():
    mine, other = t(1, 2, 3), t(1, 2, 3)
    for remove in ("mutations", "mutations_and_views"):
        found, expected = functionalize(written, remove=remove)(mine), written(other)
        assert [a.tolist() for a in found] == [a.tolist() for a in expected]
        assert mine.tolist() == other.tolist()


def test_arguments_are_written_to_when_the_function_has_returned():
    seen = []

    def f(x):
        x.add_(1)
        seen.append(given.tolist())
        return x

    given = t(1)
    assert functionalize(f)(given) is given
    assert (seen, given.tolist(), given._version) == ([[1.0]], [2.0], 1)


def test_arguments_are_not_written_to_if_it_fails():
    def fails(x):
        x.add_(1)
        raise KeyError

    given = t(1)
    with pytest.raises(KeyError):
        functionalize(fails)(given)
    assert (given.tolist(), given._version, current().level) == ([1.0], 0, None)


def test_arguments_may_be_trees_keywords_and_twice_the_same():
    def f(d, n, *, k):
        d["a"].add_(k * n)
        k.zero_()
        return d["b"][0] * 1

    a, k = t(1), t(2)
    assert functionalize(f)({"a": a, "b": [a]}, 3, k=k).tolist() == [7.0]
    assert (a.tolist(), k.tolist()) == ([7.0], [0.0])


def test_captured_tensors_may_not_be_written_to():
    outside = t(1)
    with pytest.raises(RuntimeError, match="clone it there"):
        functionalize(lambda x: outside.add_(x))(t(1))
    assert outside.tolist() == [1.0]


def test_a_leaf_is_refused_as_it_is_without_functionalize():
    for f in (written, functionalize(written)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            f(t(1, 2, 3).requires_grad_())


def test_gradients_flow_through_writes_of_all_kinds():
    def of(f):
        leaf = t(1, 2, 3).requires_grad_()
        x = leaf * 1
        y, view = f(x)
        return rg.autograd.grad((y * view.sum()).sum() + (x**2).sum(), leaf)[0].tolist()

    assert of(functionalize(written)) == of(written)


def test_it_nests_with_other_transforms():
    def f(x):
        out = rg.zeros(3)
        out[:2] = x[:2] ** 2
        out[2:].add_(x.sum())
        return out.sum()

    x = t(1, 2, 3)
    assert grad(functionalize(f))(x).tolist() == functionalize(grad(f))(x).tolist() == [3.0, 5.0, 1.0]
    assert jvp(functionalize(f), (x,), (t(1, 0, 0),))[1].tolist() == 3.0
    rows = rg.stack([x, x * 2])
    assert vmap(functionalize(f))(rows).tolist() == functionalize(vmap(f))(rows).tolist() == [11.0, 32.0]
    assert functionalize(functionalize(f))(x).tolist() == 11.0


def test_a_trace_of_it_has_functional_operators_only():
    graph = fx.trace(functionalize(written), t(1, 2, 3))
    assert {n.target.name for n in graph.graph.nodes if n.op == "call_function"} == {
        "slice",
        "mul",
        "view_scatter",
        "add",
    }
    assert [a.tolist() for a in graph(t(1, 2, 3))] == [a.tolist() for a in written(t(1, 2, 3))]


def test_a_trace_of_writes_returns_views_as_they_are_at_the_end():
    graph = fx.trace(lambda x: written(x.clone()), t(1, 2, 3))
    assert [a.tolist() for a in graph(t(1, 2, 3))] == [a.tolist() for a in written(t(1, 2, 3))]


def test_there_is_nothing_else_to_remove():
    with pytest.raises(RuntimeError, match="remove must be one of mutations, mutations_and_views, got 'views'"):
        functionalize(written, remove="views")


# -------------------------------------------------------------------------------------------------- debug_unwrap


def test_unwrapping_goes_to_the_ground_or_one_level_down():
    seen = []

    def f(x):
        seen.append((debug_unwrap(x), debug_unwrap(x, recurse=False)))
        return x.sum()

    x = rg.ones(2, 3, 4)
    vmap(vmap(f), 1)(x)
    ((ground, below),) = seen
    assert (ground.level, ground.shape, below.level is None, below.shape) == (None, (2, 3, 4), False, (2, 4))
    assert debug_unwrap(x) is debug_unwrap(x, recurse=False) is x


def test_only_tensors_are_unwrapped():
    with pytest.raises(TypeError, match="debug_unwrap: expected a Tensor, got float"):
        debug_unwrap(3.0)


def test_a_block_replaces_tensors_under_pytorchs_private_name():
    model, weight = Tied(), t(2, 3)
    with nn.utils.stateless._reparametrize_module(model, {"a": weight}, tie_weights=True):
        assert model.a is weight
        assert model.b is weight
    assert model.a is model.b
    assert model.a is not weight
    with pytest.raises(RuntimeError, match="missing: b"):
        nn.utils.stateless._reparametrize_module(model, {"a": weight}, strict=True)
