"""Hooks that average gradients, with numbers of their own dtype or of 16 bits on the way."""

from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor
from retrograd.distributed.collectives import all_reduce
from retrograd.distributed.communication_hooks import GradBucket
from retrograd.distributed.groups import initialized_group
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.futures import Future
from retrograd.pipelining.transports.process_group import ProcessGroup

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip

StatefulHook = Callable[[Any, GradBucket], Future[Tensor]]


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients over the ranks, as without a hook.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> dist.init_process_group()
    >>> bucket = dist.GradBucket(0, rg.tensor([3.0]), [rg.ones(1)], is_last=True)
    >>> allreduce_hook(None, bucket).wait()
    tensor([3.])
    >>> dist.destroy_process_group()
    """
    x = bucket.buffer().div_(initialized_group(process_group).size())  # first, so that sums do not overflow
    work = all_reduce(x, group=process_group, async_op=True)
    assert work is not None  # this rank belongs to the group of its module
    return work.get_future().then(lambda future: future.value()[0])


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients as float16: half the bytes of float32, some 3 digits, and no numbers above 65,504.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> dist.init_process_group()
    >>> bucket = dist.GradBucket(0, rg.tensor([0.1]), [rg.ones(1)], is_last=True)
    >>> fp16_compress_hook(None, bucket).wait().item()
    0.0999755859375
    >>> dist.destroy_process_group()
    """
    return _compress_wrapper("float16", allreduce_hook)(process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients as bfloat16: half the bytes of float32, its range, and some 2 digits.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> dist.init_process_group()
    >>> bucket = dist.GradBucket(0, rg.tensor([0.1]), [rg.ones(1)], is_last=True)
    >>> bf16_compress_hook(None, bucket).wait().item()
    0.10009765625
    >>> dist.destroy_process_group()
    """
    return _compress_wrapper("bfloat16", allreduce_hook)(process_group, bucket)


def fp16_compress_wrapper(
    hook: StatefulHook,
) -> StatefulHook:
    """Return a hook that gives another one the gradients as float16, and returns them in their own dtype.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> dist.init_process_group()
    >>> bucket = dist.GradBucket(0, rg.tensor([0.1]), [rg.ones(1)], is_last=True)
    >>> fp16_compress_wrapper(allreduce_hook)(None, bucket).wait().item()
    0.0999755859375
    >>> dist.destroy_process_group()
    """
    return _compress_wrapper("float16", hook)


def bf16_compress_wrapper(
    hook: StatefulHook,
) -> StatefulHook:
    """Return a hook that gives another one the gradients as bfloat16, and returns them in their own dtype.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> dist.init_process_group()
    >>> bucket = dist.GradBucket(0, rg.tensor([0.1]), [rg.ones(1)], is_last=True)
    >>> bf16_compress_wrapper(allreduce_hook)(None, bucket).wait().item()
    0.10009765625
    >>> dist.destroy_process_group()
    """
    return _compress_wrapper("bfloat16", hook)


def _compress_wrapper(dtype: str, hook: StatefulHook) -> StatefulHook:
    def compressed(state: Any, bucket: GradBucket) -> Future[Tensor]:
        x = bucket.buffer()
        bucket.set_buffer(x.to(dtype))
        return hook(state, bucket).then(lambda future: x.copy_(future.value()))

    return compressed


suggest_in_module(globals())
