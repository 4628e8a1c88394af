"""Programs in the manner of torch.fx's documentation that change and run graphs: the same as PyTorch's."""

import operator
import warnings

import pytest
import torch

import retrograd as rg

from .graph_texts import failing, fx, graph_text, net, report, trace
from .programs import assert_same, data


def first_example(m):
    return report(m, trace(m, net(m)), (m.ones(3, 4),))


def replaced_add(m):
    module = trace(m, lambda x, y: m.add(x, y) * 2)
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target == m.add:
            node.target = m.mul
    module.graph.lint()
    module.recompile()
    return report(m, module, (m.full((2,), 3.0), m.full((2,), 4.0)))


def inserted_relu(m):
    module = trace(m, lambda x, y: m.add(x, y) * 2)
    for node in list(module.graph.nodes):
        if node.target == m.add:
            with module.graph.inserting_after(node):
                new = module.graph.call_function(m.relu, args=(node,))
                node.replace_all_uses_with(new, lambda user, new=new: user is not new)
    module.recompile()
    return report(m, module, (-m.ones(2), m.zeros(2)))


def decomposed(m):
    rules = {m.relu: lambda x: (x > 0) * x}
    model = trace(m, lambda x: m.relu(x) + 1)
    new_graph, env = fx(m).Graph(), {}
    tracer = fx(m).proxy.GraphAppendingTracer(new_graph)
    for node in model.graph.nodes:
        if node.op == "call_function" and node.target in rules:
            args = [fx(m).Proxy(env[x.name], tracer) if isinstance(x, fx(m).Node) else x for x in node.args]
            env[node.name] = rules[node.target](*args).node
        else:
            env[node.name] = new_graph.node_copy(node, lambda x: env[x.name])
    return report(m, fx(m).GraphModule(model, new_graph), (m.tensor([-1.0, 2.0]),))


def pattern(m):
    module = trace(m, lambda x, a, b: m.cat([x.neg() + a, x.neg() + b]).sum())
    found = fx(m).replace_pattern(module, lambda x, w: x.neg() + w, lambda x, w: m.sub(w, x))
    nodes = [sorted((k.name, v.name) for k, v in f.nodes_map.items()) for f in found]
    return nodes, report(m, module, (m.ones(2), m.zeros(2), m.ones(2)))


def pattern_of_several(m):
    module = trace(m, lambda x: (x.exp() * 2).sin() + (x.exp() * 2).cos())
    fx(m).replace_pattern(module, lambda x: x.exp() * 2, lambda x: x.tanh())
    return report(m, module, (m.ones(2),))


def profiled(m):
    calls = []

    class Profiling(fx(m).Interpreter):
        def run_node(self, n):
            calls.append((n.op, n.name))
            return super().run_node(n)

    return data(Profiling(trace(m, net(m))).run(m.ones(3, 4))), calls


def swapped_by_interpreter(m):
    class NegSigmSwap(fx(m).Interpreter):
        def call_function(self, target, args, kwargs):
            return m.neg(*args, **kwargs) if target == m.sigmoid else super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                call_self, *rest = args
                return call_self.sigmoid(*rest, **kwargs)
            return super().call_method(target, args, kwargs)

    return data(NegSigmSwap(trace(m, lambda x: m.sigmoid(x).neg())).run(m.ones(3)))


def swapped_by_transformer(m):
    class NegSigmSwap(fx(m).Transformer):
        def call_function(self, target, args, kwargs):
            return m.neg(*args, **kwargs) if target == m.sigmoid else super().call_function(target, args, kwargs)

    return report(m, NegSigmSwap(trace(m, lambda x: m.sigmoid(x).neg())).transform(), (m.ones(3),))


