#!/usr/bin/env python3
"""Kernels that overlap with the one before them (src/device/cuda/overlap.cuh) make no loads that the compiler may
move in front of their wait.

    overlapped_loads.py ROOT         exit 1 and a line for each that may
    overlapped_loads.py --self-test

Such loads come from `__restrict__`, __ldg() and ld.global.nc. Read are all files of CUDA under src/ that wait for
kernels before, and all *.cuh there, which such files may include. Comments are not read.
"""
import pathlib
import re
import sys

WAITS = "wait_for_kernels_before"
FREE = re.compile(r"__restrict(?:__)?\b|\b__ldg\b|\bld\.global[\w.:]*\.nc\b")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def without_comments(text):
    return COMMENT.sub(lambda found: "\n" * found.group().count("\n"), text)


def faults_of(name, text):
    code = without_comments(text)
    if not name.endswith(".cuh") and WAITS not in code:
        return []
    return [f"{name}:{number}: {found.group()} in a kernel that overlaps: the load may move in front of {WAITS}(); "
            "leave it out (src/device/cuda/overlap.cuh)"
            for number, line in enumerate(code.splitlines(), 1) for found in FREE.finditer(line)]


def self_test():
    waits = f"  ptx::{WAITS}();\n"
    for line in ("f(const T* __restrict__ x)", "y = __ldg(x);", 'asm("ld.global.nc.f32 %0, [%1];"',
                 'asm("ld.global.L1::evict_last.nc.b32"'):
        assert len(faults_of("a.cu", f"/* one\ntwo */ // three\n{line}\n{waits}")) == 1, line
    assert faults_of("a.cu", f"\n\n__ldg(x)\n{waits}")[0].startswith("a.cu:3: ")
    assert faults_of("a.cuh", "__ldg(x)")
    assert not faults_of("a.cu", "__ldg(x)"), "ordinary launches wait by themselves"
    assert not faults_of("a.cu", f"// {WAITS}\n__ldg(x)"), "a comment waits for nothing"
    assert not faults_of("a.cu", f"// no __restrict__\n{waits}")
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1])
    files = sorted(file for file in (root / "src").rglob("*") if file.suffix in (".cu", ".cuh"))
    texts = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}
    faults = [fault for name, text in texts.items() for fault in faults_of(name, text)]
    waiting = sum(WAITS in without_comments(text) for text in texts.values())
    print("\n".join([*faults, f"overlapped_loads: {len(texts)} files, {waiting} of them wait, {len(faults)} loads that "
                     "may move"]))
    return 1 if faults or waiting == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
