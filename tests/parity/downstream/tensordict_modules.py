"""TensorDict: dicts of tensors with a common batch, modules on them, and `vmap` over them."""

import torch
from seeded import array, fill
from tensordict import LazyStackedTensorDict, TensorDict, tensorclass
from tensordict.nn import TensorDictModule, TensorDictParams, TensorDictSequential
from torch import nn


@tensorclass
class Example:
    """An input and its target."""

    x: torch.Tensor
    y: torch.Tensor


def answers():
    """Return entries, results, gradients and trained parameters."""
    found = {}

    def keep(name, value):
        if isinstance(value, torch.Tensor):
            found[name] = value.detach().numpy()
        else:
            for key, entry in value.items(True, True):
                keep(f"{name} {'.'.join(key) if isinstance(key, tuple) else key}", entry)

    data = TensorDict({"x": array(6, 3), "nested": {"y": array(6, 2, seed=3)}}, batch_size=[6])
    for name, value in {
        "index": data[2:5],
        "mask": data[torch.arange(6) % 2 == 0],
        "view": data.view(2, 3),
        "stack": torch.stack([data, data.apply(lambda x: x * 2)], 1),
        "cat": torch.cat([data[:2], data[4:]], 0),
        "split": data.split(4)[1],
        "gather": data.gather(0, torch.tensor([3, 0, 5])),
        "flat": data.flatten_keys("."),
        "arithmetic": (data + 1) * data,
        "norm": data.norm(),
        "mean": data.mean(0),
        "double": data.to(torch.float64),
        "lazy": LazyStackedTensorDict(data[0], data[1], stack_dim=0)[1],
        "example": Example(x=data["x"], y=data["nested", "y"], batch_size=[6])[1:3].to_tensordict(),
    }.items():
        keep(name, value)
    changed = data.clone()
    changed[1] = data[0]
    changed["nested", "z"] = data["x"].sum(-1, keepdim=True)
    keep("changed", changed.exclude("x"))
    with data.unlock_() as unlocked:
        keep("unlocked", unlocked)

    model = TensorDictSequential(
        TensorDictModule(fill(nn.Linear(3, 4)), ["x"], ["hidden"]),
        TensorDictModule(fill(nn.Sequential(nn.Tanh(), nn.Linear(4, 2))), ["hidden"], [("nested", "out")]),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(3):
        out = model(data.clone())
        loss = nn.functional.mse_loss(out["nested", "out"], out["nested", "y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found[f"loss {step}"] = loss.detach().numpy()
    keep("trained", TensorDict.from_module(model))
    net = fill(nn.Linear(3, 2))
    parameters = TensorDict.from_module(net)
    with (parameters.data * 2).to_module(net):
        keep("swapped", net(data["x"]))
    keep("back", net(data["x"]))
    keep("stacked module", TensorDict.from_modules(net, fill(nn.Linear(3, 2)), as_module=False).data)
    held = TensorDictParams(TensorDict({"w": array(3, 2), "deep": {"b": array(2)}}, []))
    (data["x"] @ held["w"] + held["deep", "b"]).square().sum().backward()
    keep("gradients", held.grad)

    def call(weights, x):
        with weights.to_module(net):
            return net(x)

    several = torch.stack([parameters.data, parameters.data * 3])
    keep("vmap modules", torch.vmap(call, (0, None))(several, data["x"]))
    keep("vmap dicts", torch.vmap(lambda td: td.set("s", td["x"].sum()))(data.clone()))
    keep("vmap both", torch.vmap(lambda td, x: td["x"] * x, (0, 0))(data, data["x"]))
    keep("grad", torch.func.grad(lambda w: call(w, data["x"]).square().sum())(parameters.data))
    return found
