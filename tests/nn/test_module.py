"""Modules: registration, traversal, hooks, state dicts, conversions, and printing."""

import copy
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import global_hooks


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.scale = nn.Parameter(rg.ones(3))
        self.register_buffer("offset", rg.zeros(3))
        self.register_buffer("scratch", rg.zeros(1), persistent=False)
        self.second = nn.Linear(3, 1, bias=False)

    def forward(self, x):
        return self.second(self.first(x) * self.scale + self.offset)


NAMES = ["scale", "first.weight", "first.bias", "second.weight"]


def names(pairs):
    return [name for name, _ in pairs]


# ----------------------------------------------------------------------------------------------- registration


def test_parameters_buffers_and_modules_register_where_they_are_assigned():
    net = Net()
    assert names(net.named_parameters()) == NAMES
    assert names(net.named_parameters(recurse=False)) == ["scale"]
    assert names(net.named_parameters(prefix="net")) == [f"net.{name}" for name in NAMES]
    assert names(net.named_buffers()) == ["offset", "scratch"]
    assert names(net.named_children()) == ["first", "second"]
    assert names(net.named_modules()) == ["", "first", "second"]
    assert list(net.children()) == [net.first, net.second]


def test_a_shared_parameter_is_listed_once_unless_duplicates_may_stay():
    net = Net()
    net.first.bias = net.scale
    assert names(net.named_parameters()) == ["scale", "first.weight", "second.weight"]
    assert names(net.named_parameters(remove_duplicate=False)) == NAMES
    assert names(net.state_dict().items()) == [
        "scale",
        "offset",
        "first.weight",
        "first.bias",
        "second.weight",
    ]


def test_a_shared_module_is_listed_once():
    shared = nn.Linear(2, 2)
    pair = nn.Sequential(shared, shared)
    assert names(pair.named_modules()) == ["", "0"]
    assert names(pair.named_modules(remove_duplicate=False)) == ["", "0", "1"]
    assert len(list(pair.parameters())) == 2
    assert len(pair.state_dict()) == 4


def test_modules_are_visited_as_they_are_when_their_turn_comes():
    deep = nn.Sequential(nn.Sequential(nn.Linear(1, 1), nn.ReLU()), nn.Tanh(), nn.ELU())
    visited = []
    for name, module in deep.named_modules():
        visited.append((name, type(module).__name__))
        if name == "0.0":
            deep[1] = nn.Sigmoid()
            del deep[2]
    assert visited == [
        ("", "Sequential"), ("0", "Sequential"), ("0.0", "Linear"), ("0.1", "ReLU"), ("1", "Sigmoid"),
    ]  # fmt: skip


def test_a_module_may_say_itself_which_modules_it_has():
    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(1, 1)

        def named_modules(self, memo=None, prefix="", remove_duplicate=True):
            yield prefix + "*", self

    model = nn.Sequential(nn.Linear(1, 1), Hidden())
    assert names(model.named_modules()) == ["", "0", "1*"]
    assert names(model.named_parameters()) == ["0.weight", "0.bias"]


def test_reassigning_a_parameter_keeps_its_position_and_none_empties_it():
    net = Net()
    net.scale = nn.Parameter(rg.zeros(3))
    assert names(net.named_parameters()) == NAMES
    net.scale = None
    assert net.scale is None
    assert names(net.named_parameters()) == NAMES[1:]


def test_replacements_of_registered_names_must_be_of_their_kind():
    net = Net()
    with pytest.raises(TypeError, match=r"cannot assign 'Tensor' as parameter 'scale'"):
        net.scale = rg.ones(3)
    with pytest.raises(TypeError, match=r"nn.Module or None expected"):
        net.first = 3
    with pytest.raises(TypeError, match="Tensor or None expected"):
        net.offset = "zero"
    assert names(net.named_parameters()) == NAMES


def test_a_deleted_attribute_is_no_longer_registered():
    net = Net()
    del net.second
    assert names(net.named_parameters()) == NAMES[:3]
    assert not hasattr(net, "second")


