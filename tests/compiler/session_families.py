"""The families of random sessions: training steps, random numbers, threads; and a table of all."""

from .session_objects import COUNTERS, MODELS, OBJECTS
from .session_preamble import PREAMBLE, USUAL
from .session_tensors import INPUTS, NESTED, TRANSFORMS
from .sessions import Family

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
    "optimizer.param_groups[0]['lr'] *= 0.5", "optimizer.add_param_group({{'params': [nn.Parameter(num(16))]}})",
    "schedule.step()", "optimizer.zero_grad()", "model.zero_grad(set_to_none=False)",
    "model.a.weight.requires_grad_(False)", "model.a.weight.requires_grad_(True)", "model.b.bias = None",
    "model.a = nn.Linear(3, 3)", "model.b.weight.data = num(17, 3, 3)", "model.norm = nn.Identity()",
    "model.double(); model.float()", "model.a.weight.grad = num(18, 3, 3)", "model.count.zero_()", "rg.rand(1)",
    "optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))", "helper = lambda x: x * 3",
    "model.load_state_dict({{k: v * 0.5 for k, v in model.state_dict().items()}})", "f = copy.deepcopy(f)",
    "f, g = g, f",
    "model.forward = types.MethodType(lambda self, x, k=1.0: self.a(x) * k, model)", "vars(model).pop('forward', None)",
    "get = lambda x: x * 0.5", "s.d = dict(reversed(s.d.items()))",
]  # fmt: skip
ARGUMENTS = [
    *USUAL, "num({i}).double()", "num({i}).requires_grad_()", "num({i}, 3, 4).t()", "num({i}, 8, 3)[::2]", "s.h",
    "model(num({i}))", "num({i}).as_subclass(Part)", "num({i}, 1, 3).expand(4, 3)", "model.a.weight",
]  # fmt: skip
CALLS = [
    "rg.no_grad()({f})({x})", "in_thread({f}, {x})", "func.vmap({f})(rg.stack([{x}, {x}]))", "backward({f}({x}))",
    "under(rg.inference_mode(), {f}, {x})", "func.grad(lambda t: total({f}(t)))({x})", "backward({f}({x}))",
    "under(rg.autocast('cpu', dtype=rg.bfloat16), {f}, {x})",
]  # fmt: skip
CHOICES = (
    ("optimizer", [f"rg.optim.{optimizer}" for optimizer in OPTIMIZERS]),
    ("schedule", [f"rg.optim.lr_scheduler.{schedule}" for schedule in SCHEDULES]),
)
TRAINING_STEPS = Family(
    PREAMBLE, [LINES, LINES, LINES, BLOCKS, EFFECTS], TRAINING, RESULTS, EVENTS, USUAL, ARGUMENTS, CALLS, CHOICES
)

RANDOM = Family(
    PREAMBLE
    + """
from retrograd.utils.checkpoint import checkpoint
optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
gen, gens = rg.Generator().manual_seed(5), [rg.Generator().manual_seed(i) for i in range(2)]
class Sampler:
    def __init__(self): self.gen, self.kind = rg.Generator().manual_seed(9), "normal"
    def draw(self, x): return x + (rg.randn if self.kind == "normal" else rg.rand)(x.shape, generator=self.gen)
sampler, nested = Sampler(), nn.TransformerEncoderLayer(3, 1, 4, batch_first=True)
state = lambda: [s.h, log, *[g.get_state() for g in (gen, sampler.gen, *gens)]]
""",
    [
        [
            "{v} = {a} + rg.rand(3)", "{v} = {a} * rg.randn({a}.shape, generator=gen)", "{v} = F.dropout({a}, 0.4)",
            "{v} = F.dropout({a}, s.d['k'] / 4, training=model.training)", "{v} = sampler.draw({a})",
            "{v} = {a}[rg.randperm(len({a}))]",
            "{v} = {a} + rg.normal(0.0, 1.0, (3,), generator=gens[0])",
            "{v} = {a} * rg.bernoulli({a}.detach().sigmoid())", "{v} = {a} + rg.randint(0, 5, (3,))",
            "{v} = rg.rand_like({a}) + {a}", "{v} = F.gumbel_softmax({a}, tau=0.5)",
            "{v} = {a} + rg.multinomial({a}.detach().softmax(-1), 3, replacement=True)",
            "{v} = F.rrelu({a}, training=True)", "{v} = F.alpha_dropout({a}, 0.2, training=True)",
            "{v} = {a}.detach().clone().uniform_(generator=gens[1]) + {a}", "{v} = {a} + rg.empty(3).exponential_()",
            "{v} = F.scaled_dot_product_attention({a}[None], {a}[None], {a}[None], dropout_p=0.2)[0]",
            "{v} = nested({a}[None])[0]", "{v} = {a} + rg.distributions.Normal(0.0, 1.0).sample((3,))",
            "{v} = {a} + rg.distributions.Normal({a}, 1.0).rsample()",
            "{v} = F.dropout1d({a}[None], 0.3)[0]", "{v} = {a} + rg.poisson({a}.detach().abs())",
            "{v} = {a} + gen.initial_seed() % 3", "{v} = model({a})",
            "{v} = {a} * rg.randn(3, dtype=rg.float64).float()",
            "{v} = func.vmap(lambda r: r + rg.rand(3), randomness='different')({a})",
            "{v} = func.vmap(lambda r: r + rg.rand(3), randomness='same')({a})",
            "{v} = checkpoint(lambda t: F.dropout(t, 0.2), {a}, use_reentrant=False)",
            "{v} = {a} + rg.nn.init.normal_(rg.empty(3))", "{v} = {a} + rg.initial_seed() % 7",
        ],
        ["s.n += 1", "s.h = {a}.detach() + rg.rand(3)", "log.append({a}.detach().sum())", "gen.manual_seed(3)",
         "rg.manual_seed(4)", "with rg.random.fork_rng(): log.append(rg.rand(1))", "rg.rand(1)", "gens.reverse()",
         "sampler.gen = gens[0]", "sampler.kind = 'uniform'"],
        ["with rg.no_grad(): {v} = F.dropout({a}, 0.5)",
         "with rg.autocast('cpu', dtype=rg.bfloat16): {v} = F.dropout(model.a({a}), 0.5).float()",
         "with rg.random.fork_rng(): {v} = {a} + rg.rand(3)",
         "if s.n % 2: {v} = F.dropout({a}, 0.1)\n    else: {v} = {a} * 2"],
    ],
    ["optimizer.zero_grad()\n    loss = F.mse_loss(model({a}), {a}.detach())\n"
     "    if loss.requires_grad: loss.backward(); optimizer.step()"],
    ["{a}", "{a}.detach()", "({a}, rg.rand(2))", "rg.rand(2)"],
    ["rg.manual_seed({i})", "gen.manual_seed({i})", "gen = rg.Generator().manual_seed({i})", "gens[0] = gen",
     "gens.reverse()", "rg.rand(1)", "rg.rand(3, generator=gen)", "sampler.gen = rg.Generator().manual_seed({i})",
     "sampler.gen = gen", "rg.set_rng_state(rg.get_rng_state())",
     "kept = rg.get_rng_state(); rg.rand(4); rg.set_rng_state(kept)", "gen.set_state(sampler.gen.get_state())",
     "sampler.kind = 'uniform'", "sampler = copy.deepcopy(sampler)", "model.eval()", "model.train()",
     "model.drop.p = 0.0", "model.drop.p = 1.0", "s.d['k'] = 3.0", "nested.eval()", "gen = sampler.gen"],
    ["num({i})", "num({i}).requires_grad_()"],
    ["num({i})", "num({i}, 2, 3)", "num({i}).double()", "num({i}).requires_grad_()", "rg.rand(4, 3)", "num({i}, 0, 3)"],
    ["rg.no_grad()({f})({x})", "backward({f}({x}))", "in_thread({f}, {x})", "under(rg.inference_mode(), {f}, {x})",
     "under(rg.autocast('cpu', dtype=rg.bfloat16), {f}, {x})", "under(rg.random.fork_rng(), {f}, {x})",
     "func.vmap({f}, randomness='different')(rg.stack([{x}, {x}]))", "under(rg.set_grad_enabled(False), {f}, {x})",
     "under(rg.autocast('cpu', enabled=False), {f}, {x})", "under(rg.enable_grad(), rg.no_grad()({f}), {x})"],
)  # fmt: skip

