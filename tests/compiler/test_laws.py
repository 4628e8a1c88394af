"""Laws of compiled functions: threads, errors in the middle, long runs, random numbers."""

import threading

import pytest

import retrograd as rg
from retrograd import nn

from .comparison import numbers, observe, state_of


def training(seed, compile, layers):
    """Return a step of a model with dropout, its parameters and its optimizer."""
    rg.manual_seed(seed)
    model = nn.Sequential(*layers())
    optimizer = rg.optim.Adam(model.parameters(), lr=0.01)
    schedule = rg.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)

    @compile
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss.detach()

    return step, list(model.parameters()), optimizer


def mlp():
    return [nn.Linear(6, 9), nn.BatchNorm1d(9), nn.ReLU(), nn.Dropout(0.3), nn.Linear(9, 4)]


def test_a_hundred_steps_have_the_eager_bits_and_draw_the_same_numbers():
    seen = []
    for compile in (lambda f: f, rg.compile):
        step, params, optimizer = training(0, compile, mlp)
        losses = [observe(step(numbers(8, 6, seed=i), rg.arange(8) % 4)) for i in range(100)]
        seen.append((losses, state_of(params), str(rg.get_rng_state()), optimizer.param_groups[0]["lr"]))
    assert seen[0] == seen[1]


def test_a_recurrent_layer_over_64_steps_has_the_eager_bits():
    seen = []
    for compile in (lambda f: f, rg.compile):
        rg.manual_seed(0)
        layer = nn.LSTM(5, 7)
        optimizer = rg.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)

        @compile
        def step(x, layer=layer, optimizer=optimizer):
            optimizer.zero_grad()
            out, (h, c) = layer(x)
            loss = out.square().mean() + (h * c).sum()
            loss.backward()
            optimizer.step()
            return loss.detach(), h.detach()

        results = [observe(step(numbers(64, 3, 5, seed=i))) for i in range(4)]
        seen.append((results, state_of(layer.parameters())))
    assert seen[0] == seen[1]


def in_threads(count, work):
    """Run work(number) on several threads at once; raise the first error of any."""
    errors, start = [], threading.Barrier(count)

    def run(number):
        start.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_one_function_called_by_several_threads_at_once_gives_each_its_results():
    w = numbers(40, 40)

    def f(x):
        x = x.detach().requires_grad_()
        loss = nn.functional.cross_entropy((x @ w).tanh() @ w, rg.arange(30) % 40)
        return loss.detach(), rg.autograd.grad(loss, x)[0]

    compiled = rg.compile(f, fullgraph=True)
    expected = [observe(f(numbers(30, 40, seed=k))) for k in range(4)]

    def work(number):
        for _ in range(50):
            assert observe(compiled(numbers(30, 40, seed=number))) == expected[number]

    in_threads(4, work)
    assert len(compiled.programs) == 1  # the other threads wait for the first capture, and use its program


def test_threads_with_models_of_their_own_train_them_like_eager_code():
    def train(compile, number):
        step, params, _ = training(number, compile, lambda: [nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4)])
        for i in range(20):
            step(numbers(8, 6, seed=i), rg.arange(8) % 4)
        return state_of(params)

    expected = [train(lambda f: f, number) for number in range(3)]
    prepared = [training(n, rg.compile, lambda: [nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4)]) for n in range(3)]

    def work(number):
        for i in range(20):
            prepared[number][0](numbers(8, 6, seed=i), rg.arange(8) % 4)

    in_threads(3, work)
    assert [state_of(params) for _, params, _ in prepared] == expected


@pytest.mark.parametrize("position", ["forward", "loss"])
def test_an_error_in_the_middle_writes_what_the_eager_call_has_written_by_then(position):
    """A class out of range is found when a kernel runs: the counter was written before, parameters were not."""
    seen = []
    for compile in (lambda f: f, rg.compile):
        rg.manual_seed(0)
        table = nn.Embedding(5, 4)
        optimizer, counter = rg.optim.Adam(table.parameters()), rg.zeros(1)

        @compile
        def step(ids, y, table=table, optimizer=optimizer, counter=counter):
            counter.add_(1)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(table(ids), y)
            counter.mul_(2)
            loss.backward()
            optimizer.step()
            return loss.detach()

        good, bad = rg.tensor([0, 1, 4]), rg.tensor([0, 9, 1])
        for _ in range(3):
            step(good, rg.tensor([0, 1, 2]))
        with pytest.raises(IndexError) as found:
            step(bad if position == "forward" else good, bad if position == "loss" else good % 4)
        states = [observe(t) for t in optimizer.state[table.weight].values()]
        seen.append((str(found.value), observe(counter), state_of(table.parameters()), states))
        step(good, rg.tensor([0, 1, 2]))
        seen[-1] += (state_of(table.parameters()),)
    assert seen[0] == seen[1]
