"""Passes over graphs: they keep results and metadata, refuse bad input by name, and leave graphs alone then."""

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.fx.experimental.proxy_tensor import make_fx
from retrograd.fx.passes import graph_manipulation, operator_support, shape_prop, split_utils, tools_common
from retrograd.fx.passes.dialect.common.cse_pass import CSEPass
from retrograd.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from retrograd.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper
from retrograd.fx.passes.split_module import split_module_simple
from retrograd.fx.passes.utils import fuser_utils
from retrograd.fx.passes.utils.matcher_utils import SubgraphMatcher


def nodes_of(module):
    return {node.name: node for node in module.graph.nodes}


def net():
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))


def test_types_are_stored_for_tensors_inside_containers():
    module = fx.symbolic_trace(lambda x: ({"a": x.exp()}, 3))
    shape_prop.ShapeProp(module).propagate(rg.ones(2, 3))
    found, three = module.graph.output_node().meta["tensor_meta"]
    assert (found["a"].shape, found["a"].stride, three) == ((2, 3), (3, 1), 3)
    assert "tensor_meta" not in fx.symbolic_trace(lambda x: x).graph.output_node().meta


def test_fake_tensors_are_refused():
    with pytest.raises(NotImplementedError, match="no fake tensors"):
        shape_prop.ShapeProp(fx.symbolic_trace(lambda x: x), object())


def test_repeated_calls_are_merged_also_if_their_arguments_are_repeated_calls():
    module = make_fx(lambda x: (x.exp() * 2).sin() + (x.exp() * 2).sin())(rg.ones(2))
    result = CSEPass()(module)
    result.graph_module.graph.lint()
    assert result.modified
    assert list(nodes_of(module)) == ["x", "exp", "mul", "sin", "add", "output"]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * 0.0 + x * -0.0,
        lambda x: x * 1 + x * 1.0,
        lambda x: rg.rand(2) + rg.rand(2) + x,
        lambda x: (x.exp(), x.copy_(x + 1), x.exp()),
    ],
)
def test_calls_that_differ_stay(program):
    module = make_fx(program)(rg.ones(2))
    before = str(module.graph)
    assert not CSEPass()(module).modified
    assert str(module.graph) == before


def test_banned_operators_are_not_merged():
    module = fx.symbolic_trace(lambda x: rg.exp(x) + rg.exp(x))
    assert not CSEPass([rg.exp])(module).modified
    assert CSEPass()(module).modified


def test_splits_by_tags_need_a_tag_of_each_call_and_an_order_that_runs():
    module = fx.symbolic_trace(net())
    with pytest.raises(ValueError, match="the tag of _0 is None, which is none of"):
        split_utils.split_by_tags(module, ["a"])
    for node in module.graph.nodes:
        node.tag = "a" if node.name == "_0" else "b"
    with pytest.raises(RuntimeError, match="b needs _0 of a part that comes later"):
        split_utils.split_by_tags(module, ["b", "a"])
    parts, names = split_utils.split_by_tags(module, ["a", "b"], return_fqn_mapping=True)
    assert names == {"0": "a.0", "1": "b.1", "2": "b.2"}
    x = rg.randn(3, 2)
    assert rg.equal(parts(x), module(x))


def test_split_modules_may_be_of_a_user_defined_class():
    class Own(fx.GraphModule):
        """A user's class."""

    module = fx.symbolic_trace(lambda x: x + 1)
    for node in module.graph.nodes:
        node.tag = "a"
    assert type(split_utils.split_by_tags(module, ["a"], GraphModuleCls=Own)) is Own


def test_gradients_pass_through_split_and_fused_modules():
    x = rg.randn(3, 2)
    whole = net()
    wanted = rg.autograd.grad(whole(x).sum(), list(whole.parameters()))
    module = fx.symbolic_trace(whole)
    parts = split_module_simple(module, {node: int(node.name == "_2") for node in module.graph.nodes})
    support = operator_support.create_op_support(lambda modules, node: node.name != "_2")
    fused = CapabilityBasedPartitioner(module, support, True).partition_and_fuse()
    assert [n.op for n in fused.graph.nodes] == ["placeholder", "call_module", "call_module", "output"]
    for run in (parts, fused):
        found = rg.autograd.grad(run(x).sum(), list(whole.parameters()))
        assert all(map(rg.equal, found, wanted))


