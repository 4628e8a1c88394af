"""The fingerprint of a pipeline's step: what the ranks must have in common."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple
from zlib import crc32

import optree

from retrograd.core import Tensor
from retrograd.core.aval import Aval, symbolic
from retrograd.fx.graph_module import tensor_names
from retrograd.kernels import checksum
from retrograd.nn import Module
from retrograd.ops.generator import Generator, default_generator
from retrograd.pipelining.split.capture_cache import Captured
from retrograd.pipelining.split.manual_stages import AnyPipe
from retrograd.pipelining.split.meta_model import lacks_memory
from retrograd.pipelining.split.pipe import Pipe
from retrograd.pipelining.transports.fingerprint import Fingerprint, digest_of, library_versions, qualified_name
from retrograd.pipelining.transports.serialization import buffers_of

PLAIN = (bool, int, float, complex, str, bytes, type(None))
_Kind = str | tuple[Any, Any, bool]  # the text of a value, or a tensor's shape and dtype and whether it requires grad


class Agreement:
    """Collects the fields of a call of a pipeline, and adds those of each launch that the call makes.

    An error about a launch therefore names the arguments, too, which are often the cause of another launch.
    """

    def __init__(self) -> None:
        self.state_checked = False  # whether the ranks have compared their parameters
        self._call = "Pipeline"
        self._options: Mapping[str, Any] = {}
        self._arguments: dict[str, list[_Kind]] = {}
        self._checksums: dict[str, int] = {}  # of their values
        self._described: tuple[Any, ...] = ()  # what the last fingerprint described
        self._fields: tuple[Mapping[str, str], bytes] = {}, b""  # how, and the digest of that

    def begin(
        self, call: str, options: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any], target: Any
    ) -> None:
        """Begin a call with the options of the pipeline, which are hashable, and its arguments."""
        self._call, self._options, self._arguments, self._checksums = call, options, {}, {}
        for index, value in enumerate(args):
            self._add_argument(f"argument {index}", value)
        for name, value in kwargs.items():
            self._add_argument(f"argument {name}", value)
        self._add_argument("target", target)

    def _add_argument(self, name: str, argument: Any) -> None:
        """Add the types of an argument's leaves, with the values of plain ones, and the checksum of its tensors."""
        leaves = [argument] if isinstance(argument, Tensor) else optree.tree_leaves(argument, none_is_leaf=True)
        self._arguments[name] = [_kind(leaf) for leaf in leaves]
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        if tensors:
            self._checksums[f"values of {name}"] = _checksum(tensors)

    def of_work(self, work: str) -> Fingerprint:
        """Return the fingerprint of a function that all ranks run as a part of the call."""
        return self._fingerprint({"work": work}, self._checksums, {})

    def of_run(self, captured: Sequence[Captured], model: Module, fields: Mapping[str, Any]) -> Fingerprint:
        """Return the fingerprint of a run of microbatches with these captures, before it draws random numbers.

        fields: further fields, which are hashable.
        """
        programs: list[_ProgramParts] = [one.compared or _add_program(one) for one in dict.fromkeys(captured)]
        sources = dict.fromkeys([source for one in programs for source in one.sources])
        checksums = {"generator state": _positions(sources), **self._checksums} if sources else self._checksums.copy()
        if not self.state_checked:
            fields = {**library_versions(), **fields}
            if not lacks_memory(model):
                checksums["parameters"] = _checksum(model.state_dict().values())
        texts = {one.digest: one.text for one in programs}
        return self._fingerprint({**fields, "program": tuple(texts)}, checksums, {"program": "\n".join(texts.values())})

    def _fingerprint(
        self, further: Mapping[str, Any], checksums: Mapping[str, int], details: Mapping[str, str]
    ) -> Fingerprint:
        described = self._call, self._options, self._arguments, further
        if described != self._described:  # the same in most steps
            fields = _texts(*described)
            self._described, self._fields = described, (fields, digest_of(fields))
        return Fingerprint(self._fields[0], details, checksums, self._fields[1])


