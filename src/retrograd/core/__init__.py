"""The core: tensors, operators, levels, the autograd graph and the engine that runs backward passes over it."""

from retrograd.core import build_config

build_config.choose()  # before the first import of a module that has two builds

from retrograd.core import dtype as dtype  # noqa: E402
from retrograd.core.arithmetic import bind_arithmetic  # noqa: E402
from retrograd.core.aval import Aval  # noqa: E402
from retrograd.core.definition import Definition, Internal, Operator, dtype_of, op, shape_of, xp  # noqa: E402
from retrograd.core.dispatch import Op, call  # noqa: E402
from retrograd.core.graph import GradFn  # noqa: E402
from retrograd.core.level import Level, NotBatchedError, graph_level  # noqa: E402
from retrograd.core.op import namespaces, operator_named, registry  # noqa: E402
from retrograd.core.schema_parser import parse  # noqa: E402
from retrograd.core.state import Watcher, at, current, override_state, watching  # noqa: E402
from retrograd.core.tensor_class import Tensor  # noqa: E402

__all__ = [
    "Aval",
    "Definition",
    "GradFn",
    "Internal",
    "Level",
    "NotBatchedError",
    "Op",
    "Operator",
    "Tensor",
    "Watcher",
    "at",
    "bind_arithmetic",
    "call",
    "current",
    "dtype",
    "dtype_of",
    "graph_level",
    "namespaces",
    "op",
    "operator_named",
    "override_state",
    "parse",
    "registry",
    "shape_of",
    "watching",
    "xp",
]