def test_a_partition_that_needs_its_own_results_is_refused():
    module = fx.symbolic_trace(lambda x: (x + 1).neg() * (x + 1))
    named = nodes_of(module)
    before = str(module.graph)
    with pytest.raises(ValueError, match="Invalid partition, found dependency cycles"):
        fuser_utils.fuse_as_graphmodule(module, [named["add"], named["mul"]], "wrong")
    assert str(module.graph) == before


def test_partitions_that_wait_for_each_other_are_not_merged():
    def crossed(x, y):
        a, b = x + 1, y * 2
        return a * -b, b + -a

    module = fx.symbolic_trace(crossed)
    support = operator_support.create_op_support(lambda modules, node: "neg" not in node.name)
    fused = CapabilityBasedPartitioner(module, support).partition_and_fuse()
    fused.graph.lint()
    assert fused(3, 4) == crossed(3, 4)


def test_calls_that_compute_nothing_do_not_fill_a_partition_and_leave_its_ends():
    module = fx.symbolic_trace(lambda x: (x[0] + 1)[0])
    every = operator_support.create_op_support(lambda modules, node: True)
    assert CapabilityBasedPartitioner(module, every).propose_partitions() == []
    partitioner = CapabilityBasedPartitioner(module, every, True, ["_operator.getitem"])
    [partition] = partitioner.propose_partitions()
    partitioner.remove_bookend_non_compute_ops([partition])
    assert repr(partition) == "[add]"
    partition.add_node(nodes_of(module)["getitem"], 1)
    partition.remove_node(nodes_of(module)["add"])
    assert (partition.size(), Partition().size()) == (1, 0)


def test_errors_of_passes_keep_their_class_and_name_the_passes_before():
    def fine(module):
        return None

    def broken(module):
        raise ZeroDivisionError("inside")

    module = fx.symbolic_trace(lambda x: x)
    manager = PassManager([pass_result_wrapper(fine), broken])
    with pytest.raises(ZeroDivisionError, match="inside") as caught:
        manager(module)
    assert caught.value.__notes__ == [
        "An error occurred when running the 'broken' pass after the following passes: ['fine']"
    ]
    with pytest.raises(TypeError, match="should be type PassResult"):
        PassManager([fine])(module)


def test_failed_checks_raise_or_are_logged(caplog):
    def check(module):
        raise ValueError("the module is wrong")

    module = fx.symbolic_trace(lambda x: x)
    for suppress in (False, True):
        manager = PassManager([], suppress_check_failures=suppress)
        manager.add_checks(check)
        if suppress:
            assert manager(module).graph_module is module
        else:
            with pytest.raises(ValueError, match="the module is wrong"):
                manager(module)
    assert "the check of the module failed" in caplog.text


def test_a_cycle_leaves_the_order_of_nodes():
    module = fx.symbolic_trace(lambda x: x.exp().neg())
    named = nodes_of(module)
    named["exp"].args = (named["neg"],)
    with pytest.raises(RuntimeError, match="Input graph has cycles"):
        tools_common.legalize_graph(module)
    assert list(nodes_of(module)) == ["x", "exp", "neg", "output"]


def test_only_calls_have_targets_and_only_typed_nodes_sizes():
    module = fx.symbolic_trace(net())
    x = next(iter(module.graph.nodes))
    with pytest.raises(ValueError, match="but found placeholder"):
        tools_common.get_node_target({}, x)
    with pytest.raises(RuntimeError, match="Node input_1 has no tensor metadata"):
        graph_manipulation.get_size_of_node(module, x)


def test_patterns_without_calls_match_nothing_and_modules_match_if_identical():
    module = fx.symbolic_trace(net())
    linear = fx.GraphModule(module, single("0"))
    assert len(SubgraphMatcher(linear.graph).match(module.graph)) == 1
    other = fx.GraphModule({"9": nn.Linear(2, 3)}, single("9"))
    assert SubgraphMatcher(other.graph).match(module.graph) == []


def single(name):
    graph = fx.Graph()
    graph.output(graph.call_module(name, (graph.placeholder("x"),)))
    return graph


def test_modes_of_tracing_that_do_not_exist_are_refused():
    with pytest.raises(NotImplementedError, match="see retrograd"):
        make_fx(lambda x: x, tracing_mode="symbolic")
    with pytest.raises(NotImplementedError, match="decomposition tables"):
        make_fx(lambda x: x, {"add": None})
