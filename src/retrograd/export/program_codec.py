"""Convert an `ExportedProgram` to its stored parts, a flat graph with tensors and plain values, and back."""

from typing import Any

from retrograd.core import Tensor
from retrograd.export.dynamic_shapes import DynamicSignature
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
from retrograd.export.tensor_json import is_valid_name
from retrograd.fx import GraphModule, Signature
from retrograd.interop.json_values import StorageError, expect, members, text

OUTPUTS = {OutputKind.BUFFER_MUTATION: "buffer", OutputKind.PARAMETER_MUTATION: "parameter",
           OutputKind.USER_INPUT_MUTATION: "user_input", OutputKind.CONSTANT_MUTATION: "constant",
           OutputKind.ATTRIBUTE_MUTATION: "attribute"}  # fmt: skip


def to_parts(program: ExportedProgram) -> tuple[GraphModule, dict[str, Any]]:
    """Return the flat graph as a module with its tensors, and the rest by name."""
    signature = program.graph_signature
    return GraphModule(program.home(), program.graph, keep=[*program.state_dict, *program.constants]), {
        "state": list(program.state_dict),
        "constants": list(program.constants),
        "inputs": [[spec.kind.name, spec.arg.name, spec.target, spec.persistent] for spec in signature.input_specs],
        "outputs": [[spec.kind.name, _argument(spec.arg), spec.target] for spec in signature.output_specs],
        "call": program.call_spec,
    }


def _argument(argument: TensorArgument | ConstantArgument) -> list:
    return list(argument)


def from_parts(module: GraphModule, rest: dict[str, Any]) -> ExportedProgram:
    """Return the program of these parts; StorageError if they are inconsistent."""
    expect(rest.keys() == {"state", "constants", "inputs", "outputs", "call"}, "the parts of a program", sorted(rest))
    expect(isinstance(rest["call"], Signature), "the signature of the call", rest["call"])
    state, constants = ({name: _tensor(module, name) for name in _names(rest[key])} for key in ("state", "constants"))
    inputs = [_read_input(spec) for spec in members(rest["inputs"], None, "the inputs")]
    outputs = [_read_output(spec) for spec in members(rest["outputs"], None, "the outputs")]
    call, signature = rest["call"], ExportGraphSignature(inputs, outputs)
    ranges = call.sizes.ranges if isinstance(call, DynamicSignature) else {}
    program = ExportedProgram(module.graph, signature, state, constants, call, ranges)
    _check(program)
    try:
        program.validate()
        program.module().graph.lint()
    except (RuntimeError, LookupError, AttributeError, TypeError, ValueError) as error:
        raise StorageError(f"the parts of the program do not fit: {error}") from error
    return program


def _check(program: ExportedProgram) -> None:
    """Check that the inputs and outputs of the graph agree with the call."""
    signature, call = program.graph_signature, program.call_spec
    named = [known.name for known in call.inputs]
    expect(len(signature.user_inputs) == len(named), "an input for each tensor of the call", named)
    targets = [spec.target for spec in signature.input_specs if spec.target is not None]
    expect(set(targets) <= {*program.state_dict, *program.constants}, "inputs that are tensors of the program", targets)
    written = [(OUTPUTS[s.kind], s.target) for s in signature.output_specs if s.kind is not OutputKind.USER_OUTPUT]
    expect(written == [(m.kind, m.target) for m in call.mutations], "the writes of the call", written)
    for kind, target in written:
        exists = target in (named if kind == "user_input" else targets)
        expect(is_valid_name(str(target)) if kind == "attribute" else exists, "a write to an existing target", target)
    count = len(written) + call._result.num_leaves
    expect(len(signature.output_specs) == count, f"{count} outputs", len(signature.output_specs))


def _names(data: Any) -> list[str]:
    names = members(data, None, "names")
    expect(all(type(name) is str for name in names) and len(set(names)) == len(names), "names, each once", names)
    return names


def _tensor(module: GraphModule, name: str) -> Tensor:
    path, _, last = name.rpartition(".")
    tensor: Any = vars(module.get_submodule(path)).get(last) if is_valid_name(name) else None
    expect(isinstance(tensor, Tensor), "the name of a tensor", name)
    return tensor


def _read_input(data: Any) -> InputSpec:
    kind, name, target, persistent = members(data, 4, "an input")
    expect(type(kind) is str and kind in InputKind.__members__, "the kind of an input", kind)
    expect((target is None) == (kind == "USER_INPUT") and type(target) in (str, type(None)), "a target", target)
    expect(type(persistent) in (bool, type(None)), "true or false", persistent)
    return InputSpec(InputKind[kind], TensorArgument(text(name, "a name")), target, persistent)


def _read_output(data: Any) -> OutputSpec:
    kind, argument, target = members(data, 3, "an output")
    expect(type(kind) is str and kind in OutputKind.__members__, "the kind of an output", kind)
    expect((target is None) == (kind == "USER_OUTPUT") and type(target) in (str, type(None)), "a target", target)
    expect(type(argument) is list and len(argument) in (1, 2), "a node or a constant", argument)
    name = text(argument[0], "a name")
    return OutputSpec(
        OutputKind[kind], TensorArgument(name) if len(argument) == 1 else ConstantArgument(name, argument[1]), target
    )
