"""Programs and libraries that import torch run on this package; each in a process of its own."""

import subprocess
import sys

from retrograd.torch_alias import LAUNCHED

PROGRAM = """
import sys
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils.weight_norm import weight_norm
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
import retrograd as rg
import neighbor
"""
CHECKS = (
    "nn is rg.nn",
    "F is rg.nn.functional",
    "Tensor is rg.Tensor",
    "issubclass(nn.Conv2d, _ConvNd)",
    "weight_norm is torch.nn.utils.weight_norm",
    "torch.ones(2).sum().item() == 2",
    "torch.ones(2, 3).shape.numel() == 6",
    "type(nn.Linear(2, 3).weight.size()) is type(torch.ones(4).shape[:1]) is torch.Size",
    "Normal(torch.zeros(2, 3), 1.0).batch_shape.numel() == 6 and Normal(0.0, 1.0).event_shape.numel() == 1",
    "Normal(torch.zeros(2), 1.0)._extended_shape((3,)).numel() == torch.broadcast_shapes((3, 1), (2,)).numel() == 6",
    "torch.Tensor((2, 1)).tolist() == torch.FloatTensor((2, 1)).tolist() == [2, 1]",
    "torch.ones(1).new((2, 1)).tolist() == [2, 1] and torch.ones(1).new(torch.ones(2, 3).shape).shape == (2, 3)",
    "torch.Tensor(torch.ones(2, 1).shape).shape == torch.FloatTensor(torch.ones(1, 2).T.size()).shape == (2, 1)",
    "not isinstance(torch.ones(1), torch.cuda.FloatTensor) and issubclass(torch.cuda.LongTensor, object)",
    "torch.testing.assert_allclose(torch.ones(2), torch.ones(2)) is None",
    "torch.jit.isinstance([1, 2], torch.jit.List[int]) and not torch.jit.isinstance([1, 'a'], torch.jit.List[int])",
    "callable(torch.cuda.amp.custom_fwd(len)) and callable(torch.cuda.amp.custom_bwd(len))",
    "torch.nn.modules.loss._WeightedLoss is not None and torch.nn.modules.module._addindent('a\\nb', 2) == 'a\\n  b'",
    "torch.torch is torch and callable(torch.multiprocessing.get_context)",
    "torch.bfloat16.is_floating_point and torch.complex64.is_complex and torch.int8.is_signed",
    "not (torch.int8.is_floating_point or torch.float32.is_complex or torch.uint8.is_signed)",
    "torch.float64.to_complex() == torch.complex128 and torch.complex64.to_real() == torch.float32",
    "repr(torch.ones(2, 3).shape) == str(torch.Size([2, 3])) == 'torch.Size([2, 3])'",
    "torch.ones(1).type() == 'torch.FloatTensor' and torch.ones(1).type('torch.LongTensor').dtype == torch.int64",
    "str(torch.ones(1).layout) == 'torch.strided' and str(torch.channels_last) == 'torch.channels_last'",
    "(x := torch.ones(1))._cdata == x._cdata != torch.ones(1)._cdata",
    "torch.__version__.startswith('2.')",
    "rg.__version__ != torch.__version__",
    "neighbor.torch is torch",
    "[x.item() for x in torch._foreach_add([torch.ones(1), torch.zeros(1)], 2)] == [3, 2]",
    "not hasattr(torch, '_foreach_spam')",
    "len(_group_tensors_by_device_and_dtype([[torch.ones(1)]])) == 1",
    "'ones' in dir(torch)",
)


def run(*arguments, code=0):
    """Run Python with arguments; return what it prints, errors included."""
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def script(folder, text):
    (folder / "neighbor.py").write_text("import torch")
    path = folder / "script.py"
    path.write_text(text)
    return path


def test_a_script_gets_this_package_by_every_form_of_import(tmp_path):
    path = script(tmp_path, PROGRAM + "".join(f"print({check})\n" for check in CHECKS) + "print(sys.argv[1:])")
    answers = run("-m", "retrograd.torch_alias", path, "a", "--b").splitlines()
    assert dict(zip(CHECKS, answers[:-1], strict=True)) == dict.fromkeys(CHECKS, "True")
    assert answers[-1] == "['a', '--b']"


