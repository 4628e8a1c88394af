"""Modules that scripts for PyTorch import by their paths, and that are divided into files differently here.

`tests/parity/test_module_paths_parity.py` compares the names with those of the installed PyTorch.
"""

# Path of a module -> {path of the module that defines the names, "" for the package itself: names}.
MODULES = {
    "_higher_order_ops": {"higher_order": "associative_scan cond scan while_loop"},
    "_higher_order_ops.associative_scan": {"higher_order": "associative_scan"},
    "_higher_order_ops.cond": {"higher_order": "cond"},
    "_higher_order_ops.map": {"higher_order": "map"},
    "_higher_order_ops.scan": {"higher_order": "scan"},
    "_higher_order_ops.while_loop": {"higher_order": "while_loop"},
    "autograd.profiler_util": {"autograd.profiler": "EventList FunctionEvent FunctionEventAvg"},
    "functional": {
        "": "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist "
        "chain_matmul einsum istft meshgrid norm split stft tensordot unique unique_consecutive unravel_index",
    },
    "nn.modules": {},
    "nn.modules.activation": {
        "nn": "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish "
        "MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink "
        "Softsign Tanh Tanhshrink Threshold",
    },
    "nn.modules.adaptive": {"nn": "AdaptiveLogSoftmaxWithLoss"},
    "nn.modules.batchnorm": {
        "nn": "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm",
        "nn.batchnorm": "_BatchNorm _NormBase",
    },
    "nn.modules.channelshuffle": {"nn": "ChannelShuffle"},
    "nn.modules.container": {"nn": "ModuleDict ModuleList ParameterDict ParameterList Sequential"},
    "nn.modules.conv": {
        "nn": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d "
        "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
        "nn.convolution": "_ConvNd _ConvTransposeNd",
    },
    "nn.modules.distance": {"nn": "CosineSimilarity PairwiseDistance"},
    "nn.modules.dropout": {
        "nn": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
        "nn.dropout": "_DropoutNd",
    },
    "nn.modules.flatten": {"nn": "Flatten Unflatten"},
    "nn.modules.fold": {"nn": "Fold Unfold"},
    "nn.modules.instancenorm": {
        "nn": "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
        "nn.batchnorm": "_InstanceNorm _NormBase",
    },
    "nn.modules.lazy": {"nn.lazy": "LazyModuleMixin"},
    "nn.modules.linear": {"nn": "Bilinear Identity LazyLinear Linear"},
    "nn.modules.linear_cross_entropy_options": {"nn": "LinearCrossEntropyOptions"},
    "nn.modules.loss": {
        "nn": "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss "
        "HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss "
        "MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d PoissonNLLLoss SmoothL1Loss "
        "SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss",
        "nn.loss": "_Loss _WeightedLoss",
    },
    "nn.modules.module": {
        "nn": "Module",
        "nn.global_hooks": "register_module_backward_hook register_module_buffer_registration_hook "
        "register_module_forward_hook register_module_forward_pre_hook register_module_full_backward_hook "
        "register_module_full_backward_pre_hook register_module_module_registration_hook "
        "register_module_parameter_registration_hook",
        "nn.state_loading": "_IncompatibleKeys=IncompatibleKeys",
    },
    "nn.modules.normalization": {"nn": "GroupNorm LayerNorm LocalResponseNorm RMSNorm"},
    "nn.modules.padding": {
        "nn": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d "
        "ZeroPad3d",
        "nn.padding": "_CircularPadNd _ConstantPadNd _ReflectionPadNd _ReplicationPadNd",
    },
    "nn.modules.pixelshuffle": {"nn": "PixelShuffle PixelUnshuffle"},
    "nn.modules.pooling": {
        "nn": "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
        "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d "
        "LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
        "nn.pooling": "_AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _AvgPoolNd _LPPoolNd _MaxPoolNd _MaxUnpoolNd",
    },
    "nn.modules.rnn": {"nn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase"},
    "nn.modules.sparse": {"nn": "Embedding EmbeddingBag"},
    "nn.modules.transformer": {
        "nn": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
    },
    "nn.modules.upsampling": {"nn": "Upsample UpsamplingBilinear2d UpsamplingNearest2d"},
    "nn.modules.utils": {
        "nn.common_types": "_ntuple _pair _quadruple _reverse_repeat_tuple _single _triple",
        "nn.state_loading": "consume_prefix_in_state_dict_if_present",
    },
    "nn.parallel.data_parallel": {"nn.parallel": "DataParallel data_parallel"},
    "nn.parallel.distributed": {"nn.parallel": "DistributedDataParallel"},
    "nn.parallel.parallel_apply": {"nn.parallel": "parallel_apply"},
    "nn.parallel.scatter_gather": {"nn.parallel": "gather scatter"},
    "nn.utils.spectral_norm": {"nn.utils": "remove_spectral_norm spectral_norm"},
    "nn.utils.weight_norm": {"nn.utils": "remove_weight_norm weight_norm"},
    "optim.adadelta": {"optim": "Adadelta"},
    "optim.adagrad": {"optim": "Adagrad"},
    "optim.adamax": {"optim": "Adamax"},
    "optim.adamw": {"optim": "AdamW"},
    "optim.nadam": {"optim": "NAdam"},
    "optim.radam": {"optim": "RAdam"},
    "optim.rmsprop": {"optim": "RMSprop"},
    "optim.rprop": {"optim": "Rprop"},
    "optim.sparse_adam": {"optim": "SparseAdam"},
    "profiler.profiler": {"profiler": "ProfilerAction profile schedule supported_activities tensorboard_trace_handler"},
    "signal.windows.windows": {
        "signal.windows": "bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann "
        "kaiser nuttall",
    },
    "storage": {"": "TypedStorage UntypedStorage"},
    "utils.data._utils": {},
    "utils.data._utils.collate": {
        "utils.data": "default_collate default_convert",
        "utils.data.collate": "collate collate_tensor_fn default_collate_fn_map",
    },
    "utils.data.dataloader": {"utils.data": "DataLoader default_collate default_convert get_worker_info"},
    "utils.dlpack": {"": "from_dlpack to_dlpack"},
    "utils.hooks": {"core.hooks": "RemovableHandle"},
    "utils.tensorboard.writer": {"utils.tensorboard": "SummaryWriter"},
}
# The package of all layers: the public names of its modules.
MODULES["nn.modules"]["nn"] = " ".join(
    dict.fromkeys(
        name
        for path, homes in MODULES.items()
        if path.startswith("nn.modules.")
        for name in homes.get("nn", "").split()
    )
)
