"""Train a variational autoencoder on the handwritten digits; the noise comes from NumPy."""

import numpy as np
import torch
import torch.utils.data
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc21 = nn.Linear(32, 8)
        self.fc22 = nn.Linear(32, 8)
        self.fc3 = nn.Linear(8, 32)
        self.fc4 = nn.Linear(32, 64)
        self.noise = np.random.default_rng(1)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        eps.copy_(torch.from_numpy(self.noise.standard_normal(std.shape)))
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def main(steps=5):
    torch.manual_seed(1)
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    kwargs = {"num_workers": 1, "pin_memory": True} if torch.cuda.is_available() else {}
    images = torch.FloatTensor(load_digits().images / 16).unsqueeze(1)
    dataset = torch.utils.data.TensorDataset(images, torch.zeros(len(images)))
    train_loader = torch.utils.data.DataLoader(dataset, batch_size=64, shuffle=False, **kwargs)
    model = VAE().to(device)
    rng = np.random.default_rng(0)
    for param in model.parameters():
        param.data = torch.from_numpy(rng.normal(0, 0.1, param.size()).astype(np.float32)).to(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    model.train()
    losses = []
    for batch_idx, (data, _) in enumerate(train_loader):
        if batch_idx >= steps:
            break
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        losses.append(loss.item() / len(data))
        optimizer.step()
    with torch.no_grad():
        sample = torch.from_numpy(rng.standard_normal((4, 8)).astype(np.float32)).to(device)
        sample = model.decode(sample).cpu().view(4, 1, 8, 8)
    return losses, {"sample": sample.mean().item()}
