"""Load a checkpoint that PyTorch has written, with its optimizer: `python examples/tasks/checkpoint.py FILE`."""

import sys

import retrograd as torch
from retrograd import nn

model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
checkpoint = torch.load(sys.argv[1], map_location="cpu", weights_only=True)
print(model.load_state_dict(checkpoint["model"]))
optimizer.load_state_dict(checkpoint["optimizer"])
scheduler.load_state_dict(checkpoint["scheduler"])
model.eval()
assert torch.allclose(model(checkpoint["input"]), checkpoint["output"], atol=1e-6)
model.train()
loss = model(checkpoint["input"]).pow(2).mean()
loss.backward()
optimizer.step()
scheduler.step()
print("epoch", checkpoint["epoch"], "rate", scheduler.get_last_lr(), "loss", loss.item())
