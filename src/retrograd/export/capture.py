"""`export`: capture a module with example arguments as an `ExportedProgram`."""

from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.export.branches import merge_branches
from retrograd.export.collected_shapes import AdditionalInputs, ShapesCollection
from retrograd.export.dynamic_shapes import DynamicSignature, Sizes, collect_dims, common_sizes
from retrograd.export.example_inputs import Example
from retrograd.export.passes import lift
from retrograd.export.program import (
    ConstantArgument,
    ExportedProgram,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from retrograd.export.shape_inference import ShapeInference
from retrograd.export.unnamed_dims import DeclaredDims, infer_unnamed
from retrograd.foundation.exporting import exporting
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import Node
from retrograd.fx.traced_writes import Mutation
from retrograd.fx.tracer import trace
from retrograd.nn.module import Module

PREFIXES = {InputKind.PARAMETER: "p", InputKind.BUFFER: "b", InputKind.CONSTANT_TENSOR: "c"}


def export(
    mod: Module,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    branches: Sequence[tuple] = (),
) -> ExportedProgram:
    """Capture a module as a flat graph of registered operators, by running it on example arguments.

    Arguments and results are pytrees. `dynamic_shapes` declares which sizes may differ from the example's: by argument
    (a dict by name, or a tuple in order) and there by dimension, as `{"x": {0: Dim("batch", max=64)}}` or
    `{"x": (Dim("batch"), None)}`, nested as the argument is; or a `ShapesCollection`, or `AdditionalInputs`. To find
    out what depends on them, the module is traced at some other sizes too.

    If code reads a value, as `if x.sum() > 0`, the program has the branch of the example, and raises RuntimeError with
    the line for an input that takes another. `branches` are examples for the others: a tuple of positional arguments
    each, of the same structure and shapes as `args`. The program then has all of them, as the functions of `cond`
    nodes, and computes and differentiates the one that its input takes.

    `strict` is accepted, as in PyTorch, and has no effect: code is always captured by running it.

    Raises TypeError unless `mod` is a Module, and ValueError if `dynamic_shapes` does not fit the arguments
    or the module behaves differently for other sizes; it names the dimension, two sizes and the line.  ValueError for
    branches that decide by anything but the value of a tensor, or whose results differ in structure, shape or dtype.

    >>> import retrograd as rg
    >>> from retrograd import export, nn
    >>> shapes = ({0: export.Dim("batch", max=64)},)
    >>> program = export.export(nn.Linear(2, 3), (rg.ones(4, 2),), dynamic_shapes=shapes)
    >>> program.graph_signature.inputs_to_parameters
    {'p_weight': 'weight', 'p_bias': 'bias'}
    >>> program.module()(rg.ones(7, 2)).shape
    (7, 3)
    >>> program.module()(rg.ones(100, 2))
    Traceback (most recent call last):
    ValueError: input, dimension 0: batch must be in [1, 64], got 100
    """
    if not isinstance(mod, Module):
        raise TypeError(f"export: expected a Module, got {type(mod).__name__}; fx.trace takes functions")
    if not isinstance(args, tuple):
        raise TypeError(f"export: args must be a tuple of the positional arguments, got {type(args).__name__}")
    if isinstance(dynamic_shapes, ShapesCollection | AdditionalInputs):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    token = exporting.set(True)
    try:
        captures = [_trace_dynamic(mod, Example(mod, each, kwargs or {}), dynamic_shapes) for each in (args, *branches)]
    finally:
        exporting.reset(token)
    captured = merge_branches([capture for capture, _ in captures])
    sizes = common_sizes([sizes for _, sizes in captures])
    signature = captured.graph.signature
    assert signature is not None
    if sizes.places:
        signature = DynamicSignature.of(signature, sizes)
    specs = _input_specs(captured, mod)
    graph = lift(captured.graph, {str(s.target): s.arg.name for s in specs if s.target is not None})
    tensors = {str(s.target): _attribute(captured, str(s.target)) for s in specs if s.target is not None}
    saved = mod.state_dict(keep_vars=True)
    return ExportedProgram(
        graph,
        ExportGraphSignature([*_with_placeholder_names(graph, specs)], _output_specs(graph, signature.mutations)),
        {name: tensors[name] for name in saved},
        {name: x for name, x in tensors.items() if name not in saved},
        signature,
        sizes.ranges,
        (args, dict(kwargs or {})),
    )


def _trace_dynamic(mod: Module, example: Example, dynamic_shapes: Any) -> tuple[GraphModule, Sizes]:
    """Trace the module; see `infer_unnamed` for dimensions without names."""
    if dynamic_shapes is None:
        args, kwargs = example.resized({})
        return trace(mod, *args, **kwargs), Sizes({}, {})
    entries, expressions, ranges = collect_dims(dynamic_shapes, example.arguments)
    tensors = example.tensors()
    sizes = {place: tensors[place.input].shape[place.dim] for place in entries}

    def infer(*given: Any) -> tuple[GraphModule, Sizes]:
        return ShapeInference(mod, example, *given).infer()

    found: tuple[GraphModule, Sizes] = infer_unnamed(DeclaredDims(entries, expressions, ranges, sizes), infer)
    return found


def _input_specs(captured: GraphModule, mod: Module) -> list[InputSpec]:
    """Return parameters, buffers, constants, each in the order of the module, then the arguments."""
    own = [(path, m) for path, m in captured.named_modules(remove_duplicate=False)]
    saved = mod.state_dict(keep_vars=True)
    found: list[tuple[InputKind, str, bool | None]] = []
    for path, module in own:
        prefix = f"{path}." if path else ""
        found += [(InputKind.PARAMETER, prefix + n, None) for n, _ in module.named_parameters(recurse=False)]
        buffers = [prefix + n for n, _ in module.named_buffers(recurse=False)]
        found += [(InputKind.BUFFER, n, n in saved) for n in buffers]
    known = {name for _, name, _ in found}
    constants = dict.fromkeys(str(n.target) for n in captured.graph.find_nodes(op="get_attr"))
    found += [(InputKind.CONSTANT_TENSOR, name, None) for name in constants if name not in known]
    found.sort(key=lambda row: list(PREFIXES).index(row[0]))
    lifted = [InputSpec(kind, TensorArgument(_placeholder_name(kind, n)), n, kept) for kind, n, kept in found]
    return lifted + [
        InputSpec(InputKind.USER_INPUT, TensorArgument(n.name)) for n in captured.graph.find_nodes(op="placeholder")
    ]


def _placeholder_name(kind: InputKind, target: str) -> str:
    return f"{PREFIXES[kind]}_{target.replace('.', '_').lstrip('_')}"


def _with_placeholder_names(graph: Graph, specs: list[InputSpec]) -> list[InputSpec]:
    """Return the specs with the names of the placeholders, which may differ from the requested ones."""
    inputs = graph.find_nodes(op="placeholder")
    return [spec._replace(arg=TensorArgument(node.name)) for spec, node in zip(specs, inputs, strict=True)]


def _output_specs(graph: Graph, mutations: list[Mutation]) -> list[OutputSpec]:
    """Return the output specs: mutations first, then the results."""
    leaves = [_output_argument(leaf) for leaf in graph.output_node().args[0]]
    kinds: list[tuple[OutputKind, str | None]] = [
        (OutputKind[f"{m.kind.upper()}_MUTATION"], m.target) for m in mutations
    ]
    kinds += [(OutputKind.USER_OUTPUT, None)] * (len(leaves) - len(kinds))
    return [OutputSpec(kind, leaf, target) for leaf, (kind, target) in zip(leaves, kinds, strict=True)]


def _output_argument(leaf: Any) -> TensorArgument | ConstantArgument:
    return TensorArgument(leaf.name) if isinstance(leaf, Node) else ConstantArgument("", leaf)


def _attribute(module: Module, target: str) -> Tensor:
    path, _, name = target.rpartition(".")
    return getattr(module.get_submodule(path), name)
