"""`ExportedProgram`: a flat graph, the signature of its inputs and outputs, and its tensors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.export.dynamic_shapes import Range
from retrograd.export.passes import unlift
from retrograd.foundation.html_report import code_block, paragraph, report, table
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.signature import Signature
from retrograd.fx.traced_writes import get_or_add_submodule
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter


class InputKind(Enum):
    """The kind of an input of the flat graph."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()


class OutputKind(Enum):
    """The kind of an output of the flat graph: a result, or the new value of something that the run changes."""

    USER_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    USER_INPUT_MUTATION = auto()
    CONSTANT_MUTATION = auto()
    ATTRIBUTE_MUTATION = auto()


class TensorArgument(NamedTuple):
    """A node of the graph, by name."""

    name: str


class ConstantArgument(NamedTuple):
    """A result that is not a tensor."""

    name: str
    value: Any


class InputSpec(NamedTuple):
    """An input of the graph: its kind, its placeholder, and if it was lifted its qualified name in the module."""

    kind: InputKind
    arg: TensorArgument
    target: str | None = None
    persistent: bool | None = None

    def __str__(self) -> str:
        text = f"{self.arg.name}: {self.kind.name}"
        text += "" if self.target is None else f" target={self.target!r}"
        return text + ("" if self.persistent is None else f" persistent={self.persistent}")


class OutputSpec(NamedTuple):
    """An output of the graph: its kind, its node or value, and for a mutation the name of its target."""

    kind: OutputKind
    arg: TensorArgument | ConstantArgument
    target: str | None = None

    def __str__(self) -> str:
        text = f"{self.arg.name}: {self.kind.name}"
        return text if self.target is None else f"{text} target={self.target!r}"


