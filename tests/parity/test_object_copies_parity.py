"""Files, pickled data, deep and shallow copies keep of a tensor what PyTorch's keep: a table of kinds and ways."""

import copy
import io
import pickle

import pytest
import torch

import retrograd as rg


class TorchTensor(torch.Tensor):
    """A subclass of PyTorch's tensors."""


class OurTensor(rg.Tensor):
    """A subclass of our tensors."""


class TorchNoted(torch.Tensor):
    def __getstate__(self):
        return {"seen": self.note}


class OurNoted(rg.Tensor):
    def __getstate__(self):
        return {"seen": self.note}


class TorchParameter(torch.nn.Parameter):
    """A subclass of PyTorch's parameters."""


class OurParameter(rg.nn.Parameter):
    """A subclass of our parameters."""


SUBCLASS = {torch: TorchTensor, rg: OurTensor}
NOTED = {torch: TorchNoted, rg: OurNoted}
PARAMETER = {torch: TorchParameter, rg: OurParameter}


def numbers(m, **settings):
    return m.arange(6.0).reshape(2, 3).requires_grad_(settings.get("requires_grad", False))


def leaf(m):
    return numbers(m, requires_grad=True)


def parameter(m, **settings):
    return m.nn.Parameter(numbers(m), **settings)


def with_attributes(x, **attributes):
    for name, value in attributes.items():
        setattr(x, name, value)
    return x


def with_gradient(x):
    (x * x).sum().backward()
    return x


def with_hook(x):
    x.register_hook(lambda g: g * 2)
    return x


def shared(x):
    return {"whole": x, "row": x[1], "turned": x.t(), "again": x}


def with_data(x):
    return {"parameter": x, "data": x.data, "row": x.detach()[0]}


def filled(module):
    for p in module.parameters():
        p.detach().fill_(0.5)
    return module


def states_of(m):
    model = filled(m.nn.Linear(2, 1))
    model(m.ones(2)).sum().backward()
    optimizer = m.optim.Adam(model.parameters())
    optimizer.step()
    return {"optimizer": optimizer.state_dict(), "vars": list(model.state_dict(keep_vars=True).values())}


def partly_frozen(m):
    module = filled(m.nn.Linear(2, 1))
    module.bias.requires_grad_(False)
    with_attributes(module.weight, group="a")
    return module


def tied(m):
    module = filled(m.nn.Sequential(m.nn.Linear(2, 2), m.nn.Linear(2, 2)))
    module[1].weight = module[0].weight
    return module


KINDS = {
    "tensor": numbers,
    "leaf": leaf,
    "result": lambda m: leaf(m) * 2,
    "leaf with a gradient": lambda m: with_gradient(leaf(m)),
    "leaf with a hook": lambda m: with_hook(leaf(m)),
    "attributes": lambda m: with_attributes(numbers(m), foo=1, name2="a", sizes=[1, 2]),
    "attribute that is a tensor": lambda m: with_attributes(leaf(m), mask=m.ones(2)),
    "attribute of a result": lambda m: with_attributes(leaf(m) * 2, foo=1),
    "parameter": parameter,
    "frozen parameter": lambda m: parameter(m, requires_grad=False),
    "parameter of integers": lambda m: m.nn.Parameter(m.arange(3), requires_grad=False),
    "parameter with a gradient": lambda m: with_gradient(parameter(m)),
    "parameter with attributes": lambda m: with_attributes(parameter(m), sequence_parallel=True),
    "one parameter in three places": lambda m: (lambda p: {"a": p, "b": [p, p]})(parameter(m)),
    "buffer": lambda m: m.nn.Buffer(numbers(m)),
    "transient buffer": lambda m: m.nn.Buffer(numbers(m), persistent=False),
    "subclass": lambda m: with_attributes(numbers(m).as_subclass(SUBCLASS[m]), foo=1),
    "subclass with a state": lambda m: with_attributes(numbers(m).as_subclass(NOTED[m]), note=1),
    "subclass of parameters": lambda m: with_attributes(PARAMETER[m](numbers(m)), foo=1),
    "views": lambda m: shared(numbers(m)),
    "views of a leaf's values": lambda m: with_data(parameter(m)),
    "view of a leaf": lambda m: leaf(m)[1],
    "transposed": lambda m: numbers(m).t(),
    "expanded": lambda m: m.arange(3.0).expand(2, 3),
    "empty": lambda m: m.zeros(0, 3),
    "number": lambda m: m.tensor(3.5),
    "booleans": lambda m: m.tensor([True, False]),
    "complex leaf": lambda m: m.tensor([1 + 2j], requires_grad=True),
    "bfloat16 parameter": lambda m: m.nn.Parameter(m.ones(2, dtype=m.bfloat16)),
    "channels last": lambda m: m.nn.Parameter(m.ones(1, 2, 3, 4).to(memory_format=m.channels_last)),
    "sparse with attributes": lambda m: with_attributes(numbers(m).to_sparse(), foo=1),
    "jagged leaf": lambda m: m.nested.nested_tensor([m.ones(2), m.ones(3)], layout=m.jagged, requires_grad=True),
    "state dict of parameters and an optimizer": states_of,
    "module": partly_frozen,
    "tied module": tied,
    "ordered dict": lambda m: with_attributes(__import__("collections").OrderedDict(a=1), _metadata={"": 2}),
    "bytearray": lambda m: bytearray(b"ab"),
}