JIT = """
import torch.jit
from torch import jit, nn
from torch.jit import Final
import retrograd as rg
class Net(nn.Module):
    size: Final[int] = 3
    @torch.jit.export
    def f(self): return self.g() + self.h()
    @torch.jit.ignore
    def g(self): return self.size
    @torch.jit.unused
    @torch.jit.ignore(drop=True)
    def h(self): return 1
@torch.jit.script
def double(x): return 2 * x
net = Net()
print(double(3), net.f(), torch.jit.script(net) is net, torch.jit.trace(net, 1) is net)
print(jit.is_scripting(), torch.jit.is_tracing(), isinstance(net, jit.ScriptModule), hasattr(rg, "jit"))
try:
    jit.load("model.pt")
except RuntimeError as error:
    print(error)
"""


def test_decorators_of_torch_jit_leave_functions_as_they_are(tmp_path):
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, JIT)).splitlines()
    assert answers[:2] == ["6 4 True True", "False False False False"]
    assert "torch.jit.load: retrograd reads no TorchScript; use rg.export.load" in answers[2]


OTHERS = """
import torch.multiprocessing
import torch._dynamo as dynamo
import torch.version
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch.futures import Future, collect_all, wait_all
from torch.nn.attention.flex_attention import flex_attention
import retrograd as rg
both = [torch.Future(), Future()]
collected, added = collect_all(both), wait_all
doubled = both[1].then(lambda future: 2 * future.value())
failed = both[1].then(lambda future: 1 / 0)
both[0].set_result(1)
print(collected.done(), doubled.done())
both[1].set_result(2)
print(wait_all(both), collected.wait() == both, doubled.wait(), collect_all([]).value())
try:
    failed.wait()
except ZeroDivisionError:
    print("raised")
with TransformGetItemToIndex():
    print(torch.vmap(lambda i: torch.arange(5)[i])(torch.tensor([1, 3])).tolist())
print(torch.version.__version__ == torch.__version__, torch.version.cuda, dynamo.disable is rg.compiler.disable)
print(torch.accelerator.is_available() == (torch.accelerator.current_accelerator() is not None))
print("kernels: " in torch.__config__.show(), torch.__config__.parallel_info().startswith("threads: "))
torch.multiprocessing.set_sharing_strategy("file_system")
print(torch.multiprocessing.get_context("fork").Queue is not None, torch.futures is rg.futures)
x = torch.ones(1, 1, 2, 3)
print(flex_attention(x, x, x).shape)
"""


def test_modules_that_libraries_import_are_there(tmp_path):
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, OTHERS)).splitlines()
    assert answers[:4] == ["False False", "[1, 2] True 4 []", "raised", "[1, 3]"]
    assert answers[4:8] == ["True None True", "True", "True True", "True True"]
    assert answers[8] == "torch.Size([1, 1, 2, 3])"


INTERNALS = """
import os, tempfile
import torch
from torch import ScriptModule
from torch._subclasses.fake_tensor import is_fake
from torch._utils import _flatten_dense_tensors, _get_device_index, _unflatten_dense_tensors
from torch.ao.quantization import QConfig, QuantStub
from torch.distributed import rpc
from torch.distributed._composable.fsdp import fully_shard
from torch.distributed._tensor.experimental import implicit_replication, local_map
from torch.jit.annotations import BroadcastingList2
from torch.nn._reduction import get_enum
from torch.onnx.symbolic_helper import parse_args
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter
parts = [torch.ones(2), torch.zeros(1, 2)]
print([x.shape == y.shape for x, y in zip(_unflatten_dense_tensors(_flatten_dense_tensors(parts), parts), parts)])
print(torch._C._nn._parse_to("cpu", torch.float64), torch._C._nn._parse_to(parts[0], True)[1:3], get_enum("sum"))
print(torch.ones(1).dtype == torch.complex32, torch._shape_as_tensor(parts[1]).tolist(), is_fake(parts[0]))
print(torch.vmap(lambda x: x * torch._C._functorch.is_batchedtensor(x))(torch.ones(2)).tolist())
print(torch.ops.aten.add.Tensor(parts[0], 1).tolist(), torch.ops.aten.mul_(parts[0], 3).tolist())
print(torch.distributions.transforms._clipped_sigmoid(torch.tensor([1e3])).item() < 1)
print(torch.distributions.multivariate_normal._precision_to_scale_tril(torch.eye(2) * 4).tolist())
for call in (QConfig, rpc.rpc_async, torch.ops.aten.spam, lambda: torch._check(False, lambda: "wrong"),
             lambda: torch.ops.load_library("x.so"), lambda: _get_device_index("cpu")):
    try:
        call()
    except Exception as error:
        print(type(error).__name__)
@torch.library.register_fake("cpp::unknown")
def unknown(x):
    return x
print(unknown(1))
with tempfile.TemporaryDirectory() as folder:
    torch.save({"a": torch.ones(2)}, os.path.join(folder, "weights.pt"))
    source = "file://" + os.path.join(folder, "weights.pt")
    loaded = torch.hub.load_state_dict_from_url(source, os.path.join(folder, "cache"), file_name="own.pt")
    print(loaded["a"].tolist(), os.listdir(os.path.join(folder, "cache")))
"""


