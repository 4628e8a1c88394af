"""Why public names of PyTorch do not exist here: patterns of their paths by reason."""

from fnmatch import fnmatchcase
from functools import cache

ABSENT = {
    "ranks are connected by the launcher, over one transport": """
        distributed.BackendConfig distributed.get_backend_config distributed.rendezvous
        distributed.register_rendezvous_handler distributed.shrink_group distributed.ProcessGroupGloo
    """,
    "deprecated by PyTorch: one call for each tensor with async_op=True, save and load replace them": """
        distributed.*_coalesced distributed.checkpoint.load_sharded_optimizer_state_dict
        distributed.checkpoint.*_state_dict
    """,
    "errors of ranks are PeerLost, RankMismatchError and TimeoutError": "distributed.DistBackendError",
    "options of PyTorch's C++ code for ranks, its logs and hooks": """
        distributed.*Options distributed.BuiltinCommHookType distributed.*DebugLevel distributed.*debug_level*
        distributed.GroupName distributed.Logger distributed.Reducer distributed.breakpoint
        distributed.get_pg_count distributed.record_comm distributed.supports_complex
    """,
    "the older way of dividing parameters, which fully_shard replaces, and its settings": """
        distributed.fsdp.BackwardPrefetch distributed.fsdp.CPUOffload distributed.fsdp.Full*
        distributed.fsdp.Local* distributed.fsdp.MixedPrecision distributed.fsdp.Optim* distributed.fsdp.Sharded*
        distributed.fsdp.ShardingStrategy distributed.fsdp.StateDict*
    """,
    "a mesh has the dimensions of fully_shard only, whose exchanges are on the processor": """
        distributed.fsdp.DataParallelMeshDims distributed.fsdp.share_comm_ctx
    """,
    "optimizers run on this process; ZeroRedundancyOptimizer and fully_shard divide their states": """
        distributed.optim.*
    """,
    "a checkpoint is a manifest and safetensors in a folder, without plans and other storages": """
        distributed.checkpoint.*Metadata distributed.checkpoint.*Storage* distributed.checkpoint.*Plan*
        distributed.checkpoint.*Item distributed.checkpoint.CheckpointException
        distributed.checkpoint.format_utils.*
    """,
    "names of types, which annotations use": """
        distributed.checkpoint.state_dict.* distributed.checkpoint.stateful.StatefulT
    """,
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
        is_vulkan_available *autocast_ipu* *autocast_xla*
        Tensor.to_mkldnn autograd.profiler.emit_*
        autograd.profiler.*nvprof* autograd.graph.region_activation_memory_budget cuda.* serialization.validate_*
    """,
    "TorchScript, and classes behind PyTorch's own backends": """
        AVG SUM AggregationType AliasDb *Type Argument ArgumentSpec Benchmark* Block CallStack Capsule Code
        CompilationUnit CompleteArgumentSpec ConcreteModule* DispatchKey* ErrorReport ExcludeDispatchKeyGuard
        ExecutionPlan FileCheck FunctionSchema Gradient Graph GraphExecutorState IODescriptor
        JITException LiteScriptModule LockingLogger Node NoopLogger OperatorInfo PyTorchFile* Script* StaticModule
        ThroughputBenchmark TracingState Use Value fork wait import_ir_* merge_type_* parse_* unify_type_list
        BufferDict ModuleDict ParameterDict DeepCopyMemoTable *StorageContext FatalError DisableTorchFunction*
        nn.functional.assert_int_or_pair sym_fresh_size sym_constrain_*
    """,
    "compiled programs are saved one by one, for one backend, whose guards are always all checked (decision 36)": """
        compiler.substitute_in_graph compiler.*_default_backend compiler.set_enable_guard_collectives
        compiler.wrap_numpy compiler.*_cache_artifacts compiler.*_unsafe
    """,
    "tensors are not divided between processes; DTensor is": "Tensor.is_distributed is_distributed",
    "deprecated by PyTorch, or part of another function": """
        as_strided_ embedding_bag gru lstm rnn_relu rnn_tanh native_norm slice_inverse
        Tensor.eig Tensor.index Tensor.lstsq Tensor.map2_
        Tensor.name Tensor.reinforce Tensor.resize Tensor.resize_as Tensor.slice_inverse Tensor.solve Tensor.symeig
        Tensor.volatile nn.Container nn.CrossMapLRN2d nn.parallel.replicate fft.Tensor
        set_anomaly_enabled autocast_*_nesting *autocast_c*
        set_autocast_enabled
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
