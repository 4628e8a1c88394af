"""Dispatch: run an operator's kernel on arrays on the ground, or pass the call to the innermost level."""

from functools import partial
from sys import _getframe

from numpy import asarray, dtype, ndarray

from retrograd.core.device import array_devices
from retrograd.core.errors import OperandTypeError
from retrograd.core.level import grad_mode_below
from retrograd.core.memory_order import order_of, put_in_order
from retrograd.core.op import (
    AuxOutput,
    OpBase,
    any_foreign,
    composite_arrays,
    compound,
    is_array,
    is_foreign,
    namespaces,
    operator_named,
    registry,
)
from retrograd.core.operand_errors import explain, reraise_as_runtime_error, wrap_integers
from retrograd.core.overrides import call_as_given, call_override, write_out
from retrograd.core.record import record, record2
from retrograd.core.state import ERRORS_DEFAULT, current, float_errors, override_state
from retrograd.core.tensor import (
    INFERENCE,
    TensorBase,
    bump_version,
    has_numpy_dtype,
    has_plain_memory,
    is_floating_array,
    is_integer_array,
    is_real_array,
    is_weak_number,
    make,
    needs_no_promotion,
    same_kind,
    share_real_dtype,
    unwrap_all,
)
from retrograd.core.views import (
    forget_hidden_bases,
    is_view_of,
    mark_several,
    requires_grad_synced,
    sync_view,
    track_view,
)
from retrograd.foundation.describe_value import tensor_hint
from retrograd.foundation.source_location import PACKAGE, user_frame

compiled = not __file__.endswith(".py")
if not compiled:  # compiled, this is a cast without a check: see tensor.pxd
    globals()["known_tensor"] = lambda tensor: tensor


class Op(OpBase):
    """One operator. Calling it runs it at the current level."""

    __slots__ = ()

    def __get__(self, instance, owner):
        return self if instance is None else partial(self, instance)  # a method of tensors

    def __call__(self, *args, **kwargs):
        if self.simple and not kwargs and len(args) == self.simple:
            if self.simple == 1:
                return call1(self, args[0], self.params)
            if self.simple == 2:
                return call2(self, args[0], args[1])
            return call(self, args, self.params)
        level = current().level
        intercepted = level is not None and level.intercept is not None and hasattr(level, "intercept_function")
        if intercepted or any_foreign(args) or (kwargs and any_foreign(tuple(kwargs.values()))):
            out = call_as_given(self, args, kwargs)
            if out is not NotImplemented:
                return out
        if self.optional and not kwargs and self.simple - self.optional <= len(args) < self.simple:
            return call(self, args + (None,) * (self.simple - len(args)), self.params)
        if len(kwargs) == 1 and "out" in kwargs and write_plain(self, kwargs["out"], args):
            return kwargs["out"]
        if self.leading >= 0 and len(args) >= self.leading:
            if not self.variadic:
                params = self.quick_params(args, kwargs)
                if params is not None:
                    return call1(self, args[0], params) if self.unary else call(self, args[: self.leading], params)
            elif type(args[0]) is list or type(args[0]) is tuple:
                params = self.quick_params(args, kwargs)
                if params is not None:
                    return call(self, tuple(args[0]), params)
        if kwargs and self.definition.keyword_overload:
            return registry[self.definition.keyword_overload](*args, **kwargs)
        if "out" in kwargs and "out" not in self.params:
            return write_out(self, args, kwargs)
        bound = self.quick_bind(args, kwargs)
        if bound is not None:
            return call_fast(self, bound[0], bound[1])
        try:
            inputs, params = self.schema.bind(args, kwargs)
        except TypeError:
            today = self.definition.older_form(self.name, args, kwargs)
            if today is None:
                raise
            return self(*today[0], **today[1])
        return call(self, inputs, params)

    def quick_params(self, args, kwargs):
        """Return the params of a call whose arguments are of their types, or integers in place of lists; else None.

        The schema binds the other calls.
        """
        if len(args) == self.leading and not kwargs:
            return self.params if len(self.params) == self.required else None
        params = self.params.copy()
        extra = len(args) - self.leading
        if extra > len(self.positional) and not (self.spreads and type(args[self.leading]) is int):
            return None
        for i in range(extra):
            name = self.positional[i]
            value = args[self.leading + i]
            kind = self.exact[name]
            spread = False
            if kind is tuple and type(value) is int:  # x.sum(-1), or x.reshape(2, 3)
                spread = self.spreads
                value = args[self.leading :] if spread else (value,)
            if not fits_exactly(kind, value) and not self.is_absent(name, value):
                return None
            if name in kwargs:
                return None
            params[name] = value
            if spread:
                break
        for name, value in kwargs.items():
            if name not in self.exact:
                return None
            kind = self.exact[name]
            if kind is tuple and type(value) is int:
                value = (value,)
            if not fits_exactly(kind, value) and not self.is_absent(name, value):
                return None
            params[name] = value
        return params if len(params) == self.required else None

    def is_absent(self, name, value):
        """Return whether the value of a param is None, and that is its default."""
        return value is None and self.params.get(name, self) is None

    def quick_bind(self, args, kwargs):
        """Return the inputs and params of a call, as `Schema.bind`, if it names no synonyms and needs no conversion.

        Else None: the schema binds the call, or says what is wrong. Unlike `quick_params`, this function takes inputs
        and params in any order, some of them left out.
        """
        params = {}
        inputs = []
        given = len(args)
        named = len(kwargs)
        i = 0
        if self.slots is None:
            self.slots = self.schema.slots()
        for name, default, required, keyword_only, kind, optional, is_input, is_list in self.slots:
            if i < given:
                if keyword_only:
                    return None
                value = args[i]
                i += 1
            elif named and name in kwargs:
                value = kwargs[name]
                named -= 1
            else:
                if required:
                    return None
                value = default
            if not is_input:
                if kind is tuple and type(value) is int and not self.spreads:
                    value = (value,)
                if value is not default and not (value is None and optional) and not fits_exactly(kind, value):
                    return None
                params[name] = value
            elif not is_list:
                inputs.append(value)
            elif type(value) is list or type(value) is tuple:
                inputs.extend(value)
            else:
                return None
        return (tuple(inputs), params) if i == given and named == 0 else None


