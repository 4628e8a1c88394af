"""`utils._pytree` flattens, maps and rebuilds containers as PyTorch's does."""

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

Point = namedtuple("Point", "x y")  # as old programs write it
TREE = {"b": [1, None, (2.5,)], "a": OrderedDict(z=3, y=4), "c": Point(5, {6}), "d": deque([7]), "e": defaultdict(int)}
STORED = {"b": [1, None, (2.5,)], 1: OrderedDict(z=3, y=4), "d": deque([7], 3), "e": defaultdict(int, {"f": 8})}
LEAF = "lambda t: isinstance(t, tuple)"

CASES = [
    "p.tree_flatten(TREE)[0]",
    "p.tree_unflatten(range(8), p.tree_structure(TREE))",
    "p.tree_unflatten(range(3), p.tree_structure(TREE))",
    f"p.tree_leaves(TREE, is_leaf={LEAF})",
    "list(p.tree_iter(TREE))",
    "[p.tree_is_leaf(x) for x in (None, 1, (), [], {}, 'ab')]",
    "p.tree_map(str, TREE)",
    "p.tree_map(lambda *xs: xs, TREE, TREE)",
    "p.tree_map(lambda *xs: xs, [1, 2], [3])",
    "p.tree_map(lambda *xs: xs, {'b': 1, 'a': 2}, {'a': 3, 'b': 4})",
    "p.tree_map_(lambda x: x, TREE) is TREE",
    "p.tree_map_only(int, str, TREE)",
    "p.tree_map_only((int, set), str, TREE)",
    "p.tree_map_only(int | float, str, TREE)",
    "p.tree_map_only(lambda x: x is None, str, TREE)",
    "p.tree_map_only_(int, str, TREE) is TREE",
    "p.tree_all(lambda x: x != 3, TREE), p.tree_any(lambda x: x == 3, TREE)",
    "p.tree_all_only(int, bool, TREE), p.tree_any_only(float, bool, TREE)",
    "(lambda s: (s.num_leaves, s.num_children, s.num_nodes, s.is_leaf(), s.type))(p.tree_structure(TREE))",
    "p.tree_structure(TREE) == p.tree_structure(TREE), p.tree_structure([1]) == p.tree_structure((1,))",
    "p.tree_structure(TREE).unflatten(range(8))",
    "[p.is_namedtuple(x) for x in (Point, Point(1, 2), (1, 2))]",
    "p._dict_flatten(TREE), p._dict_unflatten(range(2), ['b', 'a'])",
    "p._dict_flatten_with_keys(TREE)",
    "p.MappingKey('a').get(TREE), str(p.MappingKey('a'))",
    "p.register_pytree_node(list, len, len)",
    "p.tree_flatten_with_path(TREE)[0]",
    f"p.tree_leaves_with_path(TREE, is_leaf={LEAF})",
    "p.tree_leaves_with_path(5), p.keystr(())",
    "[p.keystr(path) for path, _ in p.tree_leaves_with_path(TREE)]",
    "[p.key_get(TREE, path) for path, _ in p.tree_leaves_with_path(TREE)]",
    "p.tree_map_with_path(lambda path, *xs: (p.keystr(path), *xs), TREE, TREE)",
    "p.tree_map_with_path(lambda path, *xs: xs, [1, 2], [3])",
    "p.tree_map_with_path(lambda path, *xs: xs, {'b': 1, 'a': 2}, {'a': 3, 'b': 4})",
    "p.treespec_dumps(p.tree_structure(STORED))",
    "p.treespec_loads(p.treespec_dumps(p.tree_structure(STORED))) == p.tree_structure(STORED)",
    "p.treespec_loads(p.treespec_dumps(p.tree_structure(STORED))).unflatten(range(8))",
    "p.treespec_dumps(p.treespec_leaf(), 1)",
    "p.treespec_dumps(p.treespec_dict(a=p.treespec_tuple([p.treespec_leaf()])))",
    "p.treespec_dumps(p.tree_structure(TREE))",  # a namedtuple
    "p.treespec_dumps(3)",
    "p.treespec_dumps(p.treespec_leaf(), 2)",
    "p.treespec_loads('[2, null]')",
    """p.treespec_loads('[1, {"type": "unknown", "context": "null", "children_spec": []}]')""",
    "p.treespec_pprint(p.tree_structure(STORED))",
    "p.arg_tree_leaves(1, [2, 3], a={'b': 4})",
    "p.SequenceKey(1), str(p.GetAttrKey('a')), p.GetAttrKey('real').get(1j), len({p.MappingKey(1), p.MappingKey(1)})",
]


