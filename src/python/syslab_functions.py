"""Any callable as an implementation: how it is called, what it returns, and what it may not do. Its arguments are put
together by syslab_signature.py; docs/any-function.md says what a user writes.

Needs the standard library and whichever of NumPy and torch the user's files import.
"""
from __future__ import annotations

import functools
import importlib
import inspect
import json
import math
import pathlib
import sys
from typing import TYPE_CHECKING

from syslab_arguments import Kept, shares
from syslab_compilers import Watch
from syslab_failures import Unsupported, WrongAnswer
from syslab_library import Symbol
from syslab_loading import load_module
from syslab_settings import demand_undrawn, generators, global_flags, loaded, put_back
from syslab_signature import Signature, dtype_name, is_there, is_torch, on_host, raw_view, raw_view_on_gpu
from syslab_tensors import Memory, NoDoorbell, TorchTensors, host_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    import torch

    from syslab_gpu import GpuCall, LabMemory
    from syslab_tensors import Doorbell

    Tensor = Any  # of torch or NumPy
    Results = list[tuple[str, Tensor]]  # names and tensors
    Described = dict[str, Any]  # a tensor by its name, library, dtype and shape
    Bell = Doorbell | NoDoorbell | GpuCall
    # What is timed, what names its results, the tensors that it reads, and its arguments.
    Prepared = tuple[Callable[[], Any], Callable[[Any], Any], Sequence[Tensor], Kept]

MODULE_SEED = 0  # of the parameters of a module that is constructed here


# --- the user's callable ----------------------------------------------------------------------------------------------


def load_object(path: str, name: str) -> Any:
    """What a file calls `name`; a dotted name looks into it."""
    module = load_module(path)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")
                      and getattr(value, "__module__", None) == module.__name__]
            raise AttributeError(f"{pathlib.Path(path).name} has no '{name}' (it has: "
                                 f"{', '.join(public) or 'nothing to call'})")
        found = getattr(found, part)
    return found


