"""Every entry of PyTorch's module database gives the same results here, also as a copy, and refuses the same inputs."""

import re

import pytest
import torch

import retrograd as rg

from .module_database import ENTRIES, bad_inputs, counterpart, differences, printed, samples

pytestmark = pytest.mark.filterwarnings("ignore")

# Differences that stay: (entry, aspect) -> reason.
EXEMPT = {
    ("nn.KLDivLoss", "second gradient"): "at a target of 0, PyTorch multiplies 0 by the logarithm of 0; ours is finite",
}

_SWITCH = "ours does more: 0 and 1 count as False and True"
_POSITIONS = "PyTorch takes 'relu' for bias, the third argument, as true; here it is a TypeError"
_ZERO = "ours does more: a normalisation with eps=0 is defined"
_HALF = "ours does more: weights of another dtype are converted"

# Error inputs that are accepted, or refused with another class: (entries, words of PyTorch's error) -> reason.
OTHER_CLASS = {
    ("BatchNorm", "eps must be|mixed dtype"): _ZERO,
    ("NLLLoss", "Double but found Half"): _HALF,
    ("(RNN|GRU)Cell", "inconsistent hidden_size: got 21"): _POSITIONS,
    ("(RNN|GRU|LSTM)$", "should be of type bool, got: int"): _SWITCH,
}
# Error inputs that our messages describe in other words: entries and words of PyTorch's errors.
OTHER_WORDS = (
    r"MaxPool2d: non-empty 3D or 4D|MultiMarginLoss: .*target tensor should be 1-D|HuberLoss: delta must be"
    r"|CrossEntropyLoss: (Expected floating|expected target dtype|Expected target size|label_smoothing must)"
    r"|LinearCrossEntropyLoss: (Expected floating|Expected input batch_size|expected equal|expected label_smoothing)"
    r"|GroupNorm: num_channels|Embedding: (Expected tensor for|Trying to create tensor with negative)"
    r"|(RNN|GRU|LSTM): (\w+ should be of type (bool|int), got: str|RNN input dtype)"
)


@pytest.mark.parametrize("name", ENTRIES)
def test_every_sample_gives_the_results_of_pytorch(name):
    found = [
        f"{sample.description}: {aspect}: {message}"
        for sample in samples(name)
        for aspect, message in differences(name, sample).items()
        if (name, aspect) not in EXEMPT
    ]
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:20])


@pytest.mark.parametrize(("name", "aspect"), EXEMPT)
def test_exemptions_are_needed(name, aspect):
    assert any(aspect in differences(name, sample) for sample in samples(name))


def test_every_entry_has_a_counterpart():
    assert [name for name in ENTRIES if counterpart(name) is None] == []


WITH_ERRORS = [name for name, entry in ENTRIES.items() if entry.module_error_inputs_func]


@pytest.mark.parametrize("name", WITH_ERRORS)
def test_error_inputs_are_refused_with_the_class_and_the_words_of_pytorch(name):
    wrong = []
    for one in bad_inputs(name):
        if other_class(name, one) is None:
            refused = isinstance(one.ours, type(one.theirs))
            said = re.search(one.words, str(one.ours)) or has_other_words(name, one)
            wrong += [] if refused and said else [f"{one.description}: {one.theirs!r}, ours {one.ours!r}"]
    assert not wrong, "\n".join(wrong)


def other_class(name, one):
    return next((key for key in OTHER_CLASS if re.search(key[0], name) and re.search(key[1], str(one.theirs))), None)


def has_other_words(name, one):
    return re.match(OTHER_WORDS, f"{name.removeprefix('nn.')}: {one.theirs}")


@pytest.mark.parametrize("key", OTHER_CLASS)
def test_other_classes_are_needed(key):
    bad = [one for name in WITH_ERRORS for one in bad_inputs(name) if other_class(name, one) == key]
    assert any(not isinstance(one.ours, type(one.theirs)) for one in bad)


# Layers that the database lacks, with the settings that it varies least.
OTHER_LAYERS = """
AdaptiveLogSoftmaxWithLoss(4, 9, [3, 6]) | AlphaDropout(0.2, True) | ChannelShuffle(2) | CosineSimilarity(1, 1e-3)
Dropout() | Dropout(0.1, inplace=True) | Dropout1d() | Dropout2d() | Dropout3d() | EmbeddingBag(3, 2)
EmbeddingBag(3, 2, 1.0, 3, True, "sum", padding_idx=1) | Embedding(3, 2, 1, 1.0, 3.0, True, True) | Flatten(0, 1)
FeatureAlphaDropout() | Fold(4, 2) | Fold((4, 5), (2, 2), 1, 0, 2) | Hardsigmoid() | Identity(3) | LazyBatchNorm1d()
LazyInstanceNorm2d(affine=True) | LazyLinear(3) | LazyConv2d(3, 2) | LazyConvTranspose1d(3, 2) | MaxUnpool1d(2)
MaxUnpool2d((2, 3), 1) | MaxUnpool3d(2) | NLLLoss2d() | PairwiseDistance() | ParameterList() | ParameterDict()
PixelShuffle(2) | PixelUnshuffle(2) | RReLU(0.1, 0.2) | RReLU(inplace=True) | ReLU6(inplace=True) | SyncBatchNorm(2)
TransformerDecoder(TransformerDecoderLayer(4, 2, 8), 2) | TripletMarginLoss() | TripletMarginWithDistanceLoss()
Unflatten(1, (2, 3)) | Unfold(2) | Unfold((2, 3), 1, 0, 2) | Upsample(scale_factor=2)
Upsample((3, 4), mode="bilinear") | UpsamplingBilinear2d(scale_factor=2) | UpsamplingNearest2d((4, 4))
Conv2d(2, 2, 3, padding_mode="reflect", bias=False) | ConvTranspose2d(2, 2, 3, output_padding=1, stride=2)
Conv2d(2, 2, 3, padding="valid", dilation=2, groups=2) | MaxPool2d(2, return_indices=True, ceil_mode=True)
AvgPool1d(2) | AvgPool2d(2) | AvgPool2d(2, None, 1, True, False, 3) | LPPool2d(2, (2, 2))
LayerNorm((2, 3), bias=False) | RMSNorm(3) | BatchNorm1d(3, affine=False) | GRU(2, 3, 2, dropout=0.1)
LSTM(2, 3, proj_size=1, batch_first=True) | RNNCell(2, 3, False, "relu") | LSTMCell(2, 3) | Bilinear(2, 3, 4)
Linear(2, 3, bias=False) | Softmax(1) | Softmax2d() | Threshold(0.1, 20) | Threshold(1, 2, True)
Hardtanh(-2, 2, True) | Softplus(2, 30) | ELU(2.0, True) | GELU("tanh") | PReLU(3) | GLU(1) | ZeroPad2d(1)
ConstantPad1d(2, 3.5) | Sequential() | Sequential(Linear(1, 1), ReLU(True)) | ModuleList([ReLU(), ReLU(), Tanh()])
ModuleDict({"a": ReLU()}) | utils.parametrizations.weight_norm(Linear(2, 3))
utils.parametrizations.orthogonal(Linear(2, 3)) | Module()
"""


@pytest.mark.parametrize("layer", OTHER_LAYERS.replace(" | ", "\n").split("\n")[1:-1])
def test_further_layers_print_as_in_pytorch(layer):
    ours, theirs = (printed(eval(layer, dict(vars(library.nn)))) for library in (rg, torch))
    assert ours == theirs
