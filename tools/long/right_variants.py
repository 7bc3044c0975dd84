#!/usr/bin/env python3
"""Right variants of attention under many times as many inputs as their test draws: none may be accused.

    python3 tools/long/right_variants.py build [--times 50] [-k WORD]

Runs tests/capi/laws_right_variants of the build folder (its 24 libraries must be built, too: `ninja -C build`), one
variant after the other, and tells what each took. --times 50 draws 300 inputs a law, contract and pass. Exit code 1: a
law accused one, or none was there.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("-k", default="", metavar="WORD", help="only variants whose name holds this")
    arguments = parser.parse_args()
    plugins = arguments.build.resolve() / "tests" / "fixtures" / "plugins"
    program = arguments.build.resolve() / "tests" / "capi" / "laws_right_variants"
    names = sorted(path.stem.removeprefix("right_") for path in plugins.glob("right_*.so") if arguments.k in path.stem)
    if not names or not program.exists():
        sys.exit(f"{arguments.build} has no {program.name} with libraries to search: ninja -C {arguments.build}")
    environment = {**os.environ, "SYSLAB_PLUGINS": str(plugins), "SYSLAB_LAW_TIMES": str(arguments.times),
                   "OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1"}
    accused = 0
    for name in names:
        begin = time.monotonic()
        done = subprocess.run([program, f"--gtest_filter=All/RightVariant.*/{name}"], env=environment, text=True,
                              capture_output=True)
        held = done.returncode == 0 and "[  PASSED  ] 1 test." in done.stdout
        accused += not held
        print(f"{'held' if held else 'ACCUSED'}  {name}  {time.monotonic() - begin:.0f} s", flush=True)
        if not held:
            print(done.stdout[-4000:] + done.stderr[-1000:], flush=True)
    print(f"{len(names) - accused} of {len(names)} held, {arguments.times} times the test's inputs")
    return 1 if accused else 0


if __name__ == "__main__":
    sys.exit(main())
