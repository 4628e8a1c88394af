"""The fields of an operator: schema, rules, kernels and traits; and the registries of operators and kinds of arrays."""

from numpy import generic, ndarray

from retrograd.core.device import array_devices
from retrograd.core.dtype import is_bfloat16, is_extension
from retrograd.core.memory_order import ORDERS
from retrograd.core.state import current, override_state
from retrograd.core.tensor import TensorBase, has_numpy_dtype, unwrap_all
from retrograd.core.vjp_rule import VjpRule
from retrograd.foundation.lazy_imports import LazyTable

namespaces = {}  # array type -> namespace of functions on such arrays, filled by retrograd.backend
registry = LazyTable()  # name -> operator
composite_arrays = {}  # array type -> `CompositeArray`, for arrays that consist of several arrays


def is_array(value):
    """Return whether a value is an array, or a scalar of NumPy's."""
    return isinstance(value, (ndarray, generic)) or type(value) in namespaces


def is_foreign(a):
    """Return whether an operand's class overrides operators: another class, or a subclass of Tensor."""
    if isinstance(a, TensorBase):
        t: TensorBase = a
        return t._overrides and current().overrides_off == 0
    kind = type(a)
    if a is None or kind is float or kind is int:  # asked most often: skip the look-ups of attributes
        return False
    return hasattr(kind, "__tensor_function__") or (hasattr(kind, "__torch_function__") and not from_torch(kind))


def any_foreign(values):
    """Return whether one of the arguments of a call, or of the members of a list or tuple there, is foreign."""
    for a in values:
        kind = type(a)
        if isinstance(a, (tuple, list)):  # as in `foreign_objects`
            if any_foreign(a):
                return True
        elif kind is not bool and kind is not str and is_foreign(a):
            return True
    return False


_NUMBERS = (int, float, complex)  # not in place: compiled code would not ask the __class__ of sizes that are traced


def takes_over(a, method):
    """Return whether an operand that no operator takes has the method of the other side, such as `__radd__`.

    Then Python calls that one; after a reflected method, as for `[0] * tensor`, it repeats or extends the sequence.
    """
    if isinstance(a, TensorBase):
        return False
    kind = type(a)
    if kind is float or kind is int:  # asked most often, as in `is_foreign`
        return False
    return hasattr(kind, method) and not (isinstance(a, _NUMBERS) or is_array(a) or is_foreign(a))


def from_torch(kind):
    """Return whether a class has its `__torch_function__` from PyTorch, so that it handles PyTorch's functions."""
    (owner, *_) = [base for base in kind.__mro__ if "__torch_function__" in vars(base)]
    return owner.__module__.partition(".")[0] == "torch"


def compound(t):
    """Return the `CompositeArray` that handles a tensor's kind of array; None for plain arrays."""
    return composite_arrays.get(type(unwrap_all(t)))


class CompositeArray:
    """The handler of operators on one kind of composite array, which consists of several (as nested tensors do).

    It replaces an operator by operators on the parts before any level processes the call: levels and the graph handle
    the parts only.
    """

    complete = True  # whether all elements are stored, so that they can be replaced one by one

    def call(self, op, args, params):
        """Compute an operator by operators on the parts; NotImplemented if it has to run as it is."""
        raise NotImplementedError

    def plain(self, x):
        """Return the plain tensor with all elements of x, and the function that rebuilds a tensor like x from one."""
        raise NotImplementedError

    def numel(self, x):
        """Return the number of elements of x, where its shape does not determine it."""
        raise NotImplementedError

    def layout(self, x):
        """Return the layout of x, an `ops.layout.layout`."""
        raise NotImplementedError

    def values(self, x):
        """Return the plain tensor with the stored elements of x, for the method of that name."""
        raise NotImplementedError

    def sparse_dim(self, x):
        """Return the number of sparse dimensions."""
        return 0

    def to_dense(self, x, dtype, masked_grad):
        """Return x without elements left out, in a dtype unless that is None."""
        return x if dtype is None else x.to(dtype)

    def add_to(self, x, other, sign):
        """Add a composite tensor, times 1 or -1, to the plain tensor x in place; return whether that was done."""
        return False

    def write(self, name, x, src):
        """Write a tensor into the memory of x, for the in-place function `name`; return x."""
        raise NotImplementedError

    def write_item(self, x, key, value):
        """Perform x[key] = value."""
        raise NotImplementedError


class AuxOutput:
    """An extra output after an operator's tensors, which levels and the graph pass through unchanged."""

    def path(self, number):
        """Return the path of indices, outermost first, to output `number` in the result of a call."""
        return (number,)


