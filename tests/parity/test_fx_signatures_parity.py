"""The public names of torch.fx are there, with its parameters; the exceptions have reasons."""

import inspect
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

import pytest

import retrograd as rg

PACKAGES = ("torch", "retrograd")

MODULES = (
    "", "graph", "node", "proxy", "graph_module", "interpreter", "_symbolic_trace", "subgraph_rewriter", "traceback",
    "annotate", "tensor_type", "operator_schemas", "immutable_collections", "passes.shape_prop", "passes.split_utils",
    "passes.split_module", "passes.infra.pass_manager", "passes.infra.pass_base", "passes.infra.partitioner",
    "passes.graph_manipulation", "passes.operator_support", "passes.tools_common", "passes.utils.common",
    "passes.utils.fuser_utils", "passes.utils.matcher_utils", "passes.dialect.common.cse_pass",
    "experimental.const_fold",
)  # fmt: skip
# Modules of PyTorch's that are not ours, and why: all of passes, and those experiments that scripts import.
ABSENT = {
    "passes.pass_manager": "the older manager of passes; infra.pass_manager has its successor",
    "passes.graph_drawer": "needs pydot and Graphviz; fx.draw returns SVG pictures",
    "passes.fake_tensor_prop": "there are no fake tensors; ShapeProp runs examples, fx.trace and export infer types",
    "passes.net_min_base": "finds faults of accelerator backends",
    "passes.splitter_base": "splits for accelerators by vendors' settings; infra.partitioner splits by capability",
    "passes.reinplace": "a part of PyTorch's compiler; results of graphs are never overwritten",
    "passes.runtime_assert": "fx.trace and export record guards themselves",
    "passes.param_fetch": "lowers parameters into nodes for one of PyTorch's backends",
    "passes.annotate_getitem_nodes": "for TorchScript, which needs annotations",
    "passes.graph_transform_observer": "draws graphs with Graphviz; the hooks that it uses exist",
    "passes.regional_inductor": "a part of PyTorch's compiler",
    "passes.regional_inductor_invoke_subgraph": "a part of PyTorch's compiler",
    "passes.backends.cudagraphs": "a part of PyTorch's compiler",
    "passes.utils.source_matcher_utils": "needs metadata of PyTorch's compiler; nodes have nn_module_stack",
    "passes.utils.matcher_with_name_node_map_utils": "patterns return their named nodes instead",
    "experimental.optimization": "for inference by MKL-DNN",
    "experimental.normalize": "Node.normalized_arguments gives the form of one call",
    "experimental.merge_matmul": "an experiment of PyTorch's",
    "experimental.rewriter": "rewrites assert statements; Tracer.trace_asserts records them",
    "experimental.schema_type_annotation": "for TorchScript, which needs annotations",
    "experimental.symbolic_shapes": "retrograd.export has symbolic sizes",
    "experimental.meta_tracer": "there are no fake tensors; fx.trace runs examples",
    "experimental.partitioner_utils": "retrograd.pipelining plans stages by their costs",
    "experimental.accelerator_partitioner": "retrograd.pipelining plans stages by their costs",
    "experimental.graph_gradual_typechecker": "an experiment of PyTorch's; export checks sizes",
    "experimental.unify_refinements": "an experiment of PyTorch's; export checks sizes",
    "experimental.debug": "on_generate_code inserts a breakpoint",
    "_pytree": "types are registered with optree",
    "_compatibility": "marks PyTorch's own promises",
}

TEXT = "generated code has one form: shapes and source lines are always in it, without colours"
TYPES = "an operator has one signature, so that no types choose among overloads"
SYMBOLIC = "sizes are ints in graphs; retrograd.export has symbolic sizes"
PROVENANCE = "where nodes come from is not recorded, apart from their source lines"
BUILT = "the parameters are read from the signature; override create_node to change placeholders"
PACKAGE = "torch.package has no counterpart; graph modules are pickled, or stored by retrograd.export"
FAKE = "there are no fake tensors; retrograd.fx.trace records types"

