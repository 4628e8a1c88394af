"""Random sessions: functions that share state are called, and anything changes between: calls equal eager ones."""

import random
import warnings

import pytest
from tests.tables import ALL_SAMPLES

import retrograd as rg

from .comparison import observe, state_of
from .test_common_steps import compile_source

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
"""
OPTIMIZERS = [
    "SGD(model.parameters(), lr=0.1, momentum=0.9)", "Adam(model.parameters(), lr=0.05)",
    "AdamW([{'params': model.a.parameters()}, {'params': model.b.parameters(), 'lr': 0.01}], lr=0.1)",
    "RMSprop(model.parameters(), lr=0.01)",
]  # fmt: skip
SCHEDULES = [
    "StepLR(optimizer, 2, 0.5)",
    "CosineAnnealingLR(optimizer, 10)",
    "LambdaLR(optimizer, lambda e: 1 / (1 + e))",
]
LINES = [
    "{v} = model({a})", "{v} = model({a}, k=factor)", "{v} = get({a})", "{v} = {a} * outer[:1]", "{v} = helper({a})",
    "{v} = {a} + s.h.mean(0)", "{v} = {a} * s.d['k']", "{v} = {a} * s.n", "{v} = {a} + s.items[0].mean(0)",
    "{v} = {a} * 2 if s.mode == 'a' else {a} - 1", "{v} = F.dropout({a}, 0.2)", "{v} = sum(generate({a}, 2))",
    "{v} = func.vmap(lambda r: r * 2 + r.sum())({a})", "{v} = func.grad(lambda t: (t * t).sum())({a}.detach())",
    "{v} = {a} if {a}.sum() > 0 else -{a}", "{v} = {a} * {a}.detach().mean().item()", "{v} = {a} * float(s.n % 3)",
    "{v} = func.jvp(lambda t: t.sin(), ({a}.detach(),), ({a}.detach(),))[1]", "{v} = rg.cat([{a}, s.h[:1]])[1:]",
    "{v} = func.functional_call(model, {{'a.weight': model.a.weight * 2}}, ({a},))", "{v} = {a} * (1 + model.training)",
    "{v} = {a} * (1 if rg.is_grad_enabled() else 2)", "{v} = next(iter([{a}, {a}])) + 1",
    "{v} = {a}.sin(); {v}[0] = 0.5",
    "{v} = rg.stack(list({a}.unbind(0))).sum(0, keepdim=True) + {a}",
]  # fmt: skip
BLOCKS = [
    "with rg.no_grad(): {v} = {a} * 3",
    "with rg.autocast('cpu', dtype=rg.bfloat16): {v} = ({a} @ model.a.weight.to({a}.dtype)).to({a}.dtype)",
    "with rg.enable_grad(): {v} = model.b({a})",
    "try: {v} = {a}[s.n % 5] + {a}\n    except IndexError: {v} = {a}[0] + {a}",
    "if s.n > 2: {v} = {a} * 7\n    else: {v} = {a} + 1",
]
EFFECTS = [
    "s.h = {a}.detach()", "s.h = s.h * 0.9 + {a}.mean(0).detach()", "s.n += 1", "s.items[0] = {a}.detach() * 1",
    "s.d['a'] = {a}.detach()", "s.time += 0.5", "put({a}.detach().mean(0))", "log.append({a}.detach().sum())",
    "model.b.bias.data.mul_(0.9)", "for p in model.a.parameters(): p.data = p.data * 0.95",
]  # fmt: skip
TRAINING = [
    "optimizer.zero_grad()\n    loss = F.mse_loss(model({a}), {a}.detach())\n"
    "    if loss.requires_grad: loss.backward(); optimizer.step(); schedule.step()\n    log.append(loss.detach())",
    "loss = model({a}).square().mean()\n    if loss.requires_grad: loss.backward()",
    "nn.utils.clip_grad_norm_(model.parameters(), 0.5)",
]
RESULTS = ["{a}", "{a}.detach()", "({a}, x)", "{{'a': {a}.detach(), 'n': s.n}}", "[{a}.detach(), s.h]"]
EVENTS = [
    "model.train()", "model.eval()", "model.norm.eval()", "model.drop.p = 0.5", "model.scale = 2.5",
    "model.flag = not model.flag", "s.mode = 'b' if s.mode == 'a' else 'a'", "s.n = 0", "s.n += 3", "s.h = num(11)",
    "s.h = num(11, 2, 3)", "s.h.mul_(0.5)", "s.items[0] = s.h", "s.items = [s.h[:]]", "s.d['k'] = 3.0",
    "s.d['z'] = num(13)", "outer = num(12)", "outer = s.h", "factor = 3.0", "factor = rg.tensor(1.5)",
    "put(num(14)[0])",
    "handles.append(model.a.register_forward_hook(lambda m, i, o: o * 1.25))",
    "handles.append(model.register_forward_pre_hook(lambda m, a: (a[0] + 0.5, *a[1:])))",
    "handles.append(model.b.weight.register_hook(lambda g: g * 0.5))", "handles and handles.pop().remove()",
    "handles.append(model.a.weight.register_hook(lambda g: log.append(g.sum())))",
    "handles.append(model.b.register_full_backward_hook(lambda m, gi, go: None))",
    "handles.append(model.a.weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5)))",
    "handles.append(optimizer.register_step_post_hook(lambda o, a, k: log.append(1)))",
    "optimizer.param_groups[0]['lr'] *= 0.5", "optimizer.add_param_group({'params': [nn.Parameter(num(16))]})",
    "schedule.step()", "optimizer.zero_grad()", "model.zero_grad(set_to_none=False)",
    "model.a.weight.requires_grad_(False)", "model.a.weight.requires_grad_(True)", "model.b.bias = None",
    "model.a = nn.Linear(3, 3)", "model.b.weight.data = num(17, 3, 3)", "model.norm = nn.Identity()",
    "model.double(); model.float()", "model.a.weight.grad = num(18, 3, 3)", "model.count.zero_()", "rg.rand(1)",
    "optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))", "helper = lambda x: x * 3",
    "model.load_state_dict({k: v * 0.5 for k, v in model.state_dict().items()})", "f = copy.deepcopy(f)", "f, g = g, f",
    "model.forward = types.MethodType(lambda self, x, k=1.0: self.a(x) * k, model)", "vars(model).pop('forward', None)",
    "get = lambda x: x * 0.5", "s.d = dict(reversed(s.d.items()))",
]  # fmt: skip
USUAL = ["num({i})", "num({i}, 2, 3)", "num({i}, 6, 3)"]
ARGUMENTS = [
    *USUAL, "num({i}).double()", "num({i}).requires_grad_()", "num({i}, 3, 4).t()", "num({i}, 8, 3)[::2]", "s.h",
    "model(num({i}))", "num({i}).as_subclass(Part)", "num({i}, 1, 3).expand(4, 3)", "model.a.weight",
]  # fmt: skip
CALLS = [
    "rg.no_grad()({f})({x})", "in_thread({f}, {x})", "func.vmap({f})(rg.stack([{x}, {x}]))", "backward({f}({x}))",
    "under(rg.inference_mode(), {f}, {x})", "func.grad(lambda t: total({f}(t)))({x})", "backward({f}({x}))",
    "under(rg.autocast('cpu', dtype=rg.bfloat16), {f}, {x})",
]  # fmt: skip


def random_function(choose, name):
    """Return the code of a function that computes, and may change state."""
    known, lines = ["x"], []
    for i in range(choose.randint(1, 6)):
        kinds = choose.choice([LINES, LINES, LINES, BLOCKS, EFFECTS])
        lines.append(choose.choice(kinds).format(v=f"v{i}", a=choose.choice(known[-3:])))
        known += [f"v{i}"] if kinds is not EFFECTS else []
    if choose.random() < 0.4:
        lines.append(choose.choice(TRAINING).format(a=known[-1]))
    lines.append(f"return {choose.choice(RESULTS).format(a=known[-1])}")
    return f"@compile\ndef {name}(x):\n" + "".join(f"    {line}\n" for line in lines)


def random_session(seed):
    """Return the code of the functions, and the changes and calls that follow; those begin with "="."""
    choose = random.Random(seed)
    code = f"{PREAMBLE}optimizer = rg.optim.{choose.choice(OPTIMIZERS)}\n"
    code += f"schedule = rg.optim.lr_scheduler.{choose.choice(SCHEDULES)}\n{random_function(choose, 'f')}"
    code += random_function(choose, "g") if choose.random() < 0.7 else "g = f\n"
    usual, changes, events = choose.choice(USUAL), choose.choice([0.15, 0.35, 0.65]), []
    for i in range(choose.randint(6, 16)):
        if choose.random() < changes:
            events.append(choose.choice(EVENTS))
        x = (usual if choose.random() < 0.7 else choose.choice(ARGUMENTS)).format(i=30 + i)
        call = "{f}({x})" if choose.random() < 0.75 else choose.choice(CALLS)
        events.append("=" + call.format(f=choose.choice("ffg"), x=x))
    return code, events


def seen_of(value):
    """Return what is observed of a value: of a tensor of inference mode, which has no version, the numbers."""
    if isinstance(value, tuple | list):
        return [seen_of(member) for member in value]
    if isinstance(value, dict):
        return [(key, seen_of(member)) for key, member in value.items()]
    if not isinstance(value, rg.Tensor):
        return repr(value)
    try:
        return (type(value).__name__, observe(value)) if not value.is_inference() else value.tolist()
    except RuntimeError as error:  # it has escaped a transform
        return type(error)


def outcomes(session, compile):
    """Return what is observed of each change and call, or its error, and the functions."""
    code, events = session
    names, seen = {"compile": compile, "__name__": "session"}, []
    exec(compile_source(code), names)
    for event in events:
        try:
            seen.append(seen_of(eval(event[1:], names)) if event[0] == "=" else exec(event, names))
        except Exception as error:  # which a random call may raise, of any type
            seen.append((type(error), str(error).partition(" at ")[0]))
        state, model, optimizer = names["s"], names["model"], names["optimizer"]
        seen.append(seen_of([*vars(state).values(), names["log"], names["outer"]]))
        seen.append(state_of([t for t in [*model.parameters(), *model.buffers()] if not t.is_inference()]))
        states = optimizer.state_dict()["state"]
        seen.append({n: {key: seen_of(t * 1) for key, t in sorted(states[n].items())} for n in sorted(states)})
        seen.append([repr([group["lr"] for group in optimizer.param_groups]), str(rg.get_rng_state())])
    return seen, [names["f"], names["g"]]


@pytest.mark.parametrize("block", range(10))
def test_random_sessions_have_the_eager_results(block):
    programs, size = 0, 100 if ALL_SAMPLES else 6
    for seed in range(size * block, size * (block + 1)):
        session = random_session(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, _ = outcomes(session, lambda f: f)
            found, functions = outcomes(session, rg.compile)
        events = [number // 5 for number, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]]
        assert not events, f"seed {seed}, event {events[0]}:\n{session[0]}{session[1]}"
        programs += any(getattr(f, "programs", ()) for f in functions)
    assert programs >= size / 2
