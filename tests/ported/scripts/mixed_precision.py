"""Training in mixed precision on the CPU: autocast, a gradient scaler, clipping after unscaling."""

import numpy as np
import torch
import torch.nn as nn


def main(steps=5):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    use_amp = True
    rng = np.random.default_rng(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4)).to(device)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.from_numpy(rng.integers(-4, 5, tuple(p.shape)) / 16.0))
    data = [torch.from_numpy(rng.integers(-4, 5, (8, 16)) / 4.0).float().to(device) for _ in range(4)]
    targets = [torch.from_numpy(rng.integers(0, 4, 8)).to(device) for _ in range(4)]
    loss_fn = nn.CrossEntropyLoss().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.5)
    scaler = torch.amp.GradScaler(device, enabled=use_amp)
    losses, dtypes = [], set()
    for epoch in range(steps):
        total = 0.0
        for input, target in zip(data, targets):
            with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=use_amp):
                output = net(input)
                dtypes.add(output.dtype == torch.bfloat16)
                loss = loss_fn(output, target)
                assert loss.dtype is torch.float32 or loss.dtype == torch.float32
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
            total += loss.detach().item()
        losses.append(round(total / len(data), 1))  # rounding to bfloat16 follows the order of sums
    with torch.inference_mode(), torch.amp.autocast("cpu", dtype=torch.bfloat16):
        assert net(data[0]).dtype == torch.bfloat16
    checkpoint = {"model": net.state_dict(), "scaler": scaler.state_dict()}
    scaler.load_state_dict(checkpoint["scaler"])
    return losses, {"low": list(dtypes) == [True], "scale": scaler.get_scale()}
