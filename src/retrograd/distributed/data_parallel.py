"""`DistributedDataParallel`: every rank trains a replica on its part of the data, with the mean of all gradients."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from retrograd.autograd import is_grad_enabled
from retrograd.autograd.running_pass import OncePerPass
from retrograd.core import Tensor
from retrograd.core.blocks import generator_block
from retrograd.distributed.algorithms.join import Join, Joinable, JoinHook
from retrograd.distributed.collectives import broadcast_all, reduce_all
from retrograd.distributed.communication_hooks import GradBucket
from retrograd.distributed.exchange import agree, agree_on_parameters
from retrograd.distributed.gradient_buckets import GradientBuckets
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.reduce_op import ReduceOp
from retrograd.futures import Future
from retrograd.nn.module import Module
from retrograd.nn.tensor_part import note_exchange
from retrograd.ops.functions import functions
from retrograd.pipelining.transports.fingerprint import qualified_name
from retrograd.pipelining.transports.process_group import ProcessGroup

BUCKET_MB = 25


class DistributedDataParallel(Module, Joinable):
    """Call a module, and average the gradients of its parameters over the ranks during each backward pass.

    All ranks make it with the same module.  It begins with the parameters and buffers of rank 0 (`init_sync`); before
    each call that is synchronised the buffers of rank 0 are sent to all (`broadcast_buffers`).  If each rank computes
    the mean loss of an equal share of a batch, the gradients are those of the mean loss of the batch.  Names in the
    state dict begin with `module.`.  A bucket of gradients is reduced as soon as they are final, while the
    backward pass continues.

    - process_group: by default that of `init_process_group`.
    - bucket_cap_mb: gradients are sent in buckets of this size in MiB, by default 25.
    - find_unused_parameters: allow parameters that get no gradient in a pass on some of the ranks; they count as zero
      there, and a parameter that no rank has used keeps its `.grad`.
    - gradient_as_bucket_view: let gradients be views of the buckets, which saves their memory and copies.
    - static_graph: the parameters that get a gradient are the same in each pass as in the first one.
    - device_mesh: a mesh of one dimension, whose group is used.
    - device_ids, output_device: for accelerators, must be None or empty.
    - dim, check_reduction, skip_all_reduce_unused_params, batched_grad_copy, bucket_cap_mb_list: without effect.

    Raises RuntimeError if no parameter requires grad, and in `backward()`, on every rank, if a parameter has got no
    gradient; RankMismatchError, on every rank, if the ranks' modules or options differ; ValueError for devices, and
    before `init_process_group`;
    NotImplementedError for mixed_precision and hooks of delayed parameters.

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
        }
        for name, value in refused.items():
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not supported; leave it out")
        self.module = module
        if device_mesh is not None:
            if process_group is not None:
                raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
            process_group = device_mesh.get_group(0) if device_mesh.ndim == 1 else device_mesh.get_group()
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
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, static_graph
        options = {
            "bucket_cap_mb": bucket_cap_mb or BUCKET_MB,
            "broadcast_buffers": bool(self.broadcast_buffers),
            "find_unused_parameters": bool(find_unused_parameters),
            "static_graph": bool(static_graph),
            "init_sync": bool(init_sync),
        }
        agree_on_parameters(self.process_group, "DistributedDataParallel", module.named_parameters(), options)
        if init_sync:
            broadcast_all([*module.parameters(), *module.buffers()], self.process_group)
        self._gradients = GradientBuckets(
            self._named,
            self.process_group,
            bucket_cap_mb or BUCKET_MB,
            as_views=gradient_as_bucket_view,
            allow_unused=find_unused_parameters,
            static=static_graph,
        )
        self._joined: _Joined | None = None
        self._averaging = OncePerPass(self._gradients.begin, self._gradients.finish)
        note_exchange([p for _, p in self._named], self, self.process_group.ranks)
        for _, p in self._named:
            p.register_post_accumulate_grad_hook(self._note_gradient)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the result of the module."""
        sends_buffers = self.broadcast_buffers and self.require_forward_param_sync
        averages = is_grad_enabled() and self.require_backward_grad_sync
        source = 0
        Join.notify_join_context(self)
        if self._joined is not None:
            if self._join_config.enable:
                self._joined.count(sends_buffers, averages, has_batch=True)
                source = self._joined.last
            else:
                self._joined.reset()
                self._joined = None
        if sends_buffers:
            self._send_buffers(source)
        self.require_forward_param_sync = averages
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

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Let ranks have different numbers of batches: those that are done take part in the reductions of the others.

        At the end all have the parameters and buffers of a rank that was among the last.  divide_by_initial_world_size:
        divide sums of gradients by the number of all ranks; otherwise by the number of those that still have batches.
        throw_on_early_termination: raise RuntimeError on all ranks as soon as one is done.

        >>> import retrograd as rg
        >>> import retrograd.distributed as dist
        >>> def script():
        ...     model = rg.nn.parallel.DistributedDataParallel(rg.nn.Linear(2, 1))
        ...     with model.join():
        ...         for _ in range(1 + dist.get_rank()):
        ...             model.zero_grad()
        ...             model(rg.ones(4, 2)).mean().backward()
        ...     return model.module.bias.grad.item()
        >>> dist.run_threads(script, 2)
        [1.0, 0.5]
        """
        options = {"divide_by_initial_world_size": divide_by_initial_world_size}
        return Join([self], enable, throw_on_early_termination, **options)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what takes part in the reductions of the other ranks; kwargs: divide_by_initial_world_size."""
        self._joined = _Joined(self, kwargs.get("divide_by_initial_world_size", True))
        return self._joined

    @property
    def join_device(self) -> Any:
        """Return the device of the parameters."""
        return self._named[0][1].device

    @property
    def join_process_group(self) -> ProcessGroup:
        """Return the ranks that have a replica."""
        return self.process_group

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Future[Tensor]]) -> None:
        """Let `hook(state, bucket)` exchange the gradients of each bucket, in place of their average over the ranks.

        It returns a `Future` of the new values of `bucket.buffer()`, which holds the gradients of this rank; the hook
        divides them, too.  All ranks register the same hook.  `distributed.algorithms.ddp_comm_hooks.default_hooks` has
        some.  With a hook, gradients are never summed in memory that ranks share.

        Raises TypeError if the hook cannot be called; RuntimeError if there is one already; RankMismatchError, on every
        rank, if the ranks' hooks have different names.

        >>> import retrograd as rg
        >>> import retrograd.distributed as dist
        >>> from retrograd.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> def script():
        ...     model = rg.nn.parallel.DistributedDataParallel(rg.nn.Linear(2, 1))
        ...     model.register_comm_hook(None, default_hooks.bf16_compress_hook)
        ...     (model(rg.ones(4, 2)).mean() * dist.get_rank()).backward()
        ...     return model.module.bias.grad.item()
        >>> dist.run_threads(script, 2)
        [0.5, 0.5]
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._gradients.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        agree(self.process_group, "register_comm_hook", {"hook": qualified_name(hook)})
        self._gradients.set_hook(partial(hook, state))

    # ------------------------------------------------------------------------------------ averaging gradients

    def _send_buffers(self, src: int = 0) -> None:
        """Give all ranks the buffers of one."""
        buffers = list(self.module.buffers())
        if buffers:
            broadcast_all(buffers, self.process_group, src)

    def _note_gradient(self, p: Tensor) -> None:
        """Note that a parameter has its gradient, which is averaged while the pass continues."""
        alone = self.process_group.size() == 1 and self._gradients.hook is None
        if not self.require_forward_param_sync or alone:
            return
        self._averaging.enter()
        self._gradients.add(p)


