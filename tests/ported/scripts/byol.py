"""Train without negatives by BYOL: an online network predicts the projections of a slowly moving target network."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def loss_fn(x, y):
    x = F.normalize(x, dim=-1, p=2)
    y = F.normalize(y, dim=-1, p=2)
    return 2 - 2 * (x * y).sum(dim=-1)


def singleton(cache_key):
    def inner_fn(fn):
        def wrapper(self, *args, **kwargs):
            instance = getattr(self, cache_key)
            if instance is not None:
                return instance
            instance = fn(self, *args, **kwargs)
            setattr(self, cache_key, instance)
            return instance

        return wrapper

    return inner_fn


def set_requires_grad(model, val):
    for p in model.parameters():
        p.requires_grad = val


class EMA:
    def __init__(self, beta):
        super().__init__()
        self.beta = beta

    def update_average(self, old, new):
        if old is None:
            return new
        return old * self.beta + (1 - self.beta) * new


def update_moving_average(ema_updater, ma_model, current_model):
    for current_params, ma_params in zip(current_model.parameters(), ma_model.parameters()):
        old_weight, up_weight = ma_params.data, current_params.data
        ma_params.data = ema_updater.update_average(old_weight, up_weight)


def MLP(dim, projection_size, hidden_size=16):
    return nn.Sequential(
        nn.Linear(dim, hidden_size), nn.BatchNorm1d(hidden_size), nn.ReLU(inplace=True),
        nn.Linear(hidden_size, projection_size),
    )  # fmt: skip


class NetWrapper(nn.Module):
    """Catch the output of a hidden layer of any network by a forward hook, and make the projector on first use."""

    def __init__(self, net, projection_size, layer=-2):
        super().__init__()
        self.net = net
        self.layer = layer
        self.projector = None
        self.projection_size = projection_size
        self.hidden = {}
        self.hook_registered = False

    def _find_layer(self):
        if isinstance(self.layer, str):
            return dict([*self.net.named_modules()]).get(self.layer, None)
        elif isinstance(self.layer, int):
            return [*self.net.children()][self.layer]
        return None

    def _hook(self, _, input, output):
        self.hidden[input[0].device] = output.reshape(output.shape[0], -1)

    def _register_hook(self):
        layer = self._find_layer()
        assert layer is not None, f"hidden layer ({self.layer}) not found"
        layer.register_forward_hook(self._hook)
        self.hook_registered = True

    @singleton("projector")
    def _get_projector(self, hidden):
        _, dim = hidden.shape
        return MLP(dim, self.projection_size).to(hidden)

    def get_representation(self, x):
        if not self.hook_registered:
            self._register_hook()
        self.hidden.clear()
        _ = self.net(x)
        hidden = self.hidden[x.device]
        self.hidden.clear()
        assert hidden is not None
        return hidden

    def forward(self, x):
        representation = self.get_representation(x)
        return self._get_projector(representation)(representation)


class BYOL(nn.Module):
    def __init__(self, net, augment, projection_size=8, moving_average_decay=0.9):
        super().__init__()
        self.net = net
        self.augment = augment
        self.online_encoder = NetWrapper(net, projection_size)
        self.target_encoder = None
        self.target_ema_updater = EMA(moving_average_decay)
        self.online_predictor = MLP(projection_size, projection_size)
        self.forward(torch.zeros(2, 1, 8, 8))  # make the projector and the target

    @singleton("target_encoder")
    def _get_target_encoder(self):
        target_encoder = copy.deepcopy(self.online_encoder)
        set_requires_grad(target_encoder, False)
        return target_encoder

    def reset_moving_average(self):
        del self.target_encoder
        self.target_encoder = None

    def update_moving_average(self):
        assert self.target_encoder is not None, "target encoder has not been created yet"
        update_moving_average(self.target_ema_updater, self.target_encoder, self.online_encoder)

    def forward(self, x):
        images = torch.cat((self.augment(x, 0), self.augment(x, 1)), dim=0)
        online_projections = self.online_encoder(images)
        online_pred_one, online_pred_two = self.online_predictor(online_projections).chunk(2, dim=0)
        with torch.no_grad():
            target_encoder = self._get_target_encoder()
            target_proj_one, target_proj_two = target_encoder(images).detach().chunk(2, dim=0)
        loss_one = loss_fn(online_pred_one, target_proj_two.detach())
        loss_two = loss_fn(online_pred_two, target_proj_one.detach())
        return (loss_one + loss_two).mean()


def main(steps=5):
    rng = np.random.default_rng(0)

    def augment(x, view):
        noise = torch.as_tensor(rng.normal(0, 0.1, x.shape), dtype=x.dtype)
        return torch.roll(x, shifts=1 - 2 * view, dims=-1) + noise

    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(1), nn.Linear(32, 10),
    )  # fmt: skip
    learner = BYOL(net, augment)
    for p in learner.online_encoder.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape))))
    for p in learner.online_predictor.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape))))
    learner.reset_moving_average()
    learner(torch.zeros(2, 1, 8, 8))
    opt = torch.optim.SGD([p for p in learner.parameters() if p.requires_grad], lr=3e-2, momentum=0.9)
    x = torch.from_numpy(rng.random((16, 1, 8, 8), dtype=np.float32))
    losses = []
    for _ in range(steps):
        loss = learner(x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        learner.update_moving_average()
        losses.append(loss.item())
    target = learner.target_encoder.net[0].weight
    return losses, {
        "drift": (learner.net[0].weight - target).norm().item(),
        "names": len([n for n, _ in learner.named_parameters()]),
        "target": target.numpy(),
    }
