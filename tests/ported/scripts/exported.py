"""Train, export with a dynamic batch size, and run the exported program."""

import numpy as np
import torch
import torch.nn as nn
from torch.export import Dim, export


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4 * 3 * 3, 5)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        x = torch.relu(self.conv(x))
        x = nn.functional.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        return self.fc(self.dropout(x))


def main(steps=5):
    rng = np.random.default_rng(0)
    model = Net()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(0.3 * rng.standard_normal(tuple(p.shape))))
    x = torch.from_numpy(rng.standard_normal((12, 1, 8, 8)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 5, 12))
    model.eval()  # without dropout
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    program = export(model, (x[:4],), dynamic_shapes={"x": {0: Dim("batch", min=2)}})
    module = program.module()
    out = module(x)
    assert torch.allclose(out, model(x))
    names = sorted(program.state_dict)
    assert names == sorted(model.state_dict())
    return losses, {"out": out.detach().numpy(), "inputs": len(program.graph_signature.user_inputs)}