def unbound_methods(cls):
    """Class decorator of operators: Python calls `x.sin()` without the object that `__get__` returns."""
    if compiled:
        mark_method_descriptor(cls)  # noqa: F821 (declared in dispatch.pxd)
    return cls


def fits_exactly(kind, value):
    """Return whether a value already has the type of its param; `kind` is from `Schema.exact`."""
    if kind is tuple:
        if type(value) is not tuple:
            return False
        for member in value:
            if type(member) is not int:
                return False
        return True
    if kind is complex:  # any number
        return type(value) is float or type(value) is int
    if kind is dtype:
        return isinstance(value, dtype)
    return type(value) is kind or kind is object


# ---------------------------------------------------------------------------------------------------- calls


def call1(op, a, params):
    """Run an operator of one input and one result: `call`, specialized for the ground."""
    state = current()
    # Fast path: a plain array on the ground. Everything else falls through to `call` below.
    if state.level is None and isinstance(a, TensorBase) and not op.composite and op.kernel is not None:
        t: TensorBase = known_tensor(a)  # noqa: F821
        if (
            t.level is None
            and not t._overrides
            and has_numpy_dtype(t.value)
            and (is_real_array(t.value) or not op.promotes or (op.simple and not op.to_float))
            and state.device is None
        ):
            requires_grad = requires_grad_synced(t)
            try:
                r = op.kernel(t.value, **params) if params else op.kernel(t.value)
            except OverflowError:
                return call(op, (a,), params)
            except (ValueError, TypeError, IndexError, AttributeError):
                explain(op, (a,), params)
                raise
            if op.orders is not None:
                r = in_order(op, (t.value,) if op.orders else (), r)
            out = make(r if type(r) is ndarray else as_array(r), None, t.tag)
            if state.inference:
                out.version = INFERENCE
            if op.view and is_view_of(out.value, t.value):
                track_view(op, out, t, params, state)
            if requires_grad:
                if state.grad_enabled and op.differentiable and not state.inference:
                    record(op, (a,), params, out, None)
                else:
                    note_detached(op, out, state)
            return out
    return call(op, (a,), params)


def call_fast(op, args, params):
    """Run an operator on its flat inputs, as `call`, by the function for its number of inputs if there is one."""
    if op.unary and len(args) == 1:
        return call1(op, args[0], params)
    if op.simple == 2 and len(args) == 2:
        return call2(op, args[0], args[1])
    return call(op, args, params)


def detach_all(op, tensors):
    """Return the results of `detach`, the operator, on tensors; all left their graphs at one line."""
    state = current()
    cut = None
    results = []
    for a in tensors:
        t: TensorBase = a
        if state.level is not None or t.level is not None or t._overrides or type(t.value) is not ndarray:
            results.append(call1(op, a, op.params))
            continue
        requires_grad = requires_grad_synced(t)
        out = make(t.value[...], None, t.tag)
        if state.inference:
            out.version = INFERENCE
        track_view(op, out, t, op.params, state)
        if requires_grad:
            if cut is None:
                note_detached(op, out, state)
                cut = out.tag
            else:
                out.tag = cut
        results.append(out)
    return results


