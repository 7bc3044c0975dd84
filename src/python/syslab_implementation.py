"""What syslab_worker.py serves: a user's class or callable, loaded, with the tensors of its calls and what is watched
around them.

Needs the standard library and whichever of NumPy and torch the user's file imports.
"""
from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

# syslab_autograd is for syslab_functions.py: all is here before the user's file changes where modules are looked for.
import syslab_autograd  # noqa: F401
from syslab_beside import demand_same_inputs, look_for_early_reads, run_beside
from syslab_failures import Unsupported, WrongAnswer
from syslab_functions import Function
from syslab_gpu import GpuCall, LabMemory
from syslab_guards import GuardPages
from syslab_kernels import run_listened
from syslab_loading import load_class, own_files
from syslab_operators import FUNCTIONS, AutogradFunction, PlainClass
from syslab_tensors import DTYPE_BYTES, Doorbell, Memory, NoDoorbell, NumpyTensors, TorchTensors, extent

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from syslab_wire import Pipe

    Message = dict[str, Any]
    Tensor = Any  # of NumPy or torch
    Bell = Doorbell | NoDoorbell

# What a call of a callable is named on the wire (syslab_functions.py), and one of its gradients.
CALLABLE = ("function", "function_backward")
DOMAIN = ("dtypes", "head_dims", "causal", "multiple_of", "max_seq", "square", "deterministic")


def declared_domain(cls: type) -> dict[str, object]:
    """What the class promises, of its attributes with these names; methods and what JSON has not are none of them."""
    domain: dict[str, object] = {}
    for name in DOMAIN:
        value = getattr(cls, name, None)
        if isinstance(value, (bool, int, str)):
            domain[name] = value
        elif isinstance(value, (tuple, list)):
            domain[name] = list(value)
    return domain


def as_they_are(tensor: dict[str, Any], whole: Container[str]) -> dict[str, Any]:
    """Whole numbers travel as the bits of as many fp64 elements."""
    return {**tensor, "dtype": "int64"} if tensor["name"] in whole else tensor


def memory_of_lab(tensors: TorchTensors | None, bytes_of_memory: int) -> LabMemory | None:
    """The host's memory on a GPU (syslab_gpu.py), by which calls that are timed go; None where there is none."""
    if tensors is None:
        return None
    try:
        return LabMemory(tensors.torch, tensors.memory.bytes(bytes_of_memory))
    except (OSError, RuntimeError) as error:
        print(f"memory of the GPU is not shared: {error}", file=sys.stderr)
        return None


