"""What still works on a GPU behind the walls of a judged class, and what it can reach; on a machine with a GPU, in two
minutes:

    python3 tools/long/gpu_walls.py build/syslab      (a Python that has NumPy; where it has torch and Triton, these are
                                                      tried, too)
    python3 tools/long/gpu_walls.py build/syslab --without-filling

The second asks what else would be lost if memory could not be filled in advance, either (MAP_POPULATE, MAP_LOCKED,
MADV_POPULATE, mlock), which judged code may not, but as ranks on a GPU and under compute-sanitizer (deny_waking() of
src/judge/walls.cpp). Each try then denies itself these calls, with walls and without.

The class below is judged as any other (`run --mine`, profile `python`), under `--device cuda` where torch sees a GPU,
else on the CPU. Each try is a process that the class starts, behind the same walls, so that one that crashes or hangs
spoils no other. Each line says works, refused or absent (a package or a second GPU is missing), beside the same without
walls. The last line is a row for reports/ledger/lab.md.
NCCL, where there are two GPUs, needs sockets, which a class of one rank does not have: behind the walls it is refused,
and that is not counted.
Exit code 1: something else works without walls and not behind them, or the walls let something through. 2: nothing was
shown.
"""
import argparse
import concurrent.futures
import ctypes
import errno
import json
import mmap
import os
import pathlib
import platform
import re
import struct
import subprocess
import sys
import tempfile
from typing import Any

LONGEST_TRY = 75  # seconds; all of them run at once


class Absent(Exception):
    pass


def call(function, *arguments):
    code = function(*arguments)
    if code != 0:
        raise RuntimeError(f"{function.__name__}: error {code}")


def torch_on_gpu():
    try:
        import torch
    except ImportError:
        raise Absent("no torch")
    if not torch.cuda.is_available():
        raise Absent("torch sees no GPU")
    return torch


def torch_and_device():
    """For what compiles for either: without a GPU, the walls around compilers and caches are seen on the CPU."""
    try:
        import torch
    except ImportError:
        raise Absent("no torch")
    return torch, "cuda" if torch.cuda.is_available() else "cpu"