def leaf_modules(m):
    class Inner(m.nn.Module):
        def forward(self, x):
            return x.neg() + 1

    class Outer(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.other = Inner(), m.nn.Sequential(Inner(), m.nn.ReLU())

        def forward(self, x):
            return self.other(self.inner(x))

    class Leaves(fx(m).Tracer):
        def is_leaf_module(self, mod, qualname):
            return isinstance(mod, Inner) or super().is_leaf_module(mod, qualname)

    outer = Outer()
    graph = Leaves().trace(outer)
    return report(m, fx(m).GraphModule(outer, graph), (m.ones(2),)), report(m, trace(m, outer), (m.ones(2),))


def manual_graph(m):
    graph = fx(m).Graph()
    x = graph.placeholder("x")
    w = graph.get_attr("linear.weight")
    y = graph.call_method("matmul", args=(x, w))
    z = graph.call_module("linear", args=(y,), kwargs={})
    s = graph.call_function(operator.getitem, (z, (slice(None), slice(0, 2, None), ...)))
    graph.output({"a": s, "b": [z, (1, 2.5, None, True, "text")]})
    module = net(m)
    module.linear = m.nn.Linear(4, 4)
    with m.no_grad():
        for p in module.linear.parameters():
            p.copy_(m.ones(p.shape))
    return report(m, fx(m).GraphModule(module, graph), (m.ones(2, 4),))


def erased(m):
    module = trace(m, lambda x: (x.neg() + 1, x.exp())[0])
    graph = module.graph
    neg = next(n for n in graph.nodes if n.target == "neg")
    refusal = failing(lambda: graph.erase_node(neg), "still had 1 users in the graph")
    changed = graph.eliminate_dead_code()
    module.recompile()
    return refusal, changed, report(m, module, (m.ones(1),))


def reordered(m):
    module = trace(m, lambda x: (x.neg(), x.exp(), x.sin()))
    nodes = {n.name: n for n in module.graph.nodes}
    nodes["neg"].append(nodes["sin"])
    nodes["neg"].prepend(nodes["exp"])
    module.recompile()
    return report(m, module, (m.ones(1),))


def inlined(m):
    graph = fx(m).Graph()
    x = graph.placeholder("x")
    inner = trace(m, lambda a: a.neg() + 1).graph
    out = graph.graph_copy(inner, {next(iter(inner.nodes)): x})
    graph.output((out, x))
    return report(m, fx(m).GraphModule({}, graph), (m.ones(1),))


def replaced_modules(m):
    model = m.nn.Sequential(m.nn.ReLU(), m.nn.Tanh())
    module = trace(m, model)
    for node in list(module.graph.nodes):
        if node.op == "call_module" and isinstance(module.get_submodule(node.target), m.nn.Tanh):
            module.add_submodule("new.inner", m.nn.Sigmoid())
            with module.graph.inserting_after(node):
                new = module.graph.call_module("new.inner", node.args)
                node.replace_all_uses_with(new)
            module.graph.erase_node(node)
    module.delete_all_unused_submodules()
    module.recompile()
    return report(m, module, (m.ones(2),)), [n for n, _ in module.named_modules()]


def fused(m):
    module = trace(m, m.nn.Sequential(m.nn.Linear(2, 2), m.nn.BatchNorm1d(2), m.nn.ReLU()).eval())
    seen = [
        (n.name, str(n.target), list(n.args) and n.args[0].name) for n in module.graph.nodes if n.op == "call_module"
    ]
    names = [n for n, _ in module.named_parameters()]
    return seen, names, module.training


def shapes(m):
    module = trace(m, net(m))
    fx(m, "passes.shape_prop").ShapeProp(module).propagate(m.ones(3, 4))
    return [
        (n.name, tuple(n.meta["tensor_meta"].shape), str(n.meta["tensor_meta"].dtype).rpartition(".")[2])
        for n in module.graph.nodes
    ]


def printed(m):
    module = trace(m, lambda x: x.neg() + 1)
    nodes = list(module.graph.nodes)
    return [repr(n) for n in nodes], [n.format_node() for n in nodes[:2]], repr(nodes[1].args), repr(nodes[2].users)


def argument_edits(m):
    module = trace(m, lambda x, y: m.argmax(x, dim=0) + y)
    node = next(n for n in module.graph.nodes if n.op == "call_function")
    node.update_kwarg("keepdim", True)
    node.update_arg(0, node.args[0])
    node.insert_arg(0, node.args[0])
    before = [str(a) for a in node.args]
    node.args = node.args[1:]
    module.recompile()
    return before, report(m, module, (m.ones(1), m.ones(1)))


def immutable(m):
    graph = fx(m).Graph()
    x = graph.placeholder("x")
    node = graph.call_function(m.cat, ([x, x],), {"dim": 0})
    return [
        failing(lambda: node.args[0].append(1), "mutation is not supported"),
        failing(lambda: node.kwargs.update(a=1), "mutation is not supported"),
        type(node.args[0]).__name__,
    ]


def lint_errors(m):
    graph = fx(m).Graph()
    x = graph.placeholder("x")
    y = graph.call_method("neg", (x,))
    z = graph.call_method("exp", (y,))
    graph.output(z)
    z.append(y)
    first = failing(graph.lint, "was used before it has been defined")
    other = fx(m).Graph()
    other.output(other.call_method("neg", (x,)))
    missing = fx(m).Graph()
    missing.output(missing.get_attr("nothing"))
    return (
        first,
        failing(other.lint, "does not belong to this Graph"),
        failing(lambda: fx(m).GraphModule(m.nn.Module(), missing), "nothing"),
    )


def split_by_name(m):
    module = trace(m, lambda x: (x.neg() * 2).exp() + x)
    parts = fx(m, "passes.split_module").split_module(
        module, module, lambda n: 0 if n.name in ("neg", "mul") else 1, keep_original_order=True
    )
    return report(m, parts, (m.ones(2),)), graph_text(parts.submod_0.graph), graph_text(parts.submod_1.graph)


def found_nodes(m):
    graph = trace(m, net(m)).graph
    return [
        [n.name for n in graph.find_nodes(op=op, target=t)]
        for op, t in (
            ("call_function", operator.add),
            ("call_method", "clamp"),
            ("call_module", "linear"),
            ("get_attr", "param"),
        )
    ], [graph.find_nodes(op="output")[0].name, [n.name for n in graph.output_node().all_input_nodes]]


def side_effects(m):
    def f(x):
        x.neg()
        m._assert(x, "words")
        return x

    module = trace(m, f)
    module.graph.eliminate_dead_code()
    return [n.name for n in module.graph.nodes], [n.is_impure() for n in module.graph.nodes]


PROGRAMS = {f.__name__.replace("_", " "): f for f in (
    first_example, replaced_add, inserted_relu, decomposed, pattern, pattern_of_several, profiled,
    swapped_by_interpreter, swapped_by_transformer, leaf_modules, manual_graph, erased, reordered, inlined,
    replaced_modules, fused, shapes, printed, argument_edits, immutable, lint_errors, split_by_name,
    found_nodes, side_effects,
)}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_documented_programs(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, peer = (PROGRAMS[name](m) for m in (rg, torch))
    assert_same(mine, peer)
