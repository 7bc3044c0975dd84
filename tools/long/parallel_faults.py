"""How well the laws of data parallelism see right classes and classes with faults.

The right ones are tests/worker/mine/parallel.py and parallel_variants.py and two of parallel_hidden.py, which must be
accused of nothing; some law should find each fault of parallel_faults.py, parallel_states.py, parallel_arguments.py,
parallel_hidden.py and parallel_waits.py.

    python3 tools/long/parallel_faults.py build/syslab [CLASS ...]      (SYSLAB_PYTHON: a Python that has torch)
                                          [--device cuda] [--jobs 8] [--cases 20]

A line a class, with the laws that found it and the first message; then the counts. Exit code 1: a right class was
accused, or fewer than 18 of 20 faults were found. About five seconds a class on a CPU.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from parallel_classes import FAULTS, RIGHT, VARIANTS, file_of  # noqa: E402

GOOD = {**RIGHT, **VARIANTS}


def accusations(syslab, name, folder, options):
    """(law, message) of each law that does not hold."""
    experiment = GOOD.get(name) or FAULTS[name][0]
    mine = f"me={ROOT / 'tests' / 'worker' / 'mine' / file_of(name)}:{name}"
    done = subprocess.run([syslab, "check", experiment, "--mine", mine, "--device", options.device, "--cases",
                           str(options.cases), "--json"],
                          cwd=folder, text=True, capture_output=True,
                          env={**os.environ, "SYSLAB_DB": str(folder / f"{name}.db")})
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    attempts = [line for line in lines if line.get("type") == "attempt"]
    if not attempts:
        sys.exit(f"{name}: {done.stderr.strip()}")
    return [(line["law"], (line["detail"] or line["status"]).splitlines()[0]) for line in attempts
            if line["status"] not in ("ok", "unsupported")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("syslab", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="CLASS")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--jobs", type=int, default=1, metavar="CLASSES", help="at a time")
    parser.add_argument("--cases", type=int, default=20, metavar="INPUTS", help="a law")
    options = parser.parse_args()
    names = options.names or [*GOOD, *FAULTS]
    found, by_its_law, accused = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as workers:
        looked = workers.map(lambda name: accusations(str(options.syslab.resolve()), name, pathlib.Path(folder),
                                                      options), names)
        for name, against in zip(names, looked):
            laws = sorted({law for law, _ in against})
            print(f"{name}: {', '.join(laws) or 'nothing'}" + (f"\n    {against[0][1]}" if against else ""), flush=True)
            accused += name in GOOD and bool(laws)
            found += name in FAULTS and bool(laws)
            by_its_law += name in FAULTS and FAULTS[name][1] in laws
    faults = sum(name in FAULTS for name in names)
    print(f"faults found: {found} of {faults}, by the law that is about them {by_its_law}; right classes accused: "
          f"{accused} of {sum(name in GOOD for name in names)}")
    return int(accused > 0 or found < 0.9 * faults)


if __name__ == "__main__":
    sys.exit(main())