def driver():
    """The driver's own interface, with a context."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise Absent("no libcuda.so.1")
    call(cuda.cuInit, 0)
    context = ctypes.c_void_p()
    call(cuda.cuDevicePrimaryCtxRetain, ctypes.byref(context), 0)
    call(cuda.cuCtxSetCurrent, context)
    return cuda


def try_driver():
    cuda, memory, size = driver(), ctypes.c_uint64(), 1 << 20
    call(cuda.cuMemAlloc_v2, ctypes.byref(memory), ctypes.c_size_t(size))
    call(cuda.cuMemsetD8_v2, memory, ctypes.c_ubyte(7), ctypes.c_size_t(size))
    read = (ctypes.c_ubyte * size)()
    call(cuda.cuMemcpyDtoH_v2, read, memory, ctypes.c_size_t(size))
    assert set(bytes(read)) == {7}


def try_malloc_async():
    cuda, memory = driver(), ctypes.c_uint64()
    call(cuda.cuMemAllocAsync, ctypes.byref(memory), ctypes.c_size_t(1 << 20), None)
    call(cuda.cuMemFreeAsync, memory, None)
    call(cuda.cuCtxSynchronize)


def build(source, *more):
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "kernel.cu").write_text(source)
    try:
        subprocess.run(["nvcc", *more, "-o", folder / "kernel", folder / "kernel.cu"], check=True, capture_output=True)
    except FileNotFoundError:
        raise Absent("no nvcc")
    return folder / "kernel"


def try_nvcc():
    """As load_inline does, without torch: nvcc, a folder of its own, a library, a launch."""
    library = build("__global__ void fill(int* to) { *to = 7; }\n"
                    'extern "C" int run() { int* to; int seen = 0; if (cudaMalloc(&to, 4)) return -1; fill<<<1, '
                    '1>>>(to);\n'
                    "  return cudaMemcpy(&seen, to, 4, cudaMemcpyDeviceToHost) ? -2 : seen; }\n", "-shared",
                    "-Xcompiler", "-fPIC")
    driver()  # absent where there is no GPU
    got = ctypes.CDLL(str(library)).run()
    assert got == 7, f"the kernel gave {got}"


def try_compute_sanitizer():
    """It has to find what is wrong, not only to start."""
    program = build("__global__ void beyond(int* to) { to[threadIdx.x + 1024] = 7; }\n"
                    "int main() { int* to; if (cudaMalloc(&to, 4096)) return 3; beyond<<<1, 1>>>(to); return "
                    "cudaDeviceSynchronize() ? 4 : 0; }\n")
    driver()
    try:
        done = subprocess.run(["compute-sanitizer", "--error-exitcode", "9", program], text=True, capture_output=True)
    except FileNotFoundError:
        raise Absent("no compute-sanitizer")
    found = done.returncode == 9 and "Invalid __global__ write" in done.stdout
    assert found, f"it ended with {done.returncode}: {done.stdout[-150:]}"


def try_triton():
    torch = torch_on_gpu()
    try:
        import triton  # noqa: F401
    except ImportError:
        raise Absent("no Triton")
    folder = pathlib.Path(tempfile.mkdtemp())  # Triton reads a kernel's source from its file
    (folder / "walled_kernel.py").write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef double(x, n: tl.constexpr):\n"
        "    at = tl.arange(0, n)\n    tl.store(x + at, 2 * tl.load(x + at))\n")
    sys.path.insert(0, str(folder))
    import walled_kernel
    x = torch.ones(64, device="cuda")
    walled_kernel.double[(1,)](x, 64)
    assert bool((x == 2).all())


def try_torch_compile():
    torch, device = torch_and_device()
    x = torch.ones(1024, device=device)
    assert bool((torch.compile(lambda t: torch.sin(t) + 1)(x) - torch.sin(x) - 1).abs().max() < 1e-5)


def try_load_inline():
    torch, device = torch_and_device()
    from torch.utils.cpp_extension import load_inline
    source = "#include <torch/extension.h>\ntorch::Tensor twice(torch::Tensor x) { return x + x; }"
    made = load_inline("walled_twice", cpp_sources=[source], functions=["twice"])
    assert made.twice(torch.ones(4, device=device)).sum().item() == 8


def try_nccl_alone():
    """One rank: its group, a sum, and NCCL's threads and buffers. Its sockets are refused behind the walls of one
    rank."""
    torch_on_gpu()
    program = ("import sys, torch, torch.distributed as d; d.init_process_group('nccl', init_method='file://' + "
               "sys.argv[1], rank=0, world_size=1); x = torch.ones(1 << 20, device='cuda'); d.all_reduce(x); "
               "torch.cuda.synchronize(); assert x.sum().item() == 1 << 20; d.destroy_process_group()")
    done = subprocess.run([sys.executable, "-c", program, tempfile.mktemp()], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr[-150:]


def try_shared_memory():
    """As the lab shares tensors with what it judges: memory without a name, mapped by two processes, and known to the
    driver."""
    cuda, size = driver(), 64 << 20
    memory = os.memfd_create("shared")
    os.ftruncate(memory, size)
    mine = mmap.mmap(memory, size)
    at = ctypes.addressof(ctypes.c_char.from_buffer(mine))
    call(cuda.cuMemHostRegister_v2, ctypes.c_void_p(at), ctypes.c_size_t(size), 0)
    program = "import mmap, sys; mmap.mmap(int(sys.argv[1]), 0)[-1] = 7"
    subprocess.run([sys.executable, "-c", program, str(memory)], check=True, pass_fds=[memory])
    assert mine[-1] == 7
    call(cuda.cuMemHostUnregister, ctypes.c_void_p(at))


def try_pinned_memory():
    """As torch's pin_memory() has it: of the driver's, where copies run beside other work."""
    cuda, size, at, memory = driver(), 64 << 20, ctypes.c_void_p(), ctypes.c_uint64()
    call(cuda.cuMemAllocHost_v2, ctypes.byref(at), ctypes.c_size_t(size))
    call(cuda.cuMemAlloc_v2, ctypes.byref(memory), ctypes.c_size_t(size))
    call(cuda.cuMemcpyHtoDAsync_v2, memory, at, ctypes.c_size_t(size), None)
    call(cuda.cuCtxSynchronize)
    call(cuda.cuMemFreeHost, at)


def try_nccl():
    """Two processes and a sum; they need sockets, which only classes of several ranks have."""
    torch = torch_on_gpu()
    if torch.cuda.device_count() < 2:
        raise Absent("one GPU")
    meeting = tempfile.mktemp()
    program = ("import sys, torch, torch.distributed as d; r = int(sys.argv[1]); torch.cuda.set_device(r); "
               "d.init_process_group('nccl', init_method='file://' + sys.argv[2], rank=r, world_size=2); x = "
               "torch.ones(1 << 20, device='cuda'); d.all_reduce(x); torch.cuda.synchronize(); assert x.sum().item() "
               "== 1 << 21; d.destroy_process_group()")
    ranks = [subprocess.Popen([sys.executable, "-c", program, str(rank), meeting], stderr=subprocess.PIPE, text=True)
             for rank in (0, 1)]
    said = [rank.communicate()[1] for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks), (said[0] or said[1])[-150:]


def try_expandable_segments():
    """In a process of its own: the allocator is chosen before it is first used."""
    allocate("expandable_segments:True")


def try_torch_malloc_async():
    allocate("backend:cudaMallocAsync")


def allocate(settings):
    torch_on_gpu()
    program = "import torch; x = [torch.ones(1 << 22, device='cuda') for _ in range(8)]; torch.cuda.synchronize()"
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": settings})


FILE = str(pathlib.Path(__file__).resolve())
TRIED = {name[len("try_"):]: thing for name, thing in list(globals().items()) if name.startswith("try_")}


def opened_devices():
    opened = []
    for folder, _, names in os.walk("/dev"):
        for path in (pathlib.Path(folder, name) for name in names):
            if path.is_symlink() or path.is_file():
                continue
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
                opened.append(str(path))
            except OSError:
                pass
    return opened


def instruction(code, value, yes=0, no=0):
    return struct.pack("HBBI", code, yes, no, value)


def deny_filling():
    """For this process and what it starts: a filter of its own, with walls and without. The numbers are x86-64's."""
    load, equal, has_bit, answer = 0x20, 0x15, 0x45, 0x06
    allow, refuse, unknown = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.EINVAL
    rules = [
        instruction(load, 4), instruction(equal, 0xC000003E, 0, 6),  # 0: another architecture may do all
        instruction(load, 0), instruction(equal, 9, 5, 0), instruction(equal, 28, 6, 0),  # 2: mmap, madvise
        # 5: mlock, mlockall, mlock2.
        instruction(equal, 149, 9, 0), instruction(equal, 151, 8, 0), instruction(equal, 325, 7, 0),
        instruction(answer, allow),  # 8
        instruction(load, 40), instruction(has_bit, 0xA000, 4, 3),  # 9: the flags: MAP_POPULATE, MAP_LOCKED
        # 11: MADV_POPULATE_READ, …_WRITE.
        instruction(load, 32), instruction(equal, 22, 3, 0), instruction(equal, 23, 2, 0),
        instruction(answer, allow), instruction(answer, refuse), instruction(answer, unknown),  # 14
    ]
    text = b"".join(rules)
    libc = ctypes.CDLL(None, use_errno=True)
    program = ctypes.create_string_buffer(text)
    head = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(program))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, head, 0, 0) != 0:  # no new privileges; a filter
        raise OSError(ctypes.get_errno(), "no filter")


