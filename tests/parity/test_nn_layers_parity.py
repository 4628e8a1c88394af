"""All layers compared with PyTorch: equal weights and inputs give equal outputs, gradients, buffers and states."""

import inspect

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd import nn

from .test_nn_parity import close, compare, numbers, ours, theirs

T = torch.nn

# Name of the class, arguments, keywords, shape of the input; "after": what else forward takes.
ELEMENTWISE = [
    *[(name, ()) for name in ("ReLU6", "Hardsigmoid", "Hardswish", "SELU", "Mish", "SiLU", "ReLU")],
    *[(name, ()) for name in ("Softsign", "LogSigmoid", "Tanhshrink", "Hardtanh", "CELU", "ELU", "PReLU")],
    *[(name, (0.7,)) for name in ("ELU", "CELU", "Hardshrink", "Softshrink", "LeakyReLU")],
    ("Hardtanh", (-0.5, 1.5)),
    ("Threshold", (0.3, 20.0)),
    ("Softplus", (2.0, 1.5)),
    ("PReLU", (3, 0.1)),
    ("GLU", ()),
    ("Softmin", (1,)),
    ("Softmax2d", ()),
]
IMAGES = {1: (2, 4, 9), 2: (2, 4, 7, 6), 3: (2, 4, 5, 6, 4)}


def table():
    for d, shape in IMAGES.items():
        one = shape[1:]
        for kind in ("Conv", "ConvTranspose"):
            yield f"{kind}{d}d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, shape
            yield f"{kind}{d}d", (4, 2, 2), {"dilation": 2, "bias": False}, one
        for mode in ("zeros", "reflect", "replicate", "circular"):
            yield f"Conv{d}d", (4, 2, 2), {"padding": "same", "dilation": 3, "padding_mode": mode}, shape
            yield f"Conv{d}d", (4, 2, 3), {"padding": 1, "stride": 2, "padding_mode": mode}, shape
            uneven = {"padding": (2, 0, 1)[:d], "dilation": (1, 2, 1)[:d], "padding_mode": mode}
            yield f"Conv{d}d", (4, 2, (3, 1, 2)[:d], (1, 2, 2)[:d]), uneven, shape
        yield f"ConvTranspose{d}d", (4, 2, 3), {"stride": 2, "output_padding": 1}, shape
        for kind in ("ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"):
            value = (1.5,) if kind == "ConstantPad" else ()
            yield f"{kind}{d}d", (tuple([2, 1] * d), *value), {}, shape
        yield f"ConstantPad{d}d", (-1, 0.5), {}, shape
        yield f"MaxPool{d}d", (3, 2, 1), {"ceil_mode": True}, shape
        yield f"MaxPool{d}d", (2,), {"dilation": 2, "return_indices": True}, one
        yield f"AvgPool{d}d", (3, 2, 1), {"count_include_pad": False, "ceil_mode": True}, shape
        yield f"AvgPool{d}d", (2,), {"divisor_override": 3} if d > 1 else {}, shape
        for kind in ("Max", "Avg"):
            yield f"Adaptive{kind}Pool{d}d", (3,), {}, shape
            yield f"Adaptive{kind}Pool{d}d", ((3, None, 2)[:d] if d > 1 else 2,), {}, shape
        for name in (f"BatchNorm{d}d", f"InstanceNorm{d}d"):
            for settings in ({}, {"affine": False}, {"affine": True, "bias": False}):
                yield name, (4,), settings, shape
            yield name, (4,), {"track_running_stats": True, "eps": 0.1, "momentum": 0.3}, shape
            yield name, (4,), {"track_running_stats": False, "affine": True}, shape
        yield f"BatchNorm{d}d", (4,), {"momentum": None}, shape
        yield f"InstanceNorm{d}d", (4,), {"affine": True}, one
        yield "GroupNorm", (2, 4), {}, shape
        yield "LocalResponseNorm", (3,), {"alpha": 0.5, "k": 0.7}, shape
        yield "ChannelShuffle", (2,), {}, shape
        yield "Upsample", (), {"scale_factor": 2}, shape
        mode = ("linear", "bilinear", "trilinear")[d - 1]
        yield "Upsample", (), {"size": (5, 9, 3)[:d], "mode": mode, "align_corners": True}, shape
        yield "Upsample", (), {"scale_factor": 1.5, "mode": mode, "recompute_scale_factor": True}, shape
    yield "BatchNorm1d", (4,), {}, (5, 4)
    yield "GroupNorm", (2, 4), {"affine": False, "eps": 0.1}, (3, 4)
    yield "GroupNorm", (2, 4), {"bias": False}, (3, 4, 2)
    yield "RMSNorm", (4,), {}, (3, 4)
    yield "RMSNorm", ((3, 4),), {"eps": 0.1, "elementwise_affine": False}, (2, 3, 4)
    yield "Unflatten", (1, (2, -1)), {}, (3, 6)
    yield "Unfold", ((2, 3),), {"dilation": (2, 1), "padding": 1, "stride": 2}, (2, 3, 5, 6)
    yield "Fold", ((4, 5), 2), {"stride": (2, 1), "padding": 1, "dilation": 1}, (2, 12, 18)
    yield "PixelShuffle", (2,), {}, (2, 8, 3, 2)
    yield "PixelUnshuffle", (2,), {}, (2, 2, 6, 4)
    yield "UpsamplingNearest2d", (), {"size": (5, 3)}, (1, 2, 3, 4)
    yield "UpsamplingBilinear2d", (), {"scale_factor": 2}, (1, 2, 3, 4)
    yield "Upsample", (), {"size": (7, 5), "mode": "bicubic"}, (1, 2, 3, 4)
    for name, args in ELEMENTWISE:
        yield name, args, {}, (2, 3, 4, 4)