def test_assigning_before_the_constructor_of_module_says_what_to_call():
    class Hasty(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(rg.ones(1))

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
        Hasty()


def test_using_a_module_whose_constructor_was_skipped_says_what_to_call():
    class Lazy(nn.Module):
        def __init__(self):
            pass

    uses = [
        lambda m: m(1), lambda m: m.register_buffer("offset", rg.ones(1)), lambda m: m.state_dict(),
        lambda m: m.load_state_dict({}), lambda m: list(m.parameters()), lambda m: list(m.named_parameters()),
        lambda m: list(m.buffers()), lambda m: list(m.modules()), lambda m: m.train(), lambda m: m.double(),
        lambda m: m.zero_grad(), lambda m: nn.Sequential(m).state_dict(), lambda m: list(nn.Sequential(m).parameters()),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
            use(Lazy())


def test_a_module_without_forward_names_itself():
    with pytest.raises(NotImplementedError, match=r"ModuleList has no forward\(\)"):
        nn.ModuleList()(1)


def test_an_unknown_attribute_is_an_attribute_error_that_names_the_class():
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'third'"):
        _ = Net().third


@pytest.mark.parametrize("name", ["", "a.b", "first", 3])
def test_registering_under_a_bad_or_taken_name_is_refused(name):
    net = Net()
    if name == "first":
        net.taken = 1
        name = "taken"
    with pytest.raises(TypeError if name == 3 else KeyError):
        net.register_parameter(name, nn.Parameter(rg.ones(1)))
    assert names(net.named_parameters()) == NAMES


def test_a_parameter_requires_a_floating_tensor():
    with pytest.raises(TypeError, match="expected a Tensor, got list"):
        nn.Parameter([1.0])
    with pytest.raises(RuntimeError, match="int64"):
        nn.Parameter(rg.tensor([1]))


def test_results_of_operators_on_parameters_are_plain_tensors():
    parameter = nn.Parameter(rg.ones(2))
    assert type(parameter * 2) is rg.Tensor
    assert type(parameter.detach()) is rg.Tensor


def test_a_parameter_shares_memory_and_version_with_the_tensor_it_is_made_of():
    data = rg.zeros(2)
    parameter = nn.Parameter(data)
    y = parameter * parameter
    data.add_(1)
    assert parameter.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError):
        y.sum().backward()


def test_modules_and_parameters_are_found_by_dotted_name():
    net = nn.Sequential(Net())
    assert net.get_submodule("0.first") is net[0].first
    assert net.get_submodule("") is net
    assert net.get_parameter("0.first.bias") is net[0].first.bias
    assert net.get_buffer("0.offset") is net[0].offset
    with pytest.raises(AttributeError, match=r"found no module 'third' \(of '0.third.x'\)"):
        net.get_submodule("0.third.x")
    with pytest.raises(AttributeError, match="found no parameter 'offset'"):
        net.get_parameter("0.offset")


# ------------------------------------------------------------------------------------------------------ hooks


class Add(nn.Module):
    def forward(self, x, by=0):
        return x + by


def test_pre_hooks_replace_the_arguments_and_hooks_the_output_in_order():
    add = Add()
    add.register_forward_pre_hook(lambda module, args: (args[0] * 10,))
    add.register_forward_pre_hook(lambda module, args: args[0] + 1)  # no tuple: the one argument
    add.register_forward_hook(lambda module, args, out: (args, out))
    add.register_forward_hook(lambda module, args, out: None)
    assert add(2, by=5) == ((21,), 26)


def test_hooks_with_kwargs_see_and_replace_them():
    add = Add()
    add.register_forward_pre_hook(lambda m, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    add.register_forward_hook(lambda m, args, kwargs, out: (kwargs, out), with_kwargs=True)
    assert add(1, by=1) == ({"by": 2}, 3)


def test_a_pre_hook_with_kwargs_that_returns_something_else_is_refused():
    add = Add()
    add.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"\(args, kwargs\)"):
        add(1)


def test_prepended_hooks_run_first():
    add, seen = Add(), []
    add.register_forward_hook(lambda *_: seen.append("second"))
    add.register_forward_hook(lambda *_: seen.append("first"), prepend=True)
    add(1)
    assert seen == ["first", "second"]


def test_a_removed_hook_no_longer_runs_and_may_be_removed_again():
    add = Add()
    handle = add.register_forward_hook(lambda module, args, out: 0)
    assert add(1) == 0
    handle.remove()
    handle.remove()
    assert add(1) == 1
    with add.register_forward_pre_hook(lambda module, args: 7):
        assert add(1) == 7
    assert add(1) == 1


def test_a_hook_may_remove_itself_while_it_runs():
    add, seen = Add(), []
    handle = add.register_forward_hook(lambda *_: (seen.append(1), handle.remove())[1])
    add.register_forward_hook(lambda *_: seen.append(2))
    add(1)
    add(1)
    assert seen == [1, 2, 2]


def test_a_hook_that_can_not_be_called_is_refused():
    with pytest.raises(TypeError, match="callable"):
        Add().register_forward_hook(3)


# ----------------------------------------------------------------------------------------------------- states


def test_a_state_loads_into_another_module_of_the_same_shape():
    net, other = Net(), Net()
    keys = other.load_state_dict(net.state_dict())
    x = rg.ones(4, 2)
    assert keys == ([], [])
    assert (net(x) == other(x)).all()
    assert not any((p is q) for p, q in zip(net.parameters(), other.parameters(), strict=True))


def test_a_state_holds_no_transient_buffers_and_shares_memory():
    net = Net()
    state = net.state_dict()
    assert list(state) == ["scale", "offset", "first.weight", "first.bias", "second.weight"]
    assert not any(value.requires_grad for value in state.values())
    with rg.no_grad():
        net.scale.add_(1)
    assert state["scale"].tolist() == [2.0, 2.0, 2.0]
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert next(iter(net.state_dict(prefix="net."))) == "net.scale"


def test_a_state_that_does_not_fit_lists_all_that_is_wrong_and_changes_nothing():
    net = Net()
    before = {name: value.tolist() for name, value in net.state_dict().items()}
    state = {**Net().state_dict(), "first.bias": rg.ones(4), "extra": rg.ones(1)}
    del state["scale"]
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    text = str(error.value)
    assert "Net" in text
    assert 'Missing key(s) in state_dict: "scale".' in text
    assert 'Unexpected key(s) in state_dict: "extra".' in text
    assert "size mismatch for first.bias: copying a param with shape (4,) from checkpoint, the shape in current" in text
    assert {name: value.tolist() for name, value in net.state_dict().items()} == before


def test_without_strict_only_shapes_must_fit_and_the_other_names_are_returned():
    net = Net()
    keys = net.load_state_dict({"scale": rg.zeros(3), "extra": rg.ones(1)}, strict=False)
    assert keys.missing_keys == ["offset", "first.weight", "first.bias", "second.weight"]
    assert keys.unexpected_keys == ["extra"]
    assert net.scale.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="size mismatch for scale"):
        net.load_state_dict({"scale": rg.zeros(2)}, strict=False)


