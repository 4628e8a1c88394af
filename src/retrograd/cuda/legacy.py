"""PyTorch's legacy classes of tensors on a GPU by dtype: `cuda.FloatTensor`. Without a GPU, no tensor is one."""

from typing import Any

from retrograd.ops.legacy import TENSOR_CLASSES, TensorClassMeta


class _CudaTensorClassMeta(TensorClassMeta):
    """The metaclass of classes whose instances are the tensors of one dtype on a GPU."""

    def __instancecheck__(cls, value):
        return super().__instancecheck__(value) and value.is_cuda

    def __call__(cls, *data):
        """Return a tensor on the GPU of sizes or data; a RuntimeError without one."""
        return super().__call__(*data).cuda()


def _cuda_class(dense: Any) -> Any:
    doc = f"The tensors of {dense.dtype} on a GPU: `cuda.{dense.__name__}` makes them as `rg.{dense.__name__}` does."
    return _CudaTensorClassMeta(
        dense.__name__, (), {"storage": dense.storage, "__doc__": doc, "__module__": "retrograd.cuda"}
    )


(
    FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, ShortTensor, IntTensor,
    LongTensor,
) = map(_cuda_class, TENSOR_CLASSES)  # fmt: skip
