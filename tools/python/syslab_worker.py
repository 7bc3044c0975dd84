"""Serves a Python implementation to syslab: the worker's wire format (docs/worker-wire.md), version 1.

    python3 syslab_worker.py --mine me=flash.py:Flash

syslab starts this by itself for `--mine me=flash.py:Flash`. Flash is one of

  a subclass of torch.autograd.Function   called as Flash.apply(q, k, v, is_causal), as the hand-out's tests call it;
                                          the log-sum-exp is the one saved tensor of shape (batch, n_queries)
  a plain class                           forward(q, k, v, is_causal) -> (o, lse) and
                                          backward(q, k, v, o, lse, do, is_causal) -> (dq, dk, dv)

on tensors of shape (batch * heads, sequence, head_dim). For the weighted sum: Flash.apply(x, w), or forward(x, w) -> y
and backward(x, w, dy) -> (dx, dw). Every other operator is a method of a plain class with the function's name, such as
rms_norm_forward(x, w, eps, delta=None) (docs/operators-of-your-own.md). A plain class gets NumPy arrays, or torch tensors if its file imports torch and not
NumPy; a class attribute `tensors = "torch"` (or "numpy") decides otherwise. Under `--device cuda` torch tensors are on the
GPU; a class with an attribute `device = "cuda"` runs only there. In a case of several ranks each has a process of this class;
only one with an attribute `ranks = True` is called there, because the others may rely on being alone.

A call is timed by syslab itself: from the moment at which it releases the call's inputs until all outputs are in the
memory that both see. The time that is taken here by the monotonic clock only spares it the waking up. On a GPU syslab's own
stream takes the time, and two events on torch's current stream only spare it the handing over (syslab_gpu.py). The inputs are
given once the call is launched, so that Python's part in launching does not count. Until then they hold NaN: work on a
stream of its own that does not wait for the current one reads these, and is found out. Where syslab cannot share a GPU's memory,
inputs come by the host's and the call's time is what these events say.

Needs the standard library and whichever of NumPy and torch the user's file imports.
"""
import argparse
import contextlib
import inspect
import json
import os
import pathlib
import resource
import struct
import sys
import traceback

from syslab_beside import demand_same_inputs, look_for_early_reads, run_beside
from syslab_functions import Function, WrongAnswer
from syslab_guards import GuardPages
from syslab_loading import load_class, load_module, parse_mine  # noqa: F401, others take them from here
from syslab_tensors import DTYPE_BYTES, Doorbell, Memory, NoDoorbell, NumpyTensors, TorchTensors, Unsupported, extent

PROTOCOL = 1
MAX_FRAME_BYTES = 64 << 20


# --- frames -----------------------------------------------------------------------------------------------------------


class Pipe:
    """Frames on what were standard input and output; prints of the user's code go to standard error."""

    def __init__(self):
        self.input = os.fdopen(os.dup(0), "rb")
        self.output = os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout.reconfigure(line_buffering=True)

    def read(self):
        """The next message, or None at the end of the pipe."""
        header = self.input.read(4)
        if len(header) < 4:
            return None
        (length,) = struct.unpack("<I", header)
        if length > MAX_FRAME_BYTES:
            raise ValueError(f"a frame of {length} bytes; the limit is {MAX_FRAME_BYTES}")
        body = self.input.read(length)
        return json.loads(body) if len(body) == length else None

    def write(self, message):
        body = json.dumps(message).encode()
        self.output.write(struct.pack("<I", len(body)) + body)
        self.output.flush()


# --- operators: how a call's named tensors meet the user's functions --------------------------------------------------


def flatten_heads(tensor, bell):
    """(batch, heads, ...) to (batch * heads, ...): the hand-out's kernels know one batch dimension."""
    shape = (tensor.shape[0] * tensor.shape[1], *tensor.shape[2:])
    with contextlib.suppress(RuntimeError, AttributeError):  # it lies so that its content has to be copied
        if hasattr(tensor, "data_ptr"):
            return tensor.view(shape)
        flat = tensor.view()
        flat.shape = shape
        return flat
    bell.wait()
    return tensor.reshape(shape)


def attention_arguments(inputs, options, bell):
    q, k = inputs["q"], inputs["k"]
    if q.shape[1] != k.shape[1]:
        raise Unsupported(f"grouped heads ({q.shape[1]} for queries, {k.shape[1]} for keys) have no place in the call "
                          "(q, k, v, is_causal)")
    if options.get("causal", 0) == 2 and q.shape[2] != k.shape[2]:
        raise Unsupported("a causal mask aligned at the last key has no place in the call (q, k, v, is_causal)")
    scale = options.get("scale", 0)
    if scale and abs(scale * q.shape[3] ** 0.5 - 1) > 1e-5:
        raise Unsupported(f"a scale of {scale} has no place in the call (q, k, v, is_causal), which means 1/sqrt(d)")
    tensors = {name: flatten_heads(tensor, bell) for name, tensor in inputs.items()}
    return tensors, bool(options.get("causal", 0))


