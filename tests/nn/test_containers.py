"""Containers: order, names, indexing, and refused arguments."""

from collections import OrderedDict

import pytest

import retrograd as rg
from retrograd import nn


def test_sequential_runs_in_order_and_names_by_number_or_dict():
    a, b = nn.Linear(2, 3), nn.Linear(3, 1)
    x = rg.ones(4, 2)
    assert (nn.Sequential(a, b)(x) == b(a(x))).all()
    assert list(nn.Sequential(a, b).state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [n for n, _ in nn.Sequential(OrderedDict(up=a, down=b)).named_children()] == ["up", "down"]


def test_sequential_indexes_slices_replaces_and_deletes():
    layers = [nn.Linear(1, 1) for _ in range(4)]
    model = nn.Sequential(*layers)
    assert model[-1] is layers[3]
    assert list(model[1:3]) == layers[1:3]
    assert [n for n, _ in model[1:3].named_children()] == ["1", "2"]
    model[0] = nn.Identity()
    assert isinstance(model[0], nn.Identity)
    del model[1]
    assert list(model)[1:] == layers[2:]
    assert [n for n, _ in model.named_children()] == ["0", "1", "2"]
    assert model.append(nn.ReLU()).extend([nn.Tanh()])[-1]
    assert len(model) == 5
    with pytest.raises(IndexError, match="5 is out of range"):
        model[5]


def test_a_module_may_stand_twice_in_a_sequence():
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, layer)
    assert len(model) == 2
    x = rg.ones(1, 2)
    assert (model(x) == layer(layer(x))).all()


def test_a_sequence_takes_modules_in_and_out_at_an_index():
    model = nn.Sequential(nn.ReLU(), nn.Tanh())
    assert model.insert(1, nn.GELU()) is model
    assert [type(m).__name__ for m in model] == ["ReLU", "GELU", "Tanh"]
    assert isinstance(model.pop(0), nn.ReLU)
    assert isinstance(model.pop(slice(0, 2)), nn.Sequential)
    assert len(model) == 0
    with pytest.raises(IndexError, match="index 2 is out of range for 0 modules"):
        model.insert(2, nn.ReLU())


def test_sequences_are_added_and_repeated():
    a, b = nn.Linear(2, 2), nn.ReLU()
    model = nn.Sequential(a) + nn.Sequential(b)
    assert list(model) == [a, b]
    assert list(model * 2) == list(2 * model) == [a, b, a, b]
    same = model
    same += nn.Sequential(b)
    same *= 2
    assert same is model
    assert list(model) == [a, b, b, a, b, b]
    with pytest.raises(ValueError, match=r"got list; extend\(\)"):
        model += [b]
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        model * 0
    with pytest.raises(TypeError, match="Sequential and float"):
        model *= 1.5
    assert len(model) == 6


def test_module_lists_behave_like_lists():
    layers = nn.ModuleList(nn.Linear(1, n) for n in (1, 2))
    layers.insert(1, nn.ReLU())
    layers.append(nn.Tanh())
    layers.extend([nn.SiLU()])
    assert [type(m).__name__ for m in layers] == ["Linear", "ReLU", "Linear", "Tanh", "SiLU"]
    assert list(layers.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert isinstance(layers[1:], nn.ModuleList)
    assert len(layers[1:]) == 4
    del layers[0]
    assert list(layers.state_dict()) == ["1.weight", "1.bias"]


@pytest.mark.parametrize("make", [nn.ModuleList, lambda modules: nn.Sequential(*modules)])
def test_a_member_of_a_sequence_may_be_absent(make):
    layers = make([None, nn.Linear(2, 2), None])
    layers.append(None).extend([nn.ReLU()])
    layers.insert(1, None)
    layers[-1] = None
    assert [layer is None for layer in layers] == [True, True, False, True, True, True]
    assert list(layers.state_dict()) == ["2.weight", "2.bias"]
    assert layers.pop(0) is None
    assert [name for name, _ in layers.named_children()] == ["1"]
    assert "None" in repr(layers)


def test_a_member_of_a_dict_of_modules_may_be_absent():
    heads = nn.ModuleDict({"none": None, "some": nn.ReLU()})
    assert heads["none"] is None
    assert [*heads] == ["none", "some"]


def test_a_parameter_of_a_list_or_dict_may_be_absent():
    for weights in (nn.ParameterList([None, rg.ones(2)]), nn.ParameterDict({"0": None, "1": rg.ones(2)})):
        assert [name for name, _ in weights.named_parameters()] == ["1"]
        assert "(0): None" in repr(weights)
    assert [weight is None for weight in nn.ParameterList([rg.ones(2)]).append(None)] == [False, True]


def test_lists_are_added_and_entries_popped():
    a, b = nn.ReLU(), nn.Tanh()
    layers = nn.ModuleList([a]) + nn.ModuleList([b])
    same = layers
    same += [a]
    assert same is layers
    assert list(layers) == [a, b, a]
    assert layers.pop(-1) is a
    with pytest.raises(IndexError, match="index 2 is out of range"):
        layers.pop(2)
    weights = nn.ParameterList([rg.ones(1)])
    weights += [rg.zeros(2)]
    assert [name for name, _ in weights.named_parameters()] == ["0", "1"]


def test_module_dicts_behave_like_dicts():
    heads = nn.ModuleDict({"a": nn.Linear(1, 1), "keys2": nn.ReLU()})
    heads["b"] = nn.Tanh()
    assert list(heads) == list(heads.keys()) == ["a", "keys2", "b"]
    assert [type(m).__name__ for m in heads.values()] == ["Linear", "ReLU", "Tanh"]
    assert dict(heads.items())["a"] is heads["a"]
    assert heads.pop("a") is not None
    del heads["b"]
    assert "a" not in heads
    assert len(heads) == 1
    with pytest.raises(KeyError):
        heads["a"]


def test_parameter_lists_make_parameters_of_tensors():
    weights = nn.ParameterList([rg.ones(2)])
    weights.append(nn.Parameter(rg.zeros(1)))
    assert all(isinstance(w, nn.Parameter) for w in weights)
    assert list(weights.state_dict()) == ["0", "1"]
    weights[0] = rg.zeros(2)
    assert weights[0].tolist() == [0.0, 0.0]
    assert repr(weights).splitlines()[1] == "  (0): Parameter(float32[2])"


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.ReLU(), 3),
        lambda: nn.ModuleList([3]),
        lambda: nn.ModuleDict({"a": 3}),
    ],
)
def test_containers_refuse_what_they_do_not_hold(make):
    with pytest.raises(TypeError, match="int"):
        make()


