"""Classes that need what the walls must leave them: compilers, threads, files of their own, torch."""
import concurrent.futures
import ctypes
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

SOURCE = """
#include <math.h>
void attend(const float* q, const float* k, const float* v, float* o, float* lse, long n, long d, int causal) {
  for (long i = 0; i < n; ++i) {
    float sum = 0;
    for (long x = 0; x < d; ++x) o[i * d + x] = 0;
    for (long j = 0; j < (causal ? i + 1 : n); ++j) {
      float score = 0;
      for (long x = 0; x < d; ++x) score += q[i * d + x] * k[j * d + x];
      const float p = expf(score / sqrtf((float)d));
      sum += p;
      for (long x = 0; x < d; ++x) o[i * d + x] += p * v[j * d + x];
    }
    for (long x = 0; x < d; ++x) o[i * d + x] /= sum;
    lse[i] = logf(sum);
  }
}
"""


class Compiles:
    """As torch's load_inline does: a compiler, a folder for what it makes, and a library from there."""

    def __init__(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        (folder / "kernel.c").write_text(SOURCE)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", folder / "kernel.so", folder / "kernel.c", "-lm"], check=True)
        self.library = ctypes.CDLL(str(folder / "kernel.so"))

    def head(self, q, k, v, causal):
        q, k, v = (np.ascontiguousarray(t, dtype=np.float32) for t in (q, k, v))
        o, lse = np.empty_like(q), np.empty(q.shape[0], np.float32)
        at = [t.ctypes.data_as(ctypes.c_void_p) for t in (q, k, v, o, lse)]
        self.library.attend(*at, ctypes.c_long(q.shape[0]), ctypes.c_long(q.shape[1]), ctypes.c_int(causal))
        return o, lse

    def forward(self, q, k, v, is_causal):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            heads = list(pool.map(lambda qkv: self.head(*qkv, is_causal), zip(q, k, v)))
        return np.stack([o for o, _ in heads]), np.stack([lse for _, lse in heads])


def squared(x):
    return x * x


class UsesProcesses(Compiles):
    """A pool of processes with its locks and queues, as torch.compile uses to compile."""

    def __init__(self):
        super().__init__()
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            assert list(pool.map(squared, [1, 2, 3])) == [1, 4, 9]
        assert subprocess.run([sys.executable, "-c", "print(7)"], capture_output=True, check=True).stdout == b"7\n"
        assert os.access(os.environ["TMPDIR"], os.W_OK)


class KeepsCaches(Compiles):
    """Caches as Triton, torch.compile and load_inline keep them: each finds again what it compiled before, without its compiler."""

    def __init__(self):
        private = pathlib.Path(os.environ["TMPDIR"])
        for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR"):
            assert private in pathlib.Path(os.environ[name]).parents, f"{name} is not in the folder of this process"
        for once in (self.as_triton, self.as_torch_compile, self.as_load_inline):
            self.compiled = 0
            first, second = once(), once()
            assert first == second and self.compiled == 1, f"{once.__name__} compiled {self.compiled} times"
            self.library = ctypes.CDLL(str(second))

    def compile(self, target, *flags):
        self.compiled += 1
        source = target.with_suffix(".c")
        source.write_text(SOURCE)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", *flags, "-o", target, source, "-lm"], check=True)

    def as_triton(self):
        """A folder named after the source's digest; a temporary one beside it, whose file is renamed into place."""
        root = pathlib.Path(os.environ["TRITON_CACHE_DIR"])
        kept = root / hashlib.sha256(SOURCE.encode()).hexdigest() / "kernel.so"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            working = root / f"tmp.pid_{os.getpid()}"
            working.mkdir()
            self.compile(working / "kernel.so")
            os.replace(working / "kernel.so", kept)
            shutil.rmtree(working)
        return kept

    def as_torch_compile(self):
        """A file that is locked while one of several processes compiles; precompiled headers and objects lie beside it."""
        root = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        (root / "locks").mkdir(parents=True, exist_ok=True)
        kept = root / "ab" / "kernel.so"
        with open(root / "locks" / "kernel.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                kept.parent.mkdir()
                self.compile(kept, "-fopenmp", "-pipe")
                os.chmod(kept, 0o700)
        return kept

    def as_load_inline(self):
        """A lock that exists or not, a build file whose commands are run in its folder, objects, and a link step."""
        root = pathlib.Path(os.environ["TORCH_EXTENSIONS_DIR"]) / "py312_cpu" / "kernel"
        root.mkdir(parents=True, exist_ok=True)
        kept = root / "kernel.so"
        os.close(os.open(root / "lock", os.O_CREAT | os.O_EXCL))
        try:
            if not kept.exists():
                self.compiled += 1
                (root / "main.c").write_text(SOURCE)
                (root / "build.sh").write_text("cc -O1 -fPIC -MMD -MF main.o.d -c main.c -o main.o && cc -shared main.o -o kernel.so -lm\n")
                subprocess.run(["sh", "build.sh"], cwd=root, check=True)
                os.symlink("kernel.so", root / "latest.so")
        finally:
            os.remove(root / "lock")
        return kept