def test_arrays_load_too_and_take_the_dtype_of_the_module():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": np.array([[1.0, 2.0]]), "bias": np.array([3])})
    assert layer.weight.dtype == rg.float32
    assert layer.bias.tolist() == [3.0]


def test_objects_that_are_no_state_are_refused():
    with pytest.raises(TypeError, match="dict-like, got list"):
        Net().load_state_dict([1])
    with pytest.raises(TypeError, match=r"scale is no tensor or array but object"):
        Net().load_state_dict({**Net().state_dict(), "scale": object()})


def test_loading_is_detected_by_graphs_that_saved_the_old_values():
    layer = nn.Linear(2, 1)
    x = rg.ones(1, 2, requires_grad=True)
    y = layer(x)
    layer.load_state_dict(nn.Linear(2, 1).state_dict())
    with pytest.raises(RuntimeError):
        y.sum().backward()


class CountingParameter(nn.Parameter):
    """A parameter of a class that counts the calls of its `copy_`."""

    calls = 0

    def copy_(self, src, non_blocking=False):
        type(self).calls += 1
        return super().copy_(src)


LOADED_INTO = {
    "plain": lambda: nn.Parameter(rg.zeros(2, 3)),
    "double": lambda: nn.Parameter(rg.zeros(2, 3, dtype=rg.float64)),
    "transposed": lambda: nn.Parameter(rg.zeros(3, 2).t()),
    "half": lambda: nn.Parameter(rg.zeros(2, 3, dtype=rg.float16)),
    "integers": lambda: rg.zeros(2, 3, dtype=rg.int64),
    "view": lambda: rg.zeros(4, 3)[1:3],
    "own class": lambda: CountingParameter(rg.zeros(2, 3)),
}


def test_tensors_that_inference_mode_made_are_not_loaded_into_outside_of_it():
    with rg.inference_mode():
        module = nn.Linear(2, 1)
    state = nn.Linear(2, 1).state_dict()
    with pytest.raises(RuntimeError, match="inference"):
        module.load_state_dict(state)
    with rg.inference_mode():
        module.load_state_dict(state)
    assert module.weight.tolist() == state["weight"].tolist()


@pytest.mark.parametrize("loaded", ["float32", "detached", "transposed", "integers"])
@pytest.mark.parametrize("kind", LOADED_INTO)
def test_loading_writes_to_each_kind_of_tensor_as_copy_does(kind, loaded):
    values = {
        "float32": rg.arange(6.0).reshape(2, 3),
        "detached": rg.arange(6.0).reshape(2, 3).requires_grad_().detach(),
        "transposed": rg.arange(6.0).reshape(3, 2).t(),
        "integers": rg.arange(6).reshape(2, 3),
    }[loaded]
    module, other = nn.Module(), LOADED_INTO[kind]()
    own = LOADED_INTO[kind]()
    if isinstance(own, nn.Parameter):
        module.register_parameter("x", own)
    else:
        module.register_buffer("x", own)
    CountingParameter.calls, seen, version = 0, own.detach(), own._version
    module.load_state_dict({"x": values})
    with rg.no_grad():
        other.copy_(values)
    assert module.x is own
    assert CountingParameter.calls == 2 * (kind == "own class")
    assert own._version == version + 1
    assert own.tag == other.tag
    for x in (own, seen):
        assert x.tolist() == other.tolist()
        assert x.dtype == other.dtype
    if own._view is not None:
        assert own._view.base[1:3].tolist() == other.tolist()


