"""A VAE written for PyTorch: only the imports differ: `python examples/tasks/ported.py`."""

import numpy as np
from sklearn.datasets import load_digits

import retrograd as torch
import retrograd.utils.data
from retrograd import nn, optim
from retrograd.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 4)
        self.fc22 = nn.Linear(40, 4)
        self.fc3 = nn.Linear(4, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


torch.manual_seed(1)
device = torch.device("cpu")
data = torch.utils.data.TensorDataset(torch.Tensor(load_digits().images / 16))
train_loader = torch.utils.data.DataLoader(data, batch_size=128, shuffle=True, num_workers=1, pin_memory=False)
model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-3)
history = []
for epoch in range(1, 6):
    model.train()
    train_loss = 0
    for batch_idx, (x,) in enumerate(train_loader):
        x = x.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(x)
        loss = loss_function(recon_batch, x, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader.dataset):.4f}")
    history.append(train_loss)
with torch.no_grad():
    sample = model.decode(torch.randn(16, 4).to(device)).cpu()
assert np.isfinite(sample.numpy()).all() and history[-1] < history[0]