def describe_function(function: Callable[..., Any]) -> str:
    """Return the name of a function with the numbers, texts and tensors that it holds.

    These are the arguments of a partial, the attributes and buffers of a module, and for a function of Python its
    defaults and the variables of the function around it.

    >>> import retrograd as rg
    >>> describe_function(partial(rg.nn.functional.huber_loss, delta=2.0)), describe_function(rg.nn.L1Loss())
    ('huber_loss(delta=2.0)', "L1Loss(training=True, reduction='mean')")
    """
    held: dict[str, Any] = {}
    while isinstance(function, partial):
        held = {**{f"argument {i}": value for i, value in enumerate(function.args)}, **function.keywords, **held}
        function = function.func
    if isinstance(function, Module):
        held |= {name: value for name, value in vars(function).items() if not name.startswith("_")}
        held |= function.state_dict()
    elif code := getattr(function, "__code__", None):
        defaults, names = function.__defaults__ or (), code.co_varnames[: code.co_argcount]
        held = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)) | held
        held |= function.__kwdefaults__ or {}
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        held |= {name: cell.cell_contents for name, cell in cells if not _is_empty(cell)}
    texts = [f"{name}={_value_text(value)}" for name, value in held.items() if isinstance(value, (*PLAIN, Tensor))]
    name = qualified_name(function)
    return f"{name}({', '.join(texts)})" if texts else name


def _is_empty(cell: Any) -> bool:
    try:
        return cell.cell_contents is None
    except ValueError:  # the variable has no value yet
        return True


def _value_text(value: Any) -> str:
    return f"{_kind_text(_kind(value))} {_checksum([value]):08x}" if isinstance(value, Tensor) else repr(value)


def _add_program(one: Captured) -> "_ProgramParts":
    text = _program_text(one.pipe)
    sources = [default_generator, *[draw.source for draw in one.draws]] if one.random else []
    one.compared = _ProgramParts(f"{crc32(text.encode()):08x}", text, list(dict.fromkeys(sources)))
    return one.compared


def _texts(call: str, *groups: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a call as texts by name."""
    fields = {"call": call}
    for name, value in chain.from_iterable([group.items() for group in groups]):
        if isinstance(value, list):
            fields[name] = ", ".join(map(_kind_text, value))
        else:
            fields[name] = " ".join(map(_short, value)) if isinstance(value, tuple) else str(value)
    return fields


def _short(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


class _ProgramParts(NamedTuple):
    """The code of a capture, and the generators that it draws from."""

    digest: str
    text: str
    sources: list[Generator]


def _kind(leaf: Any) -> _Kind:
    if isinstance(leaf, Tensor):
        return leaf.shape, leaf.dtype, leaf.requires_grad
    return repr(leaf) if isinstance(leaf, PLAIN) else type(leaf).__qualname__


def _kind_text(kind: _Kind) -> str:
    if isinstance(kind, str):
        return kind
    shape, dtype, requires_grad = kind
    if symbolic(shape) is not None:
        return f"ragged {dtype}"  # the names of its sizes are this process's own
    return f"{Aval(shape, dtype)} with grad" if requires_grad else str(Aval(shape, dtype))


def _checksum(tensors: Iterable[Tensor]) -> int:
    return int(checksum([buffer for tensor in tensors for buffer in buffers_of(tensor.detach())]))


def _positions(sources: Iterable[Generator]) -> int:
    """Return a checksum of the positions of generators in their streams."""
    states = [source._plain_state() for source in sources]
    rest = [bytes([state["buffer_pos"], state["has_uint32"]]) for state in states]
    return int(checksum([*rest, *[part for state in states for part in state["state"].values()]]))


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
    return _kind_text(_kind(getattr(module.get_submodule(path), last)))
