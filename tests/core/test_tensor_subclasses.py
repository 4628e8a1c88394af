"""Subclasses of Tensor: results keep the class, classes override operators, and the graph does not see them."""

import copy
import io
import pickle
from typing import ClassVar

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.overrides import DisableTorchFunctionSubclass, disabled_override, handle_torch_function, is_tensor_like


class Plain(rg.Tensor):
    pass


class Child(Plain):
    pass


class Logging(rg.Tensor):
    log: ClassVar[list] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.log.append((func.__name__, types))
        return super().__torch_function__(func, types, args, kwargs)


class Quantity(rg.Tensor):
    """A tensor with a unit, a product of powers of names."""

    unit: dict

    @staticmethod
    def of(data, **unit):
        x = rg.tensor(data).as_subclass(Quantity)
        x.unit = unit
        return x

    @classmethod
    def __tensor_function__(cls, func, types, args=(), kwargs=None):
        units = [getattr(a, "unit", {}) for a in args if not isinstance(a, (tuple, list, int))]
        if func.__name__ in ("mul", "matmul"):
            names = units[0].keys() | units[1].keys()
            unit = {n: units[0].get(n, 0) + units[1].get(n, 0) for n in names}
        elif func.__name__ in ("add", "add_", "sub"):
            if units[0] != units[1]:
                raise TypeError(f"{func.__name__}: units {units[0]} and {units[1]}")
            unit = units[0]
        elif func.__name__ in ("sum", "clone", "slice", "detach"):
            unit = units[0]
        elif func.__name__ == "tolist":
            return super().__tensor_function__(func, types, args, kwargs)
        else:
            return NotImplemented
        out = super().__tensor_function__(func, types, args, kwargs)
        out.unit = unit
        return out


