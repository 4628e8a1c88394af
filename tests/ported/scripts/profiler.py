"""Profile a training loop: a schedule of steps, named ranges, a table of averages, traces for TensorBoard."""

import json
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler


def make_model():
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / 4))
    return model


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    with record_function("forward"):
        loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    with record_function("optimizer"):
        optimizer.step()
    return loss.item()


def main(steps=5):
    data = np.random.default_rng(1)
    x = torch.tensor(data.standard_normal((64, 16)), dtype=torch.float32)
    y = x[:, :4].argmax(1)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses, tables = [], []

    def save(prof):
        tables.append(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
        write(prof)

    with tempfile.TemporaryDirectory() as folder:
        write = tensorboard_trace_handler(folder, worker_name="worker0")
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
            on_trace_ready=save,
            record_shapes=True,
            profile_memory=True,
            with_stack=True,
        ) as prof:
            for _ in range(steps):
                losses.append(train_step(model, optimizer, x, y))
                prof.step()
        (trace,) = Path(folder).glob("worker0.*.pt.trace.json")
        recorded = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
        with profile(activities=[ProfilerActivity.CPU]) as whole:
            model(x)
        whole.export_chrome_trace(f"{folder}/whole.json")
    averages = {row.key: row.count for row in prof.key_averages()}
    assert "Self CPU" in tables[0]
    assert {"ProfilerStep#2", "ProfilerStep#3"} <= recorded and "ProfilerStep#1" not in recorded
    return losses, {"tables": len(tables), "forward": averages["forward"], "optimizer": averages["optimizer"]}