def outcome(name):
    """In a process of its own."""
    try:
        if os.environ.get("GPU_WALLS_FILLING") == "denied":
            deny_filling()
        TRIED[name]()
        return "works"
    except Absent as reason:
        return f"absent: {reason}"
    except Exception as error:  # whatever a package raises when it is refused something
        return f"refused: {type(error).__name__}: {str(error)[-200:]}"


def tried_in_a_process(name):
    try:
        done = subprocess.run([sys.executable, FILE, "--try", name], text=True, capture_output=True,
                              timeout=LONGEST_TRY)
    except subprocess.TimeoutExpired:
        return f"refused: not done after {LONGEST_TRY} s"
    except OSError as error:
        return f"refused: cannot start a process: {error}"
    said = re.search(r"OUTCOME(.*)", done.stdout, re.DOTALL)
    return (" ".join(said[1].split()) if said else f"refused: it ended with {done.returncode}: "
            f"{' '.join(done.stderr[-150:].split())}")


def on_gpu():
    """Whether the class below is judged on one."""
    return os.environ.get("GPU_WALLS_DEVICE") == "cuda"


class Tries:
    """Tells by its failure what it found, since nothing else of a judged class is shown."""

    tensors = "torch" if on_gpu() else "numpy"

    def devices(self):
        return []

    def forward(self, q, k, v, is_causal):
        with concurrent.futures.ThreadPoolExecutor(len(TRIED)) as pool:
            found = dict(zip(TRIED, pool.map(tried_in_a_process, TRIED)))
        raise RuntimeError(f"FOUND{json.dumps({'tried': found, 'devices': self.devices()})}DNUOF")


