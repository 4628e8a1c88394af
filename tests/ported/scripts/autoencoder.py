"""Train an autoencoder on the handwritten digits and report how well it rebuilds those that it has not seen."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    def __init__(self, code=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(True), nn.Linear(48, code), nn.Tanh())
        self.decoder = nn.Sequential(nn.Linear(code, 48), nn.ReLU(True), nn.Linear(48, 64), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


def fill(model, seed=0):
    rng = np.random.default_rng(seed)
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.15, p.shape).astype("float32")))


def main(steps=5):
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images = torch.from_numpy((load_digits().data / 16).astype("float32"))
    train, test = images[:1500], images[1500:]
    loader = DataLoader(TensorDataset(train), batch_size=64, shuffle=False, pin_memory=torch.cuda.is_available())
    model = Autoencoder().to(device)
    fill(model)
    criterion = nn.MSELoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-5)

    losses = []
    model.train()
    for batch, (x,) in enumerate(loader):
        if batch == steps:
            break
        x = x.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(x), x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    model.eval()
    with torch.no_grad():
        test_loss = F.mse_loss(model(test.to(device)), test.to(device), reduction="sum").item() / test.size(0)
    return losses, {"test loss": test_loss}