def expect_shape(name, value, shape):
    if not hasattr(value, "shape"):
        raise TypeError(f"{name} is of type {type(value).__name__}, expected an array of shape {tuple(shape)}")
    if tuple(value.shape) != tuple(shape) and not (tuple(value.shape) == () and tuple(shape) == (1,)):
        raise ValueError(f"{name} has shape {tuple(value.shape)}, expected {tuple(shape)}")
    return value


def results(names, values):
    """Pairs what the user's function returned with its names."""
    if len(names) == 1:
        return {names[0]: values}
    if not isinstance(values, (tuple, list)) or len(values) != len(names):
        found = f"{len(values)} values" if isinstance(values, (tuple, list)) else type(values).__name__
        raise ValueError(f"expected a tuple of {len(names)} values ({', '.join(names)}), got {found}")
    return dict(zip(names, values))


DOMAIN = ("dtypes", "head_dims", "causal", "multiple_of", "max_seq", "square", "deterministic")


def declared_domain(cls):
    """What the class promises, of its attributes with these names; methods and what JSON has not are none of them."""
    domain = {}
    for name in DOMAIN:
        value = getattr(cls, name, None)
        if isinstance(value, (bool, int, str)):
            domain[name] = value
        elif isinstance(value, (tuple, list)):
            domain[name] = list(value)
    return domain


def as_they_are(tensor, whole):
    """Whole numbers travel as the bits of as many fp64 elements."""
    return {**tensor, "dtype": "int64"} if tensor["name"] in whole else tensor


# What a call of a callable is named on the wire (syslab_functions.py), and one of its gradients.
CALLABLE = ("function", "function_backward")
# What hand-outs give a form of its own; every other function is a method of its name.
FUNCTIONS = ("attention_forward", "attention_backward", "weighted_sum_forward", "weighted_sum_backward")


class PlainClass:
    """forward and backward as ordinary methods; timed(body, what it reads) runs one call and takes its time."""

    def __init__(self, cls):
        self.object = cls()

    def named(self, function, inputs, options, shapes, timed):
        """A method of the function's name, given tensors and numbers by their names: its results in the order of `shapes`."""
        method = getattr(self.object, function, None)
        if method is None:
            raise Unsupported(f"{type(self.object).__name__} has no {function}")
        arguments = tuple(inputs.values())
        values = results(tuple(shapes), timed(lambda: method(**inputs, **options), arguments))
        return {name: expect_shape(name, value, shapes[name]) for name, value in values.items()}

    def attention_forward(self, inputs, options, timed, bell):
        t, causal = attention_arguments(inputs, options, bell)
        arguments = (t["q"], t["k"], t["v"])
        values = results(("out", "lse"), timed(lambda: self.object.forward(*arguments, causal), arguments))
        expect_shape("o", values["out"], t["q"].shape)
        expect_shape("lse", values["lse"], t["q"].shape[:2])
        return values

    def has_method(self, function):
        return hasattr(self.object, function)

    def backward(self):
        """The user's method; a class may leave it out."""
        method = getattr(self.object, "backward", None)
        if method is None:
            raise Unsupported(f"{type(self.object).__name__} has no backward")
        return method

    def attention_backward(self, inputs, options, timed, bell):
        t, causal = attention_arguments(inputs, options, bell)
        backward = self.backward()
        arguments = (t["q"], t["k"], t["v"], t["out"], t["lse"], t["dout"])
        values = results(("dq", "dk", "dv"), timed(lambda: backward(*arguments, causal), arguments))
        return {name: expect_shape(name, value, t[name[1:]].shape) for name, value in values.items()}

    def weighted_sum_forward(self, inputs, _options, timed, bell):
        arguments = (inputs["x"], inputs["w"])
        y = timed(lambda: self.object.forward(*arguments), arguments)
        return {"y": expect_shape("y", y, inputs["x"].shape[:-1])}

    def weighted_sum_backward(self, inputs, _options, timed, bell):
        backward = self.backward()
        arguments = (inputs["x"], inputs["w"], inputs["dy"])
        values = results(("dx", "dw"), timed(lambda: backward(*arguments), arguments))
        return {name: expect_shape(name, value, inputs[name[1:]].shape) for name, value in values.items()}


