"""PyTorch Geometric: layers on graphs, pooling, batches of graphs, and training."""

import torch
from seeded import array, fill, integers, trained
from torch import nn
from torch_geometric import nn as gnn
from torch_geometric import utils
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

EDGES = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 5, 0, 3], [1, 0, 2, 1, 4, 3, 5, 4, 5, 0]])
LAYERS = {
    "GCNConv": lambda: gnn.GCNConv(4, 3),
    "GATConv": lambda: gnn.GATConv(4, 3, heads=2),
    "GATv2Conv": lambda: gnn.GATv2Conv(4, 3, heads=2, concat=False),
    "SAGEConv": lambda: gnn.SAGEConv(4, 3),
    "SAGEConv max": lambda: gnn.SAGEConv(4, 3, aggr="max"),
    "GraphConv": lambda: gnn.GraphConv(4, 3),
    "GINConv": lambda: gnn.GINConv(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)), train_eps=True),
    "ChebConv": lambda: gnn.ChebConv(4, 3, K=2),
    "TAGConv": lambda: gnn.TAGConv(4, 3, K=2),
    "SGConv": lambda: gnn.SGConv(4, 3, K=2),
    "ARMAConv": lambda: gnn.ARMAConv(4, 3),
    "LEConv": lambda: gnn.LEConv(4, 3),
    "EdgeConv": lambda: gnn.EdgeConv(nn.Linear(8, 3)),
    "PNAConv": lambda: gnn.PNAConv(
        4, 3, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([0, 2, 4])
    ),
}


class Classifier(nn.Module):
    """Two layers, and the mean over each graph."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = gnn.GCNConv(4, 6), gnn.GraphNorm(6), gnn.GATConv(6, 5)
        self.last = nn.Linear(10, 2)

    def forward(self, data):
        """Return the scores of each graph."""
        x = self.norm(self.first(data.x, data.edge_index).relu(), data.batch)
        x = self.second(x, data.edge_index)
        return self.last(torch.cat([gnn.global_mean_pool(x, data.batch), gnn.global_max_pool(x, data.batch)], 1))


def graphs():
    """Return four graphs."""
    return [
        Data(x=array(6, 4, seed=i), edge_index=EDGES.roll(i, 1)[:, : 6 + i], y=torch.tensor([i % 2])) for i in range(4)
    ]


def answers():
    """Return outputs, gradients and parameters."""
    found = {}
    x = array(6, 4)
    for name, make in LAYERS.items():
        found.update(trained(name, fill(make()), x, EDGES))
    batch = Batch.from_data_list(graphs())
    found["batch"], found["edges"] = batch.batch.numpy(), batch.edge_index.numpy()
    found["part"] = batch.get_example(2).edge_index.numpy()
    loss = lambda out: nn.functional.cross_entropy(out, batch.y)  # noqa: E731
    found.update(trained("classifier", fill(Classifier()), batch, loss=loss, steps=3))
    found["loader"] = torch.cat([part.x.sum(0) for part in DataLoader(graphs(), batch_size=3)]).numpy()
    for name, pool in {"top": gnn.TopKPooling(4, 0.5), "sag": gnn.SAGPooling(4, 0.5)}.items():
        out = fill(pool)(batch.x, batch.edge_index, batch=batch.batch)
        found.update({f"pool {name} {i}": part.detach().numpy() for i, part in enumerate(out) if part is not None})
    aggregated = gnn.aggr.MultiAggregation(["mean", "sum", "min", "max", "var", "softmax"])(batch.x, batch.batch)
    found["aggregated"] = aggregated.detach().numpy()
    for name, value in {
        "degree": utils.degree(EDGES[0]),
        "softmax": utils.softmax(array(10), EDGES[1]),
        "loops": utils.add_self_loops(EDGES)[0],
        "undirected": utils.to_undirected(EDGES),
        "coalesced": utils.coalesce(torch.cat([EDGES, EDGES], 1)),
        "dense": utils.to_dense_adj(EDGES)[0],
        "padded": utils.to_dense_batch(batch.x, batch.batch)[0],
        "laplacian": utils.get_laplacian(EDGES, normalization="sym")[1],
        "scatter": utils.scatter(x, integers(3, 6), reduce="mean"),
        "subgraph": utils.subgraph([0, 1, 2], EDGES)[0],
    }.items():
        found[name] = value.numpy()
    return found