class TriesBehindWalls(Tries):
    """Only there: to open whatever lies in /dev for writing may arm a watchdog or rewind a tape."""

    def devices(self):
        return opened_devices()


def judged(syslab, device, walls, filling):
    """What the class found, and which walls stood."""
    name = "TriesBehindWalls" if walls else "Tries"
    case = ["-a", "seq=32", "-a", "head_dim=16", "-a", "heads=1", "-a", "causal=true", "-a", "dtype=fp32"]
    command = [syslab, "run", "flash_forward", *case, "--impl", "me", "--laws", "none", "--protocol", "quick",
               "--device", device, "--timeout", "150s",
               "--mine", f"me={FILE}:{name}", "--json"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GPU_WALLS_DEVICE": device, "SYSLAB_DB": f"{folder}/lab.db",
                       "SYSLAB_PYTHON": sys.executable, "XDG_STATE_HOME": f"{folder}/state"}
        environment.pop("SYSLAB_WALLS", None)
        environment["GPU_WALLS_FILLING"] = "allowed" if filling else "denied"
        if not walls:
            environment["SYSLAB_WALLS"] = "none"
        done = subprocess.run(command, env=environment, text=True, capture_output=True)
        facts = subprocess.run([syslab, "query", "SELECT facts ->> '$.walls' AS walls, facts ->> '$.walls_missing' AS "
                                "missing FROM v_attempt", "--to", "json"],
                               env=environment, text=True, capture_output=True).stdout
    for line in done.stdout.splitlines():
        found = re.search(r"FOUND(.*?)DNUOF", json.loads(line).get("detail") or "", re.DOTALL)
        if found:
            return {**json.loads(found[1]), "walls": " ".join(facts.split())}
    print("the class told nothing "
          f"{'behind walls' if walls else 'without walls'}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    sys.exit(2)


def gpu_name():
    try:
        asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], text=True,
                               capture_output=True)
        return "; ".join(asked.stdout.split("\n")).strip("; ") or "no GPU"
    except OSError:
        return "no GPU"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("syslab", nargs="?", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--try", dest="name", choices=TRIED, help="one thing alone, here and now")
    parser.add_argument("--without-filling", action="store_true", help="and without calls that fill memory in advance")
    arguments = parser.parse_args()
    if arguments.name:
        print(f"OUTCOME{outcome(arguments.name)}")
        return
    if not arguments.syslab:
        parser.error("name the program syslab")
    machine = f"{gpu_name()}, Linux {platform.release()}"
    asked = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"], text=True,
                           capture_output=True)
    device = "cuda" if asked.stdout.strip() == "True" else "cpu"
    print(f"on {machine}", flush=True)
    filling = not arguments.without_filling
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        open_air, behind = pool.map(judged, [arguments.syslab] * 2, [device] * 2, [False, True], [True, filling])
    print(f"walls: {behind['walls']}, judged on {device}\n{'':22} {'without walls':40} behind "
          f"them{'' if filling else ', and without filling'}")
    # What needs sockets is refused to one rank behind the walls: it is tried without filling, and without walls.
    bare: Any = None if filling else judged(arguments.syslab, device, False, False)
    lost = []
    for name, without in open_air["tried"].items():
        seen = behind["tried"][name] if not name.startswith("nccl") or filling else bare["tried"][name]
        if without == "works" and seen != "works" and (not name.startswith("nccl") or not filling):
            lost.append(name)
        print(f"{name:22} {without:40} {seen}{'   <- lost' if name in lost else ''}")
    harmless = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}
    through = [path for path in behind["devices"] if path not in harmless and not path.startswith("/dev/nvidia")]
    print("GPU devices opened behind them:",
          " ".join(path for path in behind["devices"] if path.startswith("/dev/nvidia")) or "none")
    print("other devices opened behind them:", " ".join(through) or "none")
    works = [name for name, said in open_air["tried"].items() if said == "works"]
    absent = [name for name, said in open_air["tried"].items() if said.startswith("absent")]
    print(f"for the ledger: | `python3 tools/long/gpu_walls.py build/syslab` | {machine} | works without walls: "
          f"{', '.join(works) or 'nothing'} | lost behind them: {', '.join(lost) or 'nothing'}; let through: "
          f"{', '.join(through) or 'nothing'}; not tried: {', '.join(absent) or 'nothing'} |")
    sys.exit(2 if not works else 1 if lost or through else 0)


if __name__ == "__main__":
    main()