def call2(op, a, b):
    """Run an operator of two inputs and no params: `call`, specialized for the ground."""
    state = current()
    if state.level is None and not op.composite:
        requires_grad = False
        x = a
        y = b
        cut = None
        if isinstance(a, TensorBase):
            t: TensorBase = known_tensor(a)  # noqa: F821
            if t.level is not None or t._overrides:
                return call(op, (a, b), op.params)
            if t._view is not None:
                sync_view(t)
            x = t.value
            requires_grad = t._requires_grad
            if t.tag is not None:
                cut = t.tag
        if isinstance(b, TensorBase):
            u: TensorBase = known_tensor(b)  # noqa: F821
            if u.level is not None or u._overrides:
                return call(op, (a, b), op.params)
            if u._view is not None:
                sync_view(u)
            y = u.value
            requires_grad = requires_grad or u._requires_grad
            if u.tag is not None:
                cut = u.tag
        # Without promotion, NumPy's kernel gives PyTorch's dtype. Else `call` promotes the operands first.
        if (
            op.kernel is not None
            and needs_no_promotion(x, y)
            and (not op.to_float or is_floating_array(x) or is_floating_array(y))
        ):
            try:
                r = op.kernel(x, y)
            except OverflowError:
                return call(op, (a, b), op.params)
            except (ValueError, TypeError, IndexError, AttributeError):
                explain(op, (a, b), op.params)
                raise
            out = make(r if type(r) is ndarray else asarray(r), None, cut)
            if requires_grad:
                if not state.grad_enabled or not op.differentiable or state.inference:
                    note_detached(op, out, state)
                elif is_floating_array(out.value):
                    record2(op, a, b, out, state)
            if state.inference:
                out.version = INFERENCE
            return out
    return call(op, (a, b), op.params)


def call(op, args, params):
    """Run an operator on its flat inputs: the one dispatch function."""
    state = current()
    level = state.level
    # A function mode or autocast gets the call as the program makes it, before classes override it and before composite
    # operators call others. It runs one level below; NotImplemented leaves the call to its usual course.
    if level is not None and level.intercept is not None:
        state.level = level.parent
        try:
            out = level.intercept(op, args, params)
        finally:
            state.level = level
        if out is not NotImplemented:
            return out
    # 1. Other classes answer for themselves; 2. composite arrays are taken apart before any level sees the call.
    parts = None
    device = None
    on_host = False
    for a in args:
        if not isinstance(a, TensorBase):
            if is_foreign(a):
                return call_override(op, args, params)
        elif known_tensor(a)._overrides and is_foreign(a):  # noqa: F821
            return call_override(op, args, params)
        elif type(unwrap_all(a)) is not ndarray:
            parts = compound(a) or parts
            device = array_devices.get(type(unwrap_all(a))) or device
        else:
            on_host = True
    if device is not state.device and (device is not None or on_host):
        return call_on(device, op, args, params)
    if parts is not None:
        out = parts.call(op, args, params)
        if out is not NotImplemented:
            return name_results(op, out)
    # 3. A composite operator calls others, which are dispatched one by one; it gets no node of its own.
    if op.composite and not (parts is not None and seen_whole()):
        out = run_compose(op, args, params)
        if op.several_views:
            mark_several(out, op.name)
        return out
    # A transparent level only observes: its `process` calls the operator again, at the parent level.
    if level is not None and level.transparent:
        state.level = level.parent
        try:
            return level.process(op, args, params)
        finally:
            state.level = level
    requires_grad = False
    for a in args:
        if isinstance(a, TensorBase):
            t: TensorBase = known_tensor(a)  # noqa: F821
            if requires_grad_synced(t) and t.level is level:
                requires_grad = True
    if level is None:
        out = ground(op, args, params)
    else:
        # 4. The level's rules are operators too. They run one level below, so transforms nest in any order.
        try:
            out = process_below(level, op, args, params, state)
        except (ValueError, TypeError):  # of a shape rule, which the level runs itself
            reraise_as_runtime_error(op)
            raise
        if op.view and isinstance(args[0], TensorBase):
            track_view(op, out, args[0], params, state)
    if state.inference:
        mark_inference(out)
    if requires_grad:
        if state.grad_enabled and op.differentiable and not state.inference:
            # 6. The result joins the graph of this level; levels below have recorded their own part already.
            record(op, args, params, out, level)
        elif level is None:
            for o in out if type(out) is tuple else (out,):
                if not isinstance(o, AuxOutput):
                    note_detached(op, o, state)
    return out


