"""A pipeline on 2 MPI ranks, 20 steps: `retrograd run -n 2 --transport mpi examples/tasks/mpi_pipeline.py`."""

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import cross_entropy
from retrograd.pipelining import Pipeline

rg.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = rg.optim.AdamW(model.parameters(), lr=1e-2)
pipeline = Pipeline(model, stages=2, micro_batches=4, schedule="1f1b", loss_fn=cross_entropy)
x = rg.randn(64, 32)
y = x[:, :4].argmax(1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    losses.append(pipeline.step(x, target=y).item())
    optimizer.step()
if pipeline.rank == 0:
    print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}")
assert losses[-1] < 0.5 * losses[0]