class Implementation:
    def __init__(self, path: str, class_name: str, memory_fd: int, device: str, world_size: int) -> None:
        cls, module = load_class(path, class_name)
        torch = sys.modules.get("torch")
        imported = [value.__name__ for value in vars(module).values() if inspect.ismodule(value)]
        is_function = torch is not None and issubclass(cls, torch.autograd.Function)
        default = "torch" if is_function or ("torch" in imported and "numpy" not in imported) else "numpy"
        kind = "torch" if is_function else getattr(cls, "tensors", default)
        self.device, self.domain = device, declared_domain(cls)
        if getattr(cls, "device", device) != device:
            raise Unsupported(f"{class_name} computes on '{cls.device}' and was asked for on '{device}'; run it with "
                              f"--device {cls.device}")
        if world_size > 1 and not getattr(cls, "ranks", False):
            raise Unsupported(f"{class_name} computes alone, and the case has {world_size} ranks; run it with "
                              "-a world_size=1, or set its attribute `ranks = True` if each rank's call stands for "
                              "itself")
        if kind == "numpy" and self.device != "cpu":
            raise Unsupported(f"{class_name} computes on NumPy arrays, which are the CPU's; run it with --device cpu")
        self.tensors: Any = (TorchTensors if kind == "torch" else NumpyTensors)(Memory(memory_fd), self.device)
        self.operators: Any = AutogradFunction(cls) if is_function else PlainClass(cls)
        self.guards = GuardPages(path)
        self.returned: list = []  # (function, name, what it returned, its bytes then) of the last guarded call
        self.lab: Any = None  # the host's memory on a GPU

    def share_gpu(self, bytes_of_memory: int) -> bool:
        self.lab = memory_of_lab(None if self.device == "cpu" else self.tensors, bytes_of_memory)
        return self.lab is not None

    def call(self, message: Message, pipe: Pipe) -> Message:
        if "gpu_memory" in message:
            return self.call_on_gpu(message, pipe)
        function = self.function_of(message)
        size = message["memory_bytes"]
        whole, streams = message["options"].pop("whole_numbers", "").split(","), message["options"].pop("streams", 1)
        outputs, inputs = ({tensor["name"]: self.tensors.view(as_they_are(tensor, whole), size)
                            for tensor in message[group]}
                           for group in ("outputs", "inputs"))
        self.guard(message, size)
        self.demand_finished()
        given, elapsed = inputs, 0
        told: Message = {}  # of its kernels
        if self.device != "cpu":
            inputs = {name: tensor.to(self.device) for name, tensor in inputs.items()}
        bell: Doorbell | NoDoorbell = Doorbell(pipe, self.tensors.memory.words(size),
                                               not message.get("guarded")) if message.get("release") else NoDoorbell()
        if "empty" in message:
            return self.call_empty(message, outputs, bell)

        def timed(body: Callable[[], Any], reads: Sequence[Tensor]) -> Any:
            nonlocal elapsed
            bell.wait()
            value, elapsed = self.tensors.timed(body, reads)
            return value

        if streams > 1 and self.device != "cpu":
            bell.wait()
            values = run_beside(self.tensors, function, inputs, message["options"], streams)
        elif message.get("kernels"):
            values, told = run_listened(self.tensors.torch, function, inputs, message["options"])
        else:
            values = function(inputs, message["options"], timed, bell)
        if self.device != "cpu":
            if message.get("guarded"):
                demand_same_inputs(self.tensors.torch, message["function"], given, inputs)
            look_for_early_reads(self.tensors, function, inputs, message["options"], values)
        if message.get("guarded") and self.device == "cpu":
            self.returned = [(message["function"], name, values[name], self.tensors.content(values[name]))
                             for name in outputs]
        for name, view in outputs.items():
            self.tensors.write(view, values[name])
        bell.finish()
        return {"type": "returned", "elapsed_ns": elapsed, **told}

    def call_empty(self, message: Message, outputs: dict[str, Tensor], bell: Bell) -> Message:
        """A call that computes nothing, by the way of any other: what it takes is the handing over. `with_results`:
        that of results that are there already, too.
        """
        values = {name: self.tensors.ones_like(view) for name, view in outputs.items()}
        bell.wait()
        _, elapsed = self.tensors.timed(lambda: None, ())
        if message["empty"] == "with_results":
            for name, view in outputs.items():
                self.tensors.write(view, values[name])
        bell.finish()
        return {"type": "returned", "elapsed_ns": elapsed}

    def call_on_gpu(self, message: Message, pipe: Pipe) -> Message:
        function, options = self.function_of(message), message["options"]
        whole = options.pop("whole_numbers", "").split(",")
        options.pop("streams", 1)  # the host's memory there is for one call at a time
        self.lab.open(message["gpu_memory"])
        inputs, outputs = ({tensor["name"]: self.lab.view(as_they_are(tensor, whole)) for tensor in message[group]}
                           for group in ("inputs", "outputs"))
        call = GpuCall(pipe, self.lab, self.tensors, message["step"])
        values = function(inputs, options, call.timed, call)
        elapsed = call.done([(values[name], view) for name, view in outputs.items()])
        look_for_early_reads(self.tensors, function, inputs, options, values)
        return {"type": "returned", "elapsed_ns": elapsed}

    def function_of(self, message: Message) -> Callable[..., dict[str, Tensor]]:
        """What runs the call, given (inputs, options, timed, bell)."""
        name, shapes = message["function"], {tensor["name"]: tensor["shape"] for tensor in message["outputs"]}
        if name in FUNCTIONS and not (name.startswith("weighted_sum") and self.operators.has_method(name)):
            message["options"]["guarded"] = bool(message.get("guarded"))
            return getattr(self.operators, name)
        return lambda inputs, options, timed, _bell: self.operators.named(name, inputs, options, shapes, timed)

    def demand_finished(self) -> None:
        """What the last call returned has not changed since: nothing that it started still works on it."""
        returned, self.returned = self.returned, []
        for function, name, value, content in returned:
            if self.tensors.content(value) != content:
                raise WrongAnswer(f"{function}: '{name}' changed after it had been returned: whatever the call starts "
                                  "must have ended by then", "late_write")

    def guard(self, message: Message, size: int) -> None:
        """A page behind each tensor, where the host has left room for one and tensors lie in the memory that both
        see."""
        tensors = message["inputs"] + message["outputs"] if message.get("guarded") and self.device == "cpu" else []
        self.guards.put(self.tensors.memory.bytes(size),
                        [(tensor["name"], tensor["offset"], extent(tensor) * DTYPE_BYTES[tensor["dtype"]])
                         for tensor in tensors])


class CallableImplementation:
    """A function or module of any arguments."""

    def __init__(self, path: str, name: str, memory_fd: int, device: str, world_size: int) -> None:
        if world_size > 1:
            raise Unsupported(f"a function computes alone, and the case has {world_size} ranks; run it with -a "
                              "world_size=1")
        self.function = Function(path, name, memory_fd, device)
        self.domain = {"files": own_files()}
        self.lab: Any = None  # the host's memory on a GPU

    def share_gpu(self, bytes_of_memory: int) -> bool:
        self.lab = memory_of_lab(self.function.clock, bytes_of_memory)
        return self.lab is not None

    def call(self, message: Message, pipe: Pipe) -> Message:
        if message["function"] not in CALLABLE:
            raise Unsupported(f"this worker knows '{CALLABLE[0]}', not '{message['function']}'")
        if "gpu_memory" in message:
            self.lab.open(message["gpu_memory"])
            call = GpuCall(pipe, self.lab, self.function.clock, message["step"])
            return {"type": "returned", "elapsed_ns": self.function.call_on_gpu(message, self.lab, call)}
        words = self.function.memory.words(message["memory_bytes"])
        bell: Doorbell | NoDoorbell = Doorbell(pipe, words, True) if message.get("release") else NoDoorbell()
        return {"type": "returned", "elapsed_ns": self.function.call(message, bell)}
