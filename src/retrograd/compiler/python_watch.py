"""Observation of the Python code that a call runs: a program replaces it, so it may have no other effects."""

import contextlib
import functools
import gc
import os
import sys
import sysconfig
import threading
import types
from collections.abc import Iterable
from typing import Any

from retrograd.amp.grad_scaler import GradScaler
from retrograd.autograd import saving
from retrograd.compiler import disabling
from retrograd.compiler.arguments import is_ordinary
from retrograd.compiler.exception_handlers import catches_exceptions, may_suppress, suspends
from retrograd.compiler.id_uses import calls_for_keys
from retrograd.compiler.namespaces import is_library
from retrograd.compiler.plain_values import is_same
from retrograd.compiler.recorder import Recorder
from retrograd.compiler.standard_library import SHOWN_WARNING, SUMMARIES, WARNINGS, is_pure_builtin
from retrograd.compiler.surroundings import Surroundings, is_library_code, may_change_objects
from retrograd.core import Tensor, current
from retrograd.core.guards import TensorGuard
from retrograd.foundation.source_location import PACKAGE
from retrograd.library import kernel_adapter
from retrograd.nn.module import Module
from retrograd.nn.utils import clip_grad
from retrograd.ops import as_tensor, generator, methods
from retrograd.optim.lr_scheduler import LRScheduler
from retrograd.optim.optimizer import Optimizer
from retrograd.optim.step_hooks import hooks_around_steps
from retrograd.optim.swa_utils import AveragedModel
from retrograd.utils import chain_checkpoint, recompute

# Packages and modules of the library whose functions have no effects that an operator or a write does not show.
_PURE = (
    "amp/autocast_mode", "autograd/backward", "autograd/function", "autograd/grad_mode", "autograd/graph",
    "autograd/hooks", "autograd/outer_graph", "autograd/seeds", "autograd/split_backward",
    "autograd/variable", "backend", "compiler", "core",
    "distributions", "export/dynamic_shapes", "export/size_operators", "fft", "foundation", "func", "fx/codegen",
    "fx/dataclass_pytrees", "fx/graph_module", "fx/operators", "fx/signature", "interop/array_namespace",
    "interop/numpy_protocol", "kernels", "levels", "library/autograd_formula", "library/custom_definition",
    "library/derived_jvp", "library/function_schema",
    "library/kernel_adapter", "library/operator", "library/registration", "library/schema",
    "linalg", "masked", "nested", "nn", "ode", "ops", "pipelining/split/manual_stages", "pipelining/split/modal_module",
    "pipelining/split/mutations", "signal", "sparse", "special", "types",
    "utils/chain_checkpoint", "utils/checkpoint", "utils/operator_log", "utils/recompute", "utils/revolve", "_",
)  # fmt: skip
_IMPURE = {  # their functions have effects of other kinds, or read values: tests/compiler/functions_with_effects.txt
    "ops/printing": "prints or formats a tensor",
    "ops/storage": "reads the memory of a tensor",
    "ops/storage_methods": "reads the memory of a tensor",
    "ops/resize_memory": "resizes the memory of a tensor",
    "nn/init": "initializes a tensor",
    "nn/state_loading": "loads a state",
    "nn/parameter": "makes or converts a parameter",
    "compiler/disabling": "calls a function that compiler.disable has excluded",
}
_PURE_FUNCTIONS: dict[str, str | tuple[str, ...]] = {  # by prefix
    "amp/grad_scaler": "GradScaler.scale",
    "autograd/grad_dtype": "in_grad_dtype",
    "autograd/saving": "saved_tensors_hooks._block",
    "optim/swa_utils": "AveragedModel.forward",
    "torch_alias/jit": ("is_tracing", "is_scripting"),
    "torch_alias/__init__": ("_size.", "_broadcast_shapes", "_extended_shape", "_text_as_torch", "_imports_torch"),
}
_GENERATORS = "ops/generator"
_DRAWS = {"_source"}
_PACKAGES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
_REQUIRED = tuple([os.path.join(path, name, "") for path in _PACKAGES for name in ("numpy", "scipy", "optree")])
_PLATFORM = (sysconfig.get_path("stdlib"), *_REQUIRED, "<frozen")
EAGER_FUNCTIONS = {f.__code__: f for f in (clip_grad._scale_gradients,)}  # they decide by values
EAGER_METHODS: dict[type, tuple[str, ...]] = {  # they compute with numbers of Python, or decide by values
    Optimizer: ("step", "zero_grad"),
    LRScheduler: ("step",),
    GradScaler: ("unscale_", "step", "update"),
    AveragedModel: ("update_parameters",),
}
_OPAQUE = {  # functions that call code which no program replaces
    (disabling.__file__, "run_once"),
    (kernel_adapter.__file__, "run"),
    (generator.__file__, "resolve_generator"),  # draws may be redirected by code around the call
    (generator.__file__, "draw"),
}
_RANDOM_STATES = {recompute._state.__code__: "random state", recompute._restore.__code__: "random states"}
_PACKS_NOTHING = (recompute.__file__, chain_checkpoint.__file__)
_CACHES = functools.cached_property.__get__.__code__  # its lock guards the attribute that it adds, which is seen


