"""A program that is interrupted at random moments and checks that its thread state is restored; run by a test.

python interrupted.py INTERRUPTS SEED
"""

import random
import signal
import sys
import warnings

import numpy as np

import retrograd as rg
from retrograd.autograd import forward_ad
from retrograd.func import grad, hessian, jet, jvp, vmap
from retrograd.utils.checkpoint import checkpoint

if __package__:
    from .thread_state import thread_state
else:
    from thread_state import thread_state

X = rg.tensor(np.random.default_rng(0).normal(size=(4, 3)))
LARGE = rg.ones(200, 200)


class Cube(rg.autograd.Function):
    """x cubed."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0] ** 2


def leaf():
    return X.clone().requires_grad_()


def wave(x):
    return (rg.sin(x) * x).sum()


@rg.no_grad()
def unrecorded(n):
    for i in range(n):
        yield (X * i).sum()


def modes():
    with rg.no_grad(), rg.enable_grad():
        X.sum()
    with rg.inference_mode():
        X.sum()
    list(unrecorded(3))


def hooks():
    with rg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        x = leaf()
        with x.register_hook(lambda g: g * 1):
            wave(x).backward()
    with rg.autograd.graph.allow_mutation_on_saved_tensors():
        y = leaf() * 1
        z = (y * y).sum()
        y.zero_()
        z.backward()


def transforms():
    hessian(wave)(X[0])
    vmap(grad(wave))(X)
    jvp(wave, (X,), (X,))
    jet(wave, (X,), ([X],))
    vmap(lambda x: rg.rand(2) * x[0], randomness="same", chunk_size=2)(X)


def gradients_inside():
    w = rg.ones(3, dtype=rg.float64, requires_grad=True)

    def step(x):
        (w * x).sum().backward()
        return w.grad

    vmap(step)(X)


def duals():
    with forward_ad.dual_level():
        forward_ad.unpack_dual(wave(forward_ad.make_dual(X, X)))


def functions():
    Cube.apply(leaf()).sum().backward()
    vmap(Cube.apply)(X)


def checkpoints():
    checkpoint(lambda x: wave(rg.nn.functional.dropout(x, 0.5)), leaf(), use_reentrant=False).backward()


def traces():
    rg.fx.trace(wave, X)


def watchers():
    # Not set_detect_anomaly, which sets the mode when it is called: an interrupt before the block leaves it on.
    with rg.autograd.detect_anomaly(), rg.autograd.profiler.profile():
        wave(leaf()).backward()


def kernels():
    rg.softmax(LARGE @ LARGE, 0).exp().sum()


WORK = [modes, hooks, transforms, gradients_inside, duals, functions, checkpoints, traces, watchers, kernels]


class Interrupts:
    """Raise KeyboardInterrupts at random moments, one after each call of `arm`.

    A timer's signal raises them, at the same points as Ctrl-C.  Waiting for a second thread that sends them would be
    unsafe: an interrupt within `threading.Event.wait` may leave the lock of the event locked forever.
    """

    def __init__(self, random):
        self.arrived = False
        self._random = random
        signal.signal(signal.SIGALRM, self._interrupt)

    def arm(self):
        """Start the timer."""
        self.arrived = False
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + self._random.random() * 0.005)

    def _interrupt(self, number, frame):
        self.arrived = True
        raise KeyboardInterrupt


def work_until_interrupted(random, interrupts):
    """Return the name of the last piece of work that was started."""
    started = ["no work"]
    try:
        work_forever(random, interrupts, started)
    except KeyboardInterrupt:
        return started[-1]


def work_forever(random, interrupts, started):
    """Work until a KeyboardInterrupt, and append the name of each piece of work.

    Not in the block that catches it: from Python 3.12 on, the jump at the end of a loop can be outside of that block.
    """
    interrupts.arm()
    while True:
        for work in random.sample(WORK, len(WORK)):
            started.append(work.__name__)
            work()
            if interrupts.arrived:  # Python has ignored it, within a finaliser
                interrupts.arm()


def check_numbers():
    """Check that derivatives, transforms and the thread pool still give correct results."""
    x = rg.tensor([2.0], requires_grad=True)
    (x**3).backward()
    assert x.grad.tolist() == [12.0]
    assert vmap(grad(lambda x: x**3))(rg.tensor([1.0, 2.0])).tolist() == [3.0, 12.0]
    assert (LARGE @ LARGE).tolist() == [[200.0] * 200] * 200


def main(count, seed):
    warnings.simplefilter("ignore")
    rg.set_num_threads(2)
    chance = random.Random(seed)
    for work in WORK:
        work()
    fresh = thread_state()
    interrupts = Interrupts(random.Random(seed + 1))
    for _ in range(count):
        last = work_until_interrupted(chance, interrupts)
        changed = {name: value for name, value in thread_state().items() if value != fresh[name]}
        assert not changed, f"after an interrupt in {last}: {changed}"
        check_numbers()
    print("interrupts", count)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