def process_below(level, op, args, params, state):
    """Return `level.process(op, args, params)`, run in what is `level.below()` without the object for a block."""
    grad_enabled = state.grad_enabled
    if level.traces:
        level.recording = grad_enabled
    state.grad_enabled = grad_mode_below(level, state)
    state.level = level.parent
    try:
        return level.process(op, args, params)
    finally:
        state.level = level
        state.grad_enabled = grad_enabled


def write_plain(op, out, args):
    """Write the result of an operator without params into a plain tensor of real floats or integers, if possible.

    Return whether that was possible.

    `out` may be one of the operands. They have its dtype, or are Python numbers. Whatever this function does not handle
    is left to the caller before anything is written, errors too.
    """
    state = current()
    if state.level is not None or state.device is not None or op.kernel is None or len(args) != op.simple:
        return False
    if not isinstance(out, TensorBase):
        return False
    x: TensorBase = known_tensor(out)  # noqa: F821
    if not has_plain_memory(x):
        return False
    requires_grad = x._requires_grad
    # Whether NumPy's function makes a result like x of these operands. On integers, it may fail after it wrote some.
    fits = is_real_array(x.value)
    if not fits and (op.to_float or not is_integer_array(x.value)):
        return False
    cut = x.tag
    arrays = []
    for a in args:
        if isinstance(a, TensorBase):
            t: TensorBase = known_tensor(a)  # noqa: F821
            if t.level is not None or t._overrides or type(t.value) is not ndarray:
                return False
            if t._view is not None:
                sync_view(t)
            if t.value.dtype is not x.value.dtype:
                return False
            fits = fits and same_kind(t.value, x.value)
            requires_grad = requires_grad or t._requires_grad
            if t.tag is not None:
                cut = t.tag
            arrays.append(t.value)
        elif is_weak_number(x.value, a):
            arrays.append(a)
        else:
            return False
    if requires_grad and (x is not args[0] or (state.grad_enabled and not state.inference)):
        return False  # recorded, refused, or noted where it leaves the graph
    if not (fits and write_ufunc(op, x, arrays)):
        try:
            r = asarray(op.kernel(*arrays))
        except (OverflowError, ValueError, TypeError, IndexError, AttributeError):
            return False
        if not same_kind(r, x.value):
            return False
        x.value[...] = r
        bump_version(x)
    x.tag = cut
    return True


def write_ufunc(op, x, arrays):
    """Let NumPy's function for an operator write into the array of a tensor; return whether it did.

    It does not where NumPy may raise an error for elements that it has computed, and written. A warning that is an
    error is raised after the write, too, and counts it.
    """
    if op.ufunc is None or float_errors.get() is not ERRORS_DEFAULT:
        return False
    try:
        op.ufunc(*arrays, x.value)
    except (OverflowError, TypeError):  # of an operand: nothing is written
        return False
    except Warning:
        bump_version(x)
        raise
    bump_version(x)
    return True


def call_on(device, op, args, params):
    """Run an operator with operands on a device, or in host memory for None, where it makes arrays of none too.

    Operands without dimensions may be in host memory. Other devices are refused, unless the operator moves values.
    """
    if device is not None and not op.definition.crosses_devices:
        args = tuple([place_operand(device, op, a) if isinstance(a, TensorBase) else a for a in args])
    with override_state("device", device):
        return call(op, args, params)


def place_operand(device, op, a):
    """Return an operand on a device."""
    kind = type(unwrap_all(a))
    if kind is device.array_type or kind in composite_arrays:
        return a
    if kind is not ndarray or a.ndim:
        other = array_devices[kind].device if kind in array_devices else "cpu"
        raise RuntimeError(
            f"{op.name}: Expected all tensors to be on the same device, but found at least two devices, "
            f"{device.device} and {other}! The operand of shape {a.shape} is on {other}; move it by "
            f"x.to({str(device.device)!r})"
        )
    return operator_named("to_device")(a, device, None)


def run_compose(op, args, params):
    """Return the result of a composite operator's `compose`, which gets tensors in place of arrays."""
    for a in args:
        if a is not None and not isinstance(a, TensorBase) and is_array(a):
            args = tuple([as_operand(x) for x in args])
            break
    try:
        out = op.definition.compose(*args, **params)
    except (ValueError, TypeError, AttributeError):
        explain(op, args, params)
        raise
    # A user's Function may return views of tensors that the user holds; a transparent level may know views by base.
    level = current().level
    if op.definition is not op and (level is None or not level.transparent or level.observes):
        forget_hidden_bases(out, args)
    return name_results(op, out)


