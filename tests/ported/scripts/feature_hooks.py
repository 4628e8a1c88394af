"""Features by forward hooks, and Grad-CAM by a backward hook."""

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


class GradCAM:
    def __init__(self, model, layer):
        self.model, self.activations, self.gradients = model, None, None
        self.handles = [
            layer.register_forward_hook(self.save_activation),
            layer.register_full_backward_hook(self.save_gradient),
        ]

    def save_activation(self, module, input, output):
        self.activations = output.detach()

    def save_gradient(self, module, grad_input, grad_output):
        self.gradients = grad_output[0].detach()

    def __call__(self, x, index=None):
        self.model.zero_grad()
        scores = self.model(x)
        index = scores.argmax(dim=1) if index is None else index
        scores.gather(1, index.view(-1, 1)).sum().backward()
        weights = self.gradients.mean(dim=(2, 3), keepdim=True)
        cam = F.relu((weights * self.activations).sum(dim=1, keepdim=True))
        cam = F.interpolate(cam, size=x.shape[2:], mode="bilinear", align_corners=False)
        low, high = cam.amin(dim=(1, 2, 3), keepdim=True), cam.amax(dim=(1, 2, 3), keepdim=True)
        return ((cam - low) / (high - low + 1e-8)).squeeze(1)

    def remove(self):
        for handle in self.handles:
            handle.remove()


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
    cam = GradCAM(model, model.features[-1])
    heat = cam(images[:4])
    cam.remove()
    model(images[:1])
    return losses, {"relu": activation["relu1"].mean(dim=(0, 2, 3)).numpy(), "heat": heat.numpy(), "shapes": shapes}