TABLE = {f"{i} {case[0]}{case[1]}{case[2]}": case for i, case in enumerate(table())}


def agree(name, *inputs, args=(), settings=None, forward=None):
    """Compare one layer with the same random weights: in training, then in evaluation, and its final state."""
    mine, peer = (getattr(m, name)(*args, **(settings or {})) for m in (nn, T))
    for parameter in mine.parameters():
        parameter.detach().copy_(rg.tensor(numbers(*parameter.shape)))
    compare(mine, peer, list(inputs), forward)
    forward = forward or {}
    for mode in (True, False):
        mine.train(mode), peer.train(mode)
        out = mine(*[ours(x, False) for x in inputs], **{k: ours(v, False) for k, v in forward.items()})
        expected = peer(*[theirs(x, False) for x in inputs], **{k: theirs(v, False) for k, v in forward.items()})
        if not isinstance(out, tuple):
            close(out, expected, f"training={mode}")
    for key, value in peer.state_dict().items():
        assert mine.state_dict()[key].shape == tuple(value.shape)
        close(mine.state_dict()[key], value, key)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("case", TABLE)
def test_layer_agrees(case):
    name, args, settings, shape = TABLE[case]
    agree(name, numbers(*shape), args=args, settings=settings)


@pytest.mark.parametrize(
    "name", ["RReLU", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]
)
def test_random_layers_agree_in_evaluation(name):
    shape = (2, 3, 4, 2, 2) if "3d" in name else (2, 3, 4) if "1d" in name else (2, 3, 4, 2)
    compare(getattr(nn, name)(0.2).eval(), getattr(T, name)(0.2).eval(), [numbers(*shape)])


@pytest.mark.parametrize(
    "name", ["RReLU", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]
)
def test_random_layers_have_the_same_moments(name):
    rg.manual_seed(0)
    torch.manual_seed(0)
    shape = (40, 50, 2, 2, 2) if "3d" in name else (60, 50, 2) if "1d" in name else (60, 50, 2, 2)
    x = np.linspace(-1, 1, int(np.prod(shape)), dtype="float32").reshape(shape)
    mine = np.asarray(getattr(nn, name)()(rg.tensor(x)).tolist())
    peer = getattr(T, name)()(torch.tensor(x)).numpy()
    assert abs(mine.mean() - peer.mean()) < 0.1
    assert abs(mine.std() - peer.std()) < 0.1
    assert (np.ptp(mine, axis=tuple(range(2, mine.ndim))) == 0).mean() == pytest.approx(
        (np.ptp(peer, axis=tuple(range(2, mine.ndim))) == 0).mean(), abs=0.1
    )  # whole channels, or none


