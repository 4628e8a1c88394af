"""Publishing of the operators: names in `rg`, methods of tensors, functions and methods that write in place."""

from retrograd.core import Tensor, registry
from retrograd.foundation.lazy_imports import LazyAttribute, complete_on_first_use, late_attribute
from retrograd.ops import inplace, legacy, methods, mutate
from retrograd.ops.functions import functions, public_members

attributes_of = {}  # full name of a module -> names of the attributes that it will add to the Tensor class


def announce(contents, package="retrograd.ops"):
    """Register the modules of a package that are imported on first use.

    contents: for each module the names of its operators, its functions, further public names, and methods of tensors.
    """
    for name, (operators, own_functions, names, attributes) in contents.items():
        home = f"{package}.{name}"
        complete_on_first_use(home, publish)
        registry.homes.update(dict.fromkeys(operators.split(), home))
        functions.homes.update(dict.fromkeys(own_functions.split(), home))
        public_members.homes.update(dict.fromkeys(own_functions.split() + names.split(), home))
        attributes_of[home] = attributes.split()
        for attribute in attributes_of[home]:
            setattr(Tensor, attribute, LazyAttribute(Tensor, attribute, home))


def publish(home=""):
    """Publish the operators of a module that was imported on first use, and of all modules that are in no table."""
    operators = [registry.get_added(name) for name, module in registry.homes.items() if module == home]
    operators += [operator for operator in registry.pop_unlisted() if is_built_in(operator)]
    publish_operators(operators, home)
    for name in attributes_of.pop(home, ()):
        late_attribute(Tensor, name).publish()


def publish_operators(operators, home):
    """Publish operators of one module; a name that another module defines in its own way is left to that."""
    inplace.add_functions(operators)
    named = {name: operator for operator in operators for name in operator.public_names if name not in functions}
    for name, operator in named.items():
        public_members.add(name, operator)
    top = {name: operator for name, operator in named.items() if "." not in name}
    methods.add_operators(top)
    mutate.add_in_place(top, home)
    legacy.add_writing_functions(top, home)


def is_built_in(operator):
    """Return whether an operator is defined in this package."""
    return operator.definition.__module__.startswith("retrograd.ops.")