def save_and_load(m, x):
    file = io.BytesIO()
    m.save(x, file)
    file.seek(0)
    return m.load(file)


WAYS = {
    "file": save_and_load,
    "pickle": lambda m, x: pickle.loads(pickle.dumps(x)),
    "deepcopy": lambda m, x: copy.deepcopy(x),
    "copy": lambda m, x: copy.copy(x),
}
# PyTorch's shallow and deep copies fail for these, or lose the class; ours don't.
KEPT_HERE = {
    ("subclass", "deepcopy"), ("subclass with a state", "deepcopy"), ("subclass of parameters", "pickle"),
    ("subclass of parameters", "copy"),
}  # fmt: skip


def describe(m, x, original=None, seen=None):
    """Return a copy as plain data, the same for both libraries."""
    seen = {} if seen is None else seen
    if id(x) in seen:
        return f"the object {seen[id(x)]}"
    seen[id(x)] = len(seen)
    if isinstance(x, m.Tensor):
        return describe_tensor(m, x, original, seen)
    if isinstance(x, m.nn.Module):
        return {name: describe(m, p, None, seen) for name, p in x.named_parameters(remove_duplicate=False)}
    if isinstance(x, dict):
        attributes = describe(m, dict(vars(x)), None, seen) if getattr(x, "__dict__", None) else None
        return [type(x), {key: describe(m, value, None, seen) for key, value in x.items()}, attributes]
    return [type(x), *(describe(m, part, None, seen) for part in x)] if isinstance(x, (list, tuple)) else x


def describe_tensor(m, x, original, seen):
    classes = [m.nn.Parameter, m.nn.Buffer, SUBCLASS[m], NOTED[m], PARAMETER[m]]
    found = [isinstance(x, kind) for kind in classes] + [str(x.dtype).rpartition(".")[2], x.requires_grad, x.is_leaf]
    if not (x.is_sparse or x.is_nested):
        memory = seen.setdefault(("memory", x.untyped_storage().data_ptr()), len(seen)) if x.numel() else None
        found += [tuple(x.shape), tuple(x.stride()), x.detach().tolist(), memory]
        found += [x.data_ptr() == original.data_ptr()] if isinstance(original, m.Tensor) and x.numel() else []
    attributes = {k: describe(m, v, None, seen) for k, v in vars(x).items() if k[0] != "_"}
    return [*found, describe(m, x.grad, None, seen) if x.is_leaf else None, attributes]


def outcome(m, kind, way):
    x = KINDS[kind](m)
    try:
        found = WAYS[way](m, x)
    except Exception as error:
        return "refused", error
    return "kept", describe(m, found, x if "copy" in way else None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_keeps_what_pytorchs_keeps(kind, way):
    (theirs, expected), (ours, found) = outcome(torch, kind, way), outcome(rg, kind, way)
    if (kind, way) in KEPT_HERE:
        assert ours == "kept"
    else:
        assert ours == theirs
        assert ours == "refused" or found == expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [k for k in KINDS if "subclass" not in k and "module" not in k and "jagged" not in k])
def test_files_of_each_library_are_read_by_the_other(kind, tmp_path):
    for writer, reader in [(rg, torch), (torch, rg)]:
        writer.save(KINDS[kind](writer), tmp_path / "x")
        assert describe(reader, reader.load(tmp_path / "x")) == describe(writer, writer.load(tmp_path / "x"))


def test_a_file_has_an_allowed_subclass():
    for m in (torch, rg):
        x = with_attributes(numbers(m).as_subclass(SUBCLASS[m]), foo=1)
        with m.serialization.safe_globals([SUBCLASS[m]]):
            found = save_and_load(m, [x, m.nn.Parameter(x)])
        assert [type(y) is SUBCLASS[m] or isinstance(y, m.nn.Parameter) for y in found] == [True, True]
        assert [isinstance(y, SUBCLASS[m]) for y in found] == [True, True]
        assert [isinstance(y, m.nn.Parameter) for y in found] == [False, True]
        assert found[0].foo == 1