INPLACE = ["ReLU", "ReLU6", "ELU", "CELU", "SELU", "SiLU", "Mish", "Hardtanh", "Hardswish", "Hardsigmoid", "LeakyReLU"]


@pytest.mark.parametrize("name", INPLACE)
def test_layers_in_place_agree(name):
    compare(*(m.Sequential(m.Linear(4, 3), getattr(m, name)(inplace=True)) for m in (nn, T)), [numbers(2, 4)])


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("larger", [0, 1])
def test_output_size_agrees(d, larger):
    x, size = numbers(2, 3, *(4, 5, 3)[:d]), [2 * n - 1 + larger for n in (4, 5, 3)[:d]]
    agree(f"ConvTranspose{d}d", x, args=(3, 2, 3, 2, 1), forward={"output_size": size})


@pytest.mark.parametrize("d", [1, 2, 3])
def test_unpooling_agrees(d):
    x = numbers(2, 3, *(8, 6, 4)[:d])
    _, indices = getattr(T, f"MaxPool{d}d")(2, return_indices=True)(torch.tensor(x))
    agree(f"MaxUnpool{d}d", numbers(*indices.shape), indices.numpy(), args=(2,))
    agree(f"MaxUnpool{d}d", numbers(*indices.shape), indices.numpy(), args=(2,), forward={"output_size": x.shape})


def test_layers_of_two_inputs_agree():
    agree("Bilinear", numbers(2, 5, 4), numbers(2, 5, 3), args=(4, 3, 2))
    agree("Bilinear", numbers(4), numbers(3), args=(4, 3, 2), settings={"bias": False})
    agree("CosineSimilarity", numbers(2, 5, 4), numbers(2, 5, 4))
    agree("CosineSimilarity", numbers(2, 4), numbers(4), args=(-1, 0.1))
    agree("PairwiseDistance", numbers(2, 4), numbers(2, 4), args=(1.0, 0.1, True))
    agree("PairwiseDistance", numbers(4), numbers(4))


IDS = np.array([[0, 1, 5, 5], [5, 5, 2, 1]])


@pytest.mark.parametrize(
    "settings",
    [{"max_norm": 1.0}, {"max_norm": 0.5, "norm_type": 1.0, "padding_idx": -1}, {"scale_grad_by_freq": True}],
)
def test_embedding_settings_agree(settings):
    agree("Embedding", IDS, args=(6, 3), settings=settings)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("settings", [{}, {"padding_idx": 5}, {"max_norm": 0.7}, {"include_last_offset": True}])
def test_embedding_bag_agrees(mode, settings):
    settings = {"mode": mode, **settings}
    if not settings.get("include_last_offset"):
        agree("EmbeddingBag", IDS, args=(6, 3), settings=settings)
    agree("EmbeddingBag", IDS.ravel(), np.array([0, 3, 3, 8]), args=(6, 3), settings=settings)
    if mode == "sum":
        agree("EmbeddingBag", IDS.ravel(), np.array([0, 3, 8]), numbers(8), args=(6, 3), settings=settings)


@pytest.mark.parametrize("name", ["Embedding", "EmbeddingBag"])
def test_tables_from_pretrained_agree(name):
    table = numbers(6, 3)
    mine = getattr(nn, name).from_pretrained(rg.tensor(table), freeze=False, padding_idx=5)
    peer = getattr(T, name).from_pretrained(torch.tensor(table), freeze=False, padding_idx=5)
    compare(mine, peer, [IDS])
    assert not getattr(nn, name).from_pretrained(rg.tensor(table)).weight.requires_grad


