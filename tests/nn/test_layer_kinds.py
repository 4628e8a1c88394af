"""Layers of all kinds: formulas, settings, ragged input, and refused arguments."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import func, fx, nn
from retrograd.nested import nested_tensor

from ..case_groups import group_cases

RANDOM = np.random.default_rng(0)


def numbers(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def same(actual, expected):
    expected = expected if isinstance(expected, list) else expected.tolist()
    np.testing.assert_allclose(actual.tolist(), expected, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------------------------------ formulas


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_a_convolution_is_the_sum_over_its_windows(mode):
    layer = nn.Conv2d(2, 3, (2, 3), padding="same", padding_mode=mode)
    x, w, b = numbers(1, 2, 4, 5), *(np.asarray(p.tolist()) for p in layer.parameters())
    how = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    wide = np.pad(x, [(0, 0), (0, 0), (0, 1), (1, 1)], how)  # an even kernel: one place more behind
    windows = np.lib.stride_tricks.sliding_window_view(wide, (2, 3), (2, 3))
    same(layer(rg.tensor(x)), np.einsum("nchwij,ocij->nohw", windows, w) + b[:, None, None])


def test_a_transposed_convolution_is_the_gradient_of_the_convolution():
    there = nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2, bias=False)
    back = nn.ConvTranspose1d(6, 4, 3, stride=2, padding=1, dilation=2, groups=2, bias=False)
    back.load_state_dict(there.state_dict())
    x = rg.randn(2, 4, 10, requires_grad=True)
    g = rg.randn(2, 6, 4)
    there(x).backward(g)
    same(back(g, output_size=[10]), x.grad)


def test_batch_norm_keeps_the_statistics_of_its_batches():
    moving, mean_of_all = nn.BatchNorm1d(2, momentum=0.25), nn.BatchNorm1d(2, momentum=None)
    mean, var, batches = np.zeros(2), np.ones(2), [numbers(5, 2, 3) for _ in range(3)]
    for batch in batches:
        same(moving(rg.tensor(batch)).mean((0, 2)), [0, 0])
        mean_of_all(rg.tensor(batch))
        mean = 0.75 * mean + 0.25 * batch.mean((0, 2))
        var = 0.75 * var + 0.25 * batch.var((0, 2), ddof=1)
    same(moving.running_mean, mean)
    same(moving.running_var, var)
    same(mean_of_all.running_mean, np.mean([b.mean((0, 2)) for b in batches], 0))
    assert int(moving.num_batches_tracked) == int(mean_of_all.num_batches_tracked) == 3
    out = moving.eval()(rg.tensor(batches[0]))
    same(out, (batches[0] - mean[:, None]) / np.sqrt(var[:, None] + 1e-5))
    same(moving.running_mean, mean)
    moving.reset_running_stats()
    assert moving.running_var.tolist() == [1, 1]
    assert int(moving.num_batches_tracked) == 0


def test_batch_norm_without_running_statistics_always_uses_those_of_the_batch():
    norm, x = nn.BatchNorm1d(2, track_running_stats=False), rg.randn(5, 2)
    assert list(norm.state_dict()) == ["weight", "bias"]
    same(norm.eval()(x), norm.train()(x).detach())


@pytest.mark.parametrize("name", ["ReLU", "Mish", "Hardswish", "Dropout", "AlphaDropout"])
def test_in_place_layers_write_into_their_input_and_keep_its_gradient(name):
    layer, x = getattr(nn, name)(inplace=True), rg.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    y = x * 2
    rg.manual_seed(0)
    out = layer(y)
    assert out is y
    out.sum().backward()
    other = x.detach().requires_grad_()
    rg.manual_seed(0)
    plain = getattr(nn, name)()(other * 2)
    plain.sum().backward()
    same(out, plain)
    same(x.grad, other.grad)


def test_dropout_in_place_leaves_its_input_in_evaluation():
    x = rg.ones(3, requires_grad=True)
    assert nn.Dropout(inplace=True).eval()(x) is x


def test_channels_drop_out_as_wholes():
    rg.manual_seed(0)
    kept = nn.Dropout2d(0.5)(rg.ones(20, 20, 3, 3)).flatten(2)
    assert set(np.unique(kept.tolist())) == {0.0, 2.0}
    assert bool((kept.amax(2) == kept.amin(2)).all())


def test_large_rows_of_a_table_shrink_when_they_are_looked_up():
    table = nn.Embedding.from_pretrained(rg.tensor([[3.0, 4.0], [30.0, 40.0], [0.3, 0.4]]), max_norm=1.0)
    same(table(rg.tensor([0, 2])), [[0.6, 0.8], [0.3, 0.4]])
    same(table.weight, [[0.6, 0.8], [30, 40], [0.3, 0.4]])


def test_a_table_from_pretrained_shares_its_memory_and_is_frozen_unless_requested():
    rows = rg.ones(3, 2)
    table = nn.EmbeddingBag.from_pretrained(rows, mode="sum")
    rows[0] = 5.0
    assert table.weight[0].tolist() == [5.0, 5.0]
    assert not table.weight.requires_grad
    assert nn.Embedding.from_pretrained(rows, freeze=False).weight.requires_grad


def test_a_frozen_table_holds_integers():
    codes = rg.tensor([[1, 2], [3, 4]])
    assert nn.Embedding.from_pretrained(codes)(rg.tensor([1])).tolist() == [[3, 4]]
    with pytest.raises(RuntimeError, match="floating point and complex"):
        nn.Embedding.from_pretrained(codes, freeze=False)


@pytest.mark.parametrize("dtype", [rg.int16, rg.uint8, rg.bool, rg.float32])
def test_ids_of_rows_are_integers_of_64_or_32_bits(dtype):
    ids, starts = rg.ones(2, dtype=dtype), rg.tensor([0, 1])
    with pytest.raises(TypeError, match=f"embedding: ids must be integers of 64 or 32 bits, got {dtype}"):
        nn.Embedding(3, 2)(ids)
    with pytest.raises(TypeError, match=f"embedding_bag: ids must be integers of 64 or 32 bits, got {dtype}"):
        nn.EmbeddingBag(3, 2)(ids, starts.to(dtype))
    nn.EmbeddingBag(3, 2)(rg.ones(2, dtype=rg.int16), starts)  # promoted to the dtype of the offsets


def test_weights_of_a_bag_have_the_dtype_of_the_table():
    with pytest.raises(TypeError, match="weight to have the same type as per_sample_weights, got float32 and float64"):
        nn.EmbeddingBag(3, 2, mode="sum")(rg.tensor([[0, 1]]), per_sample_weights=rg.ones(1, 2, dtype=rg.float64))


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_bad_tables_are_assertion_errors_as_in_pytorch(kind):
    for make in (lambda: kind(3, 2, padding_idx=3), lambda: kind(3, 2, _weight=rg.ones(2, 2))):
        with pytest.raises(AssertionError) as caught:
            make()
        assert isinstance(caught.value, ValueError)
    with pytest.raises(AssertionError, match="2-dimensional"):
        kind.from_pretrained(rg.ones(3))


def test_adaptive_log_probabilities_are_those_of_all_classes():
    layer, x, y = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0), rg.randn(12, 8), rg.arange(12)
    everything = layer.log_prob(x)
    same(everything.exp().sum(1), np.ones(12))
    output, loss = layer(x, y)
    same(output, everything.gather(1, y.unsqueeze(1)).squeeze(1))
    same(loss, -output.mean())


# --------------------------------------------------------------------------------------------------- ragged input

RAGGED = {
    "BatchNorm1d": ((4,), {}),
    "InstanceNorm1d": ((4,), {"affine": True}),
    "GroupNorm": ((2, 4), {}),
    "RMSNorm": ((4,), {}),
    "Mish": ((), {}),
    "PReLU": ((4,), {}),
    "GLU": ((-2,), {}),
    "Conv1d": ((4, 3, 3), {"padding": 1, "padding_mode": "replicate"}),
    "MaxPool1d": ((2,), {}),
    "ReflectionPad1d": ((1,), {}),
    "Upsample": ((), {"scale_factor": 2}),
    "LocalResponseNorm": ((2,), {}),
}


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_batches_are_as_their_components(name):
    args, settings = RAGGED[name]
    layer = getattr(nn, name)(*args, **settings)
    parts = [rg.randn(4, 3), rg.randn(4, 6)]
    if name == "RMSNorm":
        parts = [p.T for p in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some run on the components one by one
        out = layer(nested_tensor(parts)).unbind()
    if name == "BatchNorm1d":
        whole = layer(rg.cat(parts, 1).unsqueeze(0))[0]
        expected = [whole[:, :3], whole[:, 3:]]
    else:
        expected = [layer(p.unsqueeze(0))[0] for p in parts]
    for o, e in zip(out, expected, strict=True):
        same(o, e)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_ragged_bags_are_as_their_offsets(mode):
    layer = nn.EmbeddingBag(6, 3, mode=mode, padding_idx=1)
    ragged = layer(nested_tensor([[0, 1, 5], [], [2, 2]], dtype=rg.int64))
    same(ragged, layer(rg.tensor([0, 1, 5, 2, 2]), rg.tensor([0, 3, 3])))
    assert ragged[1].tolist() == [0, 0, 0]


# ---------------------------------------------------------------------------------------- layers among the others


def network():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, padding_mode="reflect"),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 3),
    )


def test_networks_can_be_copied_pickled_converted_and_traced():
    net, x = network().eval(), rg.randn(2, 1, 4, 4)
    expected = net(x)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)), fx.trace(net, x)):
        same(other(x), expected)
    assert copy.deepcopy(net).double()(x.double()).dtype == rg.float64


def test_gradients_of_single_samples_come_from_vmap():
    net, x = network().eval(), rg.randn(3, 1, 4, 4)

    def loss(parameters, sample):
        return func.functional_call(net, parameters, (sample[None],)).square().sum()

    parameters = dict(net.named_parameters())
    each = func.vmap(func.grad(loss), in_dims=(None, 0))(parameters, x)["0.weight"]
    for i in range(3):
        net.zero_grad()
        loss(parameters, x[i]).backward()
        same(each[i], net[0].weight.grad)


# --------------------------------------------------------------------------------------------------- refused calls

SETTINGS = {
    "Conv2d: in_channels=3 does not divide into groups=2": lambda: nn.Conv2d(3, 4, 3, groups=2),
    "Conv2d: out_channels=3 does not divide": lambda: nn.Conv2d(4, 3, 3, groups=2),
    "groups must be at least 1, got 0": lambda: nn.Conv1d(4, 4, 3, groups=0),
    "Conv3d: .*kernel_size must be .* got 0": lambda: nn.Conv3d(1, 1, 0),
    r"stride must be .* got \(1, 2, 3\)": lambda: nn.Conv2d(1, 1, 3, stride=(1, 2, 3)),
    "padding must be 'same', 'valid' or integers, got 'full'": lambda: nn.Conv1d(1, 1, 3, padding="full"),
    "padding='same' needs stride 1": lambda: nn.Conv1d(1, 1, 3, padding="same", stride=2),
    "padding_mode must be zeros, .* got 'mirror'": lambda: nn.Conv1d(1, 1, 3, padding_mode="mirror"),
    "ConvTranspose1d: padding_mode must be 'zeros'": lambda: nn.ConvTranspose1d(1, 1, 3, padding_mode="reflect"),
    "ZeroPad2d: padding must be one or 4 integers": lambda: nn.ZeroPad2d((1, 2)),
    "LPPool1d: norm_type must not be 0": lambda: nn.LPPool1d(0, 2),
    "num_channels=4 does not divide into num_groups=3": lambda: nn.GroupNorm(3, 4),
    "RMSNorm: normalized_shape must be": lambda: nn.RMSNorm(()),
    "Dropout1d: dropout probability has to be between 0 and 1, but got -1": lambda: nn.Dropout1d(-1),
    "ReLU6|Hardtanh: min_val must be less": lambda: nn.Hardtanh(1.0, 1.0),
    "Bilinear: in1_features must be at least 1": lambda: nn.Bilinear(0, 1, 1),
    "EmbeddingBag: mode must be 'sum', 'mean' or 'max', got 'min'": lambda: nn.EmbeddingBag(3, 2, mode="min"),
    "EmbeddingBag: padding_idx must be within num_embeddings": lambda: nn.EmbeddingBag(3, 2, padding_idx=3),
    r"from_pretrained: expected shape \(rows, size\)": lambda: nn.Embedding.from_pretrained(rg.ones(3)),
    "GaussianNLLLoss: eps must be greater than 0": lambda: nn.GaussianNLLLoss(eps=0),
    "MultiMarginLoss: p must be 1 or 2, got 3": lambda: nn.MultiMarginLoss(p=3),
    "MultiMarginLoss: expected a weight for each class": lambda: nn.MultiMarginLoss(weight=rg.ones(2, 2)),
    "TripletMarginLoss: margin must be greater than 0": lambda: nn.TripletMarginLoss(margin=0),
    "CTCLoss: reduction must be one of mean, sum, none": lambda: nn.CTCLoss(reduction="batchmean"),
    "cutoffs must be increasing numbers from 1 to 9": lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [4, 2]),
}
INPUTS = {
    r"BatchNorm2d: expected 4D input \(got 2D input\), of shape \(3, 4\)": lambda: nn.BatchNorm2d(4)(rg.ones(3, 4)),
    r"InstanceNorm1d: expected 2D or 3D input": lambda: nn.InstanceNorm1d(4)(rg.ones(4)),
    "Softmax2d: expected images": lambda: nn.Softmax2d()(rg.ones(3, 4)),
    "Conv1d: .*expected images": lambda: nn.Conv1d(2, 2, 1, padding_mode="circular")(rg.ones(2, 2, 2, 2)),
    r"output_size must have 1 sizes from \(7,\) to \(8,\), got \(9,\)": lambda: nn.ConvTranspose1d(1, 1, 3, 2, 1)(
        rg.ones(1, 1, 4), output_size=[9]
    ),
    r"from \(7,\) to \(8,\), got \(6,\)": lambda: nn.ConvTranspose1d(1, 1, 3, 2, 1)(rg.ones(1, 1, 4), output_size=[6]),
    "output_size must have 1 sizes": lambda: nn.ConvTranspose1d(1, 1, 3, 2)(rg.ones(1, 1, 4), output_size=[9, 9]),
    r"expected input \(n, 4\) and target \(n,\)": lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [4])(
        rg.ones(2, 4), rg.tensor([1])
    ),
}


@group_cases
@pytest.mark.parametrize("message", [*SETTINGS, *INPUTS])
def test_bad_settings_and_inputs_are_refused(message):
    with pytest.raises(ValueError, match=message):
        {**SETTINGS, **INPUTS}[message]()


def test_missing_names_are_refused_by_name():
    with pytest.raises(RuntimeError, match="live on the CPU, got 'cuda'"):
        nn.Conv1d(1, 1, 1, device="cuda")
    with pytest.raises(TypeError, match="inplace"):
        nn.Sigmoid(inplace=True)
    with pytest.raises(TypeError, match="Unflatten: unflattened_size must be integers"):
        nn.Unflatten(1, (("a", 2),))
    with pytest.raises(IndexError, match="no class from 0 to 9"):
        nn.AdaptiveLogSoftmaxWithLoss(4, 10, [4])(rg.ones(1, 4), rg.tensor([10]))


@pytest.mark.parametrize("shape", [(1, 3), (2, 4), (2, 3, 4, 5)])
def test_a_batch_that_is_refused_leaves_the_statistics_alone(shape):
    norm = nn.BatchNorm1d(3)
    with pytest.raises(ValueError, match=r"of shape|expected one number per channel|got input size"):
        norm(rg.randn(*shape))
    assert norm.running_mean.tolist() == [0, 0, 0]
    assert norm.running_var.tolist() == [1, 1, 1]
    assert int(norm.num_batches_tracked) == 0


def test_numbers_that_name_no_row_leave_the_table_alone():
    table = nn.Embedding.from_pretrained(rg.full((3, 2), 9.0), max_norm=1.0)
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        table(rg.tensor([1, 3]))
    assert table.weight.tolist() == [[9.0, 9.0]] * 3


def test_lines_of_layers_show_their_settings():
    shown = [
        nn.Conv2d(3, 8, 3, bias=False),
        nn.MaxPool1d(2),
        nn.ReLU(inplace=True),
        nn.ReLU(),
        nn.ConstantPad1d(1, 0.5),
    ]
    assert [repr(layer) for layer in shown] == [
        "Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), bias=False)",
        "MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        "ReLU(inplace=True)",
        "ReLU()",
        "ConstantPad1d(padding=(1, 1), value=0.5)",
    ]
