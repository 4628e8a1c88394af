"""A hook exchanges the gradients of DistributedDataParallel, and futures follow operations between ranks."""

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from retrograd.futures import Future
from retrograd.nn.parallel import DistributedDataParallel as Replicas

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def replicas(hook=None, state=None, **options):
    rng = np.random.default_rng(1)  # the generator of the package is shared by the threads
    model = rg.nn.Sequential(rg.nn.Linear(4, 300), rg.nn.Tanh(), rg.nn.Linear(300, 2))
    with rg.no_grad():
        for p in model.parameters():
            p.copy_(0.1 * rng.normal(size=p.shape))
    made = Replicas(model, **options)
    if hook is not None:
        made.register_comm_hook(state, hook)
    return made


def gradients_of(model):
    """Return the gradients of this rank's part of the mean loss."""
    share = len(X) // dist.get_world_size()
    model(rg.tensor(X[dist.get_rank() * share :][:share])).square().mean().backward()
    return [p.grad.numpy().copy() for p in model.parameters()]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("as_views", [False, True])
@pytest.mark.parametrize(
    ("hook", "tolerance"),
    [
        (hooks.allreduce_hook, 1e-6),
        (hooks.fp16_compress_hook, 2e-3),
        (hooks.bf16_compress_hook, 2e-2),
        (hooks.fp16_compress_wrapper(hooks.allreduce_hook), 2e-3),
        (hooks.bf16_compress_wrapper(hooks.allreduce_hook), 2e-2),
    ],
)
def test_the_hooks_of_pytorch_average_gradients(ranks, as_views, hook, tolerance):
    options = {"bucket_cap_mb": 0.001, "gradient_as_bucket_view": as_views}
    means = dist.run_threads(lambda: gradients_of(replicas(**options)), ranks)[0]
    for found in dist.run_threads(lambda: gradients_of(replicas(hook, **options)), ranks):
        for g, mean in zip(found, means, strict=True):
            assert g.dtype == np.float32
            np.testing.assert_allclose(g, mean, rtol=tolerance, atol=tolerance)


def test_a_hook_gets_each_bucket_with_its_gradients_and_decides_about_their_values():
    def script():
        seen = []

        def keep(state, bucket):
            seen.append((state, bucket.index(), bucket.is_last(), len(bucket.parameters())))
            assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
            bucket.gradients()[0].fill_(dist.get_rank())
            future = Future()
            future.set_result(bucket.buffer())
            return future

        model = replicas(keep, "state", bucket_cap_mb=0.001)
        assert all((g == dist.get_rank()).all() for g in gradients_of(model))
        return seen

    for seen in dist.run_threads(script, 2):
        assert seen == [("state", number, number == 3, 1) for number in range(4)]


def test_ranks_without_batches_take_part_by_the_hook():
    def script():
        model = replicas(hooks.allreduce_hook)
        with model.join():
            for _ in range(1 + dist.get_rank()):
                model.zero_grad()
                model(rg.tensor(X)).square().mean().backward()
        return [p.grad.numpy() for p in model.parameters()]

    both, half = dist.run_threads(script, 2)
    for g, part in zip(both, half, strict=True):
        np.testing.assert_allclose(part, g / 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        (lambda bucket: bucket.buffer(), TypeError, "the hook returned a Tensor.*must return a Future"),
        (lambda bucket: done(bucket.buffer()[:1]), ValueError, "must be a tensor of the bucket's 2102 elements"),
        (lambda bucket: done(None), ValueError, "must be a tensor of the bucket's 2102 elements"),
        (lambda bucket: done(bucket.buffer()).then(lambda _: 1 / 0), ZeroDivisionError, "division"),
    ],
)
def test_what_a_hook_returns_is_checked(result, error, words):
    def script():
        model = replicas(lambda state, bucket: result(bucket))
        with pytest.raises(error, match=words):
            gradients_of(model)

    dist.run_threads(script, 2)


def done(value):
    future = Future()
    future.set_result(value)
    return future


def test_one_hook_can_be_registered_if_it_can_be_called():
    def script():
        model = replicas()
        with pytest.raises(TypeError, match="must be callable"):
            model.register_comm_hook(None, 3)
        model.register_comm_hook(None, hooks.allreduce_hook)
        with pytest.raises(RuntimeError, match="can only be called once"):
            model.register_comm_hook(None, hooks.allreduce_hook)

    dist.run_threads(script, 1)


def test_a_future_of_an_operation_ends_with_it_or_with_its_error():
    def script():
        x = rg.full((2,), float(dist.get_rank()))
        future = dist.all_reduce(x, async_op=True).get_future()
        chain = future.then(lambda one: one.value()[0] + 1).then(lambda one: one.value().tolist())
        assert chain.wait() == [2.0, 2.0]
        assert future.done()
        assert future.value()[0] is x
        dist.barrier()
        late = dist.get_rank() == 0 and dist.all_reduce(x, async_op=True)
        if late:  # the other rank's script is over
            assert isinstance(_error(late.get_future().then(lambda one: one.value())), dist.work.PeerLost)

    dist.run_threads(script, 2)


def _error(future):
    try:
        future.wait()
    except Exception as error:
        return error
    return None