# ------------------------------------------------------------------------------------------------- throughout


def test_train_and_eval_reach_every_module():
    net = nn.Sequential(Net(), nn.Dropout())
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    net.train()
    assert all(module.training for module in net.modules())
    with pytest.raises(ValueError, match="True or False"):
        net.train("yes")


def test_apply_visits_children_before_their_parent():
    seen = []
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["Linear", "ReLU", "Sequential"]


class PairOfLinear(nn.Module):
    """A module that shows only some of its parameters."""

    def __init__(self):
        super().__init__()
        self.shown, self.hidden = nn.Linear(2, 2), nn.Linear(2, 2)


def with_override(name, function):
    return type("Overriding", (PairOfLinear,), {name: function})()


@pytest.mark.parametrize("inside", [False, True])
def test_parameters_are_those_of_an_overridden_named_modules(inside):
    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        yield prefix, self
        yield from self.shown.named_modules(memo, f"{prefix}.shown" if prefix else "shown", remove_duplicate)

    own = with_override("named_modules", named_modules)
    model = nn.Sequential(own, nn.Linear(1, 1)) if inside else own
    listed = [parameter for _, parameter in model.named_parameters()]
    assert [id(p) for p in model.parameters()] == [id(p) for p in listed]
    assert id(own.hidden.weight) not in map(id, model.parameters())


def test_parameters_are_those_of_an_overridden_named_parameters():
    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        yield "w", self.shown.weight

    own = with_override("named_parameters", named_parameters)
    assert [*own.parameters()] == [own.shown.weight]
    own.shown.weight.grad, own.hidden.weight.grad = rg.ones(2, 2), rg.ones(2, 2)
    own.zero_grad()
    assert own.shown.weight.grad is None
    assert own.hidden.weight.grad is not None
    plain = PairOfLinear()
    plain.named_parameters = lambda prefix="", recurse=True: iter([("w", plain.shown.weight)])
    assert [*plain.parameters()] == [plain.shown.weight]


def test_buffers_are_those_of_an_overridden_named_buffers():
    own = with_override("named_buffers", lambda self, prefix="", recurse=True: iter([("b", "the buffer")]))
    assert [*own.buffers()] == ["the buffer"]


def test_parameters_are_each_once_in_the_order_of_their_names():
    shared = nn.Linear(2, 2)
    inner = nn.Sequential(nn.Linear(2, 2), shared)
    model = nn.Sequential(inner, shared, nn.Linear(2, 2))
    model[2].bias = model[0][0].bias
    assert [id(p) for p in model.parameters()] == [id(p) for _, p in model.named_parameters()]
    assert [id(p) for p in model.parameters(recurse=False)] == []
    assert [id(p) for p in shared.parameters(recurse=False)] == [id(shared.weight), id(shared.bias)]


@pytest.mark.parametrize("deep", [False, True])
def test_state_dict_runs_what_classes_and_instances_override(deep):
    def state_dict(self, *, destination=None, prefix="", keep_vars=False):
        state = PairOfLinear.state_dict(self, destination=destination, prefix=prefix, keep_vars=keep_vars)
        state[f"{prefix}version"] = 3
        return state

    def save(self, destination, prefix, keep_vars):
        destination[f"{prefix}count"] = 2

    model = nn.Sequential(
        with_override("state_dict", state_dict), with_override("_save_to_state_dict", save), PairOfLinear()
    )
    model[2].shown.state_dict = lambda *, destination, prefix, keep_vars: destination.update({f"{prefix}mine": 1})
    prefix = "0." if deep else ""
    state = (nn.Sequential(model) if deep else model).state_dict()
    linear = ["weight", "bias"]
    both = [f"{part}.{name}" for part in ("shown", "hidden") for name in linear]
    expected = [
        *(f"0.{name}" for name in both),
        "0.version",
        "1.count",
        *(f"1.{name}" for name in both),
        "2.shown.mine",
    ]
    assert list(state) == [prefix + name for name in [*expected, *(f"2.hidden.{name}" for name in linear)]]


def drop(state, name):
    del state[name]


def test_state_dict_runs_hooks_of_submodules_around_their_entries():
    model, seen = nn.Sequential(PairOfLinear(), nn.Linear(1, 1)), []
    model[0].register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append(prefix))
    model[0].register_state_dict_post_hook(lambda module, state, prefix, meta: drop(state, f"{prefix}hidden.bias"))
    state = model.state_dict()
    assert seen == ["0."]
    assert list(state) == ["0.shown.weight", "0.shown.bias", "0.hidden.weight", "1.weight", "1.bias"]


