"""Functions that change modules: recomputed weights, fused norms, skipped initialization, older names."""

import copy

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import utils
from retrograd.nn.utils import parametrizations, parametrize

pytestmark = pytest.mark.filterwarnings("ignore:nn.* is deprecated in favor of:FutureWarning")
NORMS = {"weight_norm": utils.remove_weight_norm, "spectral_norm": utils.remove_spectral_norm}


@pytest.mark.parametrize("name", NORMS)
def test_a_weight_is_computed_before_each_call_and_can_be_fixed(name):
    layer = getattr(utils, name)(nn.Linear(3, 2))
    x = rg.randn(4, 3)
    layer(x)
    first = layer.weight.detach().clone()
    parameter = layer.weight_v if name == "weight_norm" else layer.weight_orig
    with rg.no_grad():
        parameter.copy_(rg.randn(2, 3))
    assert layer.weight.tolist() == first.tolist()
    layer.eval()
    out = layer(x)
    assert layer.weight.tolist() != first.tolist()
    assert NORMS[name](layer) is layer
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert isinstance(layer.weight, nn.Parameter)
    assert not layer._call_hooks
    assert rg.allclose(layer(x), out)


def test_a_recomputed_weight_can_be_copied_before_its_first_call():
    layer = utils.spectral_norm(nn.Linear(3, 2))
    other = copy.deepcopy(layer)
    x = rg.randn(4, 3)
    for model in (layer, other):
        model(x).square().sum().backward()
        rg.optim.SGD(model.parameters(), lr=0.1).step()
    layer.eval(), other.eval()
    assert layer(x).tolist() == other(x).tolist()


@pytest.mark.parametrize("name", NORMS)
def test_recomputing_a_weight_twice_or_a_missing_one_is_refused(name):
    layer = getattr(utils, name)(nn.Linear(3, 2))
    with pytest.raises(RuntimeError, match=f"cannot register two {name} hooks on the same parameter weight"):
        getattr(utils, name)(layer)
    with pytest.raises(ValueError, match="Linear has no parameter 'scale'"):
        getattr(utils, name)(nn.Linear(3, 2), "scale")
    with pytest.raises(ValueError, match=f"{name} of 'bias' not found in Linear"):
        NORMS[name](layer, "bias")


def test_the_new_name_is_said_once_by_each_older_one():
    with pytest.warns(FutureWarning, match="in favor of nn.utils.parametrizations.weight_norm"):
        utils.weight_norm(nn.Linear(2, 2))
    with pytest.warns(FutureWarning, match="nn.init.uniform is deprecated in favor of nn.init.uniform_"):
        assert bool((nn.init.uniform(rg.empty(3), 2.0, 3.0) >= 2).all())
    with pytest.warns(FutureWarning, match="nn.utils.clip_grad_norm is deprecated"):
        utils.clip_grad_norm([], 1.0)


@pytest.mark.parametrize("call", [
    lambda: utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1).eval()),
    lambda: utils.fuse_linear_bn_eval(nn.Linear(1, 1).eval(), nn.BatchNorm1d(1)),
])  # fmt: skip
def test_modules_in_training_are_not_fused(call):
    with pytest.raises(ValueError, match="fusion only for eval"):
        call()


def test_norms_that_do_not_fit_are_not_fused():
    with pytest.raises(ValueError, match="out_features=2 and bn num_features=3"):
        utils.fuse_linear_bn_eval(nn.Linear(2, 2).eval(), nn.BatchNorm1d(3).eval())
    with pytest.raises(ValueError, match="no running statistics"):
        utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1).eval(), nn.BatchNorm1d(1, track_running_stats=False).eval())


def test_fusing_leaves_the_modules_unchanged():
    conv, norm = nn.Conv2d(3, 4, 3, bias=False).eval(), nn.BatchNorm2d(4).eval()
    fused = utils.fuse_conv_bn_eval(conv, norm)
    assert conv.bias is None
    assert fused.bias.shape == (4,)
    assert fused.weight.requires_grad


