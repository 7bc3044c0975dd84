#!/usr/bin/env python3
"""Whether RapidCheck is the one whose private half src/check/search.cpp was written for.

    tools/rapidcheck_pin.py [COMPILER]      exit 1 if the installed headers are others; default: c++

RapidCheck has no versions, and its namespace rc::detail may change with each revision. The search stands on it:
budgets, listeners, paths of shrinking. So its headers are pinned by their digest. If they change, run the tests `check`
and `laws_mutants`, and then put the new digest here.
"""
import hashlib
import pathlib
import shlex
import subprocess
import sys

KNOWN = {
    "682ca9614b6b4940": "upstream revision 08b5058, librapidcheck-dev 0~1033-08b5058-3 of Debian 12",
}
INCLUDES = "#include <rapidcheck.h>\n#include <rapidcheck/detail/TestListenerAdapter.h>\n"


def headers(compiler: str) -> list[pathlib.Path]:
    made = subprocess.run([*shlex.split(compiler), "-std=c++20", "-M", "-x", "c++", "-"], input=INCLUDES, text=True,
                          capture_output=True)
    if made.returncode != 0:
        sys.exit(f"error: {compiler} does not find RapidCheck; expected the package librapidcheck-dev\n{made.stderr}")
    names = made.stdout.replace("\\\n", " ").split()
    return sorted(pathlib.Path(name) for name in names if "/rapidcheck/" in name or name.endswith("/rapidcheck.h"))


def digest(files: list[pathlib.Path]) -> str:
    whole = hashlib.sha256()
    for file in files:
        whole.update(file.name.encode() + b"\0" + file.read_bytes())
    return whole.hexdigest()[:16]


def main() -> int:
    found = headers(sys.argv[1] if len(sys.argv) > 1 else "c++")
    pin = digest(found)
    if pin not in KNOWN:
        print(f"error: RapidCheck's {len(found)} headers have the digest {pin}; expected {', '.join(KNOWN)}")
        print("try: the tests check and laws_mutants, then the new digest in tools/rapidcheck_pin.py")
        return 1
    print(f"rapidcheck: {len(found)} headers of {KNOWN[pin]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