class AutogradFunction:
    """A torch.autograd.Function: the backward pass is what torch.autograd.grad runs, after an untimed forward."""

    def __init__(self, cls):
        import torch

        self.torch, self.apply, self.name = torch, cls.apply, cls.__name__
        base = torch.autograd.Function
        self.has_backward = cls.backward is not base.backward or cls.vjp is not base.vjp

    def has_method(self, _function):
        return False

    def named(self, function, *_arguments):
        raise Unsupported(f"{self.name} is a torch.autograd.Function, which has attention or the weighted sum; {function} is a "
                          "method of that name in a plain class")

    def need_backward(self):
        if not self.has_backward:
            raise Unsupported(f"{self.name} has no backward")

    @staticmethod
    def leaves(*tensors):
        return tuple(tensor.detach().requires_grad_(True) for tensor in tensors)

    def another_call(self, options, tensors):
        """A forward pass of other values, and of the shape and mask that are asked for; that it may be refused is another law's matter."""
        def of_size(tensor, rows, width):
            rows, width = (self.torch.arange(size, device=tensor.device) % had for size, had in zip((rows, width), tensor.shape[1:]))
            return tensor.detach().flip(1)[:, rows][:, :, width].contiguous()

        width = options["interleaved_width"]
        q, k, v = (of_size(tensor, options[f"interleaved_{rows}"], width)
                   for tensor, rows in zip(tensors, ("queries", "keys", "keys")))
        try:
            self.apply(*self.leaves(q, k, v), bool(options["interleaved_causal"]))
        except Exception:
            pass

    def interleave(self, options, o, tensors):
        """The next layer's forward pass, if it is asked for: what the first returned, and has saved, is the model's until backward."""
        if not options.get("interleaved"):
            return

        def bits(tensor):
            return tensor.detach().contiguous().reshape(-1).view(self.torch.uint8)

        saved = [tensor for tensor in getattr(o.grad_fn, "saved_tensors", ()) if tensor is not None]
        before = [(tensor, bits(tensor).clone()) for tensor in (o, *saved)]
        self.another_call(options, tensors)
        if not all(self.torch.equal(bits(tensor), content) for tensor, content in before):
            raise WrongAnswer("a forward pass of other values wrote over what the one before had returned or saved: each needs memory "
                              "of its own, since a model keeps what every layer returned until its backward pass")

    def attention_forward(self, inputs, options, timed, bell):
        t, causal = attention_arguments(inputs, options, bell)
        q, k, v = self.leaves(t["q"], t["k"], t["v"])
        o = timed(lambda: self.apply(q, k, v, causal), (q, k, v))
        self.interleave(options, o, (q, k, v))
        expect_shape("o", o, q.shape)
        saved = [s for s in o.grad_fn.saved_tensors if tuple(s.shape) == tuple(q.shape[:2])]
        if len(saved) != 1:
            raise ValueError(f"expected exactly one saved tensor of shape (batch, n_queries) = {tuple(q.shape[:2])}, "
                             f"the log-sum-exp; ctx.save_for_backward kept {len(saved)} of them")
        return {"out": o, "lse": saved[0]}

    def attention_backward(self, inputs, options, timed, bell):
        self.need_backward()
        t, causal = attention_arguments(inputs, options, bell)
        bell.early(("q", "k", "v"))
        q, k, v = self.leaves(t["q"], t["k"], t["v"])
        o = self.apply(q, k, v, causal)
        self.interleave(options, o, (q, k, v))
        gradients = timed(lambda: self.torch.autograd.grad(o, (q, k, v), t["dout"]), (t["dout"],))
        return results(("dq", "dk", "dv"), gradients)

    def weighted_sum_forward(self, inputs, _options, timed, bell):
        x, w = self.leaves(inputs["x"], inputs["w"])
        return {"y": expect_shape("y", timed(lambda: self.apply(x, w), (x, w)), x.shape[:-1])}

    def weighted_sum_backward(self, inputs, _options, timed, bell):
        self.need_backward()
        bell.early(("x", "w"))
        x, w = self.leaves(inputs["x"], inputs["w"])
        y = self.apply(x, w)
        gradients = timed(lambda: self.torch.autograd.grad(y, (x, w), inputs["dy"]), (inputs["dy"],))
        return results(("dx", "dw"), gradients)


# --- the implementation and its calls ---------------------------------------------------------------------------------


