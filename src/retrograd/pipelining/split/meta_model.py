"""Models on the device "meta": they are captured by shapes, since no rank has the memory of all stages."""

from collections.abc import Iterator
from typing import Any

import optree

from retrograd.backend.devices import device_named
from retrograd.core import Tensor
from retrograd.core.blocks import generator_block
from retrograd.nn import Module
from retrograd.nn.parameter import is_on_meta
from retrograd.ops.layout import making_on, place
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.split.manual_stages import AnyPipe


def tensors_of(module: Module) -> list[Tensor]:
    """Return the parameters and buffers of a module, a shared one once."""
    return [*module.parameters(), *module.buffers()]


def lacks_memory(module: Module) -> bool:
    """Return whether some parameters or buffers of a module have shapes only."""
    return any(map(is_on_meta, tensors_of(module)))


@generator_block
def by_shapes(model: Module, batch: MicroBatch) -> Iterator[MicroBatch]:
    """While active, a model that lacks memory is on "meta" as a whole; yield the microbatch to capture it by.

    Nothing changes for other models.
    """
    if not lacks_memory(model):
        yield batch
        return
    meta = device_named("meta")
    tensors = tensors_of(model)
    before = [x.value for x in tensors]
    try:
        for x in tensors:
            x.value = place(x.detach(), meta).value
        with making_on(meta):
            yield batch._replace(args=on_device(batch.args, meta), kwargs=on_device(batch.kwargs, meta))
    finally:
        for x, value in zip(tensors, before, strict=True):
            x.value = value


def on_device(values: Any, device: Any) -> Any:
    """Return nested values with their tensors on a device."""
    return optree.tree_map(lambda x: place(x, device) if isinstance(x, Tensor) else x, values, none_is_leaf=True)


def zeros_on_host(values: Any) -> Any:
    """Return nested values with zeros in host memory in place of tensors without elements."""
    return optree.tree_map(
        lambda x: x.new_zeros(tuple(x.shape), device="cpu") if isinstance(x, Tensor) else x, values, none_is_leaf=True
    )


def check_constants(pipe: AnyPipe, model: Module) -> None:
    """Raise RuntimeError if the program uses tensors without elements that are not the model's."""
    known = {id(x) for x in tensors_of(model)}
    program = pipe.captured
    for node in [] if program is None else program.graph.find_nodes(op="get_attr"):
        path, _, name = str(node.target).rpartition(".")
        value: Any = getattr(program.get_submodule(path), name)  # type: ignore[union-attr]
        if isinstance(value, Tensor) and is_on_meta(value) and id(value) not in known:
            raise RuntimeError(
                f"Pipeline: forward() makes a tensor of given values, of shape {tuple(value.shape)}, as by rg.tensor, "
                f"and the model is on 'meta', where it has none; make it in the constructor, as a buffer"
            )
