"""Calls nvcc (the arguments) and fails, leaving no object, where ptxas says that a kernel keeps registers in memory or
that asynchronous products of a warpgroup were made to wait for each other: such a kernel is right, and slow unseen.

    python3 tools/nvcc_strict.py nvcc -Xptxas=-v … -c kernel.cu -o kernel.o

The messages are ptxas's of CUDA 13.0: "N bytes stack frame, N bytes spill stores, N bytes spill loads", which -v prints
for each function, and warnings C75xx about setmaxnreg and wgmma. Any other warning fails as well.
"""
import os
import re
import subprocess
import sys

SPILL = re.compile(r"([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads")


def complaints(text):
    """Why the object is not good enough: lines of what ptxas said, each with the function it was said of."""
    found, function, reports = [], "?", 0
    for line in text.splitlines():
        if "Function properties for" in line:
            function = line.rsplit(" ", 1)[-1]
        if spilled := SPILL.search(line):
            reports += 1
            if any(int(count) > 0 for count in spilled.groups()):
                found.append(f"{function}: {line.strip()}")
        if "warning" in line.lower() or re.search(r"\bC75[0-9]{2}\b", line):
            found.append(line.strip())
    if reports == 0:
        found.append("ptxas reported on no kernel: is -Xptxas=-v among the arguments?")
    return found


def main():
    done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.stdout.write(done.stdout)
        return done.returncode
    if "-DSYSLAB_" in os.environ.get("NVCC_APPEND_FLAGS", ""):
        return 0  # kernels for a search for races, in no hurry (tools/long/delayed_kernels.py)
    found = complaints(done.stdout)
    if not found:
        return 0
    print("\n".join(found))
    print("nvcc_strict: registers in memory or products in line: use a smaller tile, or let the kernel keep less")
    if "-o" in sys.argv:
        os.remove(sys.argv[sys.argv.index("-o") + 1])
    return 1


if __name__ == "__main__":
    sys.exit(main())
