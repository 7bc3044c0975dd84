"""A symbol of a shared library as a function, called as its manifest says (docs/any-function.md).

    {"axes": {"rows": [64, 1024], "n": [256]},
     "reference": "softmax.py:plain",
     "arguments": [{"name": "x", "dtype": "float32", "shape": ["rows", "n"]},
                   {"name": "y", "dtype": "float32", "shape": ["rows", "n"], "output": true},
                   {"name": "rows", "type": "int64", "value": "rows"},
                   {"name": "n", "type": "int64", "value": "n"}]}

Needs the standard library and NumPy; torch for bfloat16 and on a GPU.
"""
from __future__ import annotations

import ast
import ctypes
import itertools
import json
import math
import operator
import pathlib
from typing import TYPE_CHECKING, Any

from syslab_bounds import unit_roundoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Union

    import numpy
    from torch import Tensor

    Array = Union[numpy.ndarray, Tensor]

SCALARS: dict[str, Any] = {
    "int32": ctypes.c_int32, "int64": ctypes.c_int64, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
    "size_t": ctypes.c_size_t, "float32": ctypes.c_float, "float64": ctypes.c_double, "bool": ctypes.c_bool}
TENSORS = ("float64", "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool")
LARGEST = {"int8": 2 ** 7 - 1, "int16": 2 ** 15 - 1, "int32": 2 ** 31 - 1, "uint8": 2 ** 8 - 1}
RETURNS = ("void", "status")
DRAWS = ("normal", "uniform")
OF_MANIFEST = ("axes", "reference", "arguments", "returns", "reference_takes", "terms", "rtol", "atol",
               "flops", "bytes")
OF_TENSOR = ("name", "dtype", "shape", "output", "draw", "below")
OF_SCALAR = ("name", "type", "value")
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
             ast.Mod: operator.mod, ast.Div: operator.truediv}
FUNCTIONS = {"min": min, "max": max}
MOST_OF_EXPRESSION = 1000  # characters
CANARY, CANARY_BYTES = 0xA5, 256  # on both sides; a multiple of 256 keeps the alignment on a GPU


class BadCases(Exception):
    """What the file of inputs gives is not a list of cases."""


# --- the library ------------------------------------------------------------------------------------------------------


class Symbol:
    """A function of C. What it takes and returns is the manifest's to say, and comes with each call's signature."""

    def __init__(self, path: str, name: str) -> None:
        self.function = getattr(ctypes.CDLL(path), name)
        self.name = name
        self.canaries: list[tuple[str, Array]] = []  # (where, bytes) around the last call's outputs

    def bound(self, abi: dict[str, Any] | None, values: Sequence[Array], device: str = "cpu") -> Callable[[], Any]:
        """A call on these tensors, with outputs of its own that hold NaN until it writes them."""
        if abi is None:
            raise TypeError(f"'{self.name}' is a library's, and its arguments are in no manifest")
        self.function.restype = ctypes.c_int if abi["returns"] == "status" else None
        arguments: list = []
        outputs: list = []
        self.canaries = []
        for kind, *what in abi["arguments"]:
            if kind == "input":
                index, dtype = what
                value = values[index]
                if str(value.dtype).removeprefix("torch.") != dtype:
                    raise TypeError(f"'{self.name}' takes {dtype}, not {value.dtype}")
                arguments.append(ctypes.c_void_p(address_of(value)))
            elif kind == "output":
                argument, dtype, shape = what
                outputs.append(self.output(argument, dtype, shape, device))
                arguments.append(ctypes.c_void_p(address_of(outputs[-1])))
            elif kind == "scalar":
                arguments.append(SCALARS[what[0]](what[1]))
            else:
                arguments.append(ctypes.c_void_p(stream_of(device)))
        returned = outputs[0] if len(outputs) == 1 else tuple(outputs)

        def call() -> Any:
            status = self.function(*arguments)
            if status:
                raise RuntimeError(f"{self.name} returned {status}")
            return returned

        return call

    def output(self, name: str, dtype: str, shape: list[int], device: str) -> Array:
        if device != "cpu" or dtype == "bfloat16":
            import torch

            dtype = getattr(torch, dtype)
            count = math.prod(shape) * torch.empty((), dtype=dtype).element_size()
            room = torch.full((count + 2 * CANARY_BYTES,), 1 if dtype == torch.bool else 0xFF, dtype=torch.uint8,
                              device=device)
        else:
            import numpy

            count = math.prod(shape) * numpy.dtype(dtype).itemsize
            room = numpy.full(count + 2 * CANARY_BYTES, 0xFF, "u1")
        end = CANARY_BYTES + count
        for where, canary in (("before the beginning", room[:CANARY_BYTES]), ("behind the end", room[end:])):
            canary[:] = CANARY
            self.canaries.append((f"{where} of its output '{name}'", canary))
        return room[CANARY_BYTES:end].view(dtype).reshape(shape)

    def overrun(self) -> str | None:
        """Where the last call wrote outside its outputs; None: nowhere."""
        return next((where for where, canary in self.canaries if (canary != CANARY).any()), None)