def name_results(op, out):
    """Return the results of an operator that names several ones in its class; any other result as it is."""
    if op.result_class is None or not isinstance(out, tuple):
        return out
    return tuple.__new__(op.result_class, out)


def seen_whole():
    """Return whether the current level receives operators on composite arrays without taking them apart."""
    level = current().level
    return level is not None and level.traces


def ground(op, args, params):
    """Run the kernel on the arrays, and wrap its results."""
    arrays = []
    try:
        arrays = [raw(op, a) for a in args]
        if op.promotes and not share_real_dtype(arrays, op.masks):
            arrays = op.definition.promote(arrays)
        kernel = op.kernel_for(arrays)
        out = kernel(*arrays, **params)
    except OverflowError:
        out = run_wrapped(op, args, arrays, params)
    except (ValueError, TypeError, IndexError, AttributeError):
        explain(op, args, params)
        raise
    if op.orders is not None:
        out = in_order(op, arrays, out)
    cut = None
    for a in args:
        if isinstance(a, TensorBase) and a.tag is not None:
            cut = a.tag
    if type(out) is tuple:
        return tuple([r if isinstance(r, AuxOutput) else make(as_array(r), None, cut) for r in out])
    result = make(as_array(out), None, cut)
    if op.view and isinstance(args[0], TensorBase) and is_view_of(result.value, args[0].value):
        track_view(op, result, args[0], params, current())
    return result


def run_wrapped(op, args, arrays, params):
    """Return a kernel's result with integers that its dtype holds in place of one that NumPy refused."""
    arrays, params = wrap_integers(op, args, arrays, params)
    if op.promotes:
        arrays = op.definition.promote(arrays)
    return op.kernel_for(arrays)(*arrays, **params)


def in_order(op, arrays, out):
    """Return a kernel's results in the memory order that its operator's trait `memory` gives them, as in PyTorch."""
    if type(out) is tuple:
        return tuple([in_order(op, arrays, r) for r in out])
    if type(out) is ndarray:
        array: ndarray = out
        if (array.is_row_major if compiled else out.flags.c_contiguous) and (not op.orders or are_row_major(arrays)):
            return out
    elif type(out) not in array_devices:
        return out
    return put_in_order(namespaces[type(out)], out, order_of(op, arrays) if op.orders else None)


def are_row_major(operands):
    """Return whether all operands are row-major arrays of NumPy's, or no arrays."""
    for operand in operands:
        if type(operand) is ndarray:
            array: ndarray = operand
            if not (array.is_row_major if compiled else operand.flags.c_contiguous):
                return False
        elif type(operand) in array_devices:
            return False
    return True


def mark_inference(out):
    """Mark results made in inference mode: they can never join a graph, except views of tensors made outside."""
    for o in out if type(out) is tuple else (out,):
        if not isinstance(o, AuxOutput) and o.version is None:
            o.version = INFERENCE


def note_detached(op, out, state):
    """Note where a result left the graph of its operands; not in a backward pass, where that is common."""
    if state.inference and out._view is not None and op.differentiable and out.version is not INFERENCE:
        out._requires_grad = True  # a view of a tensor from outside of the mode is a leaf that requires grad
    elif state.running is None:
        note_cut(out, "inference_mode" if state.inference else op.name if state.grad_enabled else "no_grad")


def note_cut(out, reason):
    """Store in the tag why, and at which line, a value left its graph."""
    frame = _getframe(0)  # compiled functions have no Python frame: this is the user's already
    if frame.f_code.co_filename.startswith(PACKAGE):
        frame = user_frame()
    out.tag = (reason, frame.f_code, frame.f_lasti) if frame is not None else (reason, None, 0)


def as_array(result):
    """Return a kernel's result as an array: NumPy returns scalars for results without dimensions."""
    if type(result) in namespaces:
        return result
    device = current().device
    return asarray(result) if device is None else device.from_host(asarray(result))


def raw(op, a):
    """Return the array of an operand on the ground; Python numbers pass unchanged, and None where it may be given."""
    if isinstance(a, TensorBase):
        if a.level is None:
            return a.value
        raise a.level.escape_error(a)
    if (a is None and op.takes_none) or type(a) is ndarray or isinstance(a, (bool, int, float, complex)):
        return a
    if is_array(a):
        return as_array(a)
    kind = TypeError if a is None else OperandTypeError  # `explain` leaves the second as it is
    raise kind(f"{op.name}: expected a Tensor, an array or a number, got {type(a).__name__}; {tensor_hint(a)}")


def as_operand(a):
    """Return a tensor of an array's memory; other operands as they are."""
    return make(as_array(a), None, None) if is_array(a) else a
