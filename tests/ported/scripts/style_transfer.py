"""A style transfer by L-BFGS on the pixels: content loss and losses of Gram matrices, in a small random network."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def main(steps=5):
    torch.set_default_dtype(torch.float64)
    try:
        rng = np.random.default_rng(0)
        images = torch.from_numpy(load_digits().images[:2]).view(2, 1, 1, 8, 8) / 16
        content_img, style_img = images[0], images[1]
        cnn = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.Softplus(), nn.Conv2d(8, 8, 3, padding=1), nn.Tanh()
        ).eval()
        for p in cnn.parameters():
            p.data = torch.from_numpy(0.4 * rng.standard_normal(tuple(p.shape)))
        model, style_losses, content_losses = nn.Sequential(), [], []
        for i, layer in enumerate(cnn.children()):
            model.add_module(f"layer_{i}", layer)
            if isinstance(layer, nn.Conv2d):
                content_losses.append(ContentLoss(model(content_img)))
                model.add_module(f"content_loss_{i}", content_losses[-1])
                style_losses.append(StyleLoss(model(style_img).detach()))
                model.add_module(f"style_loss_{i}", style_losses[-1])
        input_img = content_img.clone()
        input_img.requires_grad_(True)
        model.eval()
        model.requires_grad_(False)
        optimizer = optim.LBFGS([input_img], lr=0.5, max_iter=3)
        losses, run = [], [0]
        while run[0] < steps:

            def closure():
                with torch.no_grad():
                    input_img.clamp_(0, 1)
                optimizer.zero_grad()
                model(input_img)
                style_score = sum(sl.loss for sl in style_losses) * 1e4
                content_score = sum(cl.loss for cl in content_losses)
                loss = style_score + content_score
                loss.backward()
                losses.append(loss.item())
                run[0] += 1
                return style_score + content_score

            optimizer.step(closure)
        with torch.no_grad():
            input_img.clamp_(0, 1)
        return losses, {"image": input_img.detach().numpy()}
    finally:
        torch.set_default_dtype(torch.float32)
