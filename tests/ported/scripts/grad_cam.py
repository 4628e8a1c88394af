"""Grad-CAM: hooks keep a layer's activations and their gradients, which weigh them into a map of the evidence."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


class GradCAM:
    def __init__(self, model, layer):
        self.model = model
        self.handles = [
            layer.register_forward_hook(self.save_activation),
            layer.register_full_backward_hook(self.save_gradient),
        ]

    def save_activation(self, module, inputs, output):
        self.activation = output.detach()

    def save_gradient(self, module, grad_input, grad_output):
        self.gradient = grad_output[0].detach()

    def __call__(self, x, target=None):
        scores = self.model(x)
        target = scores.argmax(1) if target is None else target
        self.model.zero_grad(set_to_none=True)
        scores.gather(1, target[:, None]).sum().backward()
        weights = F.adaptive_avg_pool2d(self.gradient, 1)
        cam = F.relu((weights * self.activation).sum(1, keepdim=True))
        cam = F.interpolate(cam, size=x.shape[-2:], mode="bilinear", align_corners=False)
        low, high = cam.amin((1, 2, 3), keepdim=True), cam.amax((1, 2, 3), keepdim=True)
        return ((cam - low) / (high - low + 1e-8)).squeeze(1), target

    def remove(self):
        for handle in self.handles:
            handle.remove()


def main(steps=5):
    rng = np.random.default_rng(0)
    digits = load_digits()
    images = torch.tensor(digits.images[:128, None] / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target[:128], dtype=torch.long)
    model = Net()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(p[0].numel() + 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    explain = GradCAM(model, model.features[2])
    heat, predicted = explain(images[:4])
    of_true_class, _ = explain(images[:4], labels[:4])
    explain.remove()
    assert heat.shape == (4, 8, 8) and float(heat.max()) <= 1.0
    return losses, {"heat": heat.numpy(), "of true class": of_true_class.numpy(), "predicted": predicted.numpy()}