def outcome(code: str, library: str):
    """Return the value of an expression with the library's module as `p`, or the class of its error."""
    names = {"p": importlib.import_module(f"{library}.utils._pytree"), "TREE": TREE, "STORED": STORED, "Point": Point}
    try:
        return repr(eval(code, names))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("code", CASES)
def test_an_expression_has_the_same_outcome_as_in_pytorch(code):
    assert outcome(code, "retrograd") == outcome(code, "torch")


@pytest.mark.parametrize("library", ["retrograd", "torch"])
def test_a_registered_class_is_an_inner_node_also_for_transforms(library):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    tensors, p = importlib.import_module(library), importlib.import_module(f"{library}.utils._pytree")
    p.register_pytree_node(
        Pair, lambda pair: ([pair.a, pair.b], "kind"), lambda parts, kind: Pair(*parts), serialized_type_name="pair"
    )
    assert p.tree_leaves([Pair(1, {"k": 2}), 3]) == [1, 2, 3]
    doubled = p.tree_map(lambda x: 2 * x, Pair(1, 2))
    assert (type(doubled), doubled.a, doubled.b) == (Pair, 2, 4)
    mapped = tensors.func.vmap(lambda pair: pair.a + pair.b)(Pair(tensors.ones(3), tensors.ones(3)))
    assert mapped.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match=r"already registered|already exists"):
        p.register_pytree_node(Pair, len, len)


@pytest.mark.parametrize("library", ["retrograd", "torch"])
def test_a_registered_class_names_the_positions_of_its_children(library):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    p = importlib.import_module(f"{library}.utils._pytree")
    p.register_pytree_node(
        Pair,
        lambda pair: ([pair.a, pair.b], None),
        lambda parts, _: Pair(*parts),
        serialized_type_name="named pair",
        flatten_with_keys_fn=lambda pair: ([(p.GetAttrKey("a"), pair.a), (p.GetAttrKey("b"), pair.b)], None),
    )
    tree = [Pair(1, {"k": 2}), 3]
    assert [p.keystr(path) for path, _ in p.tree_leaves_with_path(tree)] == ["[0].a", "[0].b['k']", "[1]"]
    assert [p.key_get(tree, path) for path, _ in p.tree_leaves_with_path(tree)] == [1, 2, 3]
    assert p.tree_map_with_path(lambda path, x: p.keystr(path), tree)[0].b == {"k": "[0].b['k']"}


class Box:
    """A container with one member and a label."""

    def __init__(self, inside, label):
        self.inside, self.label = inside, label


def test_structures_of_registered_classes_are_exchanged_as_json():
    texts = []
    for library in ("torch", "retrograd"):
        p = importlib.import_module(f"{library}.utils._pytree")
        p.register_pytree_node(
            Box,
            lambda box: ([box.inside], box.label),
            lambda inside, label: Box(*inside, label),
            serialized_type_name="tests.Box",
        )
        spec = p.tree_structure([Box((1, 2), "x"), 3])
        texts.append(p.treespec_dumps(spec))
        box, rest = p.tree_unflatten([5, 6, 7], p.treespec_loads(texts[0]))
        assert (box.inside, box.label, rest) == ((5, 6), "x", 7)
    assert texts[0] == texts[1]
