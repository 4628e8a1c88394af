"""`DistributedDataParallel`: every rank trains a replica on its part of the data, with the mean of all gradients."""

from collections.abc import Iterator, Sequence
from typing import Any

from retrograd.autograd import is_grad_enabled, no_grad
from retrograd.autograd.variable import Variable
from retrograd.core import Tensor, registry
from retrograd.core.blocks import generator_block
from retrograd.distributed.collectives import broadcast_all, reduce_all
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.reduce_op import ReduceOp
from retrograd.nn.module import Module
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.process_group import ProcessGroup

BUCKET_MB = 25
CALL = "the reduction of gradients"  # in errors about ranks that do something else


class DistributedDataParallel(Module):
    """Call a module, and after each backward pass average the gradients of its parameters over the ranks.

    All ranks make it with the same module.  It begins with the parameters and buffers of rank 0 (`init_sync`); before
    each call that is synchronised the buffers of rank 0 are sent to all (`broadcast_buffers`).  If each rank computes
    the mean loss of an equal share of a batch, the gradients are those of the mean loss of the batch.  Names in the
    state dict begin with `module.`.

    - process_group: by default that of `init_process_group`.
    - bucket_cap_mb: gradients are sent in buckets of this size in MiB, by default 25.
    - find_unused_parameters: allow parameters that get no gradient in a pass on some of the ranks; they count as zero
      there, and a parameter that no rank has used keeps its `.grad`.
    - device_ids, output_device: for accelerators, must be None or empty.
    - dim, check_reduction, gradient_as_bucket_view, static_graph, skip_all_reduce_unused_params, batched_grad_copy,
      bucket_cap_mb_list: without effect.

    Raises RuntimeError if no parameter requires grad, if the ranks' modules differ, and in `backward()`, on every
    rank, if a parameter has got no gradient; ValueError for devices, and before `init_process_group`;
    NotImplementedError for mixed_precision, device_mesh and hooks of delayed parameters.

    Source: S. Li et al., PyTorch Distributed, VLDB 2020.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> dist.init_process_group()
    >>> model = rg.nn.parallel.DistributedDataParallel(rg.nn.Linear(2, 1))
    >>> model(rg.ones(4, 2)).mean().backward()
    >>> list(model.state_dict()), model.module.bias.grad
    (['module.weight', 'module.bias'], tensor([1.]))
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Any = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel: device_ids and output_device must be None: tensors are on the CPU"
            )
        refused = {
            "delay_all_reduce_named_params": delay_all_reduce_named_params,
            "param_to_hook_all_reduce": param_to_hook_all_reduce,
            "mixed_precision": mixed_precision,
            "device_mesh": device_mesh,
        }
        for name, value in refused.items():
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not supported; leave it out")
        self.module = module
        self.process_group = initialized_group(process_group)
        self.find_unused_parameters = find_unused_parameters
        self.broadcast_buffers = next(
            (given for given in (forward_sync_buffers, broadcast_buffers) if given is not None), True
        )
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.device_ids: list[Any] | None = None
        self._named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not self._named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        self._buckets = _in_buckets([p for _, p in reversed(self._named)], bucket_cap_mb or BUCKET_MB)
        self._arrived: set[int] = set()
        if init_sync:
            broadcast_all([*module.parameters(), *module.buffers()], self.process_group)
        for _, p in self._named:
            p.register_post_accumulate_grad_hook(self._note_gradient)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the result of the module."""
        buffers = list(self.module.buffers()) if self.broadcast_buffers and self.require_forward_param_sync else []
        if buffers:
            broadcast_all(buffers, self.process_group)
        self.require_forward_param_sync = is_grad_enabled() and self.require_backward_grad_sync
        return self.module(*inputs, **kwargs)

    @generator_block
    def no_sync(self) -> Iterator[None]:
        """Leave gradients of calls inside the block on their ranks; the first pass after it averages the sums.

        >>> import retrograd as rg
        >>> import retrograd.distributed as dist
        >>> dist.init_process_group()
        >>> model = rg.nn.parallel.DistributedDataParallel(rg.nn.Linear(2, 1))
        >>> with model.no_sync():
        ...     model(rg.ones(4, 2)).mean().backward()
        >>> model(rg.ones(4, 2)).mean().backward()
        >>> model.module.bias.grad
        tensor([2.])
        >>> dist.destroy_process_group()
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # ------------------------------------------------------------------------------------ averaging gradients

    def _note_gradient(self, p: Tensor) -> None:
        """Note that a parameter has its gradient; at the end of the pass that it runs in, all are averaged."""
        if not self.require_forward_param_sync:
            return
        if not self._arrived:
            Variable._execution_engine.queue_callback(self._average_gradients)
        self._arrived.add(id(p))

    def _average_gradients(self) -> None:
        """Replace the gradients by their means over the ranks."""
        arrived, self._arrived = self._arrived, set()
        if self.process_group.size() > 1:
            used = self._used_on_any_rank([id(p) in arrived for _, p in self._named])
            present = {id(p) for (_, p), is_used in zip(self._named, used, strict=True) if is_used}
            with no_grad():
                for bucket in self._buckets:
                    self._average_bucket([p for p in bucket if id(p) in present])

    def _used_on_any_rank(self, used: list[bool]) -> list[bool]:
        """Return which parameters have a gradient on any rank; RuntimeError, on every rank, if one must and has not."""
        missing = [name for (name, _), is_used in zip(self._named, used, strict=True) if not is_used]
        if missing and not self.find_unused_parameters:
            shown = ", ".join(missing[:10]) + (", ..." if len(missing) > 10 else "")
            error = RuntimeError(
                f"Expected to have finished reduction: rank {self.process_group.rank()} has no gradient of {shown}; "
                f"use these parameters in the loss, or pass find_unused_parameters=True to DistributedDataParallel"
            )
        else:
            error = None

        def work(link: Any) -> list[bool]:
            if error is not None:
                raise error
            return used

        return [any(flags) for flags in zip(*self.process_group.launch(work, Fingerprint.of_call(CALL)), strict=True)]

    def _average_bucket(self, bucket: list[Tensor]) -> None:
        if not bucket:
            return
        world = self.process_group.size()
        zeros_like, cat = registry["zeros_like"], registry["cat"]
        grads = [zeros_like(p) if p.grad is None else p.grad.detach() for p in bucket]
        flat = cat([grad.reshape(-1) for grad in grads]) / world  # first, as PyTorch does, so that sums don't overflow
        reduce_all(CALL, flat, ReduceOp.SUM, self.process_group, False)
        means = flat.split([p.numel() for p in bucket])
        for p, grad, mean in zip(bucket, grads, means, strict=True):
            grad.copy_(mean.reshape(p.shape))
            if p.grad is None:
                p.grad = grad


def _in_buckets(parameters: Sequence[Tensor], cap_mb: float) -> list[list[Tensor]]:
    """Return parameters in buckets of one dtype, each of one parameter or at most `cap_mb` MiB."""
    buckets: list[list[Tensor]] = []
    size = 0.0
    for p in parameters:
        size += p.nbytes
        if not buckets or buckets[-1][0].dtype != p.dtype or size > cap_mb * 2**20:
            buckets.append([])
            size = p.nbytes
        buckets[-1].append(p)
    return buckets