def test_a_state_dict_has_parameters_before_buffers_and_no_transient_ones():
    module = nn.Module()
    module.register_buffer("first", rg.ones(1))
    module.register_buffer("passing", rg.ones(1), persistent=False)
    module.weight, module.absent = nn.Parameter(rg.ones(1)), None
    module.register_parameter("none", None)
    state = module.state_dict()
    assert list(state) == ["weight", "first"]
    assert not state["weight"].requires_grad
    module.weight.detach().fill_(5)
    assert state["weight"].tolist() == [5]


def test_zero_grad_uses_a_grad_that_a_class_defines():
    class ClearedParameter(nn.Parameter):
        @property
        def grad(self):
            return None

        @grad.setter
        def grad(self, value):
            self.cleared = value

    model = nn.Linear(1, 1)
    model.weight = ClearedParameter(rg.ones(1, 1))
    model.bias.grad = rg.ones(1)
    model.zero_grad()
    assert model.weight.cleared is None
    assert model.bias.grad is None


def test_zero_grad_forgets_gradients_or_sets_them_to_zero():
    net = Net()
    net(rg.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0.0, 0.0, 0.0]
    net.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())


def test_requires_grad_reaches_every_parameter():
    net = Net().requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())
    assert not net(rg.ones(1, 2)).requires_grad


def test_conversion_keeps_the_parameters_and_converts_gradients_and_buffers():
    net = Net()
    net.register_buffer("count", rg.tensor(3))
    net(rg.ones(1, 2)).sum().backward()
    parameters = list(net.parameters())
    assert net.double() is net
    assert all(p is q for p, q in zip(parameters, net.parameters(), strict=True))
    assert {t.dtype for p in parameters for t in (p, p.grad)} == {rg.float64}
    assert net.offset.dtype == rg.float64
    assert net.count.dtype == rg.int64
    assert net(rg.ones(1, 2, dtype=rg.float64)).dtype == rg.float64
    assert net.float().scale.dtype == rg.float32
    assert net.to("float64").to("cpu").scale.dtype == rg.float64


def test_conversion_to_integers_is_refused_before_anything_changes():
    net = Net()
    with pytest.raises(TypeError, match="int64"):
        net.to(rg.int64)
    assert net.first.weight.dtype == rg.float32


def test_conversion_is_detected_by_graphs_that_saved_the_old_values():
    net = Net()
    loss = net(rg.ones(1, 2)).sum()
    net.double()
    with pytest.raises(RuntimeError, match="inplace operation"):
        loss.backward()


def test_conversion_keeps_shared_tensors_shared():
    net = Net()
    net.first.bias = net.scale
    net.first.register_buffer("offset", net.offset)
    net.double()
    assert net.first.bias is net.scale
    assert net.first.offset is net.offset


def test_a_deep_copy_has_parameters_of_its_own_and_keeps_sharing():
    net = Net()
    net.first.bias = net.scale
    other = copy.deepcopy(net)
    assert other.first.bias is other.scale
    with rg.no_grad():
        other.scale.zero_()
    assert net.scale.tolist() == [1.0, 1.0, 1.0]
    assert isinstance(other.scale, nn.Parameter)
    assert names(other.named_parameters()) == names(net.named_parameters())


def test_a_module_survives_pickling():
    net = pickle.loads(pickle.dumps(Net()))
    assert names(net.named_parameters()) == NAMES
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in net.parameters())


# ------------------------------------------------------------------------------------------------------- text


def test_modules_print_nested_as_in_pytorch():
    net = nn.Sequential(
        OrderedDict(
            body=nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Dropout(0.1)]),
            head=nn.Sequential(nn.LayerNorm(2), nn.Embedding(3, 2, padding_idx=1)),
        )
    )
    assert repr(net) == (
        "Sequential(\n"
        "  (body): ModuleList(\n"
        "    (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n"
        "    (2): Dropout(p=0.1, inplace=False)\n"
        "  )\n"
        "  (head): Sequential(\n"
        "    (0): LayerNorm((2,), eps=1e-05, elementwise_affine=True, bias=True)\n"
        "    (1): Embedding(3, 2, padding_idx=1)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.ReLU()) == "ReLU()"


def test_modules_are_on_the_cpu_by_any_name_and_go_nowhere_else():
    layer = rg.nn.Linear(1, 1)
    assert layer.to("cpu") is layer is layer.to(rg.device("cpu"))
    with pytest.raises(RuntimeError, match="'cuda'"):
        layer.to("cuda")


# ---------------------------------------------------------------------------------- gradients, extra state, members


def test_backward_hooks_receive_and_replace_the_gradients_of_a_call():
    layer, seen = nn.Linear(2, 1, bias=False), []
    layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,))
    handle = layer.register_full_backward_hook(
        lambda m, grad_input, grad_output: seen.append((grad_input, grad_output))
    )
    x = rg.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    ((grad_input,), (grad_output,)) = seen.pop()
    assert grad_output.tolist() == [[2.0]]
    assert grad_input.tolist() == x.grad.tolist() == (2 * layer.weight).tolist()
    handle.remove()
    layer(x).sum().backward()
    assert not seen