def test_a_refused_extension_changes_nothing():
    layers = nn.ModuleList([nn.ReLU()])
    with pytest.raises(TypeError):
        layers.extend([nn.ReLU(), 3])
    assert len(layers) == 1


def test_a_dict_of_parameters_has_them_by_key_in_order():
    scales = nn.ParameterDict({"left": rg.ones(2)})
    scales["right"] = nn.Parameter(rg.zeros(3), requires_grad=False)
    assert [name for name, _ in scales.named_parameters()] == list(scales) == list(scales.keys()) == ["left", "right"]
    assert [type(value) for value in scales.values()] == [nn.Parameter] * 2
    assert [value.requires_grad for _, value in scales.items()] == [True, False]
    assert repr(scales) == "ParameterDict(\n  (left): Parameter(float32[2])\n  (right): Parameter(float32[3])\n)"
    kept = scales["right"]
    assert scales.pop("right") is kept
    assert "right" not in scales
    assert len(scales) == 1
    with pytest.raises(KeyError, match="right"):
        scales["right"]
    del scales["left"]
    assert scales.get("left") is None


def test_a_dict_of_parameters_has_the_methods_of_ordered_dicts():
    scales = nn.ParameterDict({"a": rg.ones(1)})
    scales |= nn.ParameterDict({"b": rg.zeros(2)})
    assert list(reversed(scales)) == ["b", "a"]
    assert scales.popitem()[0] == "b"
    assert list(scales.fromkeys(["x", "y"], rg.ones(1)).parameters())[1].requires_grad


def test_dicts_of_parameters_share_and_join_them():
    one, two = nn.ParameterDict({"a": rg.ones(1)}), nn.ParameterDict({"b": rg.zeros(1)})
    both = one | two
    assert list(both) == ["a", "b"]
    assert both["a"] is one["a"]
    assert both.copy()["b"] is two["b"]
    assert both.setdefault("a", rg.zeros(1)) is one["a"]
    assert both.setdefault("c", rg.zeros(1)).requires_grad
    one.update([("a", rg.full((1,), 5.0))])
    assert one["a"].item() == 5
    assert both["a"].item() == 1
    both.clear()
    assert list(both.parameters()) == []


def test_a_dict_of_parameters_trains_and_goes_through_a_state_dict():
    scales = nn.ParameterDict({"a": rg.ones(2), "b": rg.ones(1)})
    (scales["a"].sum() * scales["b"]).sum().backward()
    assert scales["a"].grad.tolist() == [1.0, 1.0]
    other = nn.ParameterDict({"a": rg.zeros(2), "b": rg.zeros(1)})
    other.load_state_dict(scales.state_dict())
    assert other["a"].tolist() == [1.0, 1.0]
    scales["c"] = 3
    assert list(scales) == ["a", "b", "c"]
    assert list(scales.state_dict()) == ["a", "b"]


def test_a_dict_of_modules_can_be_emptied():
    heads = nn.ModuleDict({"a": nn.Identity()})
    heads.clear()
    assert len(heads) == 0


@pytest.mark.parametrize("container", [nn.ModuleDict, nn.ParameterDict])
def test_dicts_call_an_update_of_a_subclass_for_given_entries_only(container):
    class Collection(container):
        def update(self, *args):
            raise RuntimeError("called")

    entries = Collection()
    assert list(entries) == list(container(None)) == []
    entries["a"] = nn.Identity() if container is nn.ModuleDict else nn.Parameter(rg.ones(1))
    assert list(entries) == ["a"]
    with pytest.raises(RuntimeError, match="called"):
        Collection({})
