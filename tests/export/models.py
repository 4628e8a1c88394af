"""Models shared by the tests of export."""

import retrograd as rg
from retrograd import nn


class BatchNorm(nn.Module):
    """Batch normalization with running statistics and a counter."""

    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(rg.ones(channels))
        self.bias = nn.Parameter(rg.zeros(channels))
        self.register_buffer("running_mean", rg.zeros(channels))
        self.register_buffer("running_var", rg.ones(channels))
        self.register_buffer("num_batches_tracked", rg.tensor(0))

    def forward(self, x):
        if self.training:
            self.num_batches_tracked.add_(1)
        statistics = self.running_mean, self.running_var
        return nn.functional.batch_norm(x, *statistics, self.weight, self.bias, training=self.training)


class ConvNet(nn.Module):
    """A convolution, batch normalization and a linear layer."""

    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(rg.randn(2, 1, 3, 3))
        self.norm = BatchNorm(2)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.norm(nn.functional.conv2d(x, self.kernel)).relu().flatten(1))


class Tied(nn.Module):
    """An embedding whose weight is shared with the output layer."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Parameter(rg.randn(7, 4))
        self.block = nn.Sequential(nn.Linear(4, 4), nn.GELU())
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding
        self.register_buffer("scale", rg.tensor(2.0), persistent=False)

    def forward(self, tokens):
        return self.head(self.block(self.embedding[tokens])) * self.scale


class Trees(nn.Module):
    """Take and return nested structures."""

    def forward(self, batch, *, weights):
        x, y = batch["pair"]
        return {"sum": x * weights[0] + y, "list": [x, (y * weights[1], 3)]}


def encoder():
    """Return a transformer layer without random numbers."""
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)


def copied_state(module):
    """Return copies of the values of the module's state dict."""
    return {name: value.detach().clone() for name, value in module.state_dict().items()}