CALLS = {
    "operator": lambda x: x * 2,
    "reflected": lambda x: 2 * x,
    "method": lambda x: x.sin(),
    "comparison": lambda x: x > 0,
    "reduction": lambda x: x.sum(),
    "composite": lambda x: x.var(),
    "index": lambda x: x[0],
    "index by a subclass": lambda x: rg.arange(5)[rg.tensor([1, 2]).as_subclass(Plain)],
    "list": lambda x: rg.stack([rg.ones(2), x]),
    "function": lambda x: nn.functional.relu(x),
    "module": lambda x: nn.Linear(2, 3)(x),
    "like": lambda x: rg.zeros_like(x),
    "in place": lambda x: x.mul_(3),
    "into a tensor": lambda x: rg.ones(2).add(x),
    "detach": lambda x: x.detach(),
    "dims in the middle": lambda x: x.gather(0, rg.tensor([0])),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_keep_the_class(name):
    assert type(CALLS[name](rg.ones(2).as_subclass(Plain))) is Plain


def test_all_of_several_results_have_the_class_and_named_tuples_stay_named():
    x = rg.tensor([1.0, 3.0, 2.0]).as_subclass(Plain)
    found = x.topk(2)
    assert found.values.tolist() == [3, 2]
    assert {type(found.values), type(found.indices)} == {Plain}
    assert {type(part) for part in rg.split(x, 1)} == {Plain}


def test_the_most_derived_class_is_called_first_and_unrelated_classes_are_refused():
    x, y = rg.ones(2).as_subclass(Plain), rg.ones(2).as_subclass(Child)
    assert type(x * y) is Child
    assert type(y * x) is Child
    with pytest.raises(TypeError, match=r"failed for 'mul'; all .*: Plain, Logging"):
        x * rg.ones(2).as_subclass(Logging)


def test_a_class_sees_each_call_once_by_pytorchs_name_of_the_method():
    Logging.log = []
    x = rg.ones(2, 2).as_subclass(Logging)
    nn.functional.softmax(x @ x + 1, dim=1).sum()
    x.add_(1)
    rg.ones(2, 2).sub_(x)
    assert [name for name, _ in Logging.log] == ["matmul", "add", "softmax", "sum", "add_", "sub_"]
    assert {types for _, types in Logging.log} == {(Logging,)}


def test_gradients_pass_and_are_tensors_and_rules_are_no_calls():
    a = rg.ones(3, requires_grad=True)
    Logging.log = []
    s = a.as_subclass(Logging)
    (s * s).sum().backward()
    assert type(a.grad) is rg.Tensor
    assert a.grad.tolist() == [2, 2, 2]
    assert [name for name, _ in Logging.log] == ["mul", "sum", "backward"]
    leaf = rg.Tensor._make_subclass(Logging, rg.ones(2), True)
    assert leaf.is_leaf
    (g,) = rg.autograd.grad((leaf * leaf).sum(), leaf, create_graph=True)
    assert Logging.log[-1] == ("grad", (Logging,))
    assert g.tolist() == [2, 2]
    assert rg.func.grad(lambda x: (x * x).sum())(leaf).tolist() == [2, 2]


def test_memory_and_history_are_shared_with_the_tensor():
    x = rg.zeros(2)
    y = x.as_subclass(Plain)
    y.add_(3)
    assert (x.tolist(), x._version) == ([3, 3], 1)
    a = rg.ones(2, 2, requires_grad=True)
    b = a * 2
    b.as_subclass(Plain)[0].mul_(5)
    b.sum().backward()
    assert a.grad.tolist() == [[10, 10], [2, 2]]
    with pytest.raises(TypeError, match="expected a subclass of Tensor"):
        x.as_subclass(int)


def test_overriding_can_be_disabled_in_a_block_or_for_a_class():
    class Off(rg.Tensor):
        __torch_function__ = staticmethod(disabled_override)

    x = rg.ones(2).as_subclass(Plain)
    with DisableTorchFunctionSubclass():
        assert type(x * 2) is rg.Tensor
    assert type(x * 2) is Plain
    assert type(rg.ones(2).as_subclass(Off) * 2) is rg.Tensor
    assert type(nn.Parameter(rg.ones(2)) * 2) is rg.Tensor


def test_a_subclass_with_units():
    length, time = Quantity.of([2.0, 3.0], m=1), Quantity.of([4.0, 5.0], s=-1)
    speed = length * time
    assert speed.unit == {"m": 1, "s": -1}
    assert (speed + speed).sum().unit == {"m": 1, "s": -1}
    with pytest.raises(TypeError, match="units"):
        length + time
    with pytest.raises(TypeError, match="units"):
        length.add_(time)
    assert length.tolist() == [2, 3]
    with pytest.raises(TypeError, match=r"failed for 'exp'; all .*: Quantity"):
        length.exp()


def test_a_parameter_of_a_subclass_is_of_both_classes():
    data = rg.ones(2, 3).as_subclass(Plain)
    data.unit = "m"
    p = nn.Parameter(data)
    assert isinstance(p, nn.Parameter)
    assert isinstance(p, Plain)
    assert (p.unit, p.is_leaf, p.requires_grad, type(p * 2)) == ("m", True, True, Plain)
    for copied in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert (type(copied), copied.unit, copied.requires_grad) == (type(p), "m", True)
        assert copied.value is not p.value


@pytest.mark.parametrize("optimizer", [rg.optim.SGD, rg.optim.Adam])
def test_optimizers_train_parameters_of_a_subclass_like_others(optimizer):
    results = []
    for kind in (rg.Tensor, Plain):
        m = nn.Linear(3, 2)
        m.weight = nn.Parameter(rg.ones(2, 3) if kind is rg.Tensor else rg.ones(2, 3).as_subclass(kind))
        nn.init.zeros_(m.bias)
        steps = optimizer(m.parameters(), lr=0.1)
        for _ in range(3):
            steps.zero_grad()
            (m(rg.ones(4, 3)) ** 2).sum().backward()
            steps.step()
        assert isinstance(m.weight, kind)
        results.append(m.weight.detach().tolist())
    assert results[0] == results[1]


def test_copies_pickled_data_and_files_that_allow_it_keep_class_and_attributes():
    x = rg.ones(2).as_subclass(Plain)
    x.note = [1]
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (type(copied), copied.note, copied.tolist()) == (Plain, [1], [1, 1])
        assert copied.note is not x.note
    file = io.BytesIO()
    with rg.serialization.safe_globals([Plain]):
        rg.save({"x": x}, file)
        file.seek(0)
        found = rg.load(file)["x"]
    assert (type(found), found.note) == (Plain, [1])


def test_a_class_with_pytorchs_name_of_the_method_is_no_tensor_but_overrides():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types

    assert rg.ones(1) * Duck() == ("mul", (Duck,))
    assert is_tensor_like(Duck())
    assert not is_tensor_like(3)

    def own(x):
        return handle_torch_function(own, (x,), x)

    assert own(Duck()) == ("own", (Duck,))


def test_dispatch_of_a_class_is_refused_by_name():
    class Wrapper(rg.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args)

    class Derived(Wrapper):
        pass

    class Overriding(Wrapper):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    for kind in (Wrapper, Derived, Overriding):
        makers = rg.ones(2).as_subclass, lambda kind: kind(rg.ones(2)), lambda kind: kind([1.0])
        for make in (*makers, lambda kind: rg.Tensor._make_wrapper_subclass(kind, (2,), dtype=rg.float32)):
            with pytest.raises(NotImplementedError, match=f"{kind.__name__}: __torch_dispatch__ of a class is not"):
                make(kind)


def test_custom_operators_are_overridden_too():
    @rg.library.custom_op("test_subclasses::two", mutates_args=())
    def two(x: rg.Tensor, n: int) -> tuple[list[rg.Tensor], int]:
        return [x * 2, x * n], n

    (a, b), n = two(rg.ones(1).as_subclass(Plain), 3)
    assert (type(a), type(b), n, b.item()) == (Plain, Plain, 3, 3)


class Labelled(rg.Tensor):
    """The usual form of a subclass: the data go to `__new__`, everything else to `__init__`."""

    def __new__(cls, data, label):
        return super().__new__(cls, data)

    def __init__(self, data, label):
        self.label = label


class OnlyInit(rg.Tensor):
    def __init__(self, *data):
        super().__init__()
        self.label = "init"


@pytest.mark.parametrize("data", [[1.0, 2.0], rg.tensor([1.0, 2.0])])
def test_a_subclass_may_define_new_or_init(data):
    for x, label in ((Labelled(data, "new"), "new"), (OnlyInit(data), "init")):
        assert (x.tolist(), x.label, type(x * 2)) == ([1.0, 2.0], label, type(x))


def test_a_subclass_of_a_tensor_is_a_view_with_its_history():
    leaf = rg.ones(2, requires_grad=True)
    x = OnlyInit(leaf)
    assert x._base is leaf
    (x * 3).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]
    base = rg.ones(2)
    OnlyInit(base).add_(1)
    assert base.tolist() == [2.0, 2.0]
    assert rg.Tensor(base)._base is base


