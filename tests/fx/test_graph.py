"""Graphs and nodes: building, changing, checking, printing and copying them."""

import copy
import pickle

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.core import Op, registry
from retrograd.core.schema_parser import parse

ADD, MUL, CAT = registry["add"], registry["mul"], registry["cat"]


def small() -> tuple[fx.Graph, fx.Node, fx.Node, fx.Node]:
    """Return the graph of x + x * 2, with its nodes."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    mul = graph.call_function(MUL, (x, 2))
    add = graph.call_function(ADD, (x, mul))
    graph.output(add)
    return graph, x, mul, add


def test_a_graph_prints_as_fx_does():
    graph, *_ = small()
    assert str(graph) == (
        "graph():\n"
        "    %x : [num_users=2] = placeholder[target=x]\n"
        "    %mul : [num_users=1] = call_function[target=mul](args = (%x, 2), kwargs = {})\n"
        "    %add : [num_users=1] = call_function[target=add](args = (%x, %mul), kwargs = {})\n"
        "    return add"
    )


def test_users_follow_nested_arguments():
    graph = fx.Graph()
    a, b, c, d = (graph.placeholder(name) for name in "abcd")
    node = graph.call_function(CAT, ([a, (b,)], {"k": c}, slice(None, d)))
    assert node.all_input_nodes == [a, b, c, d]
    assert [list(n.users) for n in (a, b, c, d)] == [[node]] * 4
    node.args = ((b,),)
    assert [len(n.users) for n in (a, b, c, d)] == [0, 1, 0, 0]
    node.kwargs = {"dim": c}
    assert node.all_input_nodes == [b, c]


def test_arguments_are_copies_that_no_caller_can_change_without_the_users():
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    members = [a]
    node = graph.call_function(CAT, (members,))
    members.append(b)
    assert node.args == ([a],)
    graph.output(node)
    graph.lint()


def test_names_are_snake_case_unique_and_not_those_of_generated_code():
    graph = fx.Graph()
    names = [graph.placeholder(n).name for n in ("X", "x", "a.b", "3", "sum", "lambda", "self", "x_1", "ops")]
    assert names == ["x", "x_1", "a_b", "_3", "sum_1", "lambda_1", "self_1", "x_2", "ops_1"]


def test_replace_all_uses_with_moves_every_user_but_the_new_node():
    graph, x, mul, add = small()
    with graph.inserting_after(x):
        twice = graph.call_function(ADD, (x, x))
    assert x.replace_all_uses_with(twice) == [mul, add]
    assert twice.args == (x, x)
    assert mul.args == (twice, 2)
    graph.lint()


def test_a_node_in_use_cannot_be_erased():
    graph, _, mul, add = small()
    with pytest.raises(RuntimeError, match="Tried to erase Node mul but it still had 1 users in the graph: add"):
        graph.erase_node(mul)
    mul.replace_all_uses_with(graph.find_nodes(op="placeholder")[0])
    graph.erase_node(mul)
    assert add.args[0] is add.args[1]
    graph.lint()


def test_nodes_go_where_insertion_points_and_moves_say():
    graph, x, mul, add = small()
    with graph.inserting_before(mul):
        first = graph.call_function(ADD, (x, 1))
        second = graph.call_function(ADD, (x, 2))
    with graph.inserting_after(mul):
        third = graph.call_function(ADD, (x, 3))
        fourth = graph.call_function(ADD, (x, 4))
    assert list(graph.nodes)[:7] == [x, first, second, mul, third, fourth, add]
    mul.append(first)
    second.prepend(fourth)
    assert list(graph.nodes)[:7] == [x, fourth, second, mul, first, third, add]
    assert list(reversed(graph.nodes))[::-1] == list(graph.nodes)
    assert len(graph.nodes) == 8
    assert (mul.prev, mul.next) == (second, first)
    assert graph.get_attr("last") is list(graph.nodes)[-1]


def test_an_insertion_point_outlives_the_node_that_it_names():
    graph, _x, _mul, add = small()
    with graph.inserting_before(add):
        add.replace_all_uses_with(graph.find_nodes(op="placeholder")[0])
        graph.erase_node(add)
        new = graph.placeholder("late")
    assert new.next is graph.output_node()


def test_nodes_can_be_erased_and_added_while_walking():
    graph, x, _, _ = small()
    walked = []
    for node in graph.nodes:
        walked.append(node.name)
        if node.name == "mul":
            node.replace_all_uses_with(x)
            graph.erase_node(node)
        if node.name == "add":
            with graph.inserting_after(node):
                graph.call_function(MUL, (node, node))
    assert walked == ["x", "mul", "add", "mul_1", "output"]


def test_nodes_of_another_graph_are_refused():
    graph, x, *_ = small()
    y = small()[1]
    with pytest.raises(ValueError, match="of another graph"):
        x.prepend(y)
    with pytest.raises(RuntimeError, match="Attempting to remove x from wrong graph!"):
        graph.erase_node(y)
    for inserting in (graph.inserting_before, graph.inserting_after):
        with pytest.raises(ValueError, match="no node of this graph"), inserting(y):
            pass


def test_kinds_of_nodes_are_checked():
    graph = fx.Graph()
    with pytest.raises(ValueError, match="op must be one of placeholder, get_attr"):
        graph.create_node("call", "x")
    with pytest.raises(ValueError, match="target 'exp' has type <class 'str'> but a Callable is expected"):
        graph.call_function("exp", (1,))  # type: ignore[arg-type]
    for call in (graph.call_method, graph.call_module):
        with pytest.raises(ValueError, match="but a str is expected"):
            call(len, (1,))
    with pytest.raises(RuntimeError, match="no output yet"):
        graph.output_node()


def test_find_nodes_by_kind_and_target():
    graph, x, mul, add = small()
    assert graph.find_nodes(op="placeholder") == [x]
    assert graph.find_nodes(op="call_function") == [mul, add]
    assert graph.find_nodes(op="call_function", target=MUL) == [mul]


def test_dead_code_is_removed_except_inputs_and_impure_nodes():
    def f(x, unused):
        y = x + 1
        (y * 2).exp()
        rg.rand(2)
        rg.zeros(2)
        bool(x.sum() > 0)
        return y

    module = fx.trace(f, rg.ones(2), rg.ones(3))
    assert module.graph.eliminate_dead_code()
    left = [str(getattr(n.target, "name", n.name)) for n in module.graph.nodes]
    assert left == ["x", "unused", "add", "rand", "sum", "gt", "guard", "output"]
    assert not module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    assert module(rg.ones(2), rg.ones(3)).tolist() == [2.0, 2.0]


def test_graph_copy_inlines_a_graph_and_gives_its_output():
    inner, _, mul, _ = small()
    mul.meta["val"] = "noted"
    outer = fx.Graph()
    start = outer.placeholder("start")
    values = {inner.find_nodes(op="placeholder")[0]: start}
    result = outer.graph_copy(inner, values)
    outer.output((result, outer.graph_copy(inner, {inner.find_nodes(op="placeholder")[0]: result})))
    outer.lint()
    assert [n.name for n in outer.nodes] == ["start", "mul", "add", "mul_1", "add_1", "output"]
    assert [n.meta.get("val") for n in outer.nodes] == [None, "noted", None, "noted", None, None]
    assert fx.GraphModule(nn.Module(), outer)(rg.tensor(2.0)) == (rg.tensor(6.0), rg.tensor(18.0))


def corrupt_order(graph, x, mul, add):
    mul.prepend(add)


def corrupt_users(graph, x, mul, add):
    x.users.clear()


def corrupt_arguments(graph, x, mul, add):
    add.kwargs = {"alpha": x}


def corrupt_function(graph, x, mul, add):
    mul.target = "mul"


def corrupt_method(graph, x, mul, add):
    mul.op, mul.target, mul.args = "call_method", "exp", ()


def corrupt_name(graph, x, mul, add):
    mul.name = "Mul"


def corrupt_unique(graph, x, mul, add):
    mul.name = add.name


def corrupt_target(graph, x, mul, add):
    mul.target = Op(parse("mul(Tensor a, Tensor b) -> Tensor"), MUL.definition)


def corrupt_attribute(graph, x, mul, add):
    with graph.inserting_before(mul):
        graph.get_attr("w").target = 3


def corrupt_call(graph, x, mul, add):
    mul.args = (x,)


def corrupt_output(graph, x, mul, add):
    graph.output(x)


def corrupt_end(graph, x, mul, add):
    graph.call_function(MUL, (x, x))


def corrupt_owner(graph, x, mul, add):
    mul.graph = fx.Graph()


def corrupt_foreign_argument(graph, x, mul, add):
    add.args = (x, small()[2])


def corrupt_signature(graph, x, mul, add):
    graph.signature = fx.Signature(lambda: None)


CORRUPTIONS = {
    corrupt_order: "Argument 'mul' of Node 'add' was used before it has been defined",
    corrupt_users: r"x.users is \[\], but \['add', 'mul'\] use it",
    corrupt_function: "mul calls 'mul', which is no operator or function",
    corrupt_method: "mul calls the method exp of nothing",
    corrupt_arguments: r"add: .*unexpected keyword argument 'alpha'",
    corrupt_name: "'Mul' is not in snake_case",
    corrupt_unique: "Node redefined name add",
    corrupt_target: "mul calls .* no registered operator",
    corrupt_attribute: "target of get_attr must be a string, got 3",
    corrupt_call: "mul: .* missing argument 'b'",
    corrupt_output: "expected one output, as the last node, got 2",
    corrupt_end: "expected one output, as the last node, got 1",
    corrupt_owner: "Node 'mul' does not belong to this Graph",
    corrupt_foreign_argument: "Argument 'mul' of Node 'add' does not belong to this Graph",
    corrupt_signature: "the signature has 0 inputs, but there are 1 placeholders",
}


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda c: c.__name__)
def test_lint_lists_every_fault(corrupt):
    graph, *nodes = small()
    graph.lint()
    corrupt(graph, *nodes)
    with pytest.raises(RuntimeError, match=CORRUPTIONS[corrupt]):
        graph.lint()


DUPLICATES = {"deepcopy": copy.deepcopy, "pickle": lambda graph: pickle.loads(pickle.dumps(graph))}


@pytest.mark.parametrize("duplicate", DUPLICATES.values(), ids=DUPLICATES)
def test_copies_are_equal_and_independent(duplicate):
    graph = fx.trace(lambda x: (x[1:, None], {"a": x.sum(0)}), rg.ones(2, 2)).graph
    twin = duplicate(graph)
    twin.lint()
    assert str(twin) == str(graph)
    assert [n.meta for n in twin.nodes] == [n.meta for n in graph.nodes]
    twin.output_node().args = ((),)
    twin.eliminate_dead_code()
    assert len(twin.nodes) < len(graph.nodes)
    graph.lint()


def deep(count: int) -> fx.Graph:
    graph = fx.Graph()
    node = graph.placeholder("x")
    for _ in range(count):
        node = graph.call_function(MUL, (node, 2))
    graph.output(node)
    return graph


@pytest.mark.parametrize("duplicate", DUPLICATES.values(), ids=DUPLICATES)
def test_a_long_graph_is_copied_without_recursion(duplicate):
    twin = duplicate(deep(20_000))
    assert len(twin.nodes) == 20_002
    assert twin.output_node().args[0].name == "mul_19999"


@pytest.mark.parametrize(
    "change",
    [
        lambda args: args[0].append(1),
        lambda args: args[0].__setitem__(0, 1),
        lambda args: args[0].sort(),
        lambda args: args[1].update(k=1),
        lambda args: args[1].pop("k"),
    ],
)
def test_arguments_cannot_change_in_place(change):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(CAT, ([x], {"k": x}))
    with pytest.raises(TypeError, match="assign the copy to the node"):
        change(node.args)
    with pytest.raises(TypeError, match=r"node\.kwargs = new_kwargs"):
        node.kwargs["dim"] = 1
    assert node.args == ([x], {"k": x})


def test_single_arguments_are_changed_and_inserted():
    _, x, mul, add = small()
    add.update_arg(1, x)
    add.insert_arg(0, 7)
    add.update_kwarg("alpha", mul)
    assert (add.args, add.kwargs) == ((7, x, x), {"alpha": mul})
    assert list(mul.users) == [add]
    with pytest.raises(IndexError, match="index must be between 0 and len"):
        add.insert_arg(4, x)


def test_only_the_users_that_are_requested_change_and_notes_go_along():
    graph, x, mul, add = small()
    x.meta["note"] = "kept"
    with graph.inserting_after(x):
        new = graph.call_function(ADD, (x, 1))
    assert x.replace_all_uses_with(new, lambda user: user is add, propagate_meta=True) == [add]
    assert (mul.args[0], add.args[0], new.meta) == (x, new, {"note": "kept"})
    graph.lint()
    with pytest.raises(ValueError, match="has a meta of its own"):
        x.replace_all_uses_with(new, propagate_meta=True)


def test_an_erased_node_is_gone_for_good():
    graph, _, mul, add = small()
    add.replace_all_uses_with(mul)
    graph.erase_node(add)
    with pytest.warns(UserWarning, match="on an already erased node"):
        graph.erase_node(add)
    with pytest.raises(ValueError, match="no node of this graph"):
        graph.inserting_after(add)


def test_insertion_points_at_both_ends():
    graph, *_ = small()
    with graph.inserting_before():
        first = graph.placeholder("first")
    with graph.inserting_after():
        last = graph.get_attr("last")
    assert next(iter(graph.nodes)) is first
    assert next(reversed(graph.nodes)) is last


class CountingModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", rg.tensor(0))


def calls() -> fx.Graph:
    graph = fx.Graph()
    x = graph.placeholder("x", default_value=1)
    graph.call_function(print, (x,))
    graph.call_function(len, (x,))
    graph.call_method("exp", (x,))
    graph.call_method("add_", (x, 1))
    graph.call_method("__len__", (x,))
    graph.call_module("layer", (x,))
    graph.call_module("norm", (x,))
    graph.output(x)
    return graph


def test_dead_calls_with_side_effects_stay():
    module = fx.GraphModule({"layer": nn.Linear(2, 2), "norm": CountingModule()}, calls())
    module.graph.eliminate_dead_code()
    assert [node.name for node in module.graph.nodes] == ["x", "print_1", "add_", "norm", "output"]
    module.eval()
    module.graph.eliminate_dead_code(
        lambda node: node.name == "add_" or (node.is_impure() and node.target is not print)
    )
    assert [node.name for node in module.graph.nodes] == ["x", "add_", "output"]


def test_calls_of_modules_are_impure_without_an_owning_module():
    graph = calls()
    graph.eliminate_dead_code()
    assert [n.name for n in graph.nodes if n.op == "call_module"] == ["layer", "norm"]


def test_lint_checks_that_the_owning_module_has_the_called_modules():
    module = fx.GraphModule({"layer": nn.Linear(2, 2), "norm": CountingModule()}, calls())
    assert module.graph.owning_module is module
    module.graph.lint()
    del module.norm
    with pytest.raises(RuntimeError, match="Node norm target norm references nonexistent attribute"):
        module.graph.lint()


def test_calls_of_all_kinds_print():
    graph = calls()
    assert str(graph).splitlines()[1:4] == [
        "    %x : [num_users=8] = placeholder[target=x](default=1)",
        "    %print_1 : [num_users=0] = call_function[target=builtins.print](args = (%x,), kwargs = {})",
        "    %len_1 : [num_users=0] = call_function[target=builtins.len](args = (%x,), kwargs = {})",
    ]
    assert graph.tabular().splitlines()[:3] == [
        "opcode         name     target          args     kwargs",
        "-------------  -------  --------------  -------  ------",
        "placeholder    x        x               (1,)     {}",
    ]


def test_immutable_collections_are_those_of_arguments():
    graph = fx.Graph()
    node = graph.call_function(print, ([1], {"a": [2]}))
    assert type(node.args[0]) is fx.immutable_collections.immutable_list
    assert type(node.args[1]) is fx.immutable_collections.immutable_dict
    assert hash(node.args) == hash(graph.node_copy(node).args)
    assert node.stack_trace is None
    for change in (lambda: node.args[0].append(3), lambda: node.args[1].update(b=1)):
        with pytest.raises(TypeError, match="object does not support mutation"):
            change()


def test_nodes_are_ordered_by_their_positions():
    graph = fx.Graph()
    a, b, c = (graph.placeholder(name) for name in "abc")
    assert sorted([c, b, a]) == [a, b, c]
    a.prepend(c)
    assert c < a <= b
    with pytest.raises(TypeError, match="not supported"):
        _ = a < fx.Graph().placeholder("a")