class OpBase:
    """The fields of an operator. `Op`, its only subclass, can be called."""

    def __init__(self, schema, definition):
        self.schema = schema
        self.definition = definition
        self.name = schema.name
        self.params = schema.defaults
        self.variadic = schema.variadic
        self.last = len(schema.inputs) - 1
        self.simple = 0 if schema.params or schema.variadic or schema.results != "Tensor" else len(schema.inputs)
        self.unary = len(schema.inputs) == 1 and not schema.variadic and schema.results == "Tensor"
        self.optional = sum([p.default is None for p in schema.inputs]) if self.simple else 0  # these are the last
        # A user's Function may be given None for any input.
        self.takes_none = definition is self or any("?" in p.type or p.default is None for p in schema.inputs)
        plain = schema.inputs_lead and (not schema.variadic or len(schema.inputs) == 1)
        self.leading = len(schema.inputs) if plain else -1
        self.positional = schema.positional_params
        self.spreads = schema.spreads
        self.exact = schema.exact
        self.slots = None  # of the schema, from the first call that needs them
        self.required = len(schema.params)
        self.differentiable = definition.differentiable
        self.promotes = definition.promotion is not None
        self.to_float = definition.promotion == "float"
        self.masks = getattr(definition, "masks", 0)  # of `Pointwise` operators
        self.reduces_cotangent = definition.fit is not None
        self.view = definition.view == "one"
        self.composite = definition.compose is not None
        self.result_class = getattr(definition, "result_class", None)
        self.several_views = definition.view == "several"
        self.orders = ORDERS[definition.memory] if definition.memory else None
        # Operators that draw random numbers take `any generator`; a user's operator may have a number of that name.
        self.random = schema.exact.get("generator") is object
        self.rules = _vjp_rules(schema, definition)
        self.snapshots = _snapshot_mask(schema, definition)
        self.kernels = {}
        self.device_rules = {}  # (device, whether the result is bfloat16) -> rules
        self.kernel = self.widened_rules = None
        self.ufunc = None  # NumPy's function that computes as the kernel does, elementwise, if there is one

    def kernel_for(self, arrays):
        """Return the kernel for the arrays: NumPy's unless one of them is of another kind."""
        made = True  # whether the kernel makes arrays of none
        for array in arrays:
            if type(array) is ndarray:
                made = False
                if not has_numpy_dtype(array):
                    return self.bound(ndarray, True)
            elif type(array) in namespaces:
                kind = type(array)
                stored = [type(x) is kind and is_extension(x.dtype) for x in arrays] if kind in array_devices else ()
                return self.bound(kind, True in stored)
        if made:
            device = current().device
            if device is not None:
                return self.bound(device.array_type)
        return self.kernel if self.kernel is not None else self.bound(ndarray)

    def bound(self, array_type, widened=False):
        """Return the kernel over one namespace, bound on first use; `widened`: the one for arrays of bfloat16."""
        key = (array_type, "widened") if widened else array_type
        if key not in self.kernels:
            namespace = namespaces[array_type]
            # For arrays without elements. NumPy's namespace is a module, which would look for the name in SciPy.
            if hasattr(type(namespace), "bind_shape"):
                self.kernels[key] = namespace.bind_shape(self.definition)
            else:
                self.kernels[key] = (self.definition.bind_widened if widened else self.definition.bind)(namespace)
        if key is ndarray:
            self.kernel = self.kernels[key]
            self.ufunc = namespaces[key].ufunc_of(self.kernel)
        return self.kernels[key]

    def rules_for(self, out):
        """Return the vjp rules of a result: they compute on its device, and in float32 if it is bfloat16."""
        device = array_devices.get(type(unwrap_all(out)))
        rules = self.rules
        if is_bfloat16(out.dtype):
            if self.widened_rules is None:
                self.widened_rules = self.definition.widened_rules(self)
            rules = self.widened_rules
        if device is None:
            return rules
        key = device, is_bfloat16(out.dtype)
        if key not in self.device_rules:
            self.device_rules[key] = tuple([rule and rule.replaced(on_device(device, rule.fn)) for rule in rules])
        return self.device_rules[key]


def on_device(device, rule):
    """Return a vjp rule that makes its arrays on a device."""

    def run(*args):
        with override_state("device", device):
            return rule(*args)

    return run


def operator_named(name):
    """Return the registered operator of that name; a KeyError names it."""
    if name not in registry:
        raise KeyError(f"no operator named {name!r} is registered")
    return registry[name]


def _vjp_rules(schema, definition):
    inputs = [p.name for p in schema.inputs]
    params = [p.name for p in schema.params]
    rules = []
    for i, name in enumerate(inputs):
        fn = getattr(definition, "vjp_" + name, None)
        rules.append(None if fn is None else VjpRule(fn, inputs, params, schema.name, schema.outputs))
        if fn is not None:
            rules[i].depends = definition.saves_input or bool(rules[i].needs_values >> i & 1)
    return tuple(rules)


def _snapshot_mask(schema, definition):
    """Return which saved inputs are snapshots, as bits; the bit after the last input stands for the outputs."""
    if not definition.snapshots:
        return 0
    names = [*[p.name for p in schema.inputs], "out"]
    listed = definition.snapshots.split()
    unknown = set(listed) - set(names)
    if unknown:
        raise TypeError(f"{schema.name}: snapshots of {', '.join(sorted(unknown))}, which are no inputs, nor out")
    return sum([1 << names.index(name) for name in listed])
