"""Predict sine waves by two LSTM cells that LBFGS trains with a closure, as PyTorch's time sequence example does."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


class Sequence(nn.Module):
    def __init__(self, hidden=12):
        super(Sequence, self).__init__()
        self.hidden = hidden
        self.lstm1 = nn.LSTMCell(1, hidden)
        self.lstm2 = nn.LSTMCell(hidden, hidden)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), self.hidden, dtype=torch.double)
        c_t = torch.zeros(input.size(0), self.hidden, dtype=torch.double)
        h_t2 = torch.zeros(input.size(0), self.hidden, dtype=torch.double)
        c_t2 = torch.zeros(input.size(0), self.hidden, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for i in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


def main(steps=5):
    np.random.seed(0)
    torch.manual_seed(0)
    T, L, N = 6, 20, 8
    x = np.empty((N, L), "int64")
    x[:] = np.array(range(L)) + np.random.randint(-4 * T, 4 * T, N).reshape(N, 1)
    data = np.sin(x / 1.0 / T).astype("float64")
    input, target = torch.from_numpy(data[2:, :-1]), torch.from_numpy(data[2:, 1:])
    test_input, test_target = torch.from_numpy(data[:2, :-1]), torch.from_numpy(data[:2, 1:])
    seq = Sequence()
    seq.double()
    for p in seq.parameters():
        p.data.copy_(torch.from_numpy(np.random.uniform(-0.3, 0.3, p.shape)))
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=4, history_size=10, line_search_fn="strong_wolfe")
    losses, tests = [], []
    for i in range(steps):

        def closure():
            optimizer.zero_grad()
            out = seq(input)
            loss = criterion(out, target)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
        with torch.no_grad():
            future = 5
            pred = seq(test_input, future=future)
            tests.append(criterion(pred[:, :-future], test_target).item())
            y = pred.detach().numpy()
    state = optimizer.state[optimizer.param_groups[0]["params"][0]]
    return losses, {"tests": tests, "future": y, "evaluations": state["func_evals"]}