def address_of(value: Array) -> int:
    return value.data_ptr() if hasattr(value, "data_ptr") else value.ctypes.data


def stream_of(device: str) -> int | None:
    if device == "cpu":
        return None
    import torch

    return torch.cuda.current_stream().cuda_stream


# --- the manifest -----------------------------------------------------------------------------------------------------


def evaluate(text: Any, names: dict[str, Any], where: str) -> Any:
    """A number, or an expression of the axes: "rows * (n + 1)"."""
    if isinstance(text, (int, float)):
        return text
    expression = str(text)
    said = expression if len(expression) <= 60 else f"{expression[:60]}…"
    if len(expression) > MOST_OF_EXPRESSION:
        raise BadCases(f"{where}: '{said}' is an expression of {len(expression)} characters; expected at "
                       f"most {MOST_OF_EXPRESSION}")

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.Call) and isinstance(node.func,
                                                     ast.Name) and node.func.id in FUNCTIONS and not node.keywords:
            return FUNCTIONS[node.func.id](*map(value, node.args))
        raise BadCases(f"{where}: '{said}' is no expression of numbers and axes "
                       f"({', '.join(names) or 'there are none'}) with + - * / // % min max")

    try:
        found = value(ast.parse(expression, mode="eval").body)
    except (RecursionError, MemoryError):  # of Python's parser, too
        raise BadCases(f"{where}: '{said}' nests too deep; expected an expression with fewer brackets and "
                       "signs") from None
    except (SyntaxError, TypeError, ValueError, ArithmeticError) as error:
        raise BadCases(f"{where}: '{said}': {error}") from None
    if isinstance(found, int) and found.bit_length() > 1024:
        raise BadCases(f"{where}: '{said}' is a number of {found.bit_length()} bits; expected at most 1024")
    return found


def as_c_takes_it(kind: str, value: Any, where: str) -> Any:
    """`value` if it arrives as what it is: ctypes wraps whole numbers that do not fit."""
    if isinstance(value, float) and value.is_integer() and not kind.startswith("float"):
        value = int(value)
    try:
        arrives = SCALARS[kind](value).value
        whole = math.isfinite(arrives) == math.isfinite(value) if kind.startswith("float") else arrives == value
    except (TypeError, ArithmeticError):
        whole = False
    if not whole:
        raise BadCases(f"{where}: its value is {value!r}, which is no {kind}")
    return value


class ManifestCase:
    """A case as the reference's process reads it (syslab_reference.py), with its way of calling C."""

    def __init__(self, manifest: dict[str, Any], axes: dict[str, Any], where: str) -> None:
        self.axes, self.where = axes, where
        self.name = " ".join(f"{key}={value}" for key, value in axes.items()) or "all"
        for key in ("terms", "rtol", "atol", "flops", "bytes"):
            setattr(self, key, evaluate(manifest[key], axes, f"{where}, '{key}'") if key in manifest else None)
        self.inputs: list = []
        self.abi = {"arguments": [], "returns": manifest.get("returns", "void")}
        scalars: dict = {}
        for each in manifest["arguments"]:
            self.take(each, scalars)
        takes = manifest.get("reference_takes", [each["name"] for each in self.inputs])
        tensors = {each["name"]: ["tensor", index] for index, each in enumerate(self.inputs)}
        self.tree = []
        for name in takes:
            if name not in tensors and name not in scalars:
                raise BadCases(f"{where}: 'reference_takes' has '{name}', which is no input and no number among the "
                               "arguments")
            self.tree.append(tensors.get(name) or plain(scalars[name]))

    def take(self, each: dict[str, Any], scalars: dict[str, Any]) -> None:
        name, where = each["name"], f"{self.where}, argument '{each['name']}'"
        if each.get("type") == "stream":
            return self.abi["arguments"].append(["stream"])
        if "type" in each:
            made = evaluate(each["value"], self.axes, where)
            made = as_c_takes_it(each["type"], made, where)
            scalars[name] = made
            return self.abi["arguments"].append(["scalar", each["type"], made])
        shape = [evaluate(size, self.axes, where) for size in each["shape"]]
        shape = [int(size) if isinstance(size, float) and size.is_integer() else size for size in shape]
        if any(not isinstance(size, int) or isinstance(size, bool) or size < 0 for size in shape):
            raise BadCases(f"{where}: its shape is {tuple(shape)}; sizes are whole numbers from 0 on, and an axis that "
                           "is a size has such values")
        if each.get("output"):
            return self.abi["arguments"].append(["output", name, each["dtype"], shape])
        self.abi["arguments"].append(["input", len(self.inputs), each["dtype"]])
        library = "torch" if each["dtype"] == "bfloat16" else "numpy"
        below = as_c_takes_it("int64", evaluate(each.get("below", 2), self.axes, where), where)
        if below > (most := LARGEST.get(each["dtype"], below)) + 1:
            raise BadCases(f"{where}: 'below' is {below}, but the largest {each['dtype']} is {most}; expected at most "
                           f"{most + 1}")
        self.inputs.append({"name": name, "library": library, "dtype": each["dtype"], "shape": shape,
                            "draw": each.get("draw", "normal"), "below": below})

    def arguments(self, seed: int) -> list[Array]:
        """One value for each input, in the order of the manifest."""
        import numpy

        generator = numpy.random.default_rng(seed)
        return [draw(generator, each) for each in self.inputs]


