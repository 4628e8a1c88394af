"""A notebook, its cells after `# %%`: tensors, a progress bar, a timeline and a plot of the losses."""

# %%
import retrograd as rg
from retrograd import nn
from retrograd.pipelining import TimelineRecorder
from retrograd.utils import progress

x = rg.linspace(-3, 3, 200)[:, None]
x[:5]

# %%
rg.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = rg.optim.Adam(model.parameters(), lr=1e-2)
losses = []
with TimelineRecorder() as run, progress(60, "training") as bar:
    for _ in range(60):
        loss = (model(x) - rg.sin(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        bar.advance(loss=losses[-1])
        run.step()

# %%
run.timeline()

# %%
import matplotlib.pyplot as plt

plt.plot(x, rg.sin(x), label="sine")
plt.plot(x, model(x).detach(), label="model")
plt.legend()

# %%
assert losses[-1] < 0.2 * losses[0]
