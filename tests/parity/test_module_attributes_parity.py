"""The attributes of the layers: each public one of PyTorch's exists, and settings have the same values."""

import inspect

import pytest
import torch

import retrograd as rg

from .quiet import quiet

ARGUMENTS = {
    "AdaptiveLogSoftmaxWithLoss": (4, 8, [2, 4]),
    "Bilinear": (2, 3, 4),
    "ChannelShuffle": (2,),
    "Embedding": (4, 3),
    "EmbeddingBag": (4, 3),
    "Fold": (4, 2),
    "FractionalMaxPool2d": (2, 3),
    "FractionalMaxPool3d": (2, 3),
    "GroupNorm": (2, 4),
    "LayerNorm": (3,),
    "LazyLinear": (3,),
    "Linear": (2, 3),
    "LinearCrossEntropyLoss": (2, 3),
    "LocalResponseNorm": (2,),
    "MultiheadAttention": (4, 2),
    "PixelShuffle": (2,),
    "PixelUnshuffle": (2,),
    "RMSNorm": (3,),
    "RNNBase": ("LSTM", 2, 3),
    "RNNCellBase": (2, 3, True, 4),
    "SyncBatchNorm": (3,),
    "Threshold": (1.0, 2.0),
    "Transformer": (8, 2, 1, 1, 16),
    "TransformerDecoderLayer": (8, 2),
    "TransformerEncoderLayer": (8, 2),
    "Unflatten": (1, (2, 2)),
    "Unfold": (2,),
    **dict.fromkeys(("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"), (2, 3)),
}
FAMILIES = {  # of classes for 1 to 3 dimensions
    **dict.fromkeys(("Conv", "ConvTranspose"), (2, 4, 3)),
    **dict.fromkeys(("LazyConv", "LazyConvTranspose"), (4, 3)),
    **dict.fromkeys(("BatchNorm", "InstanceNorm"), (3,)),
    **dict.fromkeys(("AvgPool", "MaxPool", "MaxUnpool", "AdaptiveAvgPool", "AdaptiveMaxPool"), (2,)),
    **dict.fromkeys(("ReflectionPad", "ReplicationPad", "ZeroPad", "CircularPad"), (1,)),
    "LPPool": (2, 2),
    "ConstantPad": (1, 2.0),
}
MADE = {
    "TransformerDecoder": lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 1),
    "TransformerEncoder": lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 1),
}
CLASSES = {n: v for n, v in vars(torch.nn).items() if inspect.isclass(v) and issubclass(v, torch.nn.Module)}
# DataParallel is a wrapper for several devices.
NAMES = [n for n in CLASSES if hasattr(rg.nn, n) and n != "DataParallel"]
# Attributes that only PyTorch's layers have, and why.
ABSENT = {
    "T_destination": "for type checkers",
    "activation_relu_or_gelu": "whether its fused encoder applies",
    "check_forward_args": "a part of its forward",
    "check_hidden_size": "a part of its forward",
    "check_input": "a part of its forward",
    "dump_patches": "without effect",
    "get_expected_cell_size": "a part of its forward",
    "get_expected_hidden_size": "a part of its forward",
    "ipu": "a device",
    "merge_masks": "a part of its forward",
    "mtia": "a device",
    "permute_hidden": "a part of its forward",
    "xpu": "a device",
}
# Attributes of one underscore that libraries read.
READ_BY_LIBRARIES = ("_qkv_same_embed_dim",)


def make(nn, name):
    """Return a layer of one of the libraries."""
    if name in MADE:
        return MADE[name](nn)
    family = name[:-2] if name[-2:] in ("1d", "2d", "3d") else name
    arguments = ARGUMENTS.get(name, FAMILIES.get(family, (4,) if name.startswith("Upsampl") else ()))
    return getattr(nn, name)(*arguments)


@pytest.mark.parametrize("name", NAMES)
def test_layers_have_pytorchs_attributes_with_the_same_settings(name):
    theirs, ours = quiet(make)(torch.nn, name), quiet(make)(rg.nn, name)
    read = [n for n in dir(theirs) if n not in ABSENT and (n[0] != "_" or n in READ_BY_LIBRARIES)]
    assert [n for n in read if not hasattr(ours, n)] == []
    settings = {n: v for n in read if isinstance(v := getattr(theirs, n), int | float | str | tuple | type(None))}
    assert {n: getattr(ours, n) for n in settings} == settings


def test_absent_attributes_are_those_of_some_layer_of_pytorch_only():
    layers = [(quiet(make)(torch.nn, n), quiet(make)(rg.nn, n)) for n in NAMES]
    assert [n for n in ABSENT if not any(hasattr(theirs, n) > hasattr(ours, n) for theirs, ours in layers)] == []