def memory_of_lab(tensors, bytes_of_memory):
    """The host's memory on a GPU (syslab_gpu.py), by which calls that are timed go; None where there is none."""
    if tensors is None:
        return None
    from syslab_gpu import LabMemory
    try:
        return LabMemory(tensors.torch, tensors.memory.bytes(bytes_of_memory))
    except (OSError, RuntimeError) as error:
        print(f"memory of the GPU is not shared: {error}", file=sys.stderr)
        return None


class Implementation:
    def __init__(self, path, class_name, memory_fd, device, world_size):
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
                              "-a world_size=1, or set its attribute `ranks = True` if each rank's call stands for itself")
        if kind == "numpy" and self.device != "cpu":
            raise Unsupported(f"{class_name} computes on NumPy arrays, which are the CPU's; run it with --device cpu")
        self.tensors = (TorchTensors if kind == "torch" else NumpyTensors)(Memory(memory_fd), self.device)
        self.operators = AutogradFunction(cls) if is_function else PlainClass(cls)
        self.guards = GuardPages(path)
        self.returned = []  # (function, name, what it returned, its bytes then) of the last guarded call
        self.lab = None  # the host's memory on a GPU

    def share_gpu(self, bytes_of_memory):
        self.lab = memory_of_lab(None if self.device == "cpu" else self.tensors, bytes_of_memory)
        return self.lab is not None

    def call(self, message, pipe):
        if "gpu_memory" in message:
            return self.call_on_gpu(message, pipe)
        function = self.function_of(message)
        size = message["memory_bytes"]
        whole, streams = message["options"].pop("whole_numbers", "").split(","), message["options"].pop("streams", 1)
        outputs, inputs = ({tensor["name"]: self.tensors.view(as_they_are(tensor, whole), size) for tensor in message[group]}
                           for group in ("outputs", "inputs"))
        self.guard(message, size)
        self.demand_finished()
        given, elapsed, told = inputs, 0, {}
        if self.device != "cpu":
            inputs = {name: tensor.to(self.device) for name, tensor in inputs.items()}
        bell = Doorbell(pipe, self.tensors.memory.words(size), not message.get("guarded")) if message.get("release") else NoDoorbell()

        def timed(body, reads):
            nonlocal elapsed
            bell.wait()
            value, elapsed = self.tensors.timed(body, reads)
            return value

        if streams > 1 and self.device != "cpu":
            bell.wait()
            values = run_beside(self.tensors, function, inputs, message["options"], streams)
        elif message.get("kernels"):
            from syslab_kernels import run_listened
            values, told = run_listened(self.tensors.torch, function, inputs, message["options"])
        else:
            values = function(inputs, message["options"], timed, bell)
        if self.device != "cpu":
            if message.get("guarded"):
                demand_same_inputs(self.tensors.torch, message["function"], given, inputs)
            look_for_early_reads(self.tensors, function, inputs, message["options"], values)
        if message.get("guarded") and self.device == "cpu":
            self.returned = [(message["function"], name, values[name], self.tensors.content(values[name])) for name in outputs]
        for name, view in outputs.items():
            self.tensors.write(view, values[name])
        bell.finish()
        return {"type": "returned", "elapsed_ns": elapsed, **told}

    def call_on_gpu(self, message, pipe):
        from syslab_gpu import GpuCall
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

    def function_of(self, message):
        """What runs the call, given (inputs, options, timed, bell)."""
        name, shapes = message["function"], {tensor["name"]: tensor["shape"] for tensor in message["outputs"]}
        if name in FUNCTIONS and not (name.startswith("weighted_sum") and self.operators.has_method(name)):
            return getattr(self.operators, name)
        return lambda inputs, options, timed, _bell: self.operators.named(name, inputs, options, shapes, timed)

    def demand_finished(self):
        """What the last call returned has not changed since: nothing that it started still works on it."""
        returned, self.returned = self.returned, []
        for function, name, value, content in returned:
            if self.tensors.content(value) != content:
                raise WrongAnswer(f"{function}: '{name}' changed after it had been returned: whatever the call starts must have "
                                   "ended by then")

    def guard(self, message, size):
        """A page behind each tensor, where the host has left room for one and tensors lie in the memory that both see."""
        tensors = message["inputs"] + message["outputs"] if message.get("guarded") and self.device == "cpu" else []
        self.guards.put(self.tensors.memory.bytes(size),
                        [(tensor["name"], tensor["offset"], extent(tensor) * DTYPE_BYTES[tensor["dtype"]]) for tensor in tensors])


