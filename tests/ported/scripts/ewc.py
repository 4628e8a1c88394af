"""Learn two tasks one after the other with elastic weight consolidation: the Fisher information guards the first."""

from copy import deepcopy

import numpy as np
import torch
import torch.utils.data
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class EWC(object):
    def __init__(self, model: nn.Module, dataset: list):
        self.model = model
        self.dataset = dataset
        self.params = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        self._means = {}
        self._precision_matrices = self._diag_fisher()
        for n, p in deepcopy(self.params).items():
            self._means[n] = p.data.clone()

    def _diag_fisher(self):
        precision_matrices = {}
        for n, p in deepcopy(self.params).items():
            p.data.zero_()
            precision_matrices[n] = p.data.clone()
        self.model.eval()
        for x in self.dataset:
            self.model.zero_grad()
            output = self.model(x).view(1, -1)
            label = output.max(1)[1].view(-1)
            loss = F.nll_loss(F.log_softmax(output, dim=1), label)
            loss.backward()
            for n, p in self.model.named_parameters():
                precision_matrices[n].data += p.grad.data**2 / len(self.dataset)
        return {n: p for n, p in precision_matrices.items()}

    def penalty(self, model: nn.Module):
        loss = 0
        for n, p in model.named_parameters():
            _loss = self._precision_matrices[n] * (p - self._means[n]) ** 2
            loss += _loss.sum()
        return loss


class MLP(nn.Module):
    def __init__(self, hidden_size=32):
        super(MLP, self).__init__()
        self.fc1 = nn.Linear(8 * 8, hidden_size)
        self.fc2 = nn.Linear(hidden_size, hidden_size)
        self.fc3 = nn.Linear(hidden_size, 10)

    def forward(self, input):
        x = F.relu(self.fc1(input))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


class PermutedDigits(torch.utils.data.Dataset):
    def __init__(self, permute_idx):
        digits = load_digits()
        self.data = torch.stack([img.float().view(-1)[permute_idx] / 16 for img in torch.from_numpy(digits.images)])
        self.target = torch.from_numpy(digits.target)

    def __len__(self):
        return self.data.size(0)

    def __getitem__(self, index):
        return self.data[index], self.target[index]

    def get_sample(self, sample_idx):
        return [img for img in self.data[sample_idx]]


def test(model, loader):
    model.eval()
    correct = 0
    for input, target in loader:
        output = model(input)
        correct += (F.softmax(output, dim=1).max(dim=1)[1] == target).data.sum()
    return correct.item() / len(loader.dataset)


def main(steps=5):
    rng = np.random.RandomState(0)
    loaders = []
    for permutation in (np.arange(64), rng.permutation(64)):
        dataset = PermutedDigits(permutation.tolist())
        subset = torch.utils.data.Subset(dataset, range(512))
        loaders.append((dataset, torch.utils.data.DataLoader(subset, batch_size=64, drop_last=True)))
    model = MLP()
    for layer in (model.fc1, model.fc2, model.fc3):
        layer.weight.data = torch.tensor(rng.randn(*layer.weight.shape) * 0.2).float()
        layer.bias.data.zero_()
    optimizer = torch.optim.SGD(params=model.parameters(), lr=0.05, momentum=0.8, nesterov=True)
    for input, target in loaders[0][1]:
        optimizer.zero_grad()
        F.cross_entropy(model(input), target).backward()
        optimizer.step()
    ewc = EWC(model, loaders[0][0].get_sample(rng.choice(512, 20, replace=False)))
    losses = []
    model.train()
    for step, (input, target) in enumerate(loaders[1][1]):
        if step >= steps:
            break
        optimizer.zero_grad()
        loss = F.cross_entropy(model(input), target) + 2 * ewc.penalty(model)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {
        "accuracies": [test(model, loader) for _, loader in loaders],
        "penalty": ewc.penalty(model).item(),
        "fisher": ewc._precision_matrices["fc3.weight"].sum(1).tolist(),
    }
