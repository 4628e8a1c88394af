"""Train an energy-based model on a ring, with samples from Langevin dynamics and a replay buffer."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.utils.data as data
from torch.nn.utils import spectral_norm

LOSSES_FALL = False


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class Energy(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.layers = nn.Sequential(
            spectral_norm(nn.Linear(2, hidden)), Swish(), nn.Linear(hidden, hidden), Swish(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.layers(x).squeeze(dim=-1)


class Sampler:
    def __init__(self, model, shape, sample_size, rng, max_len=64):
        super().__init__()
        self.model, self.shape, self.sample_size, self.max_len, self.rng = model, shape, sample_size, max_len, rng
        self.examples = [self.noise((1,) + shape) for _ in range(self.sample_size)]

    def noise(self, size):
        return torch.tensor(self.rng.uniform(-1, 1, size), dtype=torch.float)

    def sample_new_exmps(self, steps=6, step_size=0.2):
        n_new = self.rng.binomial(self.sample_size, 0.25)
        rand_imgs = self.noise((n_new,) + self.shape)
        old_imgs = torch.cat(random.choices(self.examples, k=self.sample_size - n_new), dim=0)
        inp_imgs = torch.cat([rand_imgs, old_imgs], dim=0).detach()
        inp_imgs = self.generate_samples(self.model, inp_imgs, steps=steps, step_size=step_size)
        self.examples = list(inp_imgs.chunk(self.sample_size, dim=0)) + self.examples
        self.examples = self.examples[: self.max_len]
        return inp_imgs

    def generate_samples(self, model, inp_imgs, steps, step_size, return_img_per_step=False):
        is_training = model.training
        model.eval()
        for p in model.parameters():
            p.requires_grad = False
        inp_imgs.requires_grad = True
        had_gradients_enabled = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        imgs_per_step = []
        for _ in range(steps):
            noise = torch.from_numpy(self.rng.normal(0, 0.005, tuple(inp_imgs.shape))).to(inp_imgs.dtype)
            inp_imgs.data.add_(noise.data)
            inp_imgs.data.clamp_(min=-2.0, max=2.0)
            out_imgs = -model(inp_imgs)
            out_imgs.sum().backward()
            inp_imgs.grad.data.clamp_(-0.3, 0.3)
            inp_imgs.data.add_(-step_size * inp_imgs.grad.data)
            inp_imgs.grad.detach_()
            inp_imgs.grad.zero_()
            inp_imgs.data.clamp_(min=-2.0, max=2.0)
            if return_img_per_step:
                imgs_per_step.append(inp_imgs.clone().detach())
        for p in model.parameters():
            p.requires_grad = True
        model.train(is_training)
        torch.set_grad_enabled(had_gradients_enabled)
        if return_img_per_step:
            return torch.stack(imgs_per_step, dim=0)
        return inp_imgs


def main(steps=5):
    rng = np.random.default_rng(0)
    random.seed(0)
    angle = rng.uniform(0, 2 * np.pi, 160)
    ring = np.stack([np.cos(angle), np.sin(angle)], -1) + rng.normal(0, 0.05, (160, 2))
    train_loader = data.DataLoader(torch.Tensor(ring), batch_size=32, shuffle=False, drop_last=True, pin_memory=False)
    model = Energy()
    for name, p in model.named_parameters():
        p.data.copy_(torch.Tensor(rng.normal(0, 0.4, tuple(p.shape))))
    for name, buffer in model.named_buffers():
        buffer.copy_(nn.functional.normalize(torch.Tensor(rng.normal(0, 1, tuple(buffer.shape))), dim=0))
    sampler = Sampler(model, (2,), 32, rng)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.0, 0.999))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.97)
    losses, divergences = [], []
    while len(losses) < steps:
        for real in train_loader:
            real = real + torch.Tensor(rng.normal(0, 0.005, tuple(real.shape)))
            fake = sampler.sample_new_exmps()
            inp = torch.cat([real, fake], dim=0)
            real_out, fake_out = model(inp).chunk(2, dim=0)
            reg_loss = 0.1 * (real_out**2 + fake_out**2).mean()
            cdiv_loss = fake_out.mean() - real_out.mean()
            loss = reg_loss + cdiv_loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            losses.append(loss.item())
            divergences.append(cdiv_loss.item())
            if len(losses) == steps:
                break
        scheduler.step()
    path = sampler.generate_samples(model, sampler.noise((4, 2)), 3, 0.5, return_img_per_step=True)
    return losses, {"divergence": divergences, "path": path.numpy(), "u": model.layers[0].weight_u.numpy()}