# ------------------------------------------------------------------------------------------------------- losses

SIGNS = np.array([1.0, -1.0, 1.0, -1.0, -1.0], "float32")
LOSSES = {
    "GaussianNLLLoss": ([numbers(5, 3), numbers(5, 3), numbers(5, 3, low=0.1)], [{}, {"full": True, "eps": 1.0}]),
    "PoissonNLLLoss": (
        [numbers(5, 3, low=0.1), numbers(5, 3, low=0, high=9)],
        [{}, {"log_input": False, "full": True}],
    ),
    "MarginRankingLoss": ([numbers(5), numbers(5), SIGNS], [{}, {"margin": 0.5}]),
    "HingeEmbeddingLoss": ([numbers(5), SIGNS], [{}, {"margin": 0.5}]),
    "CosineEmbeddingLoss": ([numbers(5, 3), numbers(5, 3), SIGNS], [{}, {"margin": 0.3}]),
    "SoftMarginLoss": ([numbers(5), SIGNS.astype("int64")], [{}]),
    "MultiMarginLoss": ([numbers(5, 3), np.array([0, 2, 1, 1, 0])], [{}, {"p": 2, "margin": 0.6}]),
    "MultiLabelMarginLoss": ([numbers(2, 4), np.array([[3, 0, -1, 1], [-1, 0, 1, 2]])], [{}]),
    "MultiLabelSoftMarginLoss": ([numbers(5, 3), numbers(5, 3, low=0, high=1)], [{}]),
    "TripletMarginLoss": ([numbers(5, 3) for _ in range(3)], [{}, {"p": 1.0, "swap": True, "margin": 2.0, "eps": 0.1}]),
    "TripletMarginWithDistanceLoss": (
        [numbers(5, 3) for _ in range(3)],
        [{}, {"distance_function": lambda x, y: (x - y).abs().sum(-1), "swap": True}],
    ),
    "NLLLoss2d": ([numbers(2, 3, 4, 5), np.ones((2, 4, 5), "int64")], [{}, {"ignore_index": 1}]),
}


@pytest.mark.filterwarnings("ignore:.NLLLoss2d. has been deprecated")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_loss_agrees(name, reduction):
    inputs, settings = LOSSES[name]
    for setting in settings:
        if not (reduction == "mean" and setting == {"ignore_index": 1}):  # no target is left
            agree(name, *inputs, settings={"reduction": reduction, **setting})


def test_weighed_losses_agree():
    weight = numbers(3, low=0.1)
    for name, target in [
        ("MultiMarginLoss", np.array([0, 2])),
        ("MultiLabelSoftMarginLoss", numbers(2, 3, low=0, high=1)),
    ]:
        mine, peer = getattr(nn, name)(weight=rg.tensor(weight)), getattr(T, name)(weight=torch.tensor(weight))
        compare(mine, peer, [numbers(2, 3), target])


def test_a_variance_may_be_a_number():
    x, y = numbers(3), numbers(3)
    mine = nn.GaussianNLLLoss()(rg.tensor(x), rg.tensor(y), 2.0)
    close(mine, T.GaussianNLLLoss()(torch.tensor(x), torch.tensor(y), 2.0), "loss")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("settings", [{}, {"blank": 3, "zero_infinity": True}])
def test_ctc_agrees(reduction, settings):
    x = numbers(6, 2, 4)
    targets = np.array([[1, 2, 2], [2, 1, 1]])
    if not settings:
        targets += 1

    class Scored:
        def __new__(cls, base):
            class Model(base.Module):
                def __init__(self):
                    super().__init__()
                    self.loss = base.CTCLoss(reduction=reduction, **settings)

                def forward(self, x):
                    both = [(rg if base is nn else torch).tensor(v) for v in (targets, [6, 4], [3, 2])]
                    return self.loss(x.log_softmax(-1), *both)

            return Model()

    compare(Scored(nn), Scored(T), [x])


