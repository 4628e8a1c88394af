"""Train a CNN with `Dropout2d` after a linear layer, as old examples have it; argparse, loaders, a saved state."""

import argparse
import io
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR


def fill(model, seed=0, scale=0.2):
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(scale * rng.normal(size=tuple(p.shape)).astype(np.float32)))
    return model


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, 1)
        self.conv2 = nn.Conv2d(6, 8, 3, 1)
        self.dropout1 = nn.Dropout(0.0)
        self.dropout2 = nn.Dropout2d(0.0)
        self.fc1 = nn.Linear(32, 16)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = self.conv2(x)
        x = F.relu(x)
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = self.dropout2(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def train(args, model, device, train_loader, optimizer, epoch, log):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device, non_blocking=True), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            log.append(
                "Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.4f}".format(
                    epoch,
                    batch_idx * len(data),
                    len(train_loader.dataset),
                    100.0 * batch_idx / len(train_loader),
                    loss.item(),
                )
            )
    return loss.item()


def test(model, device, test_loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return test_loss / len(test_loader.dataset), correct


def main(steps=5):
    warnings.filterwarnings("ignore", message="dropout2d")
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=1)
    args = parser.parse_args([])
    use_accel = torch.accelerator.is_available()
    torch.manual_seed(args.seed)
    device = torch.accelerator.current_accelerator() if use_accel else torch.device("cpu")
    kwargs = {"num_workers": 1, "pin_memory": True, "persistent_workers": True} if use_accel else {}
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 96)
    x = (rng.normal(size=(4, 1, 8, 8))[y] + 0.5 * rng.normal(size=(96, 1, 8, 8))).astype(np.float32)
    mean, std = torch.tensor(x).mean(), torch.tensor(x).std()
    data = torch.utils.data.TensorDataset(torch.from_numpy(x).sub_(mean).div_(std), torch.from_numpy(y))
    train_loader = torch.utils.data.DataLoader(torch.utils.data.Subset(data, range(64)), batch_size=32, **kwargs)
    test_loader = torch.utils.data.DataLoader(torch.utils.data.Subset(data, range(64, 96)), batch_size=16, **kwargs)
    model = fill(Net()).to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    losses, log = [], []
    for epoch in range(1, steps + 1):
        losses.append(train(args, model, device, train_loader, optimizer, epoch, log))
        loss, correct = test(model, device, test_loader)
        scheduler.step()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    again = Net()
    again.load_state_dict(torch.load(file, weights_only=True, map_location=device))
    numbers = {"test": loss, "correct": float(correct), "log": [float(line[-6:]) for line in log]}
    return losses, numbers | {"again": test(again, device, test_loader)[0]}
