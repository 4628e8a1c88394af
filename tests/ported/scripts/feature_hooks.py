"""Features by forward hooks, and shapes by a forward pre-hook."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 8, 3, padding=1), nn.ReLU()
        )
        self.pool = nn.AdaptiveAvgPool2d((2, 2))
        self.classifier = nn.Linear(32, 10)

    def forward(self, x):
        x = self.pool(self.features(x))
        return self.classifier(torch.flatten(x, start_dim=1))


def main(steps=5):
    rng = np.random.default_rng(0)
    digits = load_digits()
    images = torch.from_numpy(digits.images[:48].astype("float32"))[:, None] / 16
    labels = torch.from_numpy(digits.target[:48]).type(torch.LongTensor)
    model = Net()
    for name, p in model.named_parameters():
        p.data.copy_(torch.from_numpy(0.3 * rng.standard_normal(p.data.shape)))
    activation, shapes = {}, []

    def get_activation(name):
        def hook(model, input, output):
            activation[name] = output.detach()

        return hook

    handle = model.features[1].register_forward_hook(get_activation("relu1"))
    pre = model.classifier.register_forward_pre_hook(lambda module, args: shapes.append(tuple(args[0].shape)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    handle.remove()
    pre.remove()
    model(images[:1])
    return losses, {"relu": activation["relu1"].mean(dim=(0, 2, 3)).numpy(), "shapes": shapes}
