"""Every layer has the results and gradients of host memory on the strict device, where it reads nothing."""

import numpy as np
import pytest
from tests.case_groups import group_cases
from tests.devices import strict
from tests.devices.devices import is_on_strict

import retrograd as rg
from retrograd import nn

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(3)


def floats(*shape):
    return rg.from_numpy(RNG.normal(size=shape))


def shares(*shape):
    return floats(*shape).sigmoid()


def signs(*shape):
    return rg.from_numpy(RNG.choice([-1.0, 1.0], shape))


def classes(count, *shape):
    return rg.from_numpy(RNG.integers(0, count, shape))


ROWS, SEQUENCES, IMAGES, VOLUMES = (3, 4), (2, 4, 8), (2, 4, 6, 6), (2, 4, 4, 4, 4)
SPATIAL = {1: SEQUENCES, 2: IMAGES, 3: VOLUMES}
ELEMENTWISE = strict.words("""
    CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid Mish PReLU ReLU ReLU6 RReLU
    SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink Dropout AlphaDropout FeatureAlphaDropout Flatten GLU
""")

# Builders of layers, and of what they are called with.
CASES = {
    **{name: (getattr(nn, name), lambda: [floats(*ROWS)]) for name in ELEMENTWISE},
    **{name: (lambda name=name: getattr(nn, name)(-1), lambda: [floats(*ROWS)])
       for name in ("Softmax", "LogSoftmax", "Softmin")},
    "Threshold": (lambda: nn.Threshold(0.1, 2.0), lambda: [floats(*ROWS)]),
    "Softmax2d": (nn.Softmax2d, lambda: [floats(*IMAGES)]),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), lambda: [floats(*ROWS)]),
    "Linear": (lambda: nn.Linear(4, 5), lambda: [floats(*ROWS)]),
    "LazyLinear": (lambda: nn.LazyLinear(5), lambda: [floats(*ROWS)]),
    "Bilinear": (lambda: nn.Bilinear(4, 3, 2), lambda: [floats(3, 4), floats(3, 3)]),
    "Embedding": (lambda: nn.Embedding(7, 3), lambda: [classes(7, 2, 4)]),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(7, 3, mode="sum"), lambda: [classes(7, 2, 4)]),
    "LayerNorm": (lambda: nn.LayerNorm(4), lambda: [floats(*ROWS)]),
    "RMSNorm": (lambda: nn.RMSNorm(4), lambda: [floats(*ROWS)]),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda: [floats(*IMAGES)]),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), lambda: [floats(*IMAGES)]),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(4), lambda: [floats(*IMAGES)]),
    "CosineSimilarity": (nn.CosineSimilarity, lambda: [floats(*ROWS), floats(*ROWS)]),
    "PairwiseDistance": (nn.PairwiseDistance, lambda: [floats(*ROWS), floats(*ROWS)]),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), lambda: [floats(*IMAGES)]),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), lambda: [floats(*IMAGES)]),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), lambda: [floats(*IMAGES)]),
    "Fold": (lambda: nn.Fold((4, 5), (2, 2)), lambda: [floats(2, 8, 12)]),
    "Unfold": (lambda: nn.Unfold((2, 2)), lambda: [floats(*IMAGES)]),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), lambda: [floats(*IMAGES)]),
    "UpsamplingBilinear2d": (lambda: nn.UpsamplingBilinear2d(scale_factor=2), lambda: [floats(*IMAGES)]),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d(scale_factor=2), lambda: [floats(*IMAGES)]),
    "FractionalMaxPool2d": (lambda: nn.FractionalMaxPool2d(2, output_size=3), lambda: [floats(*IMAGES)]),
    "FractionalMaxPool3d": (lambda: nn.FractionalMaxPool3d(2, output_size=2), lambda: [floats(*VOLUMES)]),
    "LSTM": (lambda: nn.LSTM(8, 5, bidirectional=True), lambda: [floats(*SEQUENCES)]),
    "GRU": (lambda: nn.GRU(8, 5, num_layers=2), lambda: [floats(*SEQUENCES)]),
    "RNN": (lambda: nn.RNN(8, 5), lambda: [floats(*SEQUENCES)]),
    "LSTMCell": (lambda: nn.LSTMCell(4, 5), lambda: [floats(*ROWS)]),
    "GRUCell": (lambda: nn.GRUCell(4, 5), lambda: [floats(*ROWS)]),
    "RNNCell": (lambda: nn.RNNCell(4, 5), lambda: [floats(*ROWS)]),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(8, 2), lambda: [floats(*SEQUENCES) for _ in range(3)]),
    "Transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, 0.0), lambda: [floats(*SEQUENCES), floats(*SEQUENCES)]),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0), lambda: [floats(*SEQUENCES)]),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0), 2), lambda: [floats(*SEQUENCES)]
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(8, 2, 16, 0.0), lambda: [floats(*SEQUENCES), floats(*SEQUENCES)]
    ),
    "TransformerDecoder": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2),
        lambda: [floats(*SEQUENCES), floats(*SEQUENCES)],
    ),
    "RotaryEmbedding": (lambda: nn.RotaryEmbedding(8), lambda: [floats(*SEQUENCES)]),
    "SinusoidalPositions": (lambda: nn.SinusoidalPositions(8), lambda: [floats(*SEQUENCES)]),
    "LearnedPositions": (lambda: nn.LearnedPositions(9, 8), lambda: [floats(*SEQUENCES)]),
    "MSELoss": (nn.MSELoss, lambda: [floats(*ROWS), floats(*ROWS)]),
    "L1Loss": (nn.L1Loss, lambda: [floats(*ROWS), floats(*ROWS)]),
    "SmoothL1Loss": (nn.SmoothL1Loss, lambda: [floats(*ROWS), floats(*ROWS)]),
    "HuberLoss": (nn.HuberLoss, lambda: [floats(*ROWS), floats(*ROWS)]),
    "BCELoss": (nn.BCELoss, lambda: [shares(*ROWS), shares(*ROWS)]),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, lambda: [floats(*ROWS), shares(*ROWS)]),
    "KLDivLoss": (nn.KLDivLoss, lambda: [floats(*ROWS), shares(*ROWS)]),
    "PoissonNLLLoss": (nn.PoissonNLLLoss, lambda: [floats(*ROWS), shares(*ROWS)]),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, lambda: [floats(*ROWS), floats(*ROWS), shares(*ROWS)]),
    "SoftMarginLoss": (nn.SoftMarginLoss, lambda: [floats(*ROWS), signs(*ROWS)]),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, lambda: [floats(*ROWS), signs(*ROWS)]),
    "CrossEntropyLoss": (nn.CrossEntropyLoss, lambda: [floats(*ROWS), classes(4, 3)]),
    "NLLLoss": (nn.NLLLoss, lambda: [floats(*ROWS), classes(4, 3)]),
    "NLLLoss2d": (nn.NLLLoss2d, lambda: [floats(*IMAGES), classes(4, 2, 6, 6)]),
    "MultiMarginLoss": (nn.MultiMarginLoss, lambda: [floats(*ROWS), classes(4, 3)]),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, lambda: [floats(*ROWS), rg.tensor([[1, 0, -1, 2]] * 3)]),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, lambda: [floats(*ROWS), shares(*ROWS).round()]),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, lambda: [floats(*ROWS), floats(*ROWS), signs(3)]),
    "MarginRankingLoss": (nn.MarginRankingLoss, lambda: [floats(3), floats(3), signs(3)]),
    "TripletMarginLoss": (nn.TripletMarginLoss, lambda: [floats(*ROWS) for _ in range(3)]),
    "TripletMarginWithDistanceLoss": (nn.TripletMarginWithDistanceLoss, lambda: [floats(*ROWS) for _ in range(3)]),
    "LinearCrossEntropyLoss": (lambda: nn.LinearCrossEntropyLoss(4, 7), lambda: [floats(*ROWS), classes(7, 3)]),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 6]), lambda: [floats(8, 4), classes(9, 8)]
    ),
    "CTCLoss": (
        nn.CTCLoss,
        lambda: [floats(6, 2, 5).log_softmax(-1), classes(4, 2, 3) + 1, rg.tensor([6, 5]), rg.tensor([3, 2])],
    ),
}  # fmt: skip
for n, shape in SPATIAL.items():
    for name, arguments in {
        "Conv": (4, 3, 2), "ConvTranspose": (4, 3, 2), "LazyConv": (3, 2), "LazyConvTranspose": (3, 2),
        "BatchNorm": (4,), "InstanceNorm": (4, 1e-5, 0.1, True), "LazyBatchNorm": (), "LazyInstanceNorm": (),
        "AvgPool": (2,), "MaxPool": (2,), "LPPool": (2, 2), "AdaptiveAvgPool": (3,), "AdaptiveMaxPool": (3,),
        "Dropout": (), "CircularPad": (1,), "ConstantPad": (1, 2.0), "ReflectionPad": (1,), "ReplicationPad": (1,),
        "ZeroPad": (1,),
    }.items():  # fmt: skip
        CASES[f"{name}{n}d"] = (
            lambda kind=f"{name}{n}d", arguments=arguments: getattr(nn, kind)(*arguments),
            lambda shape=shape: [floats(*shape)],
        )
    pooled = (*shape[:2], *(size // 2 for size in shape[2:]))
    corners = (rg.arange(pooled[-1]) * 2).expand(pooled)
    CASES[f"MaxUnpool{n}d"] = (
        lambda kind=f"MaxUnpool{n}d": getattr(nn, kind)(2),
        lambda pooled=pooled, corners=corners: [floats(*pooled), corners],
    )

OTHERS = {
    "DataParallel": "a wrapper around a module, for several GPUs",
    "Module ModuleDict ModuleList ParameterDict ParameterList RNNBase RNNCellBase Sequential": "containers and bases",
}
# Layers that read values, and why.
READING = {"AdaptiveLogSoftmaxWithLoss": "selects the rows of each group of classes"}


def test_every_layer_has_a_case():
    names = [n for n in dir(nn) if isinstance(kind := getattr(nn, n), type) and issubclass(kind, nn.Module)]
    assert set(names) == set(CASES) | {name for group in OTHERS for name in group.split()}


def outputs(result):
    """Return the floating tensors of a result, which may be nested tuples."""
    if isinstance(result, tuple):
        return [x for member in result for x in outputs(member)]
    return [result] if isinstance(result, rg.Tensor) and result.is_floating_point() else []


def run(make, inputs, where):
    """Return results and gradients of a layer, and how many times it reads from the device."""
    rg.manual_seed(0)
    layer = make()
    if type(layer).__name__.startswith("Lazy"):
        layer(*[x.float() for x in inputs])
    layer = layer.double().to(where)
    rg.manual_seed(1)
    given = [x.detach().to(where).requires_grad_(x.is_floating_point()) for x in inputs]
    with strict.counting() as moved:
        results = outputs(layer(*given))
        sum(x.square().sum() for x in results).backward()
    found = [*results, *(x.grad for x in given), *(p.grad for p in layer.parameters()), *layer.buffers()]
    assert all(is_on_strict(x) == (where == "strict") for x in found if x is not None)
    return [x.detach().cpu().numpy() for x in found if x is not None], moved["to host"]


@group_cases
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_layer_has_the_results_and_gradients_of_host_memory(name):
    make, values = CASES[name]
    inputs = values()
    expected, _ = run(make, inputs, "cpu")
    found, reads = run(make, inputs, "strict")
    assert (reads > 0) == (name in READING), reads
    for on_device, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(on_device, e, rtol=1e-7, atol=1e-10)
