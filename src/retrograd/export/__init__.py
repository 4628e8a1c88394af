"""Export whole programs as flat graphs with their tensors: capture, check, store, and unflatten them."""

from retrograd.export.capture import export
from retrograd.export.collected_shapes import AdditionalInputs, ShapesCollection, register_dataclass
from retrograd.export.dynamic_shapes import Dim, dims
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
from retrograd.export.storage import load, save
from retrograd.export.unflattening import unflatten
from retrograd.interop.json_values import StorageError

__all__ = [
    "AdditionalInputs",
    "ConstantArgument",
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "ShapesCollection",
    "StorageError",
    "TensorArgument",
    "dims",
    "export",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]