# Names of PyTorch's that are not ours, and why.
MISSING = {
    "tensor_type.Dyn": "gradual typing is an experiment of PyTorch's; export checks sizes",
    "tensor_type.TensorType": "gradual typing is an experiment of PyTorch's; export checks sizes",
    "tensor_type.is_consistent": "gradual typing is an experiment of PyTorch's; export checks sizes",
    "tensor_type.is_more_precise": "gradual typing is an experiment of PyTorch's; export checks sizes",
    "proxy.MetaProxy": FAKE,
    "graph_module.reduce_graph_module": PACKAGE,
    "graph_module.reduce_package_graph_module": PACKAGE,
    "traceback.NodeSource": PROVENANCE,
    "traceback.NodeSourceAction": PROVENANCE,
    "traceback.get_graph_provenance_json": PROVENANCE,
    "traceback.set_current_replay_node": "writes to views are recorded as operators, so nothing is replayed",
    "traceback.get_current_replay_node": "writes to views are recorded as operators, so nothing is replayed",
    "traceback.set_grad_fn_seq_nr": "tracing records no backward nodes",
    "traceback.reset_grad_fn_seq_nr": "tracing records no backward nodes",
    "operator_schemas.create_type_hint": TYPES,
    "operator_schemas.type_matches": TYPES,
    "operator_schemas.get_signature_for_torch_op": "an operator has one signature: op.schema",
    "passes.dialect.common.cse_pass.get_CSE_banned_ops": "the pass knows random operators and writes by their traits",
    "passes.split_utils.Component": "an internal container",
    "passes.split_utils.move_non_tensor_nodes_on_boundary": "for accelerators that exchange tensors only",
    "passes.split_module.Partition": "an internal container",
    "passes.tools_common.FxNetAccFusionsFinder": "for accelerators that exchange tensors only",
    "passes.tools_common.get_acc_ops_name": "names operators of one of PyTorch's backends",
    "_symbolic_trace.is_fx_tracing_warning": "a part of is_fx_tracing's deprecation",
    "_symbolic_trace.is_fx_symbolic_tracing": "tells symbolic_trace from torch.compile; the same as is_fx_tracing",
}
MISSING_METHODS = {
    "Graph": dict.fromkeys(
        ("create_size_node", "create_stride_node", "create_storage_offset_node", "materialize_symint",
         "materialize_symints"), SYMBOLIC,
    ),
    "Tracer": {"create_args_for_root": BUILT},
    "GraphModule": {"to_folder": "retrograd.export stores programs that load without running code"},
}  # fmt: skip
# Parameters of PyTorch's that are not ours, and why.
PARAMETERS = {
    "Graph.python_code": (
        {"verbose", "include_stride", "include_device", "colored", "expanded_def", "record_func", "additional_meta"},
        TEXT,
    ),
    "CodeGen.gen_fn_def": ({"expanded_def"}, TEXT),
    "CodeGen.generate_output": ({"descs", "repr_fn"}, TEXT),
    "GraphModule.print_readable": (
        {"include_stride", "include_device", "colored", "fast_sympy_print", "expanded_def", "additional_meta"},
        TEXT,
    ),
    "Node.format_node": ({"include_tensor_metadata"}, "print(module.code) shows the types"),
    "subgraph_rewriter.replace_pattern_with_filters": ({"node_name_match"}, "a filter of matches can compare names"),
    "SubgraphMatcher.__init__": ({"match_output", "match_placeholder"}, "compare_graphs compares whole graphs"),
    "SubgraphMatcher.match": ({"node_name_match"}, "the caller can compare names"),
}


def public(module):
    """Return the names that a module of PyTorch's exports."""
    peer = import_module(f"torch.fx.{module}".rstrip("."))
    if hasattr(peer, "__all__"):
        return [*peer.__all__, *(["PH", "CodeGen", "ProxyableClassMeta"] if not module else [])]
    return [n for n, x in vars(peer).items() if n[0] != "_" and getattr(x, "__module__", None) == peer.__name__]


NAMES = [f"{module}.{name}".lstrip(".") for module in MODULES for name in public(module)]


def found(package, name):
    """Return an object by its name in torch.fx or retrograd.fx; None if it is not there."""
    module, _, name = name.rpartition(".")
    try:
        return getattr(import_module(f"{package}.fx.{module}".rstrip(".")), name, None)
    except ModuleNotFoundError:
        return None


