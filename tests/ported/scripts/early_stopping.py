"""Early stopping with a copy of the best state, and a learning rate reduced on a plateau."""

import copy
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class EarlyStopping:
    def __init__(self, patience=2, delta=0.0, path="checkpoint.pt"):
        self.patience, self.delta, self.path = patience, delta, path
        self.counter, self.best_score, self.early_stop = 0, None, False
        self.val_loss_min = np.inf

    def __call__(self, val_loss, model):
        score = -val_loss
        if self.best_score is None or score > self.best_score + self.delta:
            self.best_score = score
            torch.save(model.state_dict(), self.path)
            self.val_loss_min = val_loss
            self.counter = 0
        else:
            self.counter += 1
            self.early_stop = self.counter >= self.patience


def main(steps=5):
    torch.manual_seed(0)
    digits = load_digits()
    x_train, x_val, y_train, y_val = train_test_split(digits.data[:300] / 16, digits.target[:300], random_state=0)
    x_train, x_val = torch.FloatTensor(x_train), torch.FloatTensor(x_val)
    y_train, y_val = torch.LongTensor(y_train), torch.LongTensor(y_val)
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    for m in model.modules():
        if type(m) is nn.Linear:
            m.weight.data.copy_(torch.Tensor(0.2 * rng.standard_normal(m.weight.size())))
            m.bias.data.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.5, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.1, patience=0)
    train_losses, valid_losses, rates = [], [], []
    best = None
    with tempfile.TemporaryDirectory() as folder:
        stopping = EarlyStopping(path=os.path.join(folder, "best.pt"))
        for epoch in range(3 * steps):
            model.train()
            loss = nn.functional.cross_entropy(model(x_train), y_train)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_losses.append(loss.item())
            model.eval()
            with torch.no_grad():
                valid = nn.functional.cross_entropy(model(x_val), y_val).item()
            valid_losses.append(valid)
            scheduler.step(valid)
            rates.append(scheduler.get_last_lr()[0])
            stopping(valid, model)
            if stopping.counter == 0:
                best = copy.deepcopy(model.state_dict())
            if stopping.early_stop:
                break
        model.load_state_dict(torch.load(stopping.path, map_location="cpu", weights_only=True))
    same = all(torch.equal(best[k], v) for k, v in model.state_dict().items())
    return train_losses, {"valid": valid_losses, "rates": rates, "same": same, "epochs": len(rates)}
