#!/usr/bin/env python3
"""Looks for races in the kernels of flash_wgmma and flash_mma: their tests on a GPU, in a build whose waits and
arrivals are late at random.

    python3 tools/long/delayed_kernels.py [--build build-delayed] [--rounds 3] [--jobs 16]
    python3 tools/long/delayed_kernels.py --tests build-cuda/tests/ops/unit_gpu_ops --under synccheck

In that build every fourth wait for an mbarrier and every eighth arrival takes up to 4 µs, seldom 65, and so do warps
before and after a barrier (src/device/cuda/delay.cuh), so that whoever relies on an order which no barrier makes meets
the other order. That the delays find anything is proven by kernels that lack a barrier or a wait each (PLANTED): some
test of each must fail, or not end. Needs a GPU of compute capability 9.0 and nvcc; the first build takes as long as
any, each planted race a minute.

--tests takes programs that are built already: those with planted races (--planted, as many as PLANTED has and in its
order) and one with delays; --under runs the tests below a tool of compute-sanitizer instead, which wants neither delays
nor planted races. racecheck names lines where the kernels were built with -lineinfo. Each test has a process of its
own, --jobs of them at once, since most of its time is the float64 reference on the CPU. --keep leaves what each said in
a folder. Where there is no time for all, --seconds ends the search.

Ends with 1 where a test fails or is stopped by --limit, or a planted race is not found, and prints a row for the
ledger.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = "src/ops/attention"
# What is planted: its name, in which file, which text becomes which, in the kernels of which object, and tests that use
# these kernels.
Planted = collections.namedtuple("Planted", "what file texts objects tests")
BITS = "*FlashWgmmaBackward.GivesTheSameBits*"
PLANTED = [
    Planted("barrier (4) of wgmma/forward.cuh", "wgmma/forward.cuh", [("    ptx::wait_named(own, 128);  // (4)\n", "")],
            "wgmma_forward_64",
            "FlashWgmmaForward.GivesTheSameBits*:FlashWgmmaForward.IsRightWhereABlock*:FlashWgmmaForward.ARowThat*"),
    Planted("the wait for ds `full` of wgmma/backward.cuh", "wgmma/backward.cuh",
            [("    if (number >= 0) ptx::wait(barriers.ds_full(number & 1), number >> 1 & 1);\n", "")],
            "wgmma_backward_64", BITS),
    Planted("barrier (2) of wgmma/backward_wide.cuh", "wgmma/backward_wide.cuh",
            [("    ptx::wait_named(kDsStored, 128);  // (2)\n", "")],
            "wgmma_backward_192", BITS + ":*FlashWgmmaBackward.RowsThatSee*"),
    Planted("the second group's arrivals at q `empty` of wgmma/backward.cuh, also in their count", "wgmma/backward.cuh",
            [("      release(barriers.q_empty(q_slot));\n",
              "      if (group == 0) release(barriers.q_empty(q_slot));\n"),
             ("ptx::init_barrier(barriers.q_empty(stage), kWarps);",
              "ptx::init_barrier(barriers.q_empty(stage), kWarps / 2);")],
            "wgmma_backward_128", BITS),  # at 64 Q has four places: no copy comes early enough to be wrong
    Planted("the wait for ds `empty` of wgmma/backward.cuh", "wgmma/backward.cuh",
            [("    ptx::wait(barriers.ds_empty(step.slot()), step.parity() ^ 1);\n", "")], "wgmma_backward_128", BITS),
    Planted("barrier (1) of mma/backward_keys.cuh", "mma/backward_keys.cuh",
            [("    ptx::barrier_of_block();  // (1)\n", "")], "mma_backward_64", "FlashMmaBackward.*"),
]
TESTS = "tests/ops/unit_gpu_ops"
ALL = "*FlashWgmma*:*FlashMma*:*flash_wgmma*:*flash_mma*"
SETUP = ["-Dunity=on", "-Dunity_size=8", "-Djoined_tests=true", "-Dcuda=enabled", "-Dgpu_archs=90a"]
# What a tool found, in its last lines: "ERROR SUMMARY: 3 errors", "RACECHECK SUMMARY: 2 hazards displayed (7 errors, 1
# warnings)".
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: .*?(\d+) errors?(?:, (\d+) warnings?)?")
# A hazard, and one side of it: the access with its line (in a build with -lineinfo) or its place in the kernel.
HAZARD = re.compile(r"^=+ \w*:? ?(?=Potential)", re.M)
SIDE = re.compile(r"(Read|Write) Thread .*(\+0x\w+)(?: in (\S+:\d+))?\s*$", re.M)


def run(command, limit=None, **variables):
    """The process that ended, or None where the limit ended it with all that it had started; and what it said."""
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    try:
        return process, process.communicate(timeout=limit)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def build(arguments, objects="*mma_*", **variables):
    """The tests with delays, where those `objects` of kernels are compiled anew."""
    for old in (arguments.build / "src").rglob(f"attention_{objects}.o"):
        old.unlink()  # ninja does not see variables
    # A compiler cache does not look at these variables either, and would answer with the kernels of another build.
    done, said = run(["ninja", "-C", arguments.build, "-j", str(arguments.jobs), TESTS],
                     NVCC_APPEND_FLAGS="-DSYSLAB_DELAYS", CCACHE_DISABLE="1", **variables)
    if done.returncode != 0:
        sys.exit(f"{said[-3000:]}\nthe build failed")
    return arguments.build / TESTS


def plant(folder, file, texts):
    """A folder to include from first, where in `file` of the kernels each old text of `texts` is the new one."""
    whole = (ROOT / KERNELS / file).read_text(encoding="utf-8")
    for old, new in texts:
        if whole.count(old) != 1:
            sys.exit(f"{KERNELS}/{file} has no longer what is to be changed, once: {old.strip()}: adapt PLANTED in "
                     f"{__file__}")
        whole = whole.replace(old, new)
    copy = folder / pathlib.Path(KERNELS).relative_to("src") / file
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(whole, encoding="utf-8")
    return folder


def look_for_planted(arguments):
    """What was left out, and how many tests failed then, of each planted race."""
    for number, race in enumerate(PLANTED):
        if arguments.planted:
            program = arguments.planted[number]
        else:
            planted = plant(arguments.build / f"planted{number}", race.file, race.texts)
            program = build(arguments, race.objects, NVCC_PREPEND_FLAGS=f"-I{planted}")
        ran, wrong = wrong_tests(arguments, program, race.tests)
        failed = sum("failed" in bad or "stopped" in bad for bad in wrong.values())
        print(f"without {race.what}: {failed} of {ran} tests failed or did not end", flush=True)
        yield race.what, failed
        if not arguments.planted:
            build(arguments, race.objects)  # whole again


def tests_of(program, which):
    _, said = run([program, f"--gtest_filter={which}", "--gtest_list_tests"])
    suite, names = "", []
    for line in said.splitlines():
        if line.startswith("  "):
            names.append(suite + line.split("#")[0].strip())
        elif line.split("#")[0].strip().endswith("."):
            suite = line.split("#")[0].strip()
    return names or sys.exit(f"{said[-3000:]}\nno such test: {which}")


def try_one(arguments, program, round_number, name):
    """What is wrong with one test: "" where nothing is, None where it was not reached; and what it said."""
    left = arguments.ends - time.monotonic()
    if left <= 0:
        return None
    tool = ["compute-sanitizer", "--tool", arguments.under] if arguments.under else []
    tool += ["--racecheck-report", "all", "--print-limit", "400"] if arguments.under == "racecheck" else []
    began = time.monotonic()
    done, said = run([*tool, program, f"--gtest_filter={name}"], min(arguments.limit, left), OMP_NUM_THREADS="2")
    found = SUMMARY.search(said)
    if done is None and left < arguments.limit:
        wrong = None
    elif done is None:
        wrong = f"stopped after {arguments.limit} s"
    elif "[  SKIPPED ]" in said or not re.search(r"\[  (PASSED|FAILED)  \] 1 test", said):
        wrong = f"did not run: {said.strip()[-300:]}"
    elif "[  FAILED  ]" in said or done.returncode != 0:
        wrong = "failed"
    else:
        wrong = ""
    if wrong is not None and found and any(int(number or 0) for number in found.groups()):
        wrong = f"{wrong or 'passed'}, {found[0]}"
    elif tool and not found and not wrong:
        wrong = f"compute-sanitizer said nothing: {said.strip()[-300:]}"
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        kept = arguments.keep / f"{pathlib.Path(program).name}.{name.replace('/', '.')}.txt"
        kept.write_text(said[-200_000:], encoding="utf-8")
    print(f"round {round_number}  {time.monotonic() - began:6.1f} s  {name}: "
          f"{'not reached' if wrong is None else wrong or 'passed'}", flush=True)
    sides = collections.Counter(
        " | ".join(sorted(f"{access} {line or place}" for access, place, line in SIDE.findall(hazard)))
        for hazard in HAZARD.split(said)[1:])
    for pair, number in sides.most_common(12):
        print(f"          {number} × {pair}", flush=True)
    return wrong


def wrong_tests(arguments, program, which, round_number=1):
    """How many tests ran to their end, and those with which something is wrong."""
    names = tests_of(program, which)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        tried = dict(zip(names, pool.map(lambda name: try_one(arguments, program, round_number, name), names)))
    arguments.missed += sum(wrong is None for wrong in tried.values())
    return sum(wrong is not None for wrong in tried.values()), {name: wrong for name, wrong in tried.items() if wrong}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-delayed")
    parser.add_argument("--tests", type=pathlib.Path, help="a built unit_gpu_ops to run, with delays or for --under")
    parser.add_argument("--planted", type=pathlib.Path, nargs=len(PLANTED),
                        help="built unit_gpu_ops with delays, each with its planted race")
    parser.add_argument("--under", choices=["memcheck", "racecheck", "synccheck"])
    parser.add_argument("--only", default=ALL, metavar="FILTER", help="gtest's filter")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="for what each test said")
    parser.add_argument("--limit", type=float, default=600, help="seconds a test")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for all; tests that have not ended by "
                        "then count as not reached")
    arguments = parser.parse_args()
    arguments.ends, arguments.missed = time.monotonic() + arguments.seconds, 0
    arguments.build = arguments.build.resolve()
    if arguments.under and not arguments.tests:
        parser.error("--under needs --tests: a program without delays")
    if not arguments.tests and not (arguments.build / "build.ninja").exists():
        done, said = run(["meson", "setup", arguments.build, *SETUP])
        if done.returncode != 0:
            sys.exit(said)
    program = arguments.tests or build(arguments)
    found = [] if arguments.under or (arguments.tests and not arguments.planted) else list(look_for_planted(arguments))
    ran = 0
    wrong: list = []
    for number in range(1, 2 if arguments.under else arguments.rounds + 1):
        if number > 1 and time.monotonic() > arguments.ends:
            break
        tests, bad = wrong_tests(arguments, program, arguments.only, number)
        ran, wrong = ran + tests, wrong + sorted(bad.items())
    print("\n".join(f"{name}: {what}" for name, what in wrong))
    how = (f"under {arguments.under}" if arguments.under
           else f"with delays at waits and arrivals, {arguments.rounds} rounds")
    proof = "".join(f"; without {what} {failed}" for what, failed in found)
    print(f"for the ledger: | tests of flash_wgmma and flash_mma {how} | `python3 "
          f"tools/long/delayed_kernels.py`{' --under ' + arguments.under if arguments.under else ''} | {len(wrong)} of "
          f"{ran} failed{f', {arguments.missed} not reached' * bool(arguments.missed)}{proof} |")
    return 1 if wrong or any(failed == 0 for _, failed in found) else 0


if __name__ == "__main__":
    sys.exit(main())