def test_a_module_without_initial_values_draws_no_random_numbers():
    rg.manual_seed(0)
    layer = utils.skip_init(nn.Conv2d, 3, 4, kernel_size=2)
    after = rg.rand(1)
    rg.manual_seed(0)
    assert after.tolist() == rg.rand(1).tolist()
    assert type(layer) is nn.Conv2d
    assert layer.weight.shape == (4, 3, 2, 2)
    layer.reset_parameters()
    assert bool((layer.weight.abs() <= 1 / 12**0.5).all())


def test_only_classes_of_modules_with_a_device_can_skip_initialization():
    with pytest.raises(TypeError, match="expected a class of modules, got 3"):
        utils.skip_init(3)
    with pytest.raises(RuntimeError, match="ReLU has none"):
        utils.skip_init(nn.ReLU)


def test_weights_of_convolutions_are_laid_out_in_a_format():
    model = nn.Sequential(nn.Conv2d(3, 4, 2), nn.ConvTranspose2d(4, 3, 2), nn.Conv3d(3, 4, 2))
    weight = model[0].weight
    utils.convert_conv2d_weight_memory_format(model, rg.channels_last)
    utils.convert_conv3d_weight_memory_format(model, rg.channels_last_3d)
    assert model[0].weight is weight
    formats = [rg.channels_last, rg.channels_last, rg.channels_last_3d]
    assert all(m.weight.is_contiguous(memory_format=f) for m, f in zip(model, formats, strict=True))


def test_parametrizations_are_transferred_with_their_originals():
    first = parametrizations.spectral_norm(parametrizations.weight_norm(nn.Linear(3, 2)), "bias")
    other = parametrize.transfer_parametrizations_and_params(first, nn.Linear(3, 2))
    first.eval(), other.eval()
    x = rg.randn(4, 3)
    assert other(x).tolist() == first(x).tolist()
    assert list(other.state_dict()) == list(first.state_dict())
    assert other.parametrizations.weight.original0 is first.parametrizations.weight.original0
    with pytest.raises(ValueError, match="Linear has no parametrized 'weight'"):
        parametrize.transfer_parametrizations_and_params(nn.Linear(1, 1), other, "weight")


def test_functional_call_has_its_older_name():
    assert utils.stateless.functional_call is rg.func.functional_call


def test_synchronised_norms_replace_others_and_keep_their_tensors():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm2d(3, momentum=None), nn.LayerNorm(2))).eval()
    parameters, x = list(model.parameters()), rg.randn(5, 3, 2, 2)
    changed = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert [type(m) for m in changed.modules()].count(nn.SyncBatchNorm) == 2
    assert [id(p) for p in changed.parameters()] == [id(p) for p in parameters]
    norm = changed[1][0]
    assert not norm.training
    assert norm.momentum is None
    changed.train()
    expected = nn.BatchNorm2d(3, momentum=None)
    assert norm(x).tolist() == expected(x).tolist()
    assert norm.running_var.tolist() == expected.running_var.tolist()
    with pytest.raises(ValueError, match=r"at least 2 dimensions, got shape \(3,\)"):
        norm(x[0, :, 0, 0])


def test_a_parameter_that_a_property_hides_is_registered():
    class Curved(nn.Module):
        @property
        def k(self):
            return self.scale.exp()

        def __init__(self):
            super().__init__()
            self.k = nn.Parameter(rg.zeros(1))
            self.scale = self._parameters.pop("k")

    module = Curved()
    assert [name for name, _ in module.named_parameters()] == ["scale"]
    assert module.k.item() == 1.0
    with pytest.raises(AttributeError):
        module.k = 1.0


def test_members_are_copied_by_their_class_to_a_dict():
    layer = nn.Linear(2, 1)
    copied = type(layer._parameters)((name, p) for name, p in layer._parameters.items())
    assert type(copied) is dict
    assert copied["weight"] is layer.weight
    deep = copy.deepcopy(layer._parameters)
    assert type(deep) is dict
    assert deep["weight"].tolist() == layer.weight.tolist()


def test_a_parameter_made_of_an_outer_tensor_inside_a_transform_requires_grad_outside():
    made = []

    def product(x):
        made.append(nn.Parameter(outer))
        return (made[0] * x).sum()

    outer = rg.ones(3)
    rg.vmap(product)(rg.ones(2, 3)).sum().backward()
    assert made[0].grad.tolist() == [2.0, 2.0, 2.0]
