"""Structures of pytrees as JSON: read back as they were, and refused by name where that is not possible.

Their exchange with PyTorch is in tests/parity/test_pytree_parity.py.
"""

import json
from collections import OrderedDict, defaultdict, deque

import pytest

from retrograd.utils import _pytree
from retrograd.utils.treespec_json import FACTORIES

TREES = [
    1,
    None,
    (1, [2, 3], ()),
    {"b": 1, "a": {"c": [2]}},
    OrderedDict([("b", 1), ("a", 2)]),
    deque([1, 2], maxlen=3),
    defaultdict(None, a=1),
    *[defaultdict(factory, a=[1]) for factory in FACTORIES.values()],
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_a_structure_is_read_back_as_it_was(tree):
    spec = _pytree.tree_structure(tree)
    found = _pytree.treespec_loads(_pytree.treespec_dumps(spec))
    assert found == spec
    leaves = _pytree.tree_leaves(tree)
    again = _pytree.tree_unflatten(leaves, found)
    assert again == tree
    assert type(again) is type(tree)
    assert getattr(again, "maxlen", None) == getattr(tree, "maxlen", None)
    assert getattr(again, "default_factory", None) is getattr(tree, "default_factory", None)


def test_what_cannot_be_written_is_refused():
    class Pair:
        def __init__(self, *members):
            self.members = members

    _pytree.register_pytree_node(Pair, lambda pair: (list(pair.members), None), lambda members, _: Pair(*members))
    with pytest.raises(NotImplementedError, match="a Pair can't be serialized: register its class"):
        _pytree.treespec_dumps(_pytree.tree_structure([Pair(1, 2)]))
    with pytest.raises(NotImplementedError, match="a defaultdict of <function"):
        _pytree.treespec_dumps(_pytree.tree_structure(defaultdict(lambda: 1, a=1)))
    with pytest.raises(TypeError, match="instance of PyTreeSpec but got item of type <class 'list'>"):
        _pytree.treespec_dumps([1])
    with pytest.raises(ValueError, match="Unknown protocol 2"):
        _pytree.treespec_dumps(_pytree.tree_structure(1), protocol=2)


def test_nothing_is_imported_for_a_text():
    unknown = {"type": "os.system", "context": "null", "children_spec": []}
    with pytest.raises(NotImplementedError, match=r"os\.system in pytree is not registered"):
        _pytree.treespec_loads(json.dumps([1, unknown]))
    context = {"default_factory_module": "os", "default_factory_name": "system", "dict_context": []}
    factory = {"type": "collections.defaultdict", "context": context, "children_spec": []}
    with pytest.raises(NotImplementedError, match="a defaultdict of system can't be deserialized"):
        _pytree.treespec_loads(json.dumps([1, factory]))
    with pytest.raises(ValueError, match="Unknown protocol 2"):
        _pytree.treespec_loads("[2, null]")
