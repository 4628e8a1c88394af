"""Why public names of PyTorch do not exist here: patterns of their paths by reason."""

from fnmatch import fnmatchcase
from functools import cache

ABSENT = {
    "quantisation": """
        choose_qparams_optimized dequantize empty_quantized fake_quantize_* fbgemm_* fused_moving_avg_obs_fake_quant
        int_repr q_* qscheme quantize* quint* qint*
        Tensor.dequantize Tensor.int_repr Tensor.q_* Tensor.qscheme nn.functional.scaled_* nn.functional.ScalingType
        nn.functional.SwizzleType
    """,
    "dtypes that NumPy does not have": """
        bit bits* chalf complex32 float4_* float8_* int[1-7] uint[1-7] Tensor.chalf
    """,
    "sparse tensors are those of retrograd.func.sparse, without the methods of PyTorch's": """
        ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy resize_as_sparse_
        row_indices_copy saddmm smm sparse_* spmm sspaddmm values_copy Tensor.ccol_indices Tensor.coalesce
        Tensor.col_indices Tensor.crow_indices Tensor.dense_dim Tensor.indices Tensor.is_coalesced
        Tensor.resize_as_sparse_ Tensor.row_indices Tensor.smm Tensor.sparse_* Tensor.sspaddmm Tensor.to_dense
        Tensor.to_sparse* optim.SparseAdam
    """,
    "accelerators, their drivers, libraries and allocators": """
        AcceleratorError OutOfMemoryError Stream Event StreamObjType DeviceObjType batch_norm_backward_*
        batch_norm_elemt batch_norm_gather_stats* batch_norm_stats batch_norm_update_stats cudnn_* miopen_* mkldnn_*
        is_vulkan_available *autocast_gpu* *autocast_ipu* *autocast_xla*
        Tensor.ipu Tensor.is_ipu Tensor.is_maia Tensor.is_mtia Tensor.is_vulkan Tensor.mtia Tensor.record_stream
        Tensor.to_mkldnn Tensor.xpu nn.attention.*flash* autograd.graph.set_*stream* autograd.profiler.emit_*
        autograd.profiler.*nvprof* autograd.graph.region_activation_memory_budget cuda.* serialization.validate_*
    """,
    "TorchScript, and the classes of PyTorch's own compilers": """
        AVG SUM AggregationType AliasDb *Type Argument ArgumentSpec Benchmark* Block CallStack Capsule Code
        CompilationUnit CompleteArgumentSpec ConcreteModule* DispatchKey* ErrorReport ExcludeDispatchKeyGuard
        ExecutionPlan FileCheck FunctionSchema Future Gradient Graph GraphExecutorState IODescriptor
        JITException LiteScriptModule LockingLogger Node NoopLogger OperatorInfo PyTorchFile* Script* StaticModule
        ThroughputBenchmark TracingState Use Value fork wait import_ir_* merge_type_* parse_* unify_type_list
        BufferDict ModuleDict ParameterDict DeepCopyMemoTable *StorageContext FatalError DisableTorchFunction*
        nn.functional.assert_int_or_pair nn.functional.has_torch_function* sym_fresh_size sym_constrain_*
    """,
    "NumPy's memory has no handle of its own": """
        *Storage is_storage from_file Tensor.const_data_ptr Tensor.is_set_to Tensor.set_ Tensor.storage
        Tensor.storage_type Tensor.untyped_storage Tensor.is_distributed is_distributed
    """,
    "sizes in traces are numbers of retrograd.export": "SymBool SymFloat sym_*",
    "deprecated by PyTorch, or part of another function": """
        as_strided_ convolution embedding_bag embedding_renorm_ gru lstm rnn_relu rnn_tanh native_norm slice_inverse
        hash_tensor Tensor.hash_tensor Tensor.eig Tensor.index Tensor.lstsq Tensor.lu Tensor.map2_ Tensor.module_load
        Tensor.name Tensor.reinforce Tensor.resize Tensor.resize_as Tensor.slice_inverse Tensor.solve Tensor.symeig
        Tensor.volatile nn.Container nn.CrossMapLRN2d nn.factory_kwargs nn.parallel.replicate fft.Tensor
        set_default_tensor_type set_anomaly_enabled autocast_*_nesting *autocast_c* init_num_threads
        set_autocast_enabled testing.assert_allclose
    """,
    "a second kind of tensor, which PyTorch calls a prototype": "masked.*",
    "pipes of data, which PyTorch has moved to another package": """
        utils.data.*Pipe utils.data.DataChunk utils.data.argument_validation utils.data.functional_datapipe
        utils.data.guaranteed_* utils.data.non_deterministic utils.data.runtime_*
    """,
    "files are read without running code, in one byte order": "serialization.*",
    "parts of PyTorch's implementation": """
        autograd.function.BackwardCFunction autograd.function.FunctionMeta autograd.profiler.EnforceUnique
        autograd.profiler.KinetoStepTracker autograd.profiler.MemRecordsAcc overrides.* utils.checkpoint.*
        profiler.ExecutionTraceObserver get_device_module
        Tensor.grad_dtype
    """,
    "not yet": """
        compile get_num_interop_threads has_* range
        set_flush_denormal set_num_interop_threads *thread_safe_generator
        nn.functional.grouped_mm nn.attention.SDPBackend nn.attention.sdpa_kernel
        nn.attention.WARN_* optim.swap_*
        testing.make_tensor
    """,
}


def matching(path: str) -> list[tuple[str, str]]:
    """Return the reasons and patterns that match a path, the reasons in the order of `ABSENT`."""
    return [(reason, p) for reason, patterns in ABSENT.items() for p in patterns.split() if fnmatchcase(path, p)]


@cache
def reason_of(path: str) -> str:
    """Return the reason why a name does not exist: the first that matches; LookupError if there is none."""
    found = matching(path)
    if not found:
        raise LookupError(f"{path} does not exist, and tests/parity/public_names/absent.py gives no reason")
    return found[0][0]