def test_a_subclass_of_parameter_may_define_new_or_init():
    class Tagged(rg.nn.Parameter):
        def __new__(cls, data, tag):
            made = super().__new__(cls, data)
            made.tag = tag
            return made

    class FromInit(rg.nn.Parameter):
        def __init__(self, data):
            self.tag = len(data)

    for x, tag in ((Tagged(rg.ones(2), 5), 5), (FromInit(rg.ones(2)), 2)):
        assert (x.tag, x.requires_grad, x.tolist()) == (tag, True, [1.0, 1.0])


def test_classes_that_are_no_tensors_are_refused():
    for make in (rg.ones(2).as_subclass, lambda kind: rg.Tensor._make_subclass(kind, rg.ones(2))):
        with pytest.raises(TypeError, match="from a class that does not inherit from Tensor is not possible"):
            make(int)


class Answers(rg.Tensor):
    """A subclass that answers each function with its name."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__


def test_indexing_writes_by_index_data_and_new_tensors_are_overridden():
    x, plain = Answers([1.0, 2.0]), rg.ones(2)
    assert (x[0], plain[x], plain[0, x], x.new_ones(2), x.data) == (
        "__getitem__", "__getitem__", "__getitem__", "new_ones", "__get__")  # fmt: skip
    x[0], plain[0], plain[x] = 5.0, x, 7.0
    assert plain.tolist() == [1.0, 1.0]


def test_a_plain_method_overrides_with_a_warning():
    class Odd:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self, args[0]

    odd = Odd()
    with pytest.warns(UserWarning, match=r"Defining your `__torch_function__` as a plain method is deprecated"):
        assert rg.abs(odd) == (odd, odd)


def test_the_package_reads_attributes_of_a_class_that_overrides_them_without_calling_it():
    read = []

    class Reading(rg.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            read.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = rg.ones(2).as_subclass(Reading)
    rg.stack([x, x])
    repr(x)
    assert rg.Tensor.shape.__get__ not in read
    assert x.shape == (2,)
    assert read[-1] == rg.Tensor.shape.__get__


def test_an_attribute_that_a_class_defines_is_not_overridden():
    class Renamed(rg.Tensor):
        shape = property(lambda x: "its own")

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    assert rg.ones(2).as_subclass(Renamed).shape == "its own"
