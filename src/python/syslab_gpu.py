"""A call's tensors on a GPU, in memory of syslab's there, and the words by which its stream and torch's wait for each
other.

The host copies a call's inputs into that memory, and takes its outputs, while nothing of this process runs on the GPU
(src/worker/judged/gpu_handover.hpp): until they are given, the inputs hold NaN. What waits for what on torch's
current stream:

  word 0 reaches N + 1 (the host has given the inputs) · a small kernel · [begin] · the call · [end] · N + 1 is written
  to word 16

The small kernel runs once the GPU has been switched to this process: without it [begin] may come before that.

The host learns before where the outputs will be, and copies them from there; then word 0 becomes N + 2.

Needs CUDA's driver and torch.
"""
from __future__ import annotations

import ctypes
import mmap
import time
from typing import TYPE_CHECKING

from syslab_tensors import TORCH_NAMES, extent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType
    from typing import Any

    import torch

    from syslab_tensors import TorchTensors
    from syslab_wire import Pipe

STEP, DONE = 0, 16  # words of 32 bits
MAPPED = 2  # cuMemHostRegister: reached from the GPU
PEERS = 1  # cuIpcOpenMemHandle: as CUDA's runtime opens them
GREATER_OR_EQUAL = 0  # cuStreamWaitValue32
HANDLE_PREFIX = "gpu:"


class Handle(ctypes.Structure):
    """CUipcMemHandle."""

    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


class Bytes:
    """Memory at an address of the GPU, for torch.as_tensor."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, False), "version": 3,
                                         "strides": None}


class LabMemory:
    def __init__(self, torch: ModuleType, page: mmap.mmap) -> None:
        """`page`: the memory that the host and this process both see; its first page holds the words."""
        self.counter = torch.zeros(1, device="cuda")  # torch's context is the current one from here
        self.torch, self.driver = torch, ctypes.CDLL("libcuda.so.1")
        self.words = memoryview(page)[:128].cast("I")
        first, there = ctypes.addressof(ctypes.c_char.from_buffer(page)), ctypes.c_uint64()
        self.ask("cuMemHostRegister_v2", ctypes.c_void_p(first), ctypes.c_size_t(mmap.PAGESIZE), ctypes.c_uint(MAPPED))
        self.ask("cuMemHostGetDevicePointer_v2", ctypes.byref(there), ctypes.c_void_p(first), ctypes.c_uint(0))
        self.first_word, self.base = there.value, 0
        self.name: str | None = None  # of what is open
        self.counter.add_(1)  # loads the kernel
        self.wait_on_stream(0)  # where the driver cannot, that is to be known now
        self.done_on_stream(0)
        torch.cuda.synchronize()

    def ask(self, name: str, *arguments: Any) -> None:
        code = getattr(self.driver, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"CUDA's driver: {name} gave error {code}")

    def open(self, name: str) -> None:
        if name == self.name:
            return
        if self.name is not None:
            self.ask("cuIpcCloseMemHandle", ctypes.c_uint64(self.base))
        base = ctypes.c_uint64()
        handle = Handle((ctypes.c_ubyte * 64).from_buffer_copy(bytes.fromhex(name[len(HANDLE_PREFIX):])))
        self.ask("cuIpcOpenMemHandle_v2", ctypes.byref(base), handle, ctypes.c_uint(PEERS))
        self.name, self.base = name, base.value

    def bytes(self, offset: int, count: int) -> torch.Tensor:
        if count == 0:
            return self.torch.empty(0, dtype=self.torch.uint8, device="cuda")
        return self.torch.as_tensor(Bytes(self.base + offset, count), device="cuda")

    def view(self, tensor: dict[str, Any]) -> torch.Tensor:
        dtype, count = getattr(self.torch, TORCH_NAMES[tensor["dtype"]]), extent(tensor)
        if count == 0:
            return self.torch.empty(tensor["shape"], dtype=dtype, device="cuda")
        return self.bytes(tensor["offset"],
                          count * dtype.itemsize).view(dtype).as_strided(tensor["shape"], tensor["strides"])

    def stream(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)

    def wait_on_stream(self, step: int) -> None:
        self.ask("cuStreamWaitValue32_v2", self.stream(), ctypes.c_uint64(self.first_word + 4 * STEP),
                 ctypes.c_uint32(step),
                 ctypes.c_uint(GREATER_OR_EQUAL))

    def done_on_stream(self, step: int) -> None:
        self.ask("cuStreamWriteValue32_v2", self.stream(), ctypes.c_uint64(self.first_word + 4 * DONE),
                 ctypes.c_uint32(step), ctypes.c_uint(0))

    def wait(self, step: int) -> None:
        """Here, not on the stream."""
        spin_until = time.monotonic() + 0.002
        while self.words[STEP] < step:
            if time.monotonic() > spin_until:
                time.sleep(20e-6)

    def place(self, value: torch.Tensor, view: torch.Tensor) -> dict[str, Any] | None:
        """Where the host finds a result; None once it is (to be) copied into the host's memory, which counts as part of
        the call."""
        value = value.detach()
        alike = value.is_cuda and value.dtype == view.dtype and value.numel() == view.numel()
        if alike and value.is_contiguous() and view.is_contiguous():
            first, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), Handle()
            known = self.driver.cuMemGetAddressRange_v2(ctypes.byref(first), ctypes.byref(size),
                                                        ctypes.c_uint64(value.data_ptr()))
            if known == 0 and self.driver.cuIpcGetMemHandle(ctypes.byref(handle), first) == 0:
                return {"handle": HANDLE_PREFIX + bytes(handle.bytes).hex(), "offset": value.data_ptr() - first.value}
        view.copy_(value.reshape(view.shape))
        return None


class GpuCall:
    """One call: what a Doorbell is on the CPU."""

    def __init__(self, pipe: Pipe, lab: LabMemory, tensors: TorchTensors, step: int) -> None:
        self.pipe, self.lab, self.tensors, self.step = pipe, lab, tensors, step
        self.begin, self.end = (tensors.torch.cuda.Event(enable_timing=True) for _ in range(2))

    def early(self, names: Iterable[str]) -> None:
        self.pipe.write({"type": "ready", "early": list(names)})
        self.lab.wait(self.step)

    def wait(self) -> None:
        """Whoever needs the content of inputs before the call gets NaN."""

    def finish(self) -> None:
        pass

    def timed(self, body: Callable[[], Any], reads: Sequence[torch.Tensor]) -> Any:
        """Queues body() behind the inputs; its time is known after done()."""
        self.reads = reads
        self.tensors.forget_persisting_lines()
        self.pipe.write({"type": "ready", "early": []})
        self.lab.wait_on_stream(self.step + 1)
        self.lab.counter.add_(1)
        self.begin.record()
        value = body()
        self.end.record()
        return value

    def done(self, outputs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> int:
        """Nanoseconds of the call, given each result and its place in the host's memory; the host has them when this
        returns."""
        places = [self.lab.place(value, view) for value, view in outputs]
        self.lab.done_on_stream(self.step + 1)
        self.pipe.write({"type": "queued", "outputs": places})
        self.end.synchronize()
        began = time.monotonic_ns()
        self.tensors.torch.cuda.synchronize()
        late = time.monotonic_ns() - began
        self.lab.wait(self.step + 2)
        self.tensors.blame(self.begin.elapsed_time(self.end), late, self.reads)
        return int(1e6 * self.begin.elapsed_time(self.end))