class _Joined(JoinHook):
    """How a rank without batches takes part in the reductions of the others.  last: the last rank that had some."""

    def __init__(self, replicas: DistributedDataParallel, divide_by_all: bool) -> None:
        self._replicas, self._divide_by_all = replicas, divide_by_all
        self.last = 0
        self.buffers = self.gradients = False

    def main_hook(self) -> None:
        """Take part in one pass; other objects of the context, as an optimizer, get the means of its gradients."""
        self.count(False, False, has_batch=False)
        if self.buffers:
            self._replicas._send_buffers(self.last)
        if self.gradients:
            self._replicas._gradients.take_part(writes=not self._replicas._join_config.is_only)

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take the parameters and buffers of a rank that was among the last."""
        module = self._replicas.module
        broadcast_all([*module.parameters(), *module.buffers()], self._replicas.process_group, self.last)
        self.reset()

    def reset(self) -> None:
        """Average over all ranks again."""
        gradients = self._replicas._gradients
        gradients.divisor = gradients.active = self._replicas.process_group.size()

    def count(self, sends_buffers: bool, averages: bool, has_batch: bool) -> None:
        """Count the ranks with batches; set whether they send buffers and average gradients."""
        gradients, group = self._replicas._gradients, self._replicas.process_group
        size = group.size()
        flags = functions["zeros"](size + 2, dtype="int32")
        if has_batch:
            flags[group.rank()] = 1
            flags[size], flags[size + 1] = int(sends_buffers), int(averages)
        reduce_all("join", flags, ReduceOp.SUM, group, False)
        *active, buffers, averaging = flags.tolist()
        self.buffers, self.gradients = bool(buffers), bool(averaging)
        if any(active):
            self.last = max(rank for rank, flag in enumerate(active) if flag)
            gradients.active = sum(active)
            gradients.divisor = size if self._divide_by_all else gradients.active