def test_backward_hooks_run_under_transforms():
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,))
    plain = layer.weight.sum(0) * 10
    x = rg.ones(3, 2)
    per_example = rg.func.vmap(rg.func.grad(lambda x: layer(x).sum()))(x)
    np.testing.assert_allclose(per_example.detach().numpy(), np.tile(plain.detach().numpy(), (3, 1)), rtol=1e-6)
    _, tangent = rg.func.jvp(layer, (x,), (x,))
    np.testing.assert_allclose(tangent.detach().numpy(), (x @ layer.weight.mT).detach().numpy(), rtol=1e-6)


def test_a_wrong_number_of_gradients_from_a_hook_is_refused():
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0], None))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        layer(rg.ones(1, 2, requires_grad=True)).sum().backward()


class Counter(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.count = count

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_extra_state_is_saved_and_loaded():
    source, target = nn.Sequential(Counter(3)), nn.Sequential(Counter(0))
    assert source.state_dict() == {"0._extra_state": {"count": 3}}
    target.load_state_dict(source.state_dict())
    assert target[0].count == 3
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0._extra_state"'):
        target.load_state_dict({})


def test_a_refused_state_changes_nothing_and_calls_no_extra_state():
    model = nn.Sequential(Counter(1), nn.Linear(2, 1))
    before = copy.deepcopy(model.state_dict())
    wrong = {**before, "0._extra_state": {"count": 9}, "1.weight": rg.ones(3, 3)}
    with pytest.raises(RuntimeError, match=r"size mismatch for 1\.weight"):
        model.load_state_dict(wrong)
    assert model[0].count == 1
    assert model[1].weight.tolist() == before["1.weight"].tolist()


def test_loading_does_not_call_get_extra_state_of_the_module_itself():
    class Busy(Counter):
        def get_extra_state(self):
            raise AssertionError("get_extra_state")

    layer = Busy(0)
    layer.load_state_dict({"_extra_state": {"count": 5}})
    assert layer.count == 5


def test_a_hook_before_loading_changes_a_copy_of_the_state():
    layer = nn.Linear(2, 1, bias=False)
    layer.register_load_state_dict_pre_hook(lambda module, state, *_: state.update(weight=state.pop("old")))
    state = {"old": rg.ones(1, 2)}
    layer.load_state_dict(state)
    assert list(state) == ["old"]
    assert layer.weight.tolist() == [[1.0, 1.0]]


def test_the_member_dicts_change_the_module():
    net = Net()
    assert list(net._modules) == ["first", "second"]
    assert list(net._parameters) == ["scale"]
    assert list(net._buffers) == ["offset", "scratch"]
    net._modules["first"] = nn.Identity()
    assert isinstance(net.first, nn.Identity)
    del net._buffers["scratch"]
    assert names(net.named_buffers()) == ["offset"]
    with pytest.raises(KeyError, match="third"):
        net._modules["third"]
    net._parameters["scale"] = rg.ones(3)  # as functional wrappers do
    assert names(net.named_parameters(recurse=False)) == ["scale"]
    net._buffers = {"scratch": rg.ones(1), "other": None}
    assert names(net.named_buffers()) == ["scratch"]
    assert net.other is None
    assert not hasattr(net, "offset")
    net._parameters, net._modules = {}, {"first": nn.ReLU()}
    assert not hasattr(net, "scale")
    assert [type(module).__name__ for module in net.children()] == ["ReLU"]


def test_the_member_dicts_call_no_methods_of_the_module():
    class Own(Net):
        def __setattr__(self, name, value):
            if name in self.__dict__.get("_kinds", ()):
                self._parameters[name] = value
            else:
                super().__setattr__(name, value)

        def __delattr__(self, name):
            del self._parameters[name]

    net, scale = Own(), nn.Parameter(rg.ones(1))
    net.scale = scale
    assert net.scale is scale
    del net.scale
    assert list(net._parameters) == []


def test_layouts_and_dtypes_convert_parameters_with_their_gradients_in_place():
    conv = nn.Conv2d(2, 3, 3)
    weight = conv.weight
    conv(rg.ones(1, 2, 5, 5)).sum().backward()
    conv.to(memory_format=rg.channels_last).to(rg.ones(1, dtype=rg.float64))
    assert conv.weight is weight
    assert weight.is_contiguous(memory_format=rg.channels_last)
    assert weight.grad.is_contiguous(memory_format=rg.channels_last)
    assert weight.dtype == weight.grad.dtype == rg.float64
    with pytest.raises(RuntimeError, match="live on the CPU"):
        conv.cuda()


def test_train_and_eval_of_a_model_call_train_of_its_submodules():
    class Frozen(nn.BatchNorm1d):
        def train(self, mode=True):
            return super().train(False)

    model = nn.Sequential(nn.Sequential(Frozen(2)), nn.Dropout())
    for mode in (True, False):
        model.train(mode)
        assert [m.training for m in model.modules()] == [mode, mode, False, mode]


def test_the_hooks_of_each_kind_can_be_counted_and_cleared():
    layer, calls = nn.Linear(2, 2), []
    handles = [
        layer.register_forward_pre_hook(lambda *given: calls.append("before")),
        layer.register_forward_hook(lambda *given: calls.append("after")),
        layer.register_full_backward_pre_hook(lambda *given: calls.append("backward before")),
        layer.register_full_backward_hook(lambda *given: calls.append("backward")),
    ]
    kinds = [layer._forward_pre_hooks, layer._forward_hooks, layer._backward_pre_hooks, layer._backward_hooks]
    assert [list(hooks) for hooks in kinds] == [[handle.id] for handle in handles]
    layer._forward_hooks.clear()
    assert [len(hooks) for hooks in kinds] == [1, 0, 1, 1]
    with pytest.raises(KeyError):
        layer._forward_hooks[handles[0].id]
    with pytest.raises(KeyError):
        del layer._forward_hooks[handles[0].id]
    layer._forward_hooks[handles[1].id] = lambda *given: calls.append("again")
    layer(rg.ones(2, requires_grad=True)).sum().backward()
    assert sorted(calls) == ["again", "backward", "backward before", "before"]
    handles[1].remove()
    assert not layer._forward_hooks


def test_a_state_of_data_parallel_loads_once_its_prefix_is_removed():
    model = nn.Linear(2, 2)
    state = {f"module.{name}": value for name, value in nn.Linear(2, 2).state_dict().items()}
    with pytest.raises(RuntimeError, match=r"begin with 'module\.'"):
        model.load_state_dict(state)
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    model.load_state_dict(state)
    assert model.weight.tolist() == state["weight"].tolist()


class _Doubled(nn.Linear):
    def __getattr__(self, name):
        member = super().__getattr__(name)
        return member * 2 if name == "weight" else member


def test_members_are_found_by_getattr_and_by_that_of_a_subclass():
    layer, plain = _Doubled(2, 1), nn.Linear(2, 1)
    layer.load_state_dict(plain.state_dict())
    assert plain.__getattr__("weight") is plain.weight
    assert rg.equal(layer.weight, plain.weight * 2)
    assert rg.equal(layer(rg.ones(2)), plain.weight.sum(1) * 2 + plain.bias)
    assert rg.equal(layer.state_dict()["weight"], plain.weight)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        layer.missing  # noqa: B018


class _Renamed(nn.Linear):
    def _load_from_state_dict(self, state_dict, prefix, *args):
        if prefix + "old" in state_dict:
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")
        super()._load_from_state_dict(state_dict, prefix, *args)


@pytest.mark.parametrize("assign", [False, True])
def test_loading_calls_the_load_from_state_dict_of_a_class(assign):
    net = nn.Sequential(nn.Linear(2, 2), _Renamed(2, 1))
    state = {name.replace("1.weight", "1.old"): rg.ones(value.shape) for name, value in net.state_dict().items()}
    assert net.load_state_dict(state, assign=assign) == ([], [])
    assert all(bool((p == 1).all()) for p in net.parameters())
    assert "1.old" in state  # the caller's dict stays as it is
    for fault, message in (({"1.bias": None}, "Missing"), ({"1.new": rg.ones(1)}, "Unexpected")):
        faulty = {name: value for name, value in (state | fault).items() if value is not None}
        with pytest.raises(RuntimeError, match=message):
            net.load_state_dict(faulty, assign=assign)
    with pytest.raises(RuntimeError, match=r"size mismatch for 1\.weight"):
        net.load_state_dict(state | {"1.old": rg.ones(3)}, assign=assign)


class _Serialized(nn.Module):
    """Saves its parameter under another name, and loads it by itself."""

    def __init__(self):
        super().__init__()
        self.weight, self.inner = nn.Parameter(rg.zeros(1)), nn.Linear(1, 1)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        destination[prefix + "serialized"] = self.weight.detach() + 1

    def _load_from_state_dict(self, state_dict, prefix, *args):
        self.weight.data = state_dict[prefix + "serialized"] - 1


def test_a_class_that_loads_itself_decides_which_of_its_keys_are_unexpected():
    net = nn.Sequential(_Serialized())
    state = net.state_dict() | {"0.serialized": rg.tensor([5.0])}
    assert sorted(state) == ["0.inner.bias", "0.inner.weight", "0.serialized"]
    assert net.load_state_dict(state) == ([], [])
    assert net[0].weight.tolist() == [4.0]
    for key in ("0.inner.new", "1.new", "new"):
        assert net.load_state_dict(state | {key: rg.ones(1)}, strict=False).unexpected_keys == [key]


def test_hooks_before_loading_get_the_entries_of_their_module_and_may_change_them():
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 1, bias=False)))
    seen = []

    def rename(module, state, prefix, *rest):
        seen.append(sorted(state))
        state[f"{prefix}0.weight"] = state.pop(f"{prefix}0.old")
        state["0.bias"] = rg.zeros(1)  # an entry of another module: this has no effect

    net[1].register_load_state_dict_pre_hook(rename)
    net.load_state_dict(
        {name: rg.ones(1, 1).reshape(s) for name, s in (("0.weight", (1, 1)), ("0.bias", (1,)), ("1.0.old", (1, 1)))}
    )
    assert seen == [["1.0.old"]]
    assert [p.item() for p in net.parameters()] == [1.0, 1.0, 1.0]