def load_callable(path: str, name: str, device: str = "cpu") -> Any:
    """The function to call: a function, a module, an instance with __call__, or a class that makes one of these; of a
    library, its symbol.
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


# --- results ----------------------------------------------------------------------------------------------------------


def named_results(value: Any, what: str = "the function", keeps_graph: bool = False) -> Results:
    """Names and tensors of what was returned: `out`, or `out0`, `out1` of a sequence, or a dict's own keys in their
    order as words."""
    if isinstance(value, dict):
        pairs = sorted(((str(key), each) for key, each in value.items()), key=lambda pair: pair[0])
    elif isinstance(value, (list, tuple)):
        pairs = [(f"out{i}", each) for i, each in enumerate(value)]
    else:
        pairs = [("out", value)]
    if not pairs:
        raise WrongAnswer(f"{what} returned nothing")
    return [(name, dense(name, each, what, keeps_graph)) for name, each in pairs]


def dense(name: str, value: Any, what: str, keeps_graph: bool = False) -> Tensor:
    """A result whose content is there: a tensor of torch or NumPy itself, never of a class that computes when it is
    read."""
    torch, numpy = loaded("torch"), loaded("numpy")
    if torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter):
        if value.layout != torch.strided or value.is_meta:
            raise WrongAnswer(f"{what}: '{name}' is no dense tensor ({value.layout}, on {value.device})")
        return value if keeps_graph else value.detach()
    if numpy is not None and type(value) is numpy.ndarray:
        return value
    if numpy is not None and isinstance(value, numpy.generic):
        return numpy.asarray(value)
    if type(value) in (bool, int, float):
        return importlib.import_module("numpy").asarray(value)
    raise WrongAnswer(f"{what}: '{name}' is a {type(value).__name__}, expected a torch.Tensor or numpy.ndarray whose "
                      "content is there when the call returns")


def demand(results: Results, expected: Sequence[Described]) -> None:
    """That these are the outputs that the reference has, by name, shape and dtype."""
    names = [each["name"] for each in expected]
    if [name for name, _ in results] != names:
        raise WrongAnswer(f"it returned {', '.join(name for name, _ in results)}; the reference returns "
                          f"{', '.join(names)}")
    for (name, value), each in zip(results, expected):
        if list(value.shape) != each["shape"]:
            raise WrongAnswer(f"'{name}' has shape {tuple(value.shape)}, expected {tuple(each['shape'])}")
        if dtype_name(value) != each["dtype"]:
            raise WrongAnswer(f"'{name}' is {dtype_name(value)}, expected {each['dtype']}")


def write_result(memory: Memory, memory_bytes: int, offset: int, wire_dtype: str, value: Tensor) -> None:
    """A result as the host reads it: floats as they are, complex as pairs of them, integers as doubles."""
    count = math.prod(value.shape)
    if count == 0:
        return
    if is_torch(value):
        torch = sys.modules["torch"]
        value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
        dtype = {"fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16,
                 "bf16": torch.bfloat16}[wire_dtype]
        flat = torch.frombuffer(memory.bytes(memory_bytes), dtype=dtype, count=value.numel(), offset=offset)
        flat.reshape(value.shape).copy_(value)
        return
    import numpy

    if numpy.iscomplexobj(value):
        value = numpy.stack([value.real, value.imag], -1)
    numpy.ndarray(value.shape, {"fp64": "f8", "fp32": "f4", "fp16": "f2"}[wire_dtype], memory.bytes(memory_bytes),
                  offset)[...] = value


def filled(tensor: Described) -> Tensor:
    """A result of that library, dtype and shape that holds ones."""
    library = importlib.import_module(tensor["library"])
    dtype = getattr(library, tensor["dtype"]) if tensor["library"] == "torch" else library.dtype(tensor["dtype"])
    return library.ones(tensor["shape"], dtype=dtype)


def as_tensor(value: Tensor) -> torch.Tensor:
    """A result as a tensor of torch that holds what write_result() would write, converted or not."""
    torch = sys.modules["torch"]
    if not is_torch(value):
        value = value if value.dtype.kind in "fc" else value.astype("f8")
        # Torch has no negative strides.
        value = torch.from_numpy(value.copy() if min(value.strides, default=0) < 0 else value)
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def is_as(results: Results, expected: Sequence[Described]) -> bool:
    """Whether they have these shapes and dtypes; demand() says what else is wrong."""
    return ([(list(value.shape), dtype_name(value)) for _, value in results]
            == [(each["shape"], each["dtype"]) for each in expected])


def inexact_tensors(values: Iterable[Tensor]) -> list[torch.Tensor]:
    return [value for value in values if is_torch(value) and value.is_floating_point()]


# --- what a call may not do -------------------------------------------------------------------------------------------


def copy_of(value: Tensor) -> Tensor:
    return value.clone() if is_torch(value) else value.copy()


def same_content(value: Tensor, before: Tensor) -> bool:
    """NaN is equal to NaN here: the bytes count."""
    if is_torch(value):
        torch = sys.modules["torch"]
        bytes_of = [each.cpu().contiguous().reshape(-1).view(torch.uint8) for each in (value, before)]
        return torch.equal(*bytes_of)
    return value.tobytes() == before.tobytes()


def largest_difference(first: Tensor, second: Tensor) -> tuple[float, float]:
    """Between two results of one dtype, against their largest finite value; and what rounding alone may explain,
    sqrt(eps). Where one has a value that is not finite and the other has not the same there, they differ without bound.
    """
    if is_torch(first):
        torch = sys.modules["torch"]
        first, second = first.cpu(), second.cpu()
        allowed = (math.sqrt(torch.finfo(first.dtype).eps) if first.dtype.is_floating_point
                   or first.is_complex() else 0.0)
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


def changes(name: str, before: object, now: object) -> WrongAnswer:
    return WrongAnswer(f"it changes {name} from {before} to {now}, which others compute by; set it when the file is "
                       "imported, or put it back")


def putting_back(method: Callable[..., int]) -> Callable[..., int]:
    """A call of a Function whose exception leaves the settings as they were, too."""

    @functools.wraps(method)
    def called(self: Function, *arguments: Any) -> int:
        try:
            return method(self, *arguments)
        except BaseException:
            self.put_flags_back()
            raise

    return called


class Function:
    """A user's callable, as syslab_implementation.py has it served."""

    domain: dict = {}

    def __init__(self, path: str, name: str, memory_fd: int, device: str) -> None:
        self.function = load_callable(path, name, device)
        self.memory, self.device, self.name = Memory(memory_fd), device, name
        self.signatures: dict[str, Signature] = {}
        self.torch = sys.modules.get("torch")
        self.flags = global_flags()  # what a file sets when it is imported is its own affair
        self.clock: Any = None  # a TorchTensors on a GPU
        self.watch = Watch()
        if device != "cpu":
            if isinstance(self.function, Symbol):
                self.torch = importlib.import_module("torch")
            if self.torch is None:
                raise Unsupported(f"{name} does not import torch, and NumPy's arrays are the CPU's; run it with "
                                  "--device cpu")
            self.clock = TorchTensors(self.memory, device)

    def signature(self, text: str) -> Signature:
        if text not in self.signatures:
            signature = Signature.parse(text)
            if isinstance(self.function, Symbol) and self.device != "cpu":
                for tensor in signature.tensors:
                    tensor["library"] = "torch"  # the addresses are the GPU's
            for library in {tensor["library"] for tensor in signature.tensors}:
                importlib.import_module(library)
            self.signatures = {text: signature}
        return self.signatures[text]

    def called(self, arguments: Sequence[Any], function: Callable[..., Any] | None = None) -> Any:
        function, torch = function or self.function, sys.modules.get("torch")
        if torch is None:
            return function(*arguments)
        with torch.no_grad():  # its end puts back what the call may have left
            returned = function(*arguments)
            enabled = torch.is_grad_enabled()
        if enabled:
            raise changes("torch.set_grad_enabled", False, True)
        return returned

    def on_device(self, value: Tensor) -> Tensor:
        return value.to(self.device) if self.device != "cpu" and is_torch(value) else value

    def prepared(self, signature: Signature, views: Sequence[Tensor], bell: Bell) -> Prepared:
        """What is to be timed, once the call's inputs have been released; how its results are named; the tensors that
        it reads; and its arguments as they are before it (none where they are built within its time, or are C's)."""
        if signature.late:
            from syslab_autograd import Backward

            first = signature.early()
            bell.early([tensor["name"] for tensor in signature.tensors[:first]])
            back = Backward(self.function, signature,
                            [on_host(tensor, self.on_device(value))
                             for tensor, value in zip(signature.tensors, views[:first])])
            back.kept.demand_same()
            back.demand(signature.late, views[first:])
            kept = Kept([tensor["name"] for tensor in signature.tensors[first:]], views[first:])
            bell.wait()
            given = [self.on_device(value) for value in views[first:]]
            return lambda: back.gradients(given), back.named, given, kept
        values, kept = [self.on_device(value) for value in views], Kept((), ())
        if isinstance(self.function, Symbol):
            body = self.function.bound(signature.abi, values, self.device)
        elif not any(map(is_there, signature.tensors, values)):
            arguments = signature.build(values)
            kept = Kept(signature.names, arguments)

            def body() -> Any:
                return self.called(arguments)
        else:  # it is not yet given

            def body() -> Any:
                return self.called(
                    signature.build([on_host(tensor, value) for tensor, value in zip(signature.tensors, values)]))

        bell.wait()
        return body, lambda returned: returned, values, kept

    @putting_back
    def call(self, message: dict[str, Any], bell: Bell) -> int:
        """Runs the function once; returns the nanoseconds that it took by its own clock."""
        size, options = message["memory_bytes"], message["options"]
        signature = self.signature(options["signature"])
        expected = json.loads(options["outputs"])
        views = [raw_view(self.memory, size, wire["offset"], tensor)
                 for wire, tensor in zip(message["inputs"], signature.tensors)]
        if "empty" in message:
            return self.call_empty(message, signature, views, expected, bell)
        if options.get("examine"):
            bell.wait()
            self.examine(signature, views, expected)
        body, named, values, kept = self.prepared(signature, views, bell)
        returned, elapsed = self.timed(body, values)
        results = named_results(named(returned))
        # The host's clock runs until the results are where it reads them: what they must be is asked behind that.
        if is_as(results, expected):
            for (_, value), wire in zip(results, message["outputs"]):
                write_result(self.memory, size, wire["offset"], wire["dtype"], value)
        bell.finish()
        kept.demand_same()
        self.demand_right(results, expected, signature, values)
        return elapsed

    def call_empty(self, message: dict[str, Any], signature: Signature, views: Sequence[Tensor],
                   expected: Sequence[Described], bell: Bell) -> int:
        """A call that computes nothing, by the way of any other: what it takes is the handing over. `with_results`:
        that of results that are there already, too.
        """
        results = {each["name"]: filled(each) for each in expected}
        if signature.late:
            bell.early([tensor["name"] for tensor in signature.tensors[:signature.early()]])
        arguments = signature.build(views)
        bell.wait()
        returned, elapsed = self.timed(lambda: self.called(arguments, lambda *_: results), views)
        found = named_results(returned)
        if is_as(found, expected) and message["empty"] == "with_results":
            for (_, value), wire in zip(found, message["outputs"]):
                write_result(self.memory, message["memory_bytes"], wire["offset"], wire["dtype"], value)
        bell.finish()
        return elapsed

    @putting_back
    def call_on_gpu(self, message: dict[str, Any], lab: LabMemory, call: GpuCall) -> int:
        """The same where the tensors lie in the host's memory on a GPU; `call`: a GpuCall (syslab_gpu.py)."""
        signature, expected = self.signature(message["options"]["signature"]), json.loads(message["options"]["outputs"])
        views = [raw_view_on_gpu(lab, wire["offset"], tensor)
                 for wire, tensor in zip(message["inputs"], signature.tensors)]
        body, named, values, kept = self.prepared(signature, views, call)
        results = named_results(named(call.timed(body, inexact_tensors(values))))
        if not is_as(results, expected):
            demand(results, expected)
        elapsed = call.done([(as_tensor(value), lab.view(wire))
                             for (_, value), wire in zip(results, message["outputs"])])
        kept.demand_same()
        self.demand_right(results, expected, signature, values)
        return elapsed

    def demand_right(self, results: Results, expected: Sequence[Described], signature: Signature,
                     values: Sequence[Tensor]) -> None:
        """Of what was returned all but its content, which the host compares."""
        demand(results, expected)
        self.demand_flags()
        self.demand_inside()
        for name, value in results if not signature.late else ():  # a gradient that goes through unchanged is right
            self.demand_own(name, value, values)

    def demand_inside(self) -> None:
        """Of every call of a library's symbol, because the next one has outputs of its own."""
        if isinstance(self.function, Symbol) and (where := self.function.overrun()):
            raise WrongAnswer(f"the call wrote {where}")

    def demand_flags(self) -> None:
        """Of every call: one that changes them late would be told of the case behind it, which begins with them as they
        were."""
        for name, before, now in self.put_flags_back():
            raise changes(name, before, now)

    def put_flags_back(self) -> list[tuple[str, Any, Any]]:
        """Names of those that a call has changed, what they were, and what they had become."""
        changed = [(name, self.flags[name], now) for name, now in global_flags().items()
                   if self.flags.get(name, now) != now]
        for name, before, _ in changed:
            put_back(name, before)
        if changed:
            self.flags = global_flags()  # some cannot be put back: the next case is not told of them
        return changed

    def timed(self, body: Callable[[], Any], values: Iterable[Tensor]) -> tuple[Any, int]:
        return host_time(body) if self.clock is None else self.clock.timed(body, inexact_tensors(values))

    def demand_own(self, name: str, value: Tensor, inputs: Iterable[Tensor]) -> None:
        address = value.data_ptr() if is_torch(value) else value.ctypes.data
        if not math.prod(value.shape):
            return
        if self.memory.holds(address) or any(shares(value, each) for each in inputs):
            raise WrongAnswer(f"'{name}' is a view of an argument: nothing was computed that a time could be of; "
                              "return a tensor of its own")

    def examine_strides(self, signature: Signature, views: Sequence[Tensor], wanted: Results) -> None:
        """Of gradients: autograd hands over whatever strides the operation behind the output has made. One that refuses
        those says so."""
        if not signature.late:
            return
        from syslab_autograd import Backward

        first = signature.early()
        given = [self.on_device(value) for value in views[first:]]
        for strided in zip(*map(with_other_strides, given)):
            back = Backward(self.function, signature, [self.on_device(value) for value in views[:first]])
            back.demand(signature.late, given)
            try:
                found = named_results(back.named(back.gradients(list(strided))))
            except Exception:  # noqa: BLE001, whatever it is, nothing was computed that could be wrong
                continue
            for (name, once), (_, again) in zip(wanted, found):
                difference, allowed = largest_difference(once, again)
                if difference > allowed:
                    raise WrongAnswer(f"'{name}' is another where the gradient that is handed over has the same "
                                      f"elements with strides {strided[0].stride()}, and not {given[0].stride()}: the "
                                      "backward pass reads it by strides that it may not have; call .contiguous() on "
                                      "it, or read it by its own")

    def examine(self, signature: Signature, views: Sequence[Tensor], expected: Sequence[Described]) -> None:
        """Two calls that nobody times, and what they left behind."""

        def called() -> Results:
            states = generators()
            body, named, _, kept = self.prepared(signature, views, NoDoorbell())
            returned = body()
            kept.demand_same()  # before anything reads them again
            self.demand_inside()
            for name, value in tensors.items():
                if not same_content(value, before[name]):
                    raise WrongAnswer(f"the call changed its input '{name}'", "input_changed")
            demand_undrawn(states)
            return named_results(named(returned))

        tensors = dict(zip((tensor["name"] for tensor in signature.tensors), views))
        before = {name: copy_of(value) for name, value in tensors.items()}
        first = called()
        demand(first, expected)
        first = [(name, copy_of(value)) for name, value in first]
        self.demand_flags()
        second, compiled = self.watch.during(called)
        if compiled and (still := self.watch.during(called)[1]):
            raise WrongAnswer(f"it compiles at each call: with equal arguments it {still} again, which would be in "
                              "every time; keep what the first call has made")
        self.examine_strides(signature, views, first)
        for (name, once), (_, again) in zip(first, second):
            difference, allowed = largest_difference(once, again)
            if difference > allowed:
                raise WrongAnswer(f"two calls with equal arguments differ: '{name}' by {difference:.3g} of its largest "
                                  "value, which rounding does not explain; it draws numbers of its own or keeps "
                                  "something between calls")


def with_other_strides(value: torch.Tensor) -> Iterator[torch.Tensor]:
    """Equal tensors whose memory is another: every second element of a longer last dimension, and all dimensions in
    reverse."""
    torch = sys.modules["torch"]
    longer = torch.full((*value.shape, 2), float("nan"), dtype=value.dtype, device=value.device)
    longer[..., 0] = value
    yield longer[..., 0]
    axes = tuple(reversed(range(value.dim())))
    yield value.permute(axes).contiguous().permute(axes)
