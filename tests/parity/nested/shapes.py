"""Operators that rearrange, join or select, of a nested tensor of shape (3, j, 4), as f(m, x)."""

from .common import x as dense


def assigned(x, key, value):
    x[key] = value
    return x


SHAPED = {
    "transpose(1, 2)": lambda m, x: x.transpose(1, 2),
    "transpose there and back": lambda m, x: x.transpose(1, 2).transpose(1, 2),
    "transpose of the components": lambda m, x: x.transpose(0, 1),
    "contiguous after transpose": lambda m, x: x.transpose(1, 2).contiguous(),
    "permute": lambda m, x: x.permute(0, 2, 1),
    "unflatten of the last": lambda m, x: x.unflatten(-1, (2, 2)),
    "heads": lambda m, x: x.unflatten(-1, (2, 2)).transpose(1, 2),
    "heads and back": lambda m, x: x.unflatten(-1, (2, 2)).transpose(1, 2).transpose(1, 2).flatten(2),
    "flatten of the last": lambda m, x: x.unflatten(-1, (2, 2)).flatten(-2, -1),
    "flatten of the ragged": lambda m, x: x.flatten(1),
    "view with -1": lambda m, x: x.view(3, -1, 2, 2),
    "reshape with -1": lambda m, x: x.reshape(3, -1, 2, 2),
    "unsqueeze at the end": lambda m, x: x.unsqueeze(-1),
    "unsqueeze before the ragged": lambda m, x: x.unsqueeze(1),
    "unsqueeze in front": lambda m, x: x.unsqueeze(0),
    "squeeze of the last": lambda m, x: x.unsqueeze(-1).squeeze(-1),
    "chunk of the last": lambda m, x: list(x.chunk(2, -1)),
    "chunk of the components": lambda m, x: list(x.chunk(2, 0)),
    "chunk of the ragged": lambda m, x: list(x.chunk(2, 1)),
    "split of the last": lambda m, x: list(x.split([1, 3], -1)),
    "cat of components": lambda m, x: m.cat([x, x], 0),
    "cat along the last": lambda m, x: m.cat([x, x.sin()], -1),
    "cat along the ragged": lambda m, x: m.cat([x, x.sin()], 1),
    "stack": lambda m, x: m.stack([x, x.sin()], -1),
    "select of a component": lambda m, x: x.select(0, 1),
    "select in the last": lambda m, x: x.select(-1, 2),
    "select in the ragged": lambda m, x: x.select(1, 0),
    "x[0]": lambda m, x: x[0],
    "x[-1]": lambda m, x: x[-1],
    "x[5]": lambda m, x: x[5],
    "x[1:]": lambda m, x: x[1:],
    "x[..., 1]": lambda m, x: x[..., 1],
    "x[..., 1:3]": lambda m, x: x[..., 1:3],
    "x[:, 0]": lambda m, x: x[:, 0],
    "x[:, 1:]": lambda m, x: x[:, 1:],
    "x[[0, 2]]": lambda m, x: x[[0, 2]],
    "x[x > 0]": lambda m, x: x[x > 0],
    "x[1, 0, 2]": lambda m, x: x[1, 0, 2],
    "narrow of the last": lambda m, x: x.narrow(-1, 1, 2),
    "index_select of components": lambda m, x: x.index_select(0, m.tensor([2, 0])),
    "index_select of the last": lambda m, x: x.index_select(-1, m.tensor([2, 0])),
    "masked_select": lambda m, x: m.masked_select(x, x > 0),
    "x[1] = 0": lambda m, x: assigned(x, 1, 0.0),
    "x[..., 0] = 1": lambda m, x: assigned(x, (..., 0), 1.0),
    "repeat_interleave": lambda m, x: x.repeat_interleave(2, -1),
    "expand": lambda m, x: x.unsqueeze(-1).expand(-1, -1, -1, 2),
    "expand_as": lambda m, x: dense(m, 4).expand_as(x),
}
