"""The model, the state and the helpers of all random sessions."""

PREAMBLE = """
import copy, threading, types
import retrograd as rg
from retrograd import func, nn
from retrograd.nn import functional as F
rg.manual_seed(0)
def num(seed, *shape):
    return rg.randn(*(shape or (4, 3)), generator=rg.Generator().manual_seed(seed))
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm, self.drop = nn.Linear(3, 3), nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.3)
        self.scale, self.flag = 1.5, True
        self.register_buffer("count", rg.zeros(()))
    def forward(self, x, k=1.0):
        self.count += 1
        h = self.drop(self.norm(self.a(x)).tanh())
        if self.training: h = h * self.scale
        if self.flag: h = h + x
        return self.b(h) * k
class Part(rg.Tensor): pass
model, factor, log, handles, outer = Block(), 2.0, [], [], num(4)
s = types.SimpleNamespace(h=num(1), n=0, items=[num(2)], d={"a": num(3), "k": 2.0}, mode="a", time=0.0)
def make():
    inner = num(5)
    def get(x): return x * inner
    def put(v):
        nonlocal inner
        inner = v
    return get, put
get, put = make()
def generate(x, n):
    for i in range(n): yield x * (i + 1)
def helper(x, k=2.0): return x * k + 1
def total(r):
    if isinstance(r, rg.Tensor): return r.sum()
    return sum(map(total, r.values() if isinstance(r, dict) else r)) if isinstance(r, (dict, list, tuple)) else 0
def backward(r):
    loss = total(r)
    if loss.requires_grad: loss.backward()
    return r
def in_thread(f, x):
    out = []
    def run():
        try: out.append(f(x))
        except Exception as error: out.append(type(error).__name__)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return out[0]
def under(manager, f, x):
    with manager: return f(x)
state = lambda: [*vars(s).values(), log, outer]
"""
USUAL = ["num({i})", "num({i}, 2, 3)", "num({i}, 6, 3)"]