class ExportGraphSignature:
    """The kinds of the inputs and outputs of a flat graph, in order.

    >>> spec = InputSpec(InputKind.PARAMETER, TensorArgument("p_weight"), "weight")
    >>> ExportGraphSignature([spec], []).inputs_to_parameters
    {'p_weight': 'weight'}
    """

    def __init__(self, input_specs: list[InputSpec], output_specs: list[OutputSpec]) -> None:
        self.input_specs = input_specs
        self.output_specs = output_specs

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """Return the qualified names of parameters, by their placeholders."""
        return _targets(self.input_specs, InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """Return the qualified names of buffers, by their placeholders."""
        return _targets(self.input_specs, InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """Return the names of other tensors that the code used, by their placeholders."""
        return _targets(self.input_specs, InputKind.CONSTANT_TENSOR)

    @property
    def parameters(self) -> list[str]:
        """Return the qualified names of the parameters."""
        return list(self.inputs_to_parameters.values())

    @property
    def buffers(self) -> list[str]:
        """Return the qualified names of the buffers."""
        return list(self.inputs_to_buffers.values())

    @property
    def non_persistent_buffers(self) -> list[str]:
        """Return the qualified names of the buffers that are not in the state dict."""
        return [str(s.target) for s in self.input_specs if s.kind is InputKind.BUFFER and not s.persistent]

    @property
    def lifted_tensor_constants(self) -> list[str]:
        """Return the names of other tensors that the code used."""
        return list(self.inputs_to_lifted_tensor_constants.values())

    @property
    def user_inputs(self) -> list[str]:
        """Return the placeholders of the tensors among the arguments."""
        return [spec.arg.name for spec in self.input_specs if spec.kind is InputKind.USER_INPUT]

    @property
    def user_outputs(self) -> list[Any]:
        """Return the nodes of the results, or their values if they are not tensors."""
        found = [spec.arg for spec in self.output_specs if spec.kind is OutputKind.USER_OUTPUT]
        return [arg.name if isinstance(arg, TensorArgument) else arg.value for arg in found]

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """Return the qualified names of the buffers that a run changes, by the nodes of their new values."""
        return _targets(self.output_specs, OutputKind.BUFFER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """Return the arguments that a run changes, by the nodes of their new values."""
        return _targets(self.output_specs, OutputKind.USER_INPUT_MUTATION)

    @property
    def lifted(self) -> dict[str, str]:
        """Return the qualified names of all lifted tensors, by their placeholders."""
        return {spec.arg.name: spec.target for spec in self.input_specs if spec.target is not None}

    def __str__(self) -> str:
        inputs, outputs = "\n".join(map(str, self.input_specs)), "\n".join(map(str, self.output_specs))
        return f"# inputs\n{inputs}\n\n# outputs\n{outputs}"

    __repr__ = __str__


def _targets(specs: Sequence[InputSpec] | Sequence[OutputSpec], kind: InputKind | OutputKind) -> dict[str, str]:
    """Return the targets of the inputs or outputs of a kind, by their nodes."""
    return {spec.arg.name: str(spec.target) for spec in specs if spec.kind is kind}


class ExportedProgram:
    """A program as `export` captures it: a flat graph of registered operators, and its tensors.

    - `graph`: its inputs are first the parameters (`p_...`), buffers (`b_...`) and constants (`c_...`), then the
    tensors among the arguments; it returns a tuple: the new values of mutated tensors, then its results.
    Nodes have their shape and dtype as `meta["val"]`; if sizes vary, `meta["shape"]` has their expressions.
    - `graph_signature`: the kinds of these inputs and outputs.
    - `state_dict`: the parameters and persistent buffers, by the names of the module's state dict; the module's own
      objects. `constants`: all other tensors.
    - `call_spec`: the structure of arguments and results, and the checks of tensors.
    - `range_constraints`: the sizes that dimensions may have, by the name of their `Dim`.
    - `example_inputs`: the arguments, positional and by name, of the export; None if they were not saved.
    """

    def __init__(
        self,
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Tensor],
        constants: dict[str, Tensor],
        call_spec: Signature,
        range_constraints: Mapping[str, Range] | None = None,
        example_inputs: tuple[tuple, dict[str, Any]] | None = None,
    ) -> None:
        self.graph = graph
        self.graph_signature = graph_signature
        self.state_dict = state_dict
        self.constants = constants
        self.call_spec = call_spec
        self.range_constraints = dict(range_constraints or {})
        self.example_inputs = example_inputs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise an error, as in PyTorch: the flat graph takes more than the arguments."""
        raise RuntimeError("an ExportedProgram can't be called; call what exported_program.module() returns")

    @property
    def graph_module(self) -> GraphModule:
        """Return the flat graph as a module that takes all inputs of the graph and returns a tuple."""
        return GraphModule(Module(), self.graph)

    def module(self) -> GraphModule:
        """Return a module that takes the arguments of the exported module, and returns the same results.

        It shares the program's parameters and buffers, under the original names, so it can be trained. Arguments
        are checked at each call: a ValueError names the one whose structure, dtype or size does not fit.
        """
        single = self.call_spec.single
        graph = unlift(self.graph, self.graph_signature.lifted, single)
        graph.signature = self.call_spec
        return GraphModule(self.home(), graph, keep=[*self.state_dict, *self.constants])

    def home(self) -> Module:
        """Return a bare module that has the program's tensors under their qualified names."""
        home = Module()
        lifted = {str(spec.target): spec for spec in self.graph_signature.input_specs if spec.target is not None}
        for target in {**self.state_dict, **lifted}:  # in the order of the state dict
            _add_tensor(home, lifted[target], self.tensor(target))
        return home

    def tensor(self, target: str) -> Tensor:
        """Return the parameter, buffer or constant of that qualified name."""
        return self.state_dict[target] if target in self.state_dict else self.constants[target]

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Iterate over names and parameters."""
        return ((name, self.state_dict[name]) for name in self.graph_signature.parameters)  # type: ignore[misc]

    def parameters(self) -> Iterator[Parameter]:
        """Iterate over the parameters."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Iterate over names and buffers."""
        return ((name, self.tensor(name)) for name in self.graph_signature.buffers)

    def buffers(self) -> Iterator[Tensor]:
        """Iterate over the buffers."""
        return (buffer for _, buffer in self.named_buffers())

    def validate(self) -> None:
        """Check that graph and signature are valid and consistent; a RuntimeError gives the reason if not."""
        self.graph.lint()
        inputs = [node.name for node in self.graph.find_nodes(op="placeholder")]
        if inputs != [spec.arg.name for spec in self.graph_signature.input_specs]:
            raise RuntimeError(f"validate: the graph's inputs {inputs} are not those of the signature")
        results = self.graph.output_node().args[0]
        if not isinstance(results, tuple) or len(results) != len(self.graph_signature.output_specs):
            raise RuntimeError("validate: the graph's outputs are not those of the signature")

    def __str__(self) -> str:
        code = "    ".join(["", *self.graph_module.code.splitlines(keepends=True)]).rstrip()
        text = f"ExportedProgram:\n{code}\n\nGraph signature:\n{self.graph_signature}\n"
        ranges = ", ".join(f"{name}: {r}" for name, r in self.range_constraints.items())
        return text + (f"\nRange constraints: {ranges}\n" if ranges else "")

    __repr__: Callable[..., str] = __str__

    def _repr_html_(self) -> str:
        """Return inputs and outputs as a table, and the code after a click, for notebooks."""
        avals = {node.name: _type_text(node.meta) for node in self.graph.nodes}
        signature = self.graph_signature
        rows = [
            [name, spec.arg.name, spec.kind.name.lower(), avals.get(spec.arg.name, ""), spec.target or ""]
            for name, specs in (("input", signature.input_specs), ("output", signature.output_specs))
            for spec in specs
        ]
        ranges = [f"{name}: {r}" for name, r in self.range_constraints.items()]
        parts = [table(rows, ["", "name", "kind", "type", "target"], range(5)), *map(paragraph, ranges)]
        return report(paragraph("ExportedProgram"), *parts, code_block("code", self.graph_module.code))


def _type_text(meta: Mapping[str, Any]) -> str:
    """Return the dtype and shape of a node, with the names of sizes that vary; "" without a value."""
    val = meta.get("val")
    shape = meta.get("shape", getattr(val, "shape", None))
    return "" if shape is None else f"{val.dtype}[{', '.join(map(str, shape))}]"  # type: ignore[union-attr]


def _add_tensor(home: Module, spec: InputSpec, tensor: Any) -> None:
    """Add a tensor to the module under the qualified name of a spec, and create the modules on its path."""
    path, _, name = str(spec.target).rpartition(".")
    home = get_or_add_submodule(home, path)
    if spec.kind is InputKind.PARAMETER:
        home.register_parameter(name, tensor)
    elif spec.kind is InputKind.BUFFER:
        home.register_buffer(name, tensor, persistent=bool(spec.persistent))
    else:
        setattr(home, name, tensor)