class _Collection:
    """The collector of garbage, which is off while any thread captures a call."""

    def __init__(self) -> None:
        self._lock, self._captures, self._was_on = threading.Lock(), 0, False

    def pause(self) -> None:
        """Switch it off for the first of several captures at the same time."""
        with self._lock:
            if self._captures == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._captures += 1

    def resume(self) -> None:
        """Switch it on after the last of them, if it was on before the first."""
        with self._lock:
            self._captures -= 1
            if self._captures == 0 and self._was_on:
                gc.enable()


_collection = _Collection()


class PythonWatch:
    """A profiling function of `sys.setprofile`: it looks at each function that begins.

    Functions of the user give guards; methods of optimizers run outside of the recorder, which notes their call;
    functions with other effects, and those that read the value of a tensor, refuse the capture.  Meanwhile no garbage
    is collected: its callbacks and finalizers are no part of the call.
    """

    def __init__(self, recorder: Recorder, surroundings: Surroundings) -> None:
        self.recorder = recorder
        self.tensor_guards: dict[int, TensorGuard] = {}  # of the tensors that were found, by their ids
        self.surroundings = surroundings
        self._before: dict[int, tuple[Any, TensorGuard]] = {}  # tensors that the call may reach, as they were before it
        self.doubtful_calls: set[tuple[types.CodeType, int]] = set()  # that lead to functions that may change objects
        self._doubtful: set[types.CodeType] = set()  # functions that read what no guard can check
        self._kinds: dict[types.CodeType, str] = {}
        self.may_pass_later = False  # whether what refuses the capture may not happen in the next call
        self._outside: Any = None  # the frame of the method that runs outside of the recorder
        self._state: dict[int, tuple[str, Any]] | None = None  # before it has called a function of the user, if it has
        self._level: Any = None
        self._watchers: Any = None

    def __call__(self, frame: Any, event: str, arg: Any) -> None:
        """Handle one event."""
        if self._outside is not None:
            if event == "call" and self._state is None and is_program_code(frame.f_code):
                self._state = self.surroundings.changed_state()
            if event == "return" and frame is self._outside:
                self._return_inside()
                kind = self._kinds[frame.f_code]
                if arg is not None and kind == "optimizer":
                    self.recorder.refuse(f"{_name_of(frame)} returns a value")
                if arg is not None and kind == "random state":
                    self.recorder.record_state(frame.f_locals["generator"], arg)
        elif event == "call":
            self._on_call(frame)
        elif event == "c_call" and not _serves_library(frame):
            self._on_builtin(frame, arg)

    def __enter__(self) -> "PythonWatch":
        _collection.pause()
        sys.setprofile(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        sys.setprofile(None)
        _collection.resume()
        if self._outside is not None:
            self._return_inside()

    # ---------------------------------------------------------------------------------------- functions of Python

    def _on_call(self, frame: Any) -> None:
        code = frame.f_code
        kind = self._kinds.get(code)
        if kind is None:
            kind = self._kinds[code] = _kind_of(code)
        if kind != "user" and is_library_code(code):
            self.surroundings.enter_library(code, frame.f_globals)
        if kind == "" or (kind == "user" and (_serves_library(frame) or _is_generated_constructor(frame))):
            return
        if kind == "user":
            if self.recorder.refusal:
                return  # there will be no program, and so no guards
            if not _is_of_platform(code):
                self._note_handlers(code)
            doubts = self.surroundings.count_doubts()
            self.surroundings.enter(code, frame.f_globals)
            if self.surroundings.count_doubts() > doubts:
                self._doubtful.add(code)
            if code in self._doubtful or may_change_objects(code):
                self.doubtful_calls.update([(f.f_code, f.f_lasti) for f in self.recorder.frames_from(frame.f_back)])
            self.watch_tensors()
        elif kind in ("outside", "random state"):
            if code.co_name == "_find_and_load" and not is_library_code(frame.f_back.f_code):
                self.recorder.refuse(f"{frame.f_back.f_code.co_qualname} imports {frame.f_locals['name']}")
            self._go_outside(frame)
        elif kind == "summary":
            self._on_summary(frame)
        elif kind == "random states":
            self.recorder.record_restored_states(frame.f_locals["states"])
            self._go_outside(frame)
        elif kind == "optimizer":
            self._on_optimizer(frame)
        elif kind == "scaler":
            self.surroundings.note_scaler(frame.f_locals["self"])
            self.watch_tensors()
        elif kind == "eager":
            self._on_eager(frame)
        elif kind == "saving":
            self._on_saving(frame)
        elif kind == "warning":
            if not _serves_library(frame):
                self.recorder.refuse("the code shows a warning")
                self.may_pass_later = True
        elif kind == "constant":
            self.recorder.note_constant(frame.f_locals["array"])
        else:
            self.recorder.refuse_here(f"the code {kind}")

    def _on_summary(self, frame: Any) -> None:
        """Note what a function of the standard library reads; what it calls there is not looked at."""
        if not self.recorder.refusal:
            reason = SUMMARIES[frame.f_code](self.surroundings, frame.f_locals)
            if reason:
                self.recorder.refuse(f"the code {reason}")

    def _note_handlers(self, code: types.CodeType) -> None:
        """Let the recorder look for operators that may raise errors which code handles."""
        if may_suppress(code) or (catches_exceptions(code) and suspends(code)):
            self.recorder.refuse(f"{code.co_qualname} handles exceptions, which depend on values")
        elif catches_exceptions(code):
            self.recorder.catching.add(code)

    def note_before(self, roots: Iterable[Any]) -> None:
        """Note the tensors that functions may find later in the call; it may have changed their .grad by then."""
        reachable = Surroundings()
        for root in roots:
            reachable.visit(root, "", None)
        reachable.explore(is_program_code)
        self._before = {key: (t, TensorGuard(t)) for key, t in reachable.tensors.items() if is_ordinary(t)}

    def watch_tensors(self) -> None:
        """Let the recorder watch the tensors that were found since."""
        self.recorder.hooked = self.surroundings.hooked
        for key, tensor in self.surroundings.tensors.items():
            if key in self.tensor_guards:
                continue
            if is_ordinary(tensor):
                self.tensor_guards[key] = self._before[key][1] if key in self._before else TensorGuard(tensor)
                self.recorder.watch_tensor(tensor)
            else:
                self.recorder.refuse("a tensor that the code reads is no plain tensor of the ground")

    def _on_builtin(self, frame: Any, function: Any) -> None:
        """Refuse the capture if a builtin function that is called may have effects."""
        code = frame.f_code
        if function is id and frame.f_lasti in calls_for_keys(code):
            self.surroundings.note_ids(_is_of_platform(code))
        elif function in WARNINGS:
            self.surroundings.note_warnings()
        elif not is_pure_builtin(function, _is_of_platform(code)) and code is not _CACHES:
            name = getattr(function, "__qualname__", repr(function))
            self.recorder.refuse_here(f"{code.co_qualname} calls {name}()")

    # ------------------------------------------------------------------------------------ outside of the recorder

    def _on_optimizer(self, frame: Any) -> None:
        """Let a method of an optimizer, a schedule or the like run outside of the recorder, and record its call."""
        variables, method = frame.f_locals, _method_of(frame)
        owner = variables.get("self")
        given = [v for key, v in variables.items() if key not in ("self", "step", "__class__")]
        if any(isinstance(v, Optimizer) and "param_groups" not in vars(v) for v in (owner, *given)):
            self.recorder.refuse("the code makes an optimizer")
            return
        if isinstance(owner, Optimizer):
            self.surroundings.note_optimizer(owner)
            if method is not None and method.__name__ == "zero_grad" and given == [False]:
                # It sets gradients to zero by operators, so these are recorded.
                self.surroundings.tensors.update((id(p), p) for group in owner.param_groups for p in group["params"])
                self.watch_tensors()
                return
        for operand in given:
            if isinstance(operand, Optimizer):
                self.surroundings.note_optimizer(operand)
        operands = [v for v in given if isinstance(v, Optimizer | Module)]
        others = [v for v in given if not isinstance(v, Optimizer | Module)]
        simple = all(v is None or v is True or (type(v) in (tuple, dict) and not v) for v in others)
        if method is None or not simple:
            self.recorder.refuse(f"the code calls {_name_of(frame)} with arguments, or of an unknown object")
        elif not self._is_inside_transform("an optimizer"):
            self.recorder.record_eager(method, tuple(operands), is_safe=_raises_no_errors(owner))
            self._go_outside(frame)

    def _on_eager(self, frame: Any) -> None:
        """Let a function that decides by values run outside of the recorder, and record its call."""
        if not self._is_inside_transform("clipping of gradients"):
            code = frame.f_code
            operands = [frame.f_locals[name] for name in code.co_varnames[: code.co_argcount]]
            self.recorder.record_eager(EAGER_FUNCTIONS[code], tuple(operands))
            self._go_outside(frame)

    def _on_saving(self, frame: Any) -> None:
        """Refuse hooks that pack saved tensors, as they run before the operator that saves is recorded.

        Those of checkpoints call no operators.
        """
        code = getattr(frame.f_locals.get("pack_hook"), "__code__", None)
        if code is None or code.co_filename not in _PACKS_NOTHING:
            self.recorder.refuse("the code packs saved tensors by hooks")

    def _is_inside_transform(self, name: str) -> bool:
        if current().level is not self.recorder:
            self.recorder.refuse(f"{name} is used inside a transform")
        return current().level is not self.recorder

    def _go_outside(self, frame: Any) -> None:
        """Run a function outside of the recorder."""
        state = current()
        if state.level is self.recorder:
            self.recorder.record_replaced()  # what it does later is not recorded
        self._outside, self._level, self._watchers = frame, state.level, state.watchers
        state.watchers = tuple([w for w in state.watchers or () if w is not self.recorder]) or None
        if state.level is self.recorder:
            state.level = self.recorder.parent

    def _return_inside(self) -> None:
        self._check_state()
        state = current()
        state.watchers = self._watchers
        if self._level is self.recorder:
            state.level = self.recorder
            self.recorder.after_eager()
        self._outside = None

    def _check_state(self) -> None:
        """Refuse the capture if functions of the user, such as hooks, have changed state outside: they run again."""
        before, self._state = self._state, None
        if before is None:
            return
        for key, (name, now) in self.surroundings.changed_state().items():
            if key not in before or not is_same(now, before[key][1]):
                self.recorder.refuse_here(f"a function that an optimizer or schedule calls changes {name}")
                return


def _name_of(frame: Any) -> str:
    """Return the name of the function in a frame, in messages."""
    return str(getattr(frame.f_locals.get("step"), "__qualname__", frame.f_code.co_qualname))


def _method_of(frame: Any) -> Any:
    """Return the method that runs in a frame, if it may run as it is: perhaps one that the object's class overrides."""
    code, owner = frame.f_code, frame.f_locals.get("self")
    wrapped = frame.f_locals.get("step")  # by hooks: all such functions have the same code
    name = code.co_name if wrapped is None else wrapped.__name__
    if not any(isinstance(owner, kind) and name in names for kind, names in EAGER_METHODS.items()):
        return None
    for kind in type(owner).__mro__:
        found: Any = vars(kind).get(name)
        if getattr(found, "__code__", None) is code and (wrapped is None or found.__wrapped__ is wrapped):
            return types.MethodType(found, owner)
    return None


def _raises_no_errors(owner: Any) -> bool:
    """Return whether no errors of methods of an optimizer or schedule depend on values: no other code may run."""
    return isinstance(owner, Optimizer | LRScheduler) and is_library(type(owner)) and not any(hooks_around_steps(owner))


def _serves_library(frame: Any) -> bool:
    """Return whether code is the library's, or is called by it or by a known function of Python, as code of Python."""
    while frame is not None:
        if is_library_code(frame.f_code) or frame.f_code in SUMMARIES:
            return True
        if not _is_of_platform(frame.f_code):
            return False
        frame = frame.f_back
    return False


def _is_generated_constructor(frame: Any) -> bool:
    """Return whether a frame is a constructor, or method, that `collections.namedtuple` or `dataclasses` generates."""
    name = frame.f_code.co_qualname
    is_generated = name == "__create_fn__.<locals>.__init__" or name.startswith("namedtuple.<locals>.")
    return is_generated or str(frame.f_globals.get("__name__", "")).startswith("namedtuple_")


@functools.cache
def is_program_code(code: types.CodeType) -> bool:
    """Return whether code is the user's own: of no library, whose functions may name hundreds of others."""
    return not is_library_code(code) and not code.co_filename.startswith((*_PLATFORM, *_PACKAGES))


def _is_of_platform(code: types.CodeType) -> bool:
    """Return whether code is of Python's standard library, or of a package that this one needs."""
    name = code.co_filename
    return name.startswith(_PLATFORM) and (name.startswith(_REQUIRED) or not name.startswith(_PACKAGES))


def _kind_of(code: types.CodeType) -> str:
    """Return how the watch handles a function: "" if it is harmless, or a word, or the reason of a refusal."""
    if code.co_filename.startswith("<frozen importlib") or (code.co_filename, code.co_name) in _OPAQUE:
        return "outside"
    if code is contextlib.suppress.__exit__.__code__:
        return "suppresses exceptions, which depend on values"
    if code in SUMMARIES:
        return "summary"
    if code is SHOWN_WARNING:
        return "warning"
    if not is_library_code(code):
        return "user"
    if code in EAGER_FUNCTIONS:
        return "eager"
    if code in _RANDOM_STATES:
        return _RANDOM_STATES[code]
    if code is as_tensor._constant_tensor.__code__:
        return "constant"
    if code is methods.concrete.__code__:
        return "reads the value of a tensor"
    module = code.co_filename.removeprefix(PACKAGE).removesuffix(".py")
    if code in (GradScaler.scale.__code__, GradScaler.is_enabled.__code__):
        return "scaler"
    if code is vars(Tensor)["_version"].fget.__code__:
        return "reads the version of a tensor"
    if code is saving.saved_tensors_hooks.__init__.__code__:
        return "saving"
    if module in _PURE_FUNCTIONS and code.co_qualname.startswith(_PURE_FUNCTIONS[module]):
        return ""
    if module.startswith("optim") or (module == "amp/grad_scaler" and code.co_name in EAGER_METHODS[GradScaler]):
        return "optimizer"
    if module in _IMPURE:
        return _IMPURE[module]
    if module == _GENERATORS and code.co_name not in _DRAWS:
        return "reads or sets the state of a random generator"
    return "" if module.startswith(_PURE) else f"calls {code.co_qualname} of retrograd.{module.replace('/', '.')}"