@pytest.mark.parametrize("settings", [{}, {"div_value": 2.0, "head_bias": True}])
def test_adaptive_softmax_agrees(settings):
    mine, peer = (m.AdaptiveLogSoftmaxWithLoss(64, 20, [5, 9, 13], **settings) for m in (nn, T))
    x, y = numbers(5, 64), np.array([0, 19, 4, 8, 10])
    compare(mine, peer, [x, y])
    close(mine.log_prob(rg.tensor(x)), peer.log_prob(torch.tensor(x)), "log_prob")
    close(mine.predict(rg.tensor(x)), peer.predict(torch.tensor(x)), "predict")
    one = mine(rg.tensor(x[1]), rg.tensor(19)), peer(torch.tensor(x[1]), torch.tensor(19))
    close(one[0].output, one[1].output, "of a single sample")


@pytest.mark.parametrize("given", [{"output_size": 3}, {"output_ratio": 0.6, "return_indices": True}])
@pytest.mark.parametrize("ndim", [2, 3])
def test_fractional_pooling_agrees(ndim, given):
    x, u = numbers(2, 3, 6, 7, 8)[(...,) + (0,) * (3 - ndim)], numbers(2, 3, ndim, low=0, high=1)
    if "output_ratio" in given:
        given = {**given, "output_ratio": (given["output_ratio"],) * ndim}
    found = [
        getattr(m, f"FractionalMaxPool{ndim}d")(2, _random_samples=t.tensor(u), **given)(t.tensor(x))
        for m, t in ((nn, rg), (T, torch))
    ]
    ours, theirs = (out if isinstance(out, tuple) else (out,) for out in found)
    for mine, peer in zip(ours, theirs, strict=True):
        assert mine.tolist() == peer.tolist()


# -------------------------------------------------------------------------------------------------- beginnings

BEGUN = {
    "Conv2d": (20, 30, 3),
    "ConvTranspose2d": (20, 30, 3),
    "Conv1d": (40, 60, 5),
    "Bilinear": (30, 5, 99),
    "EmbeddingBag": (100, 50),
    "BatchNorm2d": (50,),
    "GroupNorm": (5, 50),
    "RMSNorm": (50,),
    "PReLU": (50,),
    "ConvTranspose1d": (40, 60, 5),
}


@pytest.mark.parametrize("name", BEGUN)
def test_layers_start_with_the_same_distribution(name):
    rg.manual_seed(0)
    torch.manual_seed(0)
    mine, peer = (getattr(m, name)(*BEGUN[name]).state_dict() for m in (nn, T))
    assert list(mine) == list(peer)
    for key, value in peer.items():
        a, b = np.asarray(mine[key].tolist()), value.numpy()
        assert np.abs(a).max() == pytest.approx(np.abs(b).max(), rel=0.2), key
        assert a.std() == pytest.approx(b.std(), rel=0.3), key


# Left out on purpose; docs/nn.md says why.
ABSENT = {"Container", "CrossMapLRN2d", "DataParallel", "SyncBatchNorm"}
ABSENT |= {"ParameterDict"}


def layers(module):
    classes = {name: kind for name, kind in vars(module).items() if isinstance(kind, type)}
    return {name for name, kind in classes.items() if issubclass(kind, module.Module) and not name.startswith("Lazy")}


def test_missing_functions_are_listed():
    assert layers(T) - layers(nn) <= ABSENT


def parameters_of(function):
    older = ("self", "size_average", "reduce", "min_value", "max_value", "args", "kwargs", "process_group")
    return [name for name in inspect.signature(function).parameters if name not in older]


@pytest.mark.parametrize(
    "name", sorted({case[0] for case in table()} | {*LOSSES, *BEGUN, "Linear", "LayerNorm", "Embedding", "CTCLoss"})
)
def test_arguments_have_the_same_names_and_order(name):
    mine, peer = getattr(nn, name), getattr(T, name)
    assert parameters_of(mine.__init__) == parameters_of(peer.__init__)
    assert parameters_of(mine.forward) == parameters_of(peer.forward)
