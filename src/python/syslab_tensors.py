"""The tensors of a call, in memory that syslab shares with its Python worker (syslab_worker.py), and the call's time.

As NumPy arrays or as torch tensors. The time only spares syslab the waking up, and on a GPU the handing over
(syslab_gpu.py); where a GPU's memory cannot be shared it is what counts there. A call whose work escapes it is an
error.

Needs the standard library and whichever of NumPy and torch the user's file imports.
"""
from __future__ import annotations

import ctypes
import mmap
import time
from typing import TYPE_CHECKING, Any

from syslab_failures import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy
    from torch import Tensor

    from syslab_wire import Pipe

TORCH_NAMES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "int64": "int64"}
DTYPE_BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2}
NUMPY_NAMES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "int64": "int64"}


class Memory:
    """The segment that the host grows as it needs; mapped again whenever it has grown."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.map: mmap.mmap | None = None
        # (mapping, first address, one past the last) of each so far: tensors may lie on old ones. They stay mapped,
        # which costs addresses alone: a result must not come to lie where an argument was, and be taken for one.
        self.mapped: list[tuple[mmap.mmap, int, int]] = []

    def bytes(self, size: int) -> mmap.mmap:
        if self.map is None or len(self.map) < size:
            self.map = mmap.mmap(self.fd, size)
            first = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
            self.mapped.append((self.map, first, first + size))
        return self.map

    def holds(self, address: int) -> bool:
        return any(first <= address < last for _, first, last in self.mapped)

    def words(self, size: int) -> memoryview:
        """The memory as words of 32 bits."""
        return memoryview(self.bytes(size))[:128].cast("I")


class Doorbell:
    """Two words at the beginning of the memory: by one the host releases a call, by the other it hears of its end."""

    SPIN_S = 0.05  # then it looks now and then: the host copies much

    def __init__(self, pipe: Pipe, words: memoryview, timed: bool) -> None:
        self.pipe, self.words, self.step, self.released = pipe, words, 0, False
        # A law asks a thousand times, and times none: the processor is left to the host.
        self.spin_s = self.SPIN_S if timed else 0

    def await_step(self, early: Iterable[str]) -> None:
        self.step += 1
        self.pipe.write({"type": "ready", "early": list(early)})
        words, step = self.words, self.step
        until = time.monotonic() + self.spin_s
        while words[0] != step:
            if time.monotonic() > until:
                time.sleep(20e-6)

    def early(self, names: Iterable[str]) -> None:
        """Waits for these inputs, which the call may have before its clock starts."""
        if not self.released:
            self.await_step(names)

    def wait(self) -> None:
        """Waits for (the other) inputs; the clock runs from here."""
        if not self.released:
            self.await_step(())
            self.released = True

    def finish(self) -> None:
        self.words[16] = 1


class NoDoorbell:
    """Of a call whose inputs are there."""

    def early(self, names: Iterable[str]) -> None:
        pass

    def wait(self) -> None:
        pass

    def finish(self) -> None:
        pass


def extent(tensor: dict[str, Any]) -> int:
    """Elements from the first to one past the last."""
    if 0 in tensor["shape"]:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor["shape"], tensor["strides"]))


class NumpyTensors:
    def __init__(self, memory: Memory, _device: str) -> None:
        import numpy

        self.numpy, self.memory = numpy, memory

    def view(self, tensor: dict[str, Any], memory_bytes: int) -> numpy.ndarray:
        if tensor["dtype"] not in NUMPY_NAMES:
            raise Unsupported(f"NumPy has no {tensor['dtype']}: write the class on torch tensors to run in this dtype")
        dtype = self.numpy.dtype(NUMPY_NAMES[tensor["dtype"]])
        strides = [stride * dtype.itemsize for stride in tensor["strides"]]
        return self.numpy.ndarray(tensor["shape"], dtype, self.memory.bytes(memory_bytes), tensor["offset"], strides)

    def ones_like(self, view: numpy.ndarray) -> numpy.ndarray:
        return self.numpy.ones_like(view)

    def write(self, view: numpy.ndarray, value: Any) -> None:
        view[...] = self.numpy.asarray(value).reshape(view.shape)

    def content(self, value: Any) -> bytes | None:
        """Its bytes, to tell whether it has changed; None of what lies in the memory that the host writes."""
        array = self.numpy.asarray(value)
        return None if self.memory.holds(array.ctypes.data) else array.tobytes()

    def timed(self, body: Callable[[], Any], _reads: Any) -> tuple[Any, int]:
        return host_time(body)


def host_time(body: Callable[[], Any]) -> tuple[Any, int]:
    """What body() returns, and the nanoseconds it took."""
    begin = time.monotonic_ns()
    value = body()
    return value, time.monotonic_ns() - begin


class TorchTensors:
    # Cycles for which the GPU waits while a call is launched: about a millisecond, longer where that was too short.
    GATE_CYCLES = 2_000_000
    LONGEST_GATE_CYCLES = 64 * GATE_CYCLES
    # Work that goes on for longer than this, and than a fifth of the call, after the call's end runs on a stream of its
    # own.
    STRAGGLER_NS = 200_000
    # So many calls in a row that did that, or left the current stream empty: no chance of the clock's, nor of another
    # process that had the GPU meanwhile.
    CALLS_TO_BLAME = 3

    def __init__(self, memory: Memory, device: str) -> None:
        import torch

        self.torch, self.memory, self.device, self.gate_cycles = torch, memory, device, self.GATE_CYCLES
        if device != "cpu" and not torch.cuda.is_available():
            raise Unsupported(f"torch {torch.__version__} sees no GPU; run with --device cpu")
        self.empty_ms: float = 0
        self.empty_calls, self.late_calls = 0, 0
        self.driver: Any = None if device == "cpu" else ctypes.CDLL("libcuda.so.1")
        if device != "cpu":
            self.empty_ms = 1.5 * self.empty_window()

    def view(self, tensor: dict[str, Any], memory_bytes: int) -> Tensor:
        dtype = getattr(self.torch, TORCH_NAMES[tensor["dtype"]])
        count = extent(tensor)
        if count == 0:
            return self.torch.empty(tensor["shape"], dtype=dtype, device=self.device)
        flat = self.torch.frombuffer(self.memory.bytes(memory_bytes), dtype=dtype, count=count, offset=tensor["offset"])
        return flat.as_strided(tensor["shape"], tensor["strides"])

    def ones_like(self, view: Tensor) -> Tensor:
        return self.torch.ones_like(view)

    def write(self, view: Tensor, value: Tensor) -> None:
        view.copy_(value.detach().reshape(view.shape))

    def content(self, value: Tensor) -> bytes | None:
        """Its bytes, to tell whether it has changed; None of what lies in the memory that the host writes."""
        value = value.detach()
        if self.memory.holds(value.data_ptr()):
            return None
        return value.contiguous().reshape(-1).view(self.torch.uint8).numpy().tobytes()

    def empty_window(self) -> float:
        """Milliseconds between two events with nothing between them; the median of a few, after one that loads
        modules."""
        cuda, times = self.torch.cuda, []
        for _ in range(9):
            begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
            cuda._sleep(100_000)
            begin.record()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        return sorted(times[1:])[4]

    def forget_persisting_lines(self) -> None:
        """Lines of the L2 that a call before has set to stay there are as any others."""
        self.driver.cuCtxResetPersistingL2Cache()

    def timed(self, body: Callable[[], Any], reads: Sequence[Tensor]) -> tuple[Any, int]:
        """Runs body() and takes its time. `reads`: the tensors that it reads, held back until the GPU comes to the
        call."""
        if self.device == "cpu":
            return host_time(body)
        cuda = self.torch.cuda
        begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
        reads = [tensor for tensor in reads if tensor.is_floating_point()]  # whole numbers have no NaN
        # .data: autograd must not take these writes for changes of what it has saved.
        content = [tensor.data.clone() for tensor in reads]
        for tensor in reads:
            tensor.data.fill_(float("nan"))
        cuda.synchronize()
        self.forget_persisting_lines()
        cuda._sleep(self.gate_cycles)
        for tensor, true in zip(reads, content):
            tensor.data.copy_(true)
        begin.record()
        value = body()
        # The GPU has begun before all was launched: the next call gets a longer gate. A call that waits for the GPU
        # itself, or compiles, is timed with its own part as it is.
        if begin.query():
            self.gate_cycles = min(2 * self.gate_cycles, self.LONGEST_GATE_CYCLES)
        end.record()
        end.synchronize()
        _, late = host_time(cuda.synchronize)
        self.blame(begin.elapsed_time(end), late, reads)
        return value, int(1e6 * begin.elapsed_time(end))

    def blame(self, milliseconds: float, late: int, reads: Sequence[Tensor]) -> None:
        """RuntimeError if so many calls in a row went on for `late` nanoseconds after their end, or left the current
        stream empty."""
        elapsed = int(1e6 * milliseconds)
        self.late_calls = self.late_calls + 1 if late > max(self.STRAGGLER_NS, elapsed // 5) else 0
        if self.late_calls == self.CALLS_TO_BLAME:
            raise RuntimeError(f"work went on for {1e-3 * late:.0f} us after the call had ended on the current stream, "
                               "so its time is not known: queue it there, or let that stream wait for it")
        empty = milliseconds <= self.empty_ms and any(tensor.numel() > 0 for tensor in reads)
        self.empty_calls = self.empty_calls + 1 if empty else 0
        if self.empty_calls >= self.CALLS_TO_BLAME:
            # A small kernel takes as long as an empty window did at lower clocks: only one as short as those are now
            # queues nothing.
            self.empty_ms = 1.5 * self.empty_window()
            if milliseconds <= self.empty_ms:
                raise RuntimeError("the call queued nothing on torch's current stream, so its time is not known: queue "
                                   "it there, or let that stream wait for it")

    def has_nan(self, values: Iterable[Any]) -> bool:
        return any(value is not None and bool(self.torch.isnan(value).any()) for value in values)
