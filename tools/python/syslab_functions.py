"""Any callable as an implementation: what travels between syslab and a function, and what a function may not do.

The arguments of a call lie in the memory that syslab shares with its workers; how they are put together again is said by
a `signature`, JSON that syslab_reference.py makes of the arguments that the file's cases give. docs/any-function.md says what
a user writes.

Needs the standard library and whichever of NumPy and torch the user's files import.
"""
import importlib
import inspect
import json
import math
import pathlib
import random
import sys

from syslab_compilers import Watch
from syslab_library import Symbol
from syslab_loading import load_module
from syslab_tensors import Memory, NoDoorbell, TorchTensors, Unsupported, host_time

MODULE_SEED = 0  # of the parameters of a module that is constructed here

# In which dtype of the wire a tensor's bytes travel, by bytes an element: it is a container, no conversion.
CONTAINERS = {8: "fp64", 4: "fp32", 2: "fp16", 1: "fp16"}
CONTAINER_BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2}
FLOATS = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


class WrongAnswer(Exception):
    """The function did what no result can be trusted after."""


# --- the user's callable ----------------------------------------------------------------------------------------------


def load_object(path, name):
    """What a file calls `name`; a dotted name looks into it."""
    module = load_module(path)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")
                      and getattr(value, "__module__", None) == module.__name__]
            raise AttributeError(f"{pathlib.Path(path).name} has no '{name}' (it has: {', '.join(public) or 'nothing to call'})")
        found = getattr(found, part)
    return found


def load_callable(path, name, device="cpu"):
    """The function to call: a function, a module, an instance with __call__, or a class that makes one of these; of a library, its
    symbol.
    """
    if pathlib.Path(path).suffix != ".py":
        return Symbol(path, name)
    found = load_object(path, name)
    torch = sys.modules.get("torch")
    if inspect.isclass(found):
        if torch is not None and issubclass(found, torch.autograd.Function):
            return found.apply
        if torch is not None:
            torch.manual_seed(MODULE_SEED)  # so that two modules of the same build have the same parameters
        found = found()
    if torch is not None and isinstance(found, torch.nn.Module):
        return found.to(device).eval()
    if not callable(found):
        raise TypeError(f"{pathlib.Path(path).name}: '{name}' is a {type(found).__name__} and cannot be called")
    return found


# --- signatures: arguments as JSON and tensors ------------------------------------------------------------------------