def test_private_names_that_libraries_use_name_members_and_register_hooks():
    net, seen = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Identity()), []
    net._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append(sorted(state)))
    net._register_load_state_dict_pre_hook(lambda module, *rest: seen.append(module is net), with_module=True)
    net.load_state_dict(net.state_dict())
    assert seen == [["0.weight"], True]
    assert [name for name, _ in net._named_members(lambda m: m._parameters.items(), prefix="net")] == ["net.0.weight"]


def test_global_hooks_run_for_all_modules_before_their_own_and_can_be_removed():
    calls = []
    model = nn.Sequential(nn.Linear(2, 2))
    model.register_forward_hook(lambda module, args, output: calls.append("own"))
    with global_hooks.register_module_forward_hook(lambda module, args, output: calls.append(type(module).__name__)):
        model(rg.ones(1, 2))
    model(rg.ones(1, 2))
    assert calls == ["Linear", "Sequential", "own", "own"]


def test_hooks_of_registrations_may_replace_members():
    doubled = lambda module, name, member: nn.Parameter(member.detach() * 2)  # noqa: E731
    with global_hooks.register_module_parameter_registration_hook(doubled):
        module = nn.Module()
        module.weight = nn.Parameter(rg.ones(1))
        module.register_parameter("bias", None)
    module.late = nn.Parameter(rg.ones(1))
    assert module.weight.tolist() == [2.0]
    assert module.bias is None
    assert module.late.tolist() == [1.0]


