"""Train a Wasserstein GAN with a gradient penalty, a double backward pass through the critic, on a ring of points."""

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn
import torch.optim as optim
from torch.autograd import Variable

LOSSES_FALL = False  # a game between two networks


def weights_init(rng):
    def init(m):
        classname = m.__class__.__name__
        if classname.find("Linear") != -1:
            m.weight.data.copy_(torch.FloatTensor(rng.normal(0.0, 0.2, m.weight.size())))
            m.bias.data.fill_(0)

    return init


class Generator(nn.Module):
    def __init__(self, dim=32):
        super(Generator, self).__init__()
        self.main = nn.Sequential(
            nn.Linear(2, dim), nn.ReLU(True), nn.Linear(dim, dim), nn.ReLU(True), nn.Linear(dim, 2)
        )

    def forward(self, noise):
        return self.main(noise)


class Critic(nn.Module):
    def __init__(self, dim=32):
        super(Critic, self).__init__()
        self.main = nn.Sequential(
            nn.Linear(2, dim),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(dim, dim),
            nn.LayerNorm(dim),
            nn.Softplus(),
            nn.Linear(dim, 1),
        )

    def forward(self, inputs):
        return self.main(inputs).view(-1)


def calc_gradient_penalty(critic, real_data, fake_data, alpha, lambda_gp):
    alpha = alpha.expand(real_data.size())
    interpolates = alpha * real_data + ((1 - alpha) * fake_data)
    interpolates = autograd.Variable(interpolates, requires_grad=True)
    disc_interpolates = critic(interpolates)
    gradients = autograd.grad(
        outputs=disc_interpolates,
        inputs=interpolates,
        grad_outputs=torch.ones(disc_interpolates.size()),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * lambda_gp


def main(steps=5, critic_iters=3, batch_size=32):
    rng = np.random.RandomState(3)
    netG, netD = Generator(), Critic()
    netG.apply(weights_init(rng))
    netD.apply(weights_init(rng))
    optimizerD = optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
    optimizerG = optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.9))
    one = torch.tensor(1, dtype=torch.float)
    minus_one = one * -1

    losses, penalties, distances = [], [], []
    for iteration in range(steps):
        for p in netD.parameters():
            p.requires_grad = True
        for _ in range(critic_iters):
            angle = rng.uniform(0, 2 * np.pi, batch_size)
            real_data = torch.Tensor(np.stack([np.cos(angle), np.sin(angle)], 1))
            real_data_v = Variable(real_data)
            netD.zero_grad()
            D_real = netD(real_data_v).mean()
            D_real.backward(minus_one)
            noise = torch.Tensor(rng.randn(batch_size, 2))
            with torch.no_grad():
                noisev = Variable(noise)
            fake = Variable(netG(noisev).data)
            D_fake = netD(fake).mean()
            D_fake.backward(one)
            alpha = torch.Tensor(rng.rand(batch_size, 1))
            gradient_penalty = calc_gradient_penalty(netD, real_data_v.data, fake.data, alpha, 10)
            gradient_penalty.backward()
            D_cost = D_fake - D_real + gradient_penalty
            Wasserstein_D = D_real - D_fake
            optimizerD.step()
        for p in netD.parameters():
            p.requires_grad = False
        netG.zero_grad()
        G = netD(netG(torch.Tensor(rng.randn(batch_size, 2)))).mean()
        G.backward(minus_one)
        G_cost = -G
        optimizerG.step()
        losses.append(D_cost.cpu().data.numpy().item())
        penalties.append(gradient_penalty.item())
        distances.append([Wasserstein_D.item(), G_cost.item()])
    return losses, {"penalties": penalties, "distances": distances}