def is_torch(value):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_numpy(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def dtype_name(value):
    """"float32", "int64", "bool": one word for torch's and NumPy's dtypes."""
    return str(value.dtype).removeprefix("torch.")


def item_bytes(value):
    return value.element_size() if is_torch(value) else value.dtype.itemsize


class Signature:
    """How the arguments of a call are put together: `tree` is JSON, its leaves are tensors' numbers or plain values. `abi`: how a
    library's symbol takes them (syslab_library.py). `late`: outputs whose gradients are the last of the tensors (syslab_autograd.py).
    """

    def __init__(self, tree, tensors, abi=None, late=()):
        self.tree, self.tensors = tree, tensors  # tensors: {"name", "library", "dtype", "shape"} each
        self.abi, self.late = abi, list(late)

    def text(self):
        return json.dumps({"tree": self.tree, "tensors": self.tensors, "abi": self.abi, "late": self.late})

    @classmethod
    def parse(cls, text):
        read = json.loads(text)
        return cls(read["tree"], read["tensors"], read.get("abi"), read.get("late", ()))

    def early(self):
        """How many of the tensors are the arguments' own."""
        return len(self.tensors) - len(self.late)

    def build(self, values):
        """The positional arguments, of a value for each tensor."""
        return [put_together(each, values) for each in self.tree]


# Functions of the module, not of each other: one that names itself from within a call is a cycle, which keeps its tensors until
# Python collects, and Python counts objects and not bytes.
def put_together(node, values):
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


def take_apart(arguments):
    """The signature of a case's arguments, a dict (by name) or a sequence, and their tensors."""
    named = arguments.items() if isinstance(arguments, dict) else ((f"arg{i}", each) for i, each in enumerate(arguments))
    tensors, values = [], []
    tree = [node_of(str(name), value, tensors, values) for name, value in named]
    return Signature(tree, tensors), values


def node_of(name, value, tensors, values):
    """An argument as JSON; what it has of tensors is added to `tensors` and `values`."""
    def inner(part, each):
        return node_of(f"{name}.{part}", each, tensors, values)

    if is_torch(value) or is_numpy(value):
        if is_torch(value) and (value.layout != sys.modules["torch"].strided or value.is_quantized):
            raise TypeError(f"argument '{name}' is no dense tensor ({value.layout})")
        if dtype_name(value) not in FLOATS and not any(dtype_name(value).startswith(kind)
                                                       for kind in ("int", "uint", "bool", "complex")):
            raise TypeError(f"argument '{name}' has dtype {dtype_name(value)}; there are floats, integers, bool and complex")
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
    raise TypeError(f"argument '{name}' is a {type(value).__name__}; arguments are tensors, numbers, texts, None, and lists, "
                    "tuples and dicts of these")


def wire_tensor(name, bytes_each, count):
    """A flat tensor of the wire that holds so many elements."""
    container = CONTAINERS[bytes_each] if bytes_each in CONTAINERS else "fp64"  # complex128: two doubles an element
    size = CONTAINER_BYTES[container]
    return {"name": name, "dtype": container, "elements": -(-bytes_each * count // size)}


def raw_view(memory, memory_bytes, offset, tensor):
    """A tensor of the signature on the shared memory, in its own dtype and shape."""
    count = math.prod(tensor["shape"])
    if tensor["library"] == "torch":
        torch = sys.modules["torch"]
        dtype = getattr(torch, tensor["dtype"])
        if count == 0:
            return torch.empty(tensor["shape"], dtype=dtype)
        return torch.frombuffer(memory.bytes(memory_bytes), dtype=dtype, count=count, offset=offset).reshape(tensor["shape"])
    import numpy

    return numpy.ndarray(tensor["shape"], numpy.dtype(tensor["dtype"]), memory.bytes(memory_bytes), offset)


def raw_view_on_gpu(lab, offset, tensor):
    """The same on the host's memory on a GPU (syslab_gpu.py); of NumPy's tensors their bytes, for on_host()."""
    torch, count = sys.modules["torch"], math.prod(tensor["shape"])
    if tensor["library"] != "torch":
        import numpy

        return lab.bytes(offset, count * numpy.dtype(tensor["dtype"]).itemsize)
    dtype = getattr(torch, tensor["dtype"])
    return lab.bytes(offset, count * torch.empty((), dtype=dtype).element_size()).view(dtype).reshape(tensor["shape"])


def is_there(tensor, value):
    """Whether what a function takes as an array of NumPy still lies on a GPU."""
    return tensor["library"] != "torch" and is_torch(value)


def on_host(tensor, value):
    """What a function takes as an array of NumPy lies on the CPU, as always."""
    if not is_there(tensor, value):
        return value
    return value.cpu().numpy().view(tensor["dtype"]).reshape(tensor["shape"])


# --- results ----------------------------------------------------------------------------------------------------------


def named_results(value, what="the function", keeps_graph=False):
    """Names and tensors of what was returned: `out`, or `out0`, `out1` of a sequence, or a dict's own keys."""
    if isinstance(value, dict):
        pairs = [(str(key), each) for key, each in value.items()]
    elif isinstance(value, (list, tuple)):
        pairs = [(f"out{i}", each) for i, each in enumerate(value)]
    else:
        pairs = [("out", value)]
    if not pairs:
        raise WrongAnswer(f"{what} returned nothing")
    return [(name, dense(name, each, what, keeps_graph)) for name, each in pairs]


def dense(name, value, what, keeps_graph=False):
    """A result whose content is there: a tensor of torch or NumPy itself, never of a class that computes when it is read."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter):
        if value.layout != torch.strided or value.is_meta:
            raise WrongAnswer(f"{what}: '{name}' is no dense tensor ({value.layout}, on {value.device})")
        return value if keeps_graph else value.detach()
    if numpy is not None and type(value) is numpy.ndarray:
        return value
    if numpy is not None and isinstance(value, numpy.generic):
        return numpy.asarray(value)
    if type(value) in (bool, int, float):
        import numpy

        return numpy.asarray(value)
    raise WrongAnswer(f"{what}: '{name}' is a {type(value).__name__}, expected a torch.Tensor or numpy.ndarray whose content is "
                      "there when the call returns")


def demand(results, expected):
    """That these are the outputs that the reference has, by name, shape and dtype."""
    names = [each["name"] for each in expected]
    if [name for name, _ in results] != names:
        raise WrongAnswer(f"it returned {', '.join(name for name, _ in results)}; the reference returns {', '.join(names)}")
    for (name, value), each in zip(results, expected):
        if list(value.shape) != each["shape"]:
            raise WrongAnswer(f"'{name}' has shape {tuple(value.shape)}, expected {tuple(each['shape'])}")
        if dtype_name(value) != each["dtype"]:
            raise WrongAnswer(f"'{name}' is {dtype_name(value)}, expected {each['dtype']}")


def write_result(memory, memory_bytes, offset, wire_dtype, value):
    """A result as the host reads it: floats as they are, complex as pairs of them, integers as doubles."""
    count = math.prod(value.shape)
    if count == 0:
        return
    if is_torch(value):
        torch = sys.modules["torch"]
        value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
        dtype = {"fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[wire_dtype]
        flat = torch.frombuffer(memory.bytes(memory_bytes), dtype=dtype, count=value.numel(), offset=offset)
        flat.reshape(value.shape).copy_(value)
        return
    import numpy

    if numpy.iscomplexobj(value):
        value = numpy.stack([value.real, value.imag], -1)
    numpy.ndarray(value.shape, {"fp64": "f8", "fp32": "f4", "fp16": "f2"}[wire_dtype], memory.bytes(memory_bytes), offset)[...] = value


def as_tensor(value):
    """A result as a tensor of torch that holds what write_result() would write, converted or not."""
    torch = sys.modules["torch"]
    if not is_torch(value):
        value = value if value.dtype.kind in "fc" else value.astype("f8")
        value = torch.from_numpy(value.copy() if min(value.strides, default=0) < 0 else value)  # torch has no negative strides
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def is_as(results, expected):
    """Whether they have these shapes and dtypes; demand() says what else is wrong."""
    return [(list(value.shape), dtype_name(value)) for _, value in results] == [(each["shape"], each["dtype"]) for each in expected]


def inexact_tensors(values):
    return [value for value in values if is_torch(value) and value.is_floating_point()]


# --- what a call may not do -------------------------------------------------------------------------------------------


TINIEST = 2.0 ** -1022  # that is normal


def settings():
    """Settings that change what others compute: for each name how to ask for it and how to set it."""
    found = {}
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")

    def attribute(name, of):
        found[name] = (lambda: getattr(of, name.rpartition(".")[2])), (lambda value: setattr(of, name.rpartition(".")[2], value))

    if torch is not None:
        attribute("torch.backends.cuda.matmul.allow_tf32", torch.backends.cuda.matmul)
        for name in ("allow_tf32", "benchmark", "deterministic"):
            attribute(f"torch.backends.cudnn.{name}", torch.backends.cudnn)
        found.update({
            "torch.use_deterministic_algorithms": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
            "torch.set_float32_matmul_precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
            "torch.set_default_dtype": (torch.get_default_dtype, torch.set_default_dtype),
            "torch.set_num_threads": (torch.get_num_threads, torch.set_num_threads),
            "torch.set_grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled),
            "torch.set_flush_denormal": (lambda: TINIEST * 0.75 == 0.0, torch.set_flush_denormal),
        })
    if numpy is not None:
        found["numpy.seterr"] = numpy.geterr, lambda value: numpy.seterr(**value)
    return found


def global_flags():
    """What they are, by name."""
    return {name: ask() for name, (ask, _) in settings().items()}


def generators():
    """States of the generators that everybody shares, by name."""
    states = {"random": random.getstate()}
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["torch.cuda"] = torch.cuda.get_rng_state().numpy().tobytes()
    if numpy is not None:
        states["numpy.random"] = str(numpy.random.get_state(legacy=False)["state"])
    return states


def copy_of(value):
    return value.clone() if is_torch(value) else value.copy()


def same_content(value, before):
    """NaN is equal to NaN here: the bytes count."""
    if is_torch(value):
        torch = sys.modules["torch"]
        bytes_of = [each.cpu().contiguous().reshape(-1).view(torch.uint8) for each in (value, before)]
        return torch.equal(*bytes_of)
    return value.tobytes() == before.tobytes()


def largest_difference(first, second):
    """Between two results of one dtype, against their largest finite value; and what rounding alone may explain, sqrt(eps).
    Where one has a value that is not finite and the other has not the same there, they differ without bound.
    """
    if is_torch(first):
        torch = sys.modules["torch"]
        first, second = first.cpu(), second.cpu()
        allowed = math.sqrt(torch.finfo(first.dtype).eps) if first.dtype.is_floating_point or first.is_complex() else 0.0
        a, b = (each.to(torch.complex128 if each.is_complex() else torch.float64).numpy() for each in (first, second))
    else:
        import numpy

        allowed = math.sqrt(numpy.finfo(first.dtype).eps) if first.dtype.kind in "fc" else 0.0
        a, b = (each.astype("c16" if each.dtype.kind == "c" else "f8") for each in (first, second))
    import numpy

    finite = numpy.isfinite(a) & numpy.isfinite(b)
    if not numpy.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf, allowed
    difference, scale = (numpy.abs(each).max(initial=0) for each in (a[finite] - b[finite], a[finite]))
    return (difference / scale if scale else difference), allowed


class Function:
    """A user's callable as an implementation of syslab_worker.py."""

    domain = {}

    def __init__(self, path, name, memory_fd, device):
        self.function = load_callable(path, name, device)
        self.memory, self.device, self.name = Memory(memory_fd), device, name
        self.signatures = {}
        self.torch = sys.modules.get("torch")
        self.flags = global_flags()  # what a file sets when it is imported is its own affair
        self.clock = None
        self.watch = Watch()
        if device != "cpu":
            if isinstance(self.function, Symbol):
                self.torch = importlib.import_module("torch")
            if self.torch is None:
                raise Unsupported(f"{name} does not import torch, and NumPy's arrays are the CPU's; run it with --device cpu")
            self.clock = TorchTensors(self.memory, device)

    def signature(self, text):
        if text not in self.signatures:
            signature = Signature.parse(text)
            if isinstance(self.function, Symbol) and self.device != "cpu":
                for tensor in signature.tensors:
                    tensor["library"] = "torch"  # the addresses are the GPU's
            for library in {tensor["library"] for tensor in signature.tensors}:
                importlib.import_module(library)
            self.signatures = {text: signature}
        return self.signatures[text]

    def called(self, arguments):
        torch = sys.modules.get("torch")
        if torch is None:
            return self.function(*arguments)
        with torch.no_grad():
            return self.function(*arguments)

    def on_device(self, value):
        return value.to(self.device) if self.device != "cpu" and is_torch(value) else value

    def prepared(self, signature, views, bell):
        """What is to be timed, once the call's inputs have been released; and the tensors that it reads."""
        if signature.late:
            from syslab_autograd import Backward

            first = signature.early()
            bell.early([tensor["name"] for tensor in signature.tensors[:first]])
            back = Backward(self.function, signature, [on_host(tensor, self.on_device(value)) for tensor, value in zip(signature.tensors, views[:first])])
            back.demand(signature.late, views[first:])
            bell.wait()
            given = [self.on_device(value) for value in views[first:]]
            return lambda: back.gradients(given), back.named, given
        values = [self.on_device(value) for value in views]
        if isinstance(self.function, Symbol):
            body = self.function.bound(signature.abi, values, self.device)
        elif not any(map(is_there, signature.tensors, values)):
            arguments = signature.build(values)

            def body():
                return self.called(arguments)
        else:  # it is not yet given

            def body():
                return self.called(signature.build([on_host(tensor, value) for tensor, value in zip(signature.tensors, values)]))

        bell.wait()
        return body, lambda returned: returned, values

    def call(self, message, bell):
        """Runs the function once; returns the nanoseconds that it took by its own clock."""
        size, options = message["memory_bytes"], message["options"]
        signature = self.signature(options["signature"])
        expected = json.loads(options["outputs"])
        views = [raw_view(self.memory, size, wire["offset"], tensor)
                 for wire, tensor in zip(message["inputs"], signature.tensors)]
        if options.get("examine"):
            bell.wait()
            self.examine(signature, views, expected)
        body, named, values = self.prepared(signature, views, bell)
        returned, elapsed = self.timed(body, values)
        results = named_results(named(returned))
        # The host's clock runs until the results are where it reads them: what they must be is asked behind that.
        if is_as(results, expected):
            for (_, value), wire in zip(results, message["outputs"]):
                write_result(self.memory, size, wire["offset"], wire["dtype"], value)
        bell.finish()
        self.demand_right(results, expected, signature, values)
        return elapsed

    def call_on_gpu(self, message, lab, call):
        """The same where the tensors lie in the host's memory on a GPU; `call`: a GpuCall (syslab_gpu.py)."""
        signature, expected = self.signature(message["options"]["signature"]), json.loads(message["options"]["outputs"])
        views = [raw_view_on_gpu(lab, wire["offset"], tensor) for wire, tensor in zip(message["inputs"], signature.tensors)]
        body, named, values = self.prepared(signature, views, call)
        results = named_results(named(call.timed(body, inexact_tensors(values))))
        if not is_as(results, expected):
            demand(results, expected)
        elapsed = call.done([(as_tensor(value), lab.view(wire)) for (_, value), wire in zip(results, message["outputs"])])
        self.demand_right(results, expected, signature, values)
        return elapsed

    def demand_right(self, results, expected, signature, values):
        """Of what was returned all but its content, which the host compares."""
        demand(results, expected)
        self.demand_flags()
        if isinstance(self.function, Symbol) and (name := self.function.overrun()):
            raise WrongAnswer(f"the call wrote behind the end of its output '{name}'")
        for name, value in results if not signature.late else ():  # a gradient that goes through unchanged is right
            self.demand_own(name, value, values)

    def demand_flags(self):
        """Of every call: one that changes them late would be told of the case behind it, which begins with them as they were."""
        changed = [(name, self.flags[name], now) for name, now in global_flags().items() if self.flags.get(name, now) != now]
        for name, before, _ in changed:
            settings()[name][1](before)
        for name, before, now in changed:
            raise WrongAnswer(f"it changes {name} from {before} to {now}, which others compute by; set it when the file is imported, or "
                              "put it back")

    def timed(self, body, values):
        return host_time(body) if self.clock is None else self.clock.timed(body, inexact_tensors(values))

    def demand_own(self, name, value, inputs):
        address = value.data_ptr() if is_torch(value) else value.ctypes.data
        if not math.prod(value.shape):
            return
        if self.memory.holds(address) or any(shares(value, each) for each in inputs):
            raise WrongAnswer(f"'{name}' is a view of an argument: nothing was computed that a time could be of; return a tensor of "
                              "its own")

    def examine(self, signature, views, expected):
        """Two calls that nobody times, and what they left behind."""

        def called():
            body, named, _ = self.prepared(signature, views, NoDoorbell())
            return named_results(named(body()))

        states = generators()
        tensors = dict(zip((tensor["name"] for tensor in signature.tensors), views))
        before = {name: copy_of(value) for name, value in tensors.items()}
        first = called()
        for name, value in tensors.items():
            if not same_content(value, before[name]):
                raise WrongAnswer(f"the call changed its input '{name}'")
        demand(first, expected)
        first = [(name, copy_of(value)) for name, value in first]
        for name, state in generators().items():
            if states.get(name, state) != state:
                raise WrongAnswer(f"it draws random numbers of its own (the state of {name} has moved): two calls with equal "
                                  "arguments differ; let the case draw them and pass them as an argument")
        self.demand_flags()
        second, compiled = self.watch.during(called)
        if compiled and (still := self.watch.during(called)[1]):
            raise WrongAnswer(f"it compiles at each call: with equal arguments it {still} again, which would be in every time; keep "
                              "what the first call has made")
        for (name, once), (_, again) in zip(first, second):
            difference, allowed = largest_difference(once, again)
            if difference > allowed:
                raise WrongAnswer(f"two calls with equal arguments differ: '{name}' by {difference:.3g} of its largest value, which "
                                  "rounding does not explain; it draws numbers of its own or keeps something between calls")


def storage(value):
    """Addresses of the memory that a tensor lies in, first and one past the last."""
    if is_torch(value):
        held = value.storage()
        begin = held.data_ptr()
        return begin, begin + held.nbytes()
    import numpy

    return numpy.lib.array_utils.byte_bounds(value) if hasattr(numpy.lib, "array_utils") else numpy.byte_bounds(value)


def shares(value, other):
    if is_torch(value) != is_torch(other) or not math.prod(value.shape) or not math.prod(other.shape):
        return False
    if is_torch(value) and value.device != other.device:
        return False
    (a, b), (c, d) = storage(value), storage(other)
    return a < d and c < b