class Watched(nn.Linear):
    """A layer that overrides the methods by which modules are converted and members registered."""

    def _apply(self, fn, recurse=True):
        self.applied = True
        return super()._apply(fn, recurse)

    def to(self, *target, **options):
        return self.cpu()  # as classes do that hold data elsewhere: it must not be called back

    def register_parameter(self, name, param):
        super().register_parameter(name, param)
        vars(self).setdefault("names", []).append(name)

    def register_buffer(self, name, tensor, persistent=True):
        super().register_buffer(name, tensor, persistent)
        vars(self).setdefault("names", []).append(f"{name} {persistent}")


def test_conversions_call_an_overridden_apply_of_submodules():
    net = nn.Sequential(nn.Sequential(Watched(1, 1)), nn.Linear(1, 1)).double()
    assert net[0][0].applied
    assert {p.dtype for p in net.parameters()} == {rg.float64}


def test_no_conversion_calls_back_an_overridden_to():
    layer = Watched(1, 1)
    assert layer.to("cpu") is layer.half() is layer.float() is layer.double() is layer.bfloat16() is layer


def test_assigned_members_are_registered_by_overridden_methods():
    layer = Watched(1, 1, bias=False)
    layer.scale = 2.0
    layer.scale = nn.Parameter(rg.ones(1))
    layer.table = nn.Buffer(rg.ones(1))
    layer.hidden = nn.Buffer(rg.ones(1), persistent=False)
    layer.hidden = rg.zeros(1)
    assert layer.names == ["weight", "bias", "scale", "table True", "hidden False", "hidden False"]
    assert list(layer.state_dict()) == ["weight", "scale", "table"]


def test_a_module_with_a_hook_of_an_older_name_is_copied_and_pickled():
    layer = nn.Linear(1, 1)
    layer._register_load_state_dict_pre_hook(print)
    assert all(len(other._state_hooks) == 1 for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))))


def test_complex_parameters_stay_complex_when_a_module_is_converted_by_name():
    module = nn.Module()
    module.weight = nn.Parameter(rg.ones(1, dtype=rg.complex64))
    assert module.double().weight.dtype == module.half().weight.dtype == rg.complex64


def test_a_module_that_is_a_distribution_looks_methods_up_in_the_order_of_its_bases():
    class Called:
        def __call__(self):
            return "called"

    class Random(rg.distributions.Distribution, Called):
        pass

    class Prior(Random, nn.Module):
        pass

    assert Prior.__call__ is Called.__call__