def missing(key, peer, mine):
    """Return the parameters of PyTorch's that ours lacks, or has elsewhere or with another default."""
    peer, mine = (x.__init__ if inspect.isclass(x) else x for x in (peer, mine))
    theirs = [p for p in inspect.signature(peer).parameters.values() if p.name not in ("self", "cls")]
    ours = {p.name: p for p in inspect.signature(mine).parameters.values() if p.name not in ("self", "cls")}
    except_for = PARAMETERS.get(key, (set(), ""))[0]
    order = [p.name for p in ours.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    lacks = []
    for place, p in enumerate(p for p in theirs if p.name not in except_for):
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):  # whose names no call uses
            lacks += [] if any(q.kind is p.kind for q in ours.values()) else [p.name]
            continue
        q = ours.get(p.name)
        if q is None or q.kind is not p.kind:
            lacks.append(p.name)
        elif p.kind is p.POSITIONAL_OR_KEYWORD and order[place] != p.name:
            lacks.append(f"{p.name} at {place}")
        elif p.default is not p.empty and q.default is q.empty:
            lacks.append(f"{p.name}={p.default!r}")
    return lacks


def callables(names):
    """Return the names of functions with a signature, and of classes that are neither exceptions nor tuples."""
    kept = []
    for name in names:
        peer = found("torch", name)
        if inspect.isfunction(peer) or (inspect.isclass(peer) and not issubclass(peer, (Exception, tuple, type))):
            kept.append(name)
    return kept


def methods(name):
    """Return the public methods that a class of PyTorch's defines; those with a syntax of defaults that can be read."""
    named = [n for n, x in vars(found("torch", name)).items() if n[0] != "_" and inspect.isfunction(x)]
    return [n for n in named if n not in MISSING_METHODS.get(name.rpartition(".")[2], {}) and n != "placeholder"]


THERE = [name for name in NAMES if name not in MISSING]
CLASSES = [name for name in callables(THERE) if inspect.isclass(found("torch", name))]


@pytest.mark.parametrize("name", THERE)
def test_a_name_of_pytorchs_is_there(name):
    peer, mine = found("torch", name), found("retrograd", name)
    assert mine is not None
    assert inspect.isclass(mine) == inspect.isclass(peer)


@pytest.mark.parametrize("name", callables(THERE))
def test_its_parameters_are_pytorchs(name):
    if "immutable" not in name and not name.endswith(("ReplacedPatterns", "PHBase", "TracerBase")):
        kind = name.rpartition(".")[2]
        key = f"{kind}.__init__" if inspect.isclass(found("torch", name)) else name
        assert missing(key, found("torch", name), found("retrograd", name)) == []


@pytest.mark.parametrize("name", CLASSES)
def test_its_methods_have_pytorchs_parameters(name):
    mine = found("retrograd", name)
    lacks = {}
    for method in methods(name):
        key = f"{name.rpartition('.')[2]}.{method}"
        ours = getattr(mine, method, None)
        lacks[key] = ["all"] if ours is None else missing(key, getattr(found("torch", name), method), ours)
    assert {key: found for key, found in lacks.items() if found} == {}


def test_every_exception_is_needed():
    assert [name for name in MISSING if found("retrograd", name) is not None or found("torch", name) is None] == []
    for kind, names in MISSING_METHODS.items():
        assert [name for name in names if hasattr(found("retrograd", kind), name)] == []
    homes = {name.rpartition(".")[2]: name for name in CLASSES}
    for name, (parameters, _) in PARAMETERS.items():
        kind, _, method = name.rpartition(".")
        pair = [getattr(found(p, homes[kind]), method) if kind in homes else found(p, name) for p in PACKAGES]
        theirs, ours = (set(inspect.signature(x).parameters) for x in pair)
        assert parameters <= theirs - ours


def test_every_module_of_passes_is_there_or_has_a_reason():
    passes = import_module("torch.fx.passes")
    found = [info.name.removeprefix("torch.fx.") for info in walk_packages(passes.__path__, "torch.fx.passes.")
             if not info.ispkg]  # fmt: skip
    public = [name for name in found if not any(part[0] == "_" or part == "tests" for part in name.split("."))]
    assert [name for name in public if name not in (*MODULES, *ABSENT)] == []


@pytest.mark.parametrize("module", ABSENT)
def test_an_absent_module_is_one_of_pytorchs_and_none_of_ours(module):
    theirs, ours = (find_spec(f"{package}.fx.{module.split('.')[0]}") for package in PACKAGES)
    assert theirs is not None
    assert ours is None or "." in module
    assert not (Path(rg.fx.__file__).parent / f"{module.replace('.', '/')}.py").exists()
