"""Why public names of PyTorch do not exist here: patterns of their paths by reason."""

from fnmatch import fnmatchcase
from functools import cache

ABSENT = {
    "tensors with a scale and a zero point (decision 38)": """
        choose_qparams_optimized empty_quantized fbgemm_* fused_moving_avg_obs_fake_quant
        int_repr q_* qscheme quantize* quint* qint*
        Tensor.int_repr Tensor.q_* Tensor.qscheme nn.functional.scaled_grouped_mm
    """,
    "dtypes that neither NumPy nor ml_dtypes has, or that are no sizes of numbers (decisions 30 and 37)": """
        bit bits* chalf complex32 float4_* int[1-7] uint[1-7] Tensor.chalf
    """,
    "accelerators, their drivers, libraries and allocators": """
        Stream Event StreamObjType DeviceObjType batch_norm_backward_*
        batch_norm_elemt batch_norm_gather_stats* batch_norm_stats batch_norm_update_stats cudnn_* miopen_* mkldnn_*
        is_vulkan_available *autocast_gpu* *autocast_ipu* *autocast_xla*
        Tensor.to_mkldnn autograd.profiler.emit_*
        autograd.profiler.*nvprof* autograd.graph.region_activation_memory_budget cuda.* serialization.validate_*
    """,
    "TorchScript, and classes behind PyTorch's own backends": """
        AVG SUM AggregationType AliasDb *Type Argument ArgumentSpec Benchmark* Block CallStack Capsule Code
        CompilationUnit CompleteArgumentSpec ConcreteModule* DispatchKey* ErrorReport ExcludeDispatchKeyGuard
        ExecutionPlan FileCheck FunctionSchema Future Gradient Graph GraphExecutorState IODescriptor
        JITException LiteScriptModule LockingLogger Node NoopLogger OperatorInfo PyTorchFile* Script* StaticModule
        ThroughputBenchmark TracingState Use Value fork wait import_ir_* merge_type_* parse_* unify_type_list
        BufferDict ModuleDict ParameterDict DeepCopyMemoTable *StorageContext FatalError DisableTorchFunction*
        nn.functional.assert_int_or_pair sym_fresh_size sym_constrain_*
    """,
    "compiled programs are saved one by one, for one backend, whose guards are always all checked (decision 36)": """
        compiler.substitute_in_graph compiler.*_default_backend compiler.set_enable_guard_collectives
        compiler.wrap_numpy compiler.*_cache_artifacts compiler.*_unsafe
        compiler.is_exporting
    """,
    "NumPy's memory has no handle of its own": """
        *Storage Tensor.is_distributed is_distributed
    """,
    "deprecated by PyTorch, or part of another function": """
        as_strided_ convolution embedding_bag embedding_renorm_ gru lstm rnn_relu rnn_tanh native_norm slice_inverse
        Tensor.eig Tensor.index Tensor.lstsq Tensor.map2_
        Tensor.name Tensor.reinforce Tensor.resize Tensor.resize_as Tensor.slice_inverse Tensor.solve Tensor.symeig
        Tensor.volatile nn.Container nn.CrossMapLRN2d nn.parallel.replicate fft.Tensor
        set_anomaly_enabled autocast_*_nesting *autocast_c*
        set_autocast_enabled testing.assert_allclose
    """,
    "a second kind of tensor, which PyTorch calls a prototype": "masked.*",
    "pipes of data, which PyTorch has moved to another package": """
        utils.data.*Pipe utils.data.DataChunk utils.data.argument_validation utils.data.functional_datapipe
        utils.data.guaranteed_* utils.data.non_deterministic utils.data.runtime_*
    """,
    "files are read without running code, in one byte order": "serialization.*",
    "parts of PyTorch's implementation": """
        autograd.profiler.EnforceUnique
        autograd.profiler.KinetoStepTracker autograd.profiler.MemRecordsAcc overrides.*
        profiler.ExecutionTraceObserver
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
