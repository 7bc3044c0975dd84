#!/usr/bin/env python3
"""make_wheel.py BUNDLE VERSION FOLDER: a wheel of what tools/bundle made, written into FOLDER. Prints its name.

The wheel holds the bundle as it is (syslab/lab), a command `syslab` that starts the program in it, and a path file by
which `import syslab_torch` finds the bundle's. It has no compiled extension, so that one wheel serves every Python 3.
Format: PEP 427 and the platform tags of PEP 600.
"""
import base64
import hashlib
import pathlib
import platform
import re
import stat
import sys
import zipfile

INIT = '''"""syslab: a laboratory for the systems side of language-model training.

`syslab --help`, or python3 -m syslab."""
import pathlib

__version__ = "{version}"
LAB = pathlib.Path(__file__).resolve().parent / "lab"
'''

MAIN = '''"""Starts the program, which takes this Python for Python files unless SYSLAB_PYTHON names another."""
import os
import sys

from syslab import LAB


def main():
    os.environ.setdefault("SYSLAB_PYTHON", sys.executable)
    os.execv(LAB / "syslab", ["syslab", *sys.argv[1:]])


if __name__ == "__main__":
    main()
'''

METADATA = """Metadata-Version: 2.1
Name: syslab
Version: {version}
Summary: A laboratory for the systems side of language-model training
Requires-Python: >=3.10
License-File: LICENSE
"""

WHEEL = """Wheel-Version: 1.0
Generator: syslab tools/release
Root-Is-Purelib: false
Tag: {tag}
"""

TEXT = stat.S_IFREG | 0o644


def tag_of(bundle):
    found = re.search(r"glibc (\d+)\.(\d+) or newer", (bundle / "README.txt").read_text(encoding="utf-8"))
    if not found:
        sys.exit(f"make_wheel: {bundle}/README.txt does not say which glibc is needed")
    return f"py3-none-manylinux_{found[1]}_{found[2]}_{platform.machine()}"


def contents(bundle, version, tag):
    """(name in the wheel, bytes, mode). Tests of GPUs, and OpenBLAS, which would be two fifths of it, are the
    tarball's."""
    for file in sorted(bundle.rglob("*")):
        inside = file.relative_to(bundle)
        if not file.is_file() or inside.parts[0] == "tests" or inside.name == "libopenblas.so.0":
            continue
        mode = stat.S_IFREG | (0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)
        yield f"syslab/lab/{inside}", file.read_bytes(), mode
    yield "syslab/__init__.py", INIT.format(version=version).encode(), TEXT
    yield "syslab/__main__.py", MAIN.encode(), TEXT
    yield "syslab.pth", b"syslab/lab/python\n", TEXT
    info = f"syslab-{version}.dist-info"
    yield f"{info}/METADATA", METADATA.format(version=version).encode(), TEXT
    yield f"{info}/WHEEL", WHEEL.format(tag=tag).encode(), TEXT
    yield f"{info}/entry_points.txt", b"[console_scripts]\nsyslab = syslab.__main__:main\n", TEXT
    yield f"{info}/LICENSE", (bundle / "LICENSE").read_bytes(), TEXT


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bundle, version, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    tag = tag_of(bundle)
    name = f"syslab-{version}-{tag}.whl"
    record = []
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:

        def add(path, data, mode):
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))  # the same bundle makes the same bytes
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)

        for path, data, mode in contents(bundle, version, tag):
            add(path, data, mode)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
        path = f"syslab-{version}.dist-info/RECORD"
        add(path, "\n".join([*record, f"{path},,", ""]).encode(), TEXT)
    print(name)


if __name__ == "__main__":
    main()