def test_private_names_that_libraries_use_are_there(tmp_path):
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, INTERNALS)).splitlines()
    assert answers[0] == "[True, True]"
    assert answers[1].endswith("float64'), False, None) (dtype('float32'), True) 2")
    assert answers[2:5] == ["False [1, 2] False", "[1.0, 1.0]", "[2.0, 2.0] [3.0, 3.0]"]
    assert answers[5:7] == ["True", "[[0.5, 0.0], [0.0, 0.5]]"]
    refused = ["NotImplementedError"] * 3 + ["RuntimeError", "OSError", "ValueError"]
    assert answers[7:] == [*refused, "1", "[1.0, 1.0] ['own.pt']"]


FUNCTORCH = """
import torch
import functorch
from functorch import combine_state_for_ensemble, make_functional, make_functional_with_buffers
from torch import nn
from torch._functorch import vmap as steps
from torch._functorch.eager_transforms import jacrev
layer, norm, x = nn.Linear(3, 1), nn.BatchNorm1d(3), torch.ones(4, 3)
function, parameters = make_functional(layer)
print(torch.equal(function(parameters, x), layer(x)), parameters[0] is layer.weight, functorch.grad is torch.func.grad)
function, parameters, buffers = make_functional_with_buffers(norm, disable_autograd_tracking=True)
print(torch.equal(function(parameters, buffers, x), norm(x)), len(buffers), parameters[0].requires_grad)
function, parameters, buffers = combine_state_for_ensemble([layer, layer])
print(functorch.vmap(function, (0, 0, None))(parameters, buffers, x).shape, jacrev is torch.func.jacrev)
try:
    make_functional(norm)
except RuntimeError as error:
    print(error)
print(torch.vmap(torch.dot)(x, x).tolist())
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
    def each(self, function, *args):
        return Pair(function(self.a, *args), function(self.b, *args))
def start(in_dims, args, func):
    leaves, spec = steps.tree_flatten(args)
    return 4, steps._broadcast_to_and_flatten(in_dims, spec), leaves, spec
def inside(dims, leaves, level, spec):
    batched = [leaf if d is None else leaf.each(steps._add_batch_dim, d, level) for d, leaf in zip(dims, leaves)]
    return steps.tree_unflatten(batched, spec)
def outside(out, out_dims, level, size, func):
    return out.each(lambda x: steps._maybe_remove_batch_dim("f", x, level, size, out_dims))
steps._process_batched_inputs, steps._create_batched_inputs, steps._unwrap_batched = start, inside, outside
x.requires_grad_()
out = torch.vmap(lambda pair: Pair(pair.a.sum(), pair.b * pair.a[0]), out_dims=0)(Pair(x, torch.arange(4.0)))
print(out.a.tolist(), out.b.tolist(), torch.autograd.grad(out.b.sum(), x)[0][:, 0].tolist())
print(torch.func.vmap(lambda pair: Pair(pair.a, pair.a), out_dims=1)(Pair(x, x)).b.shape)
"""


