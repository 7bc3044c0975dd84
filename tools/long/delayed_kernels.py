#!/usr/bin/env python3
"""Looks for races in flash_wgmma's kernels: its tests on a GPU, in a build whose waits and arrivals are late at random.

    python3 tools/long/delayed_kernels.py [--build build-delayed] [--rounds 3] [--jobs 16]

In that build every fourth wait for an mbarrier and every eighth arrival takes up to 4 µs (SYSLAB_DELAYS in src/device/mbarrier.cuh), so
that whoever relies on an order which no barrier makes meets the other order. That the delays find anything is proven first, by a kernel
without barrier (4) of wgmma/forward.cuh: its tests must fail. Needs a GPU of compute capability 9.0 and nvcc; the first build takes as long
as any, the second a minute. Ends with 1 where a test fails or the planted race is not found, and prints a row for the ledger.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = "ops/attention/wgmma/forward.cuh"
RACE = "    ptx::fence_async_proxy();\n    ptx::barrier(own, 128);  // (4)\n"  # O is stored when all warps have written it
TESTS = "tests/ops/unit_gpu_ops"
SETUP = ["-Dunity=on", "-Dunity_size=8", "-Djoined_tests=true", "-Dcuda=enabled", "-Dgpu_archs=90a"]


def run(command, **variables):
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def build(arguments, **variables):
    for old in (arguments.build / "src").rglob("attention_wgmma_*.o"):
        old.unlink()  # ninja does not see variables
    done = run(["ninja", "-C", arguments.build, "-j", str(arguments.jobs), TESTS], NVCC_APPEND_FLAGS="-DSYSLAB_DELAYS", **variables)
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-3000:]}\nthe build failed")


def planted(folder):
    """A folder to include from first, where the kernel lacks a barrier."""
    text = (ROOT / "src" / KERNELS).read_text(encoding="utf-8")
    if text.count(RACE) != 1:
        sys.exit(f"src/{KERNELS} has no longer the barrier to leave out: adapt RACE in {__file__}")
    copy = folder / "planted" / KERNELS
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text.replace(RACE, RACE.splitlines(keepends=True)[0]), encoding="utf-8")
    return folder / "planted"


def failed_tests(arguments, which):
    """How many tests ran, and which of them failed."""
    done = run([arguments.build / TESTS, f"--gtest_filter={which}"])
    ran = re.search(r"(\d+) tests? from .* ran", done.stdout)
    if ran is None or ran[1] == "0":
        sys.exit(f"{done.stdout[-3000:]}\nno test ran: is there a GPU of compute capability 9.0?")
    return int(ran[1]), sorted(set(re.findall(r"\[  FAILED  \] ([\w./]+)", done.stdout)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-delayed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    if not (arguments.build / "build.ninja").exists() and (done := run(["meson", "setup", arguments.build, *SETUP])).returncode != 0:
        sys.exit(done.stdout)
    build(arguments, NVCC_PREPEND_FLAGS=f"-I{planted(arguments.build)}")
    _, found = failed_tests(arguments, "FlashWgmmaForward.IsRight*")
    print(f"without barrier (4): {len(found)} tests failed", flush=True)
    build(arguments)
    ran, wrong = 0, []
    for _ in range(arguments.rounds):
        tests, failed = failed_tests(arguments, "*FlashWgmma*:*NanIn*flash_wgmma*")
        ran, wrong = ran + tests, wrong + failed
    print("\n".join(f"failed: {name}" for name in wrong))
    print(f"for the ledger: | flash_wgmma's tests with delays at waits and arrivals, {arguments.rounds} rounds | `python3 tools/long/delayed_kernels.py` | "
          f"{len(wrong)} of {ran} failed; with barrier (4) left out {len(found)} |")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())
