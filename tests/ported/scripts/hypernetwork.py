"""Train a hypernetwork that makes convolutions from layer embeddings, and kernels for each example."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.nn.parameter import Parameter


class HyperNetwork(nn.Module):
    def __init__(self, f_size=3, z_dim=6, out_size=4, in_size=4):
        super(HyperNetwork, self).__init__()
        self.z_dim, self.f_size, self.out_size, self.in_size = z_dim, f_size, out_size, in_size
        self.w1 = Parameter(torch.fmod(torch.randn((self.z_dim, self.out_size * self.f_size * self.f_size)), 2))
        self.b1 = Parameter(torch.fmod(torch.randn((self.out_size * self.f_size * self.f_size)), 2))
        self.w2 = Parameter(torch.fmod(torch.randn((self.z_dim, self.in_size * self.z_dim)), 2))
        self.b2 = Parameter(torch.fmod(torch.randn((self.in_size * self.z_dim)), 2))

    def forward(self, z):
        h_in = torch.matmul(z, self.w2) + self.b2
        h_in = h_in.view(self.in_size, self.z_dim)
        h_final = torch.matmul(h_in, self.w1) + self.b1
        kernel = h_final.view(self.out_size, self.in_size, self.f_size, self.f_size)
        return kernel


class Embedding(nn.Module):
    def __init__(self, z_num, z_dim):
        super(Embedding, self).__init__()
        self.z_list = nn.ParameterList()
        self.z_num = z_num
        h, k = self.z_num
        for i in range(h):
            for j in range(k):
                self.z_list.append(Parameter(torch.fmod(torch.randn(z_dim), 2)))

    def forward(self, hyper_net):
        ww = []
        h, k = self.z_num
        for i in range(h):
            w = []
            for j in range(k):
                w.append(hyper_net(self.z_list[i * k + j]))
            ww.append(torch.cat(w, dim=1))
        return torch.cat(ww, dim=0)


class DynamicConv(nn.Module):
    """A convolution whose kernels are a mixture, weighted for each example, run as one grouped convolution."""

    def __init__(self, in_planes, out_planes, kernel_size, K=3, temperature=3.0):
        super().__init__()
        self.in_planes, self.out_planes, self.kernel_size, self.K = in_planes, out_planes, kernel_size, K
        self.temperature = temperature
        self.attention = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(in_planes, K, 1), nn.Flatten())
        self.weight = nn.Parameter(torch.Tensor(K, out_planes, in_planes, kernel_size, kernel_size), requires_grad=True)

    def forward(self, x):
        softmax_attention = F.softmax(self.attention(x) / self.temperature, 1)
        batch_size, in_planes, height, width = x.size()
        x = x.view(1, -1, height, width)
        weight = self.weight.view(self.K, -1)
        aggregate_weight = torch.mm(softmax_attention, weight).view(-1, in_planes, self.kernel_size, self.kernel_size)
        output = F.conv2d(x, weight=aggregate_weight, bias=None, stride=1, padding=1, groups=batch_size)
        return output.view(batch_size, self.out_planes, output.size(-2), output.size(-1))


class PrimaryNetwork(nn.Module):
    def __init__(self, z_dim=6):
        super(PrimaryNetwork, self).__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.hope = HyperNetwork(z_dim=z_dim)
        self.zs_size = [[1, 1], [2, 1]]
        self.filter_size = [[4, 4], [4, 8]]
        self.zs = nn.ModuleList()
        for i in range(len(self.zs_size)):
            self.zs.append(Embedding(self.zs_size[i], z_dim))
        self.dynamic = DynamicConv(8, 6, 3)
        self.global_avg = nn.AvgPool2d(2)
        self.final = nn.Linear(6 * 4, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        w1 = self.zs[0](self.hope)
        x = F.relu(F.conv2d(x, w1, padding=1) + x)
        w2 = self.zs[1](self.hope)
        x = F.relu(F.conv2d(x, w2, stride=2, padding=1))
        x = self.global_avg(F.relu(self.dynamic(x)))
        return self.final(x.view(-1, 6 * 4))


def main(steps=5):
    rng = np.random.default_rng(0)
    digits = load_digits()
    x = torch.from_numpy((digits.images[:48, None] / 16).astype(np.float32))
    y = torch.from_numpy(digits.target[:48])
    net = PrimaryNetwork()
    for p in net.parameters():
        p.data = torch.from_numpy((rng.standard_normal(tuple(p.shape)) * 0.25).astype(np.float32))
    learning_rate, milestones = 0.02, [3, 4]
    optimizer = torch.optim.Adam(net.parameters(), lr=learning_rate, weight_decay=5e-4)
    lr_scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer=optimizer, milestones=milestones, gamma=0.5)
    criterion = nn.CrossEntropyLoss()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        losses.append(loss.data.item())
    kernel = net.zs[1](net.hope)
    return losses, {
        "kernel": list(kernel.shape),
        "w1": net.hope.w1.grad.norm().item(),
        "z": [z.grad.abs().sum().item() for zs in net.zs for z in zs.z_list],
        "rate": lr_scheduler.get_last_lr(),
    }