def test_functorch_is_there_and_libraries_can_replace_the_steps_of_vmap(tmp_path):
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, FUNCTORCH)).splitlines()
    assert answers[:3] == ["True False True", "True 3 False", "torch.Size([2, 4, 1]) True"]
    assert "`model` has buffers" in answers[3]
    assert answers[4:6] == ["[3.0, 3.0, 3.0, 3.0]", "[3.0, 3.0, 3.0, 3.0] [0.0, 1.0, 2.0, 3.0] [0.0, 1.0, 2.0, 3.0]"]
    assert answers[6:] == ["torch.Size([3, 4])"]


MEMBERS = """
import copy, pickle
import torch
import torch.utils._pytree
from torch import nn
from torch.nn.utils._named_member_accessor import swap_tensor
net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
for module in (net[1], copy.deepcopy(net)[1], pickle.loads(pickle.dumps(net[1])), copy.copy(net[1])):
    values = module.__dict__
    print([*values["_parameters"]], [*values.get("_buffers")], [*values["_modules"]], values.get("spam", 1))
    print("_modules" in values, "spam" in values)
members = net[0].__dict__["_parameters"]
print(type(members)([("a", 1)]), torch.utils._pytree.tree_leaves(members)[0] is net[0].weight is members["weight"])
vars(net[0])["_parameters"]["weight"] = torch.ones(1, 2)
earlier = swap_tensor(net[1], "running_mean", torch.ones(1))
print(net[0].weight.tolist(), net[1].running_mean.item(), earlier.item(), net[1]._non_persistent_buffers_set)
print(nn.Module.__new__(nn.Linear).__dict__.get("_modules"))
class Curved(nn.Module):
    @property
    def k(self):
        return self.scale.exp()
    def __init__(self):
        super().__init__()
        self.k = nn.Parameter(torch.zeros(1))
        self.scale = self._parameters.pop("k")
print([name for name, _ in Curved().named_parameters()], Curved().k.item())
try:
    Curved().k = 1
except AttributeError as error:
    print("refused")
"""


def test_the_dict_of_a_module_has_its_members_by_kind(tmp_path):
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, MEMBERS)).splitlines()
    norm = "['weight', 'bias'] ['running_mean', 'running_var', 'num_batches_tracked'] [] 1"
    assert answers[:9] == [norm, "True False"] * 4 + ["{'a': 1} True"]
    assert answers[9:] == ["[[1.0, 1.0]] 1.0 0.0 set()", "None", "['scale'] 1.0", "refused"]


HELPERS = """
import torch
import torch.distributed.autograd
from torch.autograd.functional import _as_tuple, _grad_postprocess, _tuple_postprocess
from torch.cuda import nvtx
from torch.distributed.elastic.multiprocessing.errors import record
from torch.optim.lbfgs import _strong_wolfe
from torch.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager
from torch.utils.data._utils.worker import _generate_state, get_worker_info
log = []
class Block(_DecoratorContextManager):
    def __init__(self, name="block"): self.name = name
    def clone(self): return Block(self.name)
    def __enter__(self): log.append(self.name)
    def __exit__(self, *exception): log.append("end")
class Plain(_NoParamDecoratorContextManager, Block):
    pass
@Block("a")
def function(): log.append("called")
@Block("b")
def generator():
    try:
        log.append((yield 1))
    except ValueError:
        yield 2
    return 3
function()
iterator = generator()
print(next(iterator), iterator.throw(ValueError()), log)
log.clear()
Plain(lambda: log.append("inside"))()
with nvtx.range("range"):
    print(log, nvtx.range_push("x"), record(len) is len, get_worker_info(), _generate_state(5, 0)[0])
tuples = _as_tuple(torch.ones(1), "inputs", "jacobian")
print(tuples[0], _tuple_postprocess(((3,),), (False, False)), _as_tuple([1, 2]))
print(torch.distributed.autograd.is_available())
print(_grad_postprocess(((torch.ones(1, requires_grad=True),),), False)[0][0].requires_grad)
f = lambda x, t, d: (((x + t * d) ** 2).sum().item(), 2 * (x + t * d))
x, d = torch.tensor([1.0]), torch.tensor([-2.0])
value, gradient, t, count = _strong_wolfe(f, x, 1.0, d, 1.0, 2 * x, torch.tensor(-4.0))
print(round(value, 6), round(t, 6), count)
"""


