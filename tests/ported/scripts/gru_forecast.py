"""Forecasting a time series with a GRU over sliding windows, and with a loop of GRU cells."""

import numpy as np
import torch
import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self, hidden_size=16, num_layers=2):
        super().__init__()
        self.hidden_size, self.num_layers = hidden_size, num_layers
        self.gru = nn.GRU(1, hidden_size, num_layers, batch_first=True, dropout=0.0)
        self.fc = nn.Linear(hidden_size, 1)

    def forward(self, x, h0=None):
        if h0 is None:
            h0 = torch.zeros(self.num_layers, x.size(0), self.hidden_size, device=x.device).requires_grad_()
        out, hn = self.gru(x, h0.detach())
        return self.fc(out[:, -1, :])


def main(steps=5):
    rng = np.random.default_rng(0)
    t = np.arange(120)
    series = torch.tensor(np.sin(t / 6) + 0.1 * rng.standard_normal(120), dtype=torch.float32)
    series = (series - series.mean()) / series.std()
    windows = series.unfold(0, 13, 1)
    x, y = windows[:, :-1].unsqueeze(-1), windows[:, -1:]
    split = int(0.8 * len(x))
    model = Forecaster()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.uniform(-0.25, 0.25, tuple(p.shape))))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    criterion = nn.MSELoss(reduction="mean")
    losses = []
    for epoch in range(steps):
        model.train()
        y_train_pred = model(x[:split])
        loss = criterion(y_train_pred, y[:split])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), clip_value=0.5)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        history = x[split : split + 1].clone()
        forecast = []
        for _ in range(6):
            step = model(history)
            forecast.append(step.item())
            history = torch.cat((history[:, 1:], step.unsqueeze(1)), dim=1)
        error = torch.sqrt(criterion(model(x[split:]), y[split:])).item()
    cell = nn.GRUCell(1, 16)
    cell.load_state_dict({k[: -len("_l0")]: v for k, v in model.gru.state_dict().items() if k.endswith("_l0")})
    h = torch.zeros(1, 16)
    for value in series[:12]:
        h = cell(value.reshape(1, 1), h)
    return losses, {"forecast": forecast, "rmse": error, "cell": h.detach().numpy()}
