"""Graphs of both libraries as texts that can be compared: the printed graph, and the code in one form."""

import ast
import importlib
import operator
import re

from .programs import ErrorClasses, data


def fx(m, name=""):
    return importlib.import_module(f"{m.__name__}.fx{'.' * bool(name)}{name}")


def small(m):
    """Build x + x * 2, by hand; return the graph and its nodes."""
    graph = fx(m).Graph()
    x = graph.placeholder("x")
    mul = graph.call_function(operator.mul, (x, 2))
    add = graph.call_function(operator.add, (x, mul))
    graph.output(add)
    return graph, x, mul, add


def graph_text(graph):
    """Return a graph as it is printed, with the last name of each function: operators belong to other packages."""
    return re.sub(r"target=[\w.]*?(\w+)\]", r"target=\1]", str(graph))


class _Form(ast.NodeTransformer):
    """Write code in one form: without frees, annotations and reads of attributes, functions by their own names."""

    def __init__(self, functions):
        self.functions, self.values = functions, {}

    def visit_Delete(self, node):
        return None

    def visit_Assign(self, node):
        self.generic_visit(node)
        target, value = ast.unparse(node.targets[0]), ast.unparse(node.value)
        if value == "None":
            return None
        if re.fullmatch(r"self(\.\w+)+", value) or isinstance(node.value, ast.Name):
            self.values[target] = node.value
            return None
        if isinstance(node.targets[0], ast.List | ast.Tuple):
            node.targets = [ast.Tuple(node.targets[0].elts)]
        return node

    def visit_Constant(self, node):
        return ast.Name("Ellipsis") if node.value is ... else node

    def visit_Name(self, node):
        return self.values.get(node.id, node)

    def visit_Call(self, node):
        self.generic_visit(node)
        text = ast.unparse(node.func)
        if isinstance(node.func, ast.Name):
            text = getattr(self.functions.get(text), "__name__", text)
        module = text.partition(".")[0]
        if isinstance(node.func, ast.Name) or module in ("ops", "torch", "retrograd", "fx_pytree", "pytree"):
            node.func = ast.Name(text.rpartition(".")[2])
            node.args = [arg for arg in node.args if ast.unparse(arg) not in ("self._in_spec", "self._out_spec")]
        return node


def code_text(module):
    """Return the statements of a module's code, with the names of its arguments as the graph has them."""
    functions = getattr(getattr(module, "_code", None), "globals", None) or type(module).forward.__globals__
    form = _Form(functions)
    code = "".join(line for line in module.code.splitlines(True) if ".wrap(" not in line)
    text = ast.unparse(form.visit(ast.parse(code.strip())))
    text = text.replace("tree_flatten_spec", "flatten").replace("tree_unflatten", "unflatten")
    head, _, body = text.partition("\n")
    for name, value in form.values.items():
        if isinstance(value, ast.Name):  # an argument of another name
            head = re.sub(rf"\b{value.id}\b", name, head)
            body = re.sub(rf"\b{value.id}\b", name, body)
    return f"{head}\n{body}"


def report(m, module, *calls):
    """Return the text of a graph module, its code and its results in two ways."""
    module.graph.lint()
    rows = [graph_text(module.graph), code_text(module)]
    for args in calls:
        rows.append(result(module, *args))
        rows.append(result(fx(m).Interpreter(module).run, *args))
    return rows


def result(f, *args, **kwargs):
    """Return the result as data, or the built-in classes and the first words of the error."""
    try:
        return data(f(*args, **kwargs))
    except Exception as error:
        return ErrorClasses(error)


def failing(f, words):
    """Return that the error of a function has these words."""
    try:
        f()
    except Exception as error:
        return [*map(str, sorted(k.__name__ for k in ErrorClasses(error)))], words in str(error)
    return "no error"


def net(m):
    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.param = m.nn.Parameter(m.arange(12.0).reshape(3, 4) / 12)
            self.linear = m.nn.Linear(4, 5)
            self.register_buffer("shift", m.ones(5))

        def forward(self, x):
            return self.linear(x + self.param).clamp(min=0.0, max=1.0) + self.shift

    made = Net()
    with m.no_grad():
        for p in made.linear.parameters():
            p.copy_(m.arange(float(p.numel())).reshape(p.shape) / 10)
    return made


def trace(m, f, **options):
    return fx(m).symbolic_trace(f, **options)