def test_private_helpers_of_libraries_are_there(tmp_path):
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, HELPERS)).splitlines()
    assert answers[0] == "1 2 ['a', 'called', 'end', 'b', 'end', 'b', 'end']"
    assert answers[1] == "['block', 'inside', 'end'] 0 True None 161328693"
    assert answers[2:] == ["False 3 (1, 2)", "False", "False", "0.0 0.5 2"]


DTYPE_TEXTS = """
import numpy as np
import torch
names = "float32 bool int64 complex64 bfloat16 float8_e4m3fn".split()
print(*[getattr(torch, name) for name in names], torch.ones(1, dtype=torch.half).dtype)
print([str(getattr(torch, name)).split(".")[1] for name in names] == names, f"{torch.float64}"[6:])
print(np.float32(1), np.ones(1, np.float32).__repr__(), np.dtype("float32").str, np.dtype([("a", "f4")]))
import plain, divided
print(plain.text(torch.float32), plain.text(torch.bfloat16), divided.part.text(torch.float32))
"""


def test_dtypes_have_pytorchs_text_in_packages_that_import_torch(tmp_path):
    (tmp_path / "divided").mkdir()
    (tmp_path / "divided" / "__init__.py").write_text("import torch\nfrom divided import part")
    for module in (tmp_path / "plain.py", tmp_path / "divided" / "part.py"):
        module.write_text("def text(x): return str(x)")
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, DTYPE_TEXTS)).splitlines()
    names = "float32 bool int64 complex64 bfloat16 float8_e4m3fn float16"
    assert answers[0] == " ".join(f"torch.{name}" for name in names.split())
    assert answers[1:3] == ["True float64", "1.0 array([1.], dtype=float32) <f4 [('a', '<f4')]"]
    assert answers[3] == "float32 bfloat16 torch.float32"


FURTHER_HELPERS = """
import torch
from torch import nn
from torch.nn.modules.transformer import _get_activation_fn
from torch.utils.data._utils.collate import np_str_obj_array_pattern
rows, columns = torch.tensor([0, 0, 2]), torch.tensor([1, 3, 0])
starts = torch._convert_indices_from_coo_to_csr(rows, 4)
print(starts.tolist(), torch._convert_indices_from_csr_to_coo(starts, columns).tolist())
turned = torch._convert_indices_from_csr_to_coo(starts, columns, out_int32=True, transpose=True)
print(turned.tolist(), turned.dtype == torch.int32, torch._convert_indices_from_coo_to_csr(rows[:0], 2).tolist())
x, g = torch.randn(2, 3, requires_grad=True), torch.randn(2, 3)
out = x.softmax(1)
given = torch._softmax_backward_data(g, out, 1, torch.float32)
print(torch.allclose(given, torch.autograd.grad(out, x, g)[0]))
for check in (torch._check_with, torch._check_tensor_all_with):
    try:
        check(KeyError, False if check is torch._check_with else torch.tensor([True, False]), lambda: "no")
    except KeyError as error:
        print(error)
print(bool(np_str_obj_array_pattern.search("<U3")), np_str_obj_array_pattern.search("<f4"), _get_activation_fn("relu"))
print(nn.modules.module._EXTRA_STATE_KEY_SUFFIX, nn.init._no_grad_uniform_(torch.ones(2), 3, 3).tolist())
def annotated(graph: torch._C.Graph, value: torch._C.Value, stream: torch.Stream, event: torch.Event): pass
print(torch.Stream is torch.cuda.Stream, torch._C.Generator is torch.Generator)
@torch.cuda.nvtx.range("range")
@torch._dynamo.config.patch(suppress_errors=True)
def function(): return 3
print(function(), function())
try:
    torch.linalg.inv(torch.zeros(2, 2))
except torch._C._LinAlgError:
    print("singular")
"""


def test_private_helpers_that_libraries_import_compute(tmp_path):
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, FURTHER_HELPERS)).splitlines()
    assert answers[:2] == ["[0, 2, 2, 3, 3] [[0, 0, 2], [1, 3, 0]]", "[[1, 3, 0], [0, 0, 2]] True [0, 0, 0]"]
    assert answers[2:5] == ["True", "'no'", "'no'"]
    assert answers[5].startswith("True None <")
    assert answers[6:] == ["_extra_state [3.0, 3.0]", "True True", "3 3", "singular"]


