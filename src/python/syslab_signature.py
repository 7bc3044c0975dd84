"""What travels between syslab and a function: the arguments of a call, tensors in memory that both see and JSON that
says how they are put together again. syslab_reference.py makes such a `signature` of the arguments that the file's
cases give, syslab_functions.py calls the function with what it stands for.

Needs the standard library and whichever of NumPy and torch the user's files import.
"""
from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Union

    import numpy
    from torch import Tensor

    from syslab_gpu import LabMemory
    from syslab_tensors import Memory

    Array = Union[numpy.ndarray, Tensor]

# In which dtype of the wire a tensor's bytes travel, by bytes an element: it is a container, no conversion.
CONTAINERS = {8: "fp64", 4: "fp32", 2: "fp16", 1: "fp16"}
CONTAINER_BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2}
FLOATS = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_numpy(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def dtype_name(value: Array) -> str:
    """"float32", "int64", "bool": one word for torch's and NumPy's dtypes."""
    return str(value.dtype).removeprefix("torch.")


def item_bytes(value: Array) -> int:
    return value.element_size() if is_torch(value) else value.dtype.itemsize


class Signature:
    """How the arguments of a call are put together: `tree` is JSON, its leaves are tensors' numbers or plain values.
    `abi`: how a library's symbol takes them (syslab_library.py). `late`: outputs whose gradients are the last of the
    tensors (syslab_autograd.py). `names`: of the arguments, one for each of `tree`; none of a library's symbol.
    """

    def __init__(self, tree: list[Any], tensors: list[dict[str, Any]], abi: dict[str, Any] | None = None,
                 late: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self.tree, self.tensors = tree, tensors  # tensors: {"name", "library", "dtype", "shape"} each
        self.abi, self.late, self.names = abi, list(late), list(names)

    def text(self) -> str:
        return json.dumps({"tree": self.tree, "tensors": self.tensors, "abi": self.abi, "late": self.late,
                           "names": self.names})

    @classmethod
    def parse(cls, text: str) -> Signature:
        read = json.loads(text)
        return cls(read["tree"], read["tensors"], read.get("abi"), read.get("late", ()), read.get("names", ()))

    def early(self) -> int:
        """How many of the tensors are the arguments' own."""
        return len(self.tensors) - len(self.late)

    def build(self, values: Sequence[Array]) -> list[Any]:
        """The positional arguments, of a value for each tensor."""
        return [put_together(each, values) for each in self.tree]


# Functions of the module, not of each other: one that names itself from within a call is a cycle, which keeps its
# tensors until Python collects, and Python counts objects and not bytes.
def put_together(node: list[Any], values: Sequence[Array]) -> Any:
    kind, held = node
    if kind == "tensor":
        return values[held]
    if kind == "list":
        return [put_together(each, values) for each in held]
    if kind == "tuple":
        return tuple(put_together(each, values) for each in held)
    if kind == "dict":
        return {key: put_together(each, values) for key, each in held.items()}
    if kind == "float":
        return float(held)
    return held


def take_apart(arguments: Any) -> tuple[Signature, list[Array]]:
    """The signature of a case's arguments, a dict (by name) or a sequence, and their tensors."""
    named = [(str(name), value) for name, value in arguments.items()] if isinstance(arguments, dict) else [
        (f"arg{i}", each) for i, each in enumerate(arguments)]
    tensors: list = []
    values: list = []
    tree = [node_of(name, value, tensors, values) for name, value in named]
    return Signature(tree, tensors, names=[name for name, _ in named]), values


def node_of(name: str, value: Any, tensors: list[dict[str, Any]], values: list[Array]) -> list[Any]:
    """An argument as JSON; what it has of tensors is added to `tensors` and `values`."""
    def inner(part: object, each: Any) -> list[Any]:
        return node_of(f"{name}.{part}", each, tensors, values)

    if is_torch(value) or is_numpy(value):
        if is_torch(value) and (value.layout != sys.modules["torch"].strided or value.is_quantized):
            raise TypeError(f"argument '{name}' is no dense tensor ({value.layout})")
        if dtype_name(value) not in FLOATS and not any(dtype_name(value).startswith(kind)
                                                       for kind in ("int", "uint", "bool", "complex")):
            raise TypeError(f"argument '{name}' has dtype {dtype_name(value)}; there are floats, integers, bool and "
                            "complex")
        tensors.append({"name": name, "library": "torch" if is_torch(value) else "numpy", "dtype": dtype_name(value),
                        "shape": list(value.shape)})
        values.append(value.detach() if is_torch(value) else value)
        return ["tensor", len(values) - 1]
    if isinstance(value, (list, tuple)):
        return ["list" if isinstance(value, list) else "tuple", [inner(i, each) for i, each in enumerate(value)]]
    if isinstance(value, dict):
        if strange := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"argument '{name}' has the key {strange[0]!r}; keys of dicts are texts")
        return ["dict", {key: inner(key, each) for key, each in value.items()}]
    if isinstance(value, float):
        return ["float", repr(value)]
    if value is None or isinstance(value, (bool, int, str)):
        return ["plain", value]
    raise TypeError(f"argument '{name}' is a {type(value).__name__}; arguments are tensors, numbers, texts, None, and "
                    "lists, tuples and dicts of these")


def wire_tensor(name: str, bytes_each: int, count: int) -> dict[str, Any]:
    """A flat tensor of the wire that holds so many elements."""
    container = CONTAINERS[bytes_each] if bytes_each in CONTAINERS else "fp64"  # complex128: two doubles an element
    size = CONTAINER_BYTES[container]
    return {"name": name, "dtype": container, "elements": -(-bytes_each * count // size)}


def raw_view(memory: Memory, memory_bytes: int, offset: int, tensor: dict[str, Any]) -> Array:
    """A tensor of the signature on the shared memory, in its own dtype and shape."""
    count = math.prod(tensor["shape"])
    if tensor["library"] == "torch":
        torch = sys.modules["torch"]
        dtype = getattr(torch, tensor["dtype"])
        if count == 0:
            return torch.empty(tensor["shape"], dtype=dtype)
        return torch.frombuffer(memory.bytes(memory_bytes), dtype=dtype, count=count,
                                offset=offset).reshape(tensor["shape"])
    import numpy

    return numpy.ndarray(tensor["shape"], numpy.dtype(tensor["dtype"]), memory.bytes(memory_bytes), offset)


def raw_view_on_gpu(lab: LabMemory, offset: int, tensor: dict[str, Any]) -> Tensor:
    """The same on the host's memory on a GPU (syslab_gpu.py); of NumPy's tensors their bytes, for on_host()."""
    torch, count = sys.modules["torch"], math.prod(tensor["shape"])
    if tensor["library"] != "torch":
        import numpy

        return lab.bytes(offset, count * numpy.dtype(tensor["dtype"]).itemsize)
    dtype = getattr(torch, tensor["dtype"])
    return lab.bytes(offset, count * torch.empty((), dtype=dtype).element_size()).view(dtype).reshape(tensor["shape"])


def is_there(tensor: dict[str, Any], value: Any) -> bool:
    """Whether what a function takes as an array of NumPy still lies on a GPU."""
    return tensor["library"] != "torch" and is_torch(value)


def on_host(tensor: dict[str, Any], value: Any) -> Any:
    """What a function takes as an array of NumPy lies on the CPU, as always."""
    if not is_there(tensor, value):
        return value
    return value.cpu().numpy().view(tensor["dtype"]).reshape(tensor["shape"])
