"""Train a VQ-VAE on the digits: codes by the nearest vector, gradients straight through, a codebook by averages."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class VectorQuantizerEMA(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, commitment_cost, decay, epsilon=1e-5):
        super(VectorQuantizerEMA, self).__init__()
        self._embedding_dim = embedding_dim
        self._num_embeddings = num_embeddings
        self._embedding = nn.Embedding(self._num_embeddings, self._embedding_dim)
        self._embedding.weight.data.normal_()
        self._commitment_cost = commitment_cost
        self.register_buffer("_ema_cluster_size", torch.zeros(num_embeddings))
        self._ema_w = nn.Parameter(torch.Tensor(num_embeddings, self._embedding_dim))
        self._ema_w.data.normal_()
        self._decay = decay
        self._epsilon = epsilon

    def forward(self, inputs):
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        input_shape = inputs.shape
        flat_input = inputs.view(-1, self._embedding_dim)
        distances = (
            torch.sum(flat_input**2, dim=1, keepdim=True)
            + torch.sum(self._embedding.weight**2, dim=1)
            - 2 * torch.matmul(flat_input, self._embedding.weight.t())
        )
        encoding_indices = torch.argmin(distances, dim=1).unsqueeze(1)
        encodings = torch.zeros(encoding_indices.shape[0], self._num_embeddings, device=inputs.device)
        encodings.scatter_(1, encoding_indices, 1)
        quantized = torch.matmul(encodings, self._embedding.weight).view(input_shape)
        if self.training:
            self._ema_cluster_size = self._ema_cluster_size * self._decay + (1 - self._decay) * torch.sum(encodings, 0)
            n = torch.sum(self._ema_cluster_size.data)
            self._ema_cluster_size = (
                (self._ema_cluster_size + self._epsilon) / (n + self._num_embeddings * self._epsilon) * n
            )
            dw = torch.matmul(encodings.t(), flat_input)
            self._ema_w = nn.Parameter(self._ema_w * self._decay + (1 - self._decay) * dw)
            self._embedding.weight = nn.Parameter(self._ema_w / self._ema_cluster_size.unsqueeze(1))
        e_latent_loss = F.mse_loss(quantized.detach(), inputs)
        loss = self._commitment_cost * e_latent_loss
        quantized = inputs + (quantized - inputs).detach()
        avg_probs = torch.mean(encodings, dim=0)
        perplexity = torch.exp(-torch.sum(avg_probs * torch.log(avg_probs + 1e-10)))
        return loss, quantized.permute(0, 3, 1, 2).contiguous(), perplexity, encodings


class Model(nn.Module):
    def __init__(self, hidden=16, dim=4, codes=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, hidden, kernel_size=4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(hidden, hidden, kernel_size=3, stride=1, padding=1),
            nn.ReLU(),
        )
        self._pre_vq_conv = nn.Conv2d(in_channels=hidden, out_channels=dim, kernel_size=1, stride=1)
        self._vq_vae = VectorQuantizerEMA(codes, dim, 0.25, 0.9)
        self.decoder = nn.Sequential(
            nn.Conv2d(dim, hidden, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(hidden, 1, 4, stride=2, padding=1)
        )

    def forward(self, x):
        z = self._pre_vq_conv(self.encoder(x))
        loss, quantized, perplexity, _ = self._vq_vae(z)
        return loss, self.decoder(quantized), perplexity


def main(steps=5):
    rng = np.random.default_rng(2)
    data = torch.tensor(load_digits().images[:256, None] / 16 - 0.5, dtype=torch.float32)
    data_variance = torch.var(data)
    model = Model()
    for name, p in model.named_parameters():
        scale = 1.0 if "_vq_vae" in name else 0.15
        p.data = torch.from_numpy((rng.standard_normal(p.shape) * scale).astype(np.float32))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, amsgrad=True)
    model.train()
    losses, perplexities = [], []
    for i in range(steps):
        (batch,) = next(iter(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), batch_size=64)))
        optimizer.zero_grad()
        vq_loss, data_recon, perplexity = model(batch)
        recon_error = F.mse_loss(data_recon, batch) / data_variance
        loss = recon_error + vq_loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        perplexities.append(perplexity.item())
    model.eval()
    with torch.no_grad():
        codes = model._vq_vae(model._pre_vq_conv(model.encoder(data)))[-1].argmax(1)
    counts = torch.bincount(codes, minlength=8)
    return losses, {"perplexity": perplexities, "codes": counts.tolist()}