SOBOL = """
import torch
from torch.quasirandom import SobolEngine
engine = SobolEngine(2)
print(engine.draw(3).tolist(), engine.fast_forward(4).draw(1, dtype=torch.float64).tolist(), engine.num_generated)
print(engine.reset().draw_base2(2, out=torch.empty(0)).sum().item(), engine)
scrambled = SobolEngine(3, scramble=True, seed=1).draw(64)
print(scrambled.shape, (scrambled.clamp(0, 1) == scrambled).all().item(), round(scrambled.mean().item(), 2))
for call in (lambda: SobolEngine(0), lambda: engine.draw_base2(1)):
    try:
        call()
    except ValueError as error:
        print(error)
"""


def test_points_of_sobols_sequence_are_those_of_pytorch(tmp_path):
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, SOBOL)).splitlines()
    assert answers[0] == "[[0.0, 0.0], [0.5, 0.5], [0.75, 0.25]] [[0.125, 0.625]] 8"
    assert answers[1:3] == ["3.0 SobolEngine(dimension=2)", "torch.Size([64, 3]) True 0.5"]
    assert "[1, 21201], got 0" in answers[3]
    assert "n=4+2**1=6" in answers[4]


def test_distributed_is_available_in_a_process_that_a_launcher_started(monkeypatch):
    code = "from retrograd.torch_alias import install; install(); import torch; d = torch.distributed"
    code += "; print(d.is_available()); d.init_process_group(); print(d.is_available())"
    for name in LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    assert run("-c", code).split() == ["False", "True"]
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert run("-c", code).split() == ["True", "True"]


def test_a_module_of_the_path_runs_as_a_script():
    assert "usage: python -m json.tool" in run("-m", "retrograd.torch_alias", "-m", "json.tool", "--help")


def test_install_makes_later_imports_import_this_package():
    code = "from retrograd.torch_alias import install; install(); install(); import torch.optim; import retrograd as rg"
    assert run("-c", f"{code}; print(torch.optim is rg.optim)").strip() == "True"


def test_a_module_that_does_not_exist_here_is_not_found():
    code = "from retrograd.torch_alias import install; install(); import torch._inductor"
    assert "No module named 'torch._inductor'" in run("-c", code, code=1)


def test_install_refuses_when_pytorch_has_been_imported():
    code = "import sys; sys.modules['torch'] = sys; from retrograd.torch_alias import install; install()"
    assert "RuntimeError: install: torch has been imported already" in run("-c", code, code=1)


def test_without_a_script_it_says_how_it_is_called():
    assert "python -m retrograd.torch_alias script.py" in run("-m", "retrograd.torch_alias", code=1)


SPAWNING = """
import torch
import torch.multiprocessing as mp

def work(rank, queue, x):
    if queue is None:
        raise ValueError(f"rank {rank}")
    queue.put((rank, (x * rank).tolist()))

if __name__ == "__main__":
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, args=(queue, torch.ones(1)), nprocs=2)
    print(sorted(queue.get() for _ in range(2)))
    try:
        mp.spawn(work, args=(None, None), nprocs=1)
    except mp.ProcessRaisedException as error:
        print(error.error_index, "ValueError: rank 0" in str(error))
"""


def test_a_script_spawns_processes_that_import_torch(tmp_path):
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, SPAWNING)).splitlines()
    assert answers == ["[(0, [0.0]), (1, [1.0])]", "0 True"]


TIMING = """
import torch
from torch.utils import benchmark, collect_env
timer = benchmark.Timer("x + 1", setup="x = 1", label="sum", sub_label="small", num_threads=1)
once = timer.timeit(10)
blocks = timer.blocked_autorange(min_run_time=0.001)
print(once.title, len(once.times), once.number_per_run, once.median == once.mean == once.times[0], once.stmt)
print("1 measurement, 10 runs , 1 thread" in repr(once), blocks.iqr >= 0, sum(blocks.raw_times) > 0)
print("retrograd: " in collect_env.get_pretty_env_info())
"""


def test_a_script_times_statements_and_reports_versions(tmp_path):
    answers = run("-m", "retrograd.torch_alias", script(tmp_path, TIMING)).splitlines()
    assert answers == ["sum: small 1 10 True x + 1", "True True True", "True"]