def plain(value: Any) -> list[Any]:
    return ["float", repr(value)] if isinstance(value, float) else ["plain", value]


def draw(generator: numpy.random.Generator, tensor: dict[str, Any]) -> Array:
    import numpy

    dtype, shape = tensor["dtype"], tensor["shape"]
    if dtype == "bool" or "int" in dtype:
        return generator.integers(0, max(1, tensor["below"]), shape).astype(dtype)
    # A number just below 1 must not become 1 where it is rounded.
    made = (generator.standard_normal(shape) if tensor["draw"] == "normal"
            else numpy.minimum(generator.random(shape), 1 - unit_roundoff(dtype)))
    if dtype != "bfloat16":
        return made.astype(dtype)
    import torch

    return torch.from_numpy(made).to(torch.bfloat16)


def check_argument(each: Any, number: int, where: str) -> None:
    if not isinstance(each, dict) or not isinstance(each.get("name"), str):
        raise BadCases(f"{where}: argument {number} is no object with a \"name\"")
    where = f"{where}, argument '{each['name']}'"
    scalar = "type" in each
    for key in each:
        if key not in (OF_SCALAR if scalar else OF_TENSOR):
            raise BadCases(f"{where} has '{key}'; there are {', '.join(OF_SCALAR if scalar else OF_TENSOR)}")
    if scalar:
        if each["type"] != "stream" and (each["type"] not in SCALARS or "value" not in each):
            raise BadCases(f"{where}: a number has a type ({', '.join(SCALARS)}) and a value; 'stream' has none")
        return
    if each.get("dtype") not in TENSORS or not isinstance(each.get("shape"), list):
        raise BadCases(f"{where}: a pointer has a dtype ({', '.join(TENSORS)}) and a shape, a list")
    if each.get("draw", "normal") not in DRAWS:
        raise BadCases(f"{where}: 'draw' is {' or '.join(DRAWS)}, not {each['draw']!r}")


def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object has the key '{next(name for name in names if names.count(name) > 1)}' twice; "
                         "expected each key once")
    return made


def manifest_cases(path: str | pathlib.Path) -> Iterator[ManifestCase]:
    """The cases of a manifest: the product of its axes."""
    where = pathlib.Path(path).name
    try:
        manifest = json.loads(pathlib.Path(path).read_text(encoding="utf-8-sig"), object_pairs_hook=each_key_once)
    except (OSError, ValueError) as error:
        raise BadCases(f"{where}: {error}") from None
    except RecursionError:
        raise BadCases(f"{where} nests too deep; expected the object of docs/any-function.md") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("arguments"), list):
        raise BadCases(f"{where} is no object with \"arguments\", a list")
    if unknown := [key for key in manifest if key not in OF_MANIFEST]:
        raise BadCases(f"{where} has '{unknown[0]}'; there are {', '.join(OF_MANIFEST)}")
    for number, each in enumerate(manifest["arguments"], 1):
        check_argument(each, number, where)
    if not any(each.get("output") for each in manifest["arguments"]):
        raise BadCases(f"{where}: no argument is an output (\"output\": true)")
    if manifest.get("returns", "void") not in RETURNS:
        raise BadCases(f"{where}: 'returns' is {' or '.join(RETURNS)}; results go into outputs")
    axes = manifest.get("axes", {})
    if not isinstance(axes, dict) or not all(isinstance(values, list) and values for values in axes.values()):
        raise BadCases(f"{where}: 'axes' is an object of lists with at least a value each")
    for name, value in ((name, value) for name, values in axes.items() for value in values):
        if not isinstance(value, (bool, int, float, str)) or (isinstance(value, float) and not math.isfinite(value)):
            raise BadCases(f"{where}: axis '{name}' has the value {json.dumps(value)[:60]}; expected finite numbers, "
                           "texts, true or false")
    for values in itertools.product(*axes.values()):
        yield ManifestCase(manifest, dict(zip(axes, values)), where)
