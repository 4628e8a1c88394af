"""The fingerprint of a pipeline's step: what the ranks must have in common."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

import optree

from retrograd.backend import checksum
from retrograd.core import Tensor
from retrograd.core.aval import Aval, symbolic
from retrograd.fx.graph_module import tensor_names
from retrograd.nn import Module
from retrograd.ops.generator import Generator, default_generator
from retrograd.pipelining.split.capture_cache import Captured
from retrograd.pipelining.split.manual_stages import AnyPipe
from retrograd.pipelining.split.meta_model import lacks_memory
from retrograd.pipelining.split.pipe import Pipe
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.serialization import pack

PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Agreement:
    """Collects the fields of a call of a pipeline, and adds those of each launch that the call makes.

    An error about a launch therefore names the arguments, too, which are often the cause of another launch.
    """

    def __init__(self) -> None:
        self.state_checked = False  # whether the ranks have compared their parameters
        self._call: dict[str, str] = {"call": "Pipeline"}
        self._programs: WeakKeyDictionary[Captured, tuple[str, str]] = WeakKeyDictionary()

    def begin(
        self, call: str, options: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any], target: Any
    ) -> None:
        """Begin a call with the options of the pipeline and its arguments."""
        self._call = {"call": call, **{name: str(value) for name, value in options.items()}}
        arguments = {f"argument {index}": value for index, value in enumerate(args)}
        arguments |= {f"argument {name}": value for name, value in kwargs.items()} | {"target": target}
        values = {}
        for name, argument in arguments.items():
            self._call[name], values[f"values of {name}"] = _describe(argument)
        self._call |= {name: value for name, value in values.items() if value}

    def of_work(self, work: str) -> Fingerprint:
        """Return the fingerprint of a function that all ranks run as a part of the call."""
        return Fingerprint({**self._call, "work": work})

    def of_run(self, captured: Sequence[Captured], model: Module, fields: Mapping[str, Any]) -> Fingerprint:
        """Return the fingerprint of a run of microbatches with these captures, before it draws random numbers."""
        programs = [self._programs.get(one) or self._add_program(one) for one in captured]
        found = {**self._call, **{name: str(value) for name, value in fields.items()}}
        found["program"] = " ".join(dict.fromkeys(digest for digest, _ in programs))
        if any(one.random for one in captured):
            found["generator state"] = _generator_states(captured)
        if not self.state_checked and not lacks_memory(model):
            found["parameters"] = _state_checksum(model)
        return Fingerprint(found, {"program": "\n".join(dict.fromkeys(text for _, text in programs))})

    def _add_program(self, one: Captured) -> tuple[str, str]:
        text = _program_text(one.pipe)
        return self._programs.setdefault(one, (f"{crc32(text.encode()):08x}", text))


def _describe(argument: Any) -> tuple[str, str]:
    """Return the types of an argument's leaves, with the values of plain ones, and the checksum of its tensors."""
    leaves = optree.tree_leaves(argument, none_is_leaf=True)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    kinds = ", ".join([_kind(leaf) for leaf in leaves])
    return kinds, f"{_checksum(tensors):08x}" if tensors else ""


def _kind(leaf: Any) -> str:
    if isinstance(leaf, Tensor):
        if symbolic(leaf.shape) is not None:
            return f"ragged {leaf.dtype}"  # the names of its sizes are this process's own
        return _tensor_kind(leaf.aval, leaf.requires_grad)
    return repr(leaf) if isinstance(leaf, PLAIN) else type(leaf).__qualname__


@lru_cache(maxsize=256)  # the text of a shape takes longer than all the rest of a fingerprint
def _tensor_kind(aval: Aval, requires_grad: bool) -> str:
    return f"{aval} with grad" if requires_grad else str(aval)


def _checksum(tensors: Iterable[Tensor]) -> int:
    found = 0
    for tensor in tensors:
        for buffer in pack(tensor.detach())[1]:
            found = checksum(buffer, found)
    return found


def _state_checksum(model: Module) -> str:
    """Return a checksum of the parameters and buffers of a model."""
    return f"{_checksum(model.state_dict().values()):08x}"


def _generator_states(captured: Sequence[Captured]) -> str:
    """Return a checksum of the states of the generators that the programs draw from, and the default one."""
    sources: dict[Generator, None] = {default_generator: None}
    sources |= dict.fromkeys(draw.source for one in captured for draw in one.draws)
    return " ".join([f"{_position(source):08x}" for source in sources])


def _position(source: Generator) -> int:
    """Return a checksum of the position of a generator in its stream."""
    state = source.get_state()
    rest = repr((state["buffer_pos"], state["has_uint32"])).encode()
    return crc32(rest, crc32(state["state"]["key"], crc32(state["state"]["counter"])))


def _program_text(pipe: AnyPipe) -> str:
    """Return the code of all stages, and the types of their parameters, buffers and constants."""
    if not isinstance(pipe, Pipe):
        return "\n".join(f"stage {stage.stage_index}: {stage.submod!r}" for stage in pipe.stages)
    lines: list[str] = []
    for stage in pipe.stages:
        module = pipe.get_stage_module(stage.stage_index)
        lines += [
            f"stage {stage.stage_index}",
            *[f"{name}: {_attribute(module, name)}" for name in tensor_names(module)],
        ]
        lines.append(module.code)
    return "\n".join(lines)


def _attribute(module: Any, name: str) -> str:
    """Return the type of a tensor of a module."""
    path, _, last = name.rpartition(".")
    return _kind(getattr(module.get_submodule(path), last))
