"""Classify handwritten digits of which 5 per class have a label, by a graph convolutional network.

    pip install "retrograd[scipy,demo]"
    python examples/graph_convolution.py

T. N. Kipf and M. Welling, Semi-supervised Classification with Graph Convolutional Networks, ICLR 2017. The graph joins
each of the 1797 images that come with scikit-learn with its nearest neighbours; its normalized adjacency matrix is a
sparse tensor, and each layer multiplies by it, so an image learns from its neighbours. The same network without the
graph shows what they are worth.
"""

from pathlib import Path

import numpy as np
import sklearn.datasets
import sklearn.neighbors

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F


class GraphConvolution(nn.Module):
    """x -> adjacency @ (x W) + b: each node gets the weighted sum of its neighbours' features."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.linear = nn.Linear(before, after, bias=False)
        self.bias = nn.Parameter(rg.zeros(after))

    def forward(self, adjacency: rg.Tensor, x: rg.Tensor) -> rg.Tensor:
        return adjacency @ self.linear(x) + self.bias


class Network(nn.Module):
    """Two graph convolutions; maps features (n, pixels) to logits (n, 10)."""

    def __init__(self, pixels: int, width: int) -> None:
        super().__init__()
        self.first = GraphConvolution(pixels, width)
        self.second = GraphConvolution(width, 10)

    def forward(self, adjacency: rg.Tensor, x: rg.Tensor) -> rg.Tensor:
        x = F.dropout(F.relu(self.first(adjacency, x)), 0.5, self.training)
        return self.second(adjacency, x)


def neighbour_graph(features: np.ndarray, neighbours: int) -> rg.Tensor:
    """Return D^-1/2 (A + I) D^-1/2 as a sparse tensor; A joins each node with its nearest neighbours."""
    joined = sklearn.neighbors.kneighbors_graph(features, neighbours)
    joined = ((joined + joined.T) > 0).astype(np.float32).tolil()
    joined.setdiag(1.0)
    adjacency = rg.sparse.from_scipy(joined.tocsr())
    scale = adjacency.sum(1).to_dense().rsqrt()
    return scale[:, None] * adjacency * scale


def labelled_nodes(labels: np.ndarray, count: int) -> np.ndarray:
    """Return the numbers of the first `count` nodes of each class."""
    return np.concatenate([np.flatnonzero(labels == label)[:count] for label in range(10)])


def train(model: nn.Module, adjacency: rg.Tensor, x: rg.Tensor, y: rg.Tensor, known: rg.Tensor, epochs: int) -> None:
    """Train with the labels of the known nodes only."""
    optimizer = optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    model.train()
    for _ in range(epochs):
        optimizer.zero_grad()
        F.cross_entropy(model(adjacency, x)[known], y[known]).backward()
        optimizer.step()
    model.eval()


def draw(path: Path, adjacency: rg.Tensor, found: dict[str, tuple[np.ndarray, float]], labels: np.ndarray) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, *others = figure.subplots(1, 3, width_ratios=[1, 1, 1])
    order = np.argsort(labels, kind="stable")
    place = np.argsort(order)
    rows, columns = adjacency.to_sparse_coo().indices().numpy()
    left.plot(place[columns], place[rows], ",", color="C0")
    left.set(title="graph, images sorted by digit", xticks=[], yticks=[], aspect="equal")
    left.invert_yaxis()
    for axes, (name, (predicted, accuracy)) in zip(others, found.items(), strict=True):
        table = np.zeros((10, 10))
        np.add.at(table, (labels, predicted), 1)
        axes.imshow(np.sqrt(table), cmap="Blues")
        axes.set(title=f"{name}: {accuracy:.1%}", xlabel="predicted", xticks=range(10))
        axes.set_yticks(range(10))
    others[0].set_ylabel("digit")
    figure.savefig(path, dpi=120)


def main(
    epochs: int = 200, width: int = 64, neighbours: int = 8, picture: Path | None = Path("graph_convolution.png")
) -> dict[str, float]:
    images, labels = sklearn.datasets.load_digits(return_X_y=True)
    x, y = rg.tensor(images / 16, dtype=rg.float32), rg.tensor(labels)
    known = rg.tensor(labelled_nodes(labels, 5))
    hidden = rg.ones(len(labels), dtype=rg.bool)
    hidden[known] = False
    predicted, accuracy = {}, {}
    graphs = {"with the graph": neighbour_graph(images, neighbours), "without": rg.eye(len(labels)).to_sparse_csr()}
    for name, adjacency in graphs.items():
        rg.manual_seed(0)
        model = Network(x.shape[1], width)
        train(model, adjacency, x, y, known, epochs)
        with rg.no_grad():
            predicted[name] = model(adjacency, x).argmax(1)
        accuracy[name] = (predicted[name] == y)[hidden].float().mean().item()
        print(f"{name}: accuracy {accuracy[name]:.1%} on the {int(hidden.sum())} images without a label")
    if picture is not None:
        found = {name: (guess.numpy(), accuracy[name]) for name, guess in predicted.items()}
        draw(picture, graphs["with the graph"], found, labels)
    return accuracy


if __name__ == "__main__":
    main()