class CallableImplementation:
    """A function or module of any arguments."""

    def __init__(self, path, name, memory_fd, device, world_size):
        if world_size > 1:
            raise Unsupported(f"a function computes alone, and the case has {world_size} ranks; run it with -a world_size=1")
        self.function = Function(path, name, memory_fd, device)
        self.domain = {}
        self.lab = None  # the host's memory on a GPU

    def share_gpu(self, bytes_of_memory):
        self.lab = memory_of_lab(self.function.clock, bytes_of_memory)
        return self.lab is not None

    def call(self, message, pipe):
        if message["function"] not in CALLABLE:
            raise Unsupported(f"this worker knows '{CALLABLE[0]}', not '{message['function']}'")
        if "gpu_memory" in message:
            from syslab_gpu import GpuCall

            self.lab.open(message["gpu_memory"])
            call = GpuCall(pipe, self.lab, self.function.clock, message["step"])
            return {"type": "returned", "elapsed_ns": self.function.call_on_gpu(message, self.lab, call)}
        words = self.function.memory.words(message["memory_bytes"])
        bell = Doorbell(pipe, words, True) if message.get("release") else NoDoorbell()
        return {"type": "returned", "elapsed_ns": self.function.call(message, bell)}


def is_out_of_memory(error):
    text = str(error).lower()
    return (isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
            or (isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text
                                                     or "not enough memory" in text)))


def is_of_project(name, path):
    """The user's file itself, or what lies beside it and below; of tests/adapters.py, in the project's root. No "<string>"."""
    root, name = os.path.dirname(path), name if name.startswith("<") else os.path.realpath(name)
    root = os.path.dirname(root) if os.path.basename(root) == "tests" else root
    return name == path or (name.startswith(root + os.sep) and "-packages" + os.sep not in name)


def failed(error, path):
    """The message for an exception, with where in the user's file it was raised."""
    if isinstance(error, WrongAnswer):
        return {"type": "failed", "kind": "check", "message": str(error)}
    kind = "unsupported" if isinstance(error, Unsupported) else "oom" if is_out_of_memory(error) else "exception"
    frames = traceback.extract_tb(error.__traceback__)
    own = [index for index, frame in enumerate(frames) if is_of_project(frame.filename, path)]
    where = ""
    if own and kind != "unsupported":
        frame = frames[own[-1]]
        where = f" ({os.path.basename(frame.filename)}:{frame.lineno}, in {frame.name})"
        frames = frames[own[0]:]
    # "<string>" is the copy of these files inside syslab's binary, "<frozen ...>" the import system: neither is at fault.
    frames = [frame for frame in frames if not frame.filename.startswith("<")]
    lines = "".join(traceback.format_list(frames[-6:])).splitlines()
    said = str(error) if isinstance(error, Unsupported) else f"{type(error).__name__}{': ' if str(error) else ''}{error}"
    return {"type": "failed", "kind": kind, "message": f"{said}{where}", "traceback": "\n".join(lines[-12:])}


def limit_memory(limit_bytes):
    """The case's allowance on top of what the libraries have mapped by now."""
    if limit_bytes:
        mapped = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + limit_bytes, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mine", required=True, metavar="NAME=FILE.py:CLASS")
    parser.add_argument("--function", action="store_true", help="CLASS is anything that can be called, with any arguments")
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))  # the host's own limit leaves no room for a framework

    pipe = Pipe()
    path, class_name = parse_mine(arguments.mine)
    implementation = None
    while (message := pipe.read()) is not None and message["type"] != "bye":
        if message["type"] == "hello":
            try:
                kind = CallableImplementation if arguments.function else Implementation
                implementation = kind(path, class_name, message.get("memory_fd", -1), message.get("device", "cpu"),
                                      message.get("world_size", 1))
                serves = ["call", "release"]
                if "gpu_memory_bytes" in message and implementation.share_gpu(message["gpu_memory_bytes"]):
                    serves.append("gpu_release")
                if message.get("device", "cpu") != "cpu" and kind is Implementation:
                    serves.append("kernels")
                limit_memory(message.get("memory_limit_bytes", 0))
            except BaseException as error:  # a sys.exit() in the user's file, too
                pipe.write(failed(error, path))
                return 1
            pipe.write({"type": "hello", "protocol": PROTOCOL, "name": arguments.mine, "language": "Python",
                        "serves": serves, "domain": implementation.domain})
            if message["protocol"] != PROTOCOL:
                print(f"the host speaks version {message['protocol']} of the worker's wire format, this worker version "
                      f"{PROTOCOL}", file=sys.stderr)
                return 4
        elif message["type"] == "call" and implementation is not None:
            try:
                pipe.write(implementation.call(message, pipe))
            except BaseException as error:
                pipe.write(failed(error, path))
        else:
            pipe.write({"type": "failed", "kind": "protocol",
                        "message": f"this worker serves 'call' after 'hello', not '{message['type']}'"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