THREADS = Family(
    PREAMBLE
    + """
optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
w = num(8, 3, 3).requires_grad_()
@compile
def inner(x): return (x * s.d['k']).sin() + x.mean(0)
@compile
def broken(x): return x * x.sum().item()
def at_once(f, *xs):
    start, found = threading.Barrier(len(xs)), [None] * len(xs)
    def run(i):
        start.wait()
        try: found[i] = [f(xs[i]) for _ in range(3)]
        except Exception as error: found[i] = type(error).__name__
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(xs))]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return found
""",
    [
        [
            "{v} = {a}.sin() * 2", "{v} = {a} @ w", "{v} = model.a({a})", "{v} = inner({a})", "{v} = broken({a})",
            "{v} = rg.autograd.grad(({a} @ w).square().sum(), w)[0][:1] + {a}", "{v} = {a} * factor + outer[:1]",
            "{v} = func.vmap(inner)({a}[None])[0]", "{v} = func.grad(lambda t: t.sin().sum())({a})",
            "{v} = F.gelu({a})",
            "{v} = {a}.clone(); {v}[0] = 0.5", "{v} = {a} if {a}.sum() > 0 else -{a}", "{v} = helper({a})",
            "{v} = {a} + get({a})",
            "with rg.no_grad(): {v} = {a} * 3", "{v} = {a} * (1 if rg.is_grad_enabled() else 2)",
            "{v} = {a} * {a}.mean().item()",
            "with rg.autocast('cpu', dtype=rg.bfloat16): {v} = ({a} @ w).float()", "{v} = sum(generate({a}, 2))",
        ]
    ],
    [],
    ["{a}", "{a}.detach()", "({a}, x)"],
    ["factor = 3.0", "outer = num({i})", "model.a = nn.Linear(3, 3)", "s.d['k'] = 3.0", "w.data = num({i}, 3, 3)",
     "put(num({i})[0])",
     "w.requires_grad_(not w.requires_grad)", "rg.compiler.reset()", "inner = compile(lambda x: x * 2)"],
    ["num({i})"],
    ["num({i})", "num({i}, 5, 3)", "num({i}).requires_grad_()"],
    ["at_once({f}, {x}, num(1))", "at_once({f}, {x}, num(1, 5, 3), {x})", "at_once({f}, num(1), num(2), num(3))",
     "at_once(rg.no_grad()({f}), {x}, {x})", "at_once(lambda t: {f}(t), {x}, num(4).requires_grad_())",
     "at_once({f}, *[num(i, 2 + i, 3) for i in range(4)])"],
)  # fmt: skip

FAMILIES = {
    "training steps": TRAINING_STEPS, "random numbers": RANDOM, "threads": THREADS, "nested tensors": NESTED,
    "inputs": INPUTS, "transforms": TRANSFORMS, "models": MODELS, "objects": OBJECTS, "counters": COUNTERS,
}  # fmt: skip
