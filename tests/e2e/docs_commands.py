"""Runs what a page of docs/ tells its reader to run: every ```sh block, in order, in a folder that looks like the checkout.

    docs_commands.py PAGE ROOT BUILD

The lines of a "```text printed" block must stand in what the block before it printed, "…" being anything.
A block whose first line is `# file: NAME` is written to NAME first. "```sh exits=N" ends with that exit code instead of 0,
"```sh exits=N,M" with one of these (a verdict that a busy machine may not reach). "```sh gpu" is left out, saying so, where
torch sees no GPU or there is no nvcc.
Lines that build (ninja, meson) are left out: the build is there. SYSLAB_DOCS_CASES makes searches shorter than written,
SYSLAB_DOCS_BUDGET comparisons whose answer may be "unclear": beside other tests they would go on to their last minute;
SYSLAB_DOCS_ONLY=gpu runs the blocks that need a GPU alone, on a machine that has a bundle and no checkout, say.
Exits 77 where python3 has no torch, which the pages use.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import share

page, root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
python = os.environ.get("SYSLAB_PYTHON", sys.executable)
if not share.is_in_turn(page.name):
    print(f"SKIP: not the turn of {page.name}; SYSLAB_SHARE=all runs all")
    sys.exit(77)
# Looked for, not imported: an import takes more than a second of a processor, on each page.
if subprocess.run([python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"]).returncode != 0:
    print(f"SKIP: {python} has no torch")
    sys.exit(77)

# Asked only where a page has a block for it and the machine a toolkit and a driver.
has_gpu = ("```sh gpu" in page.read_text(encoding="utf-8") and shutil.which("nvcc") is not None and os.path.exists("/dev/nvidiactl")
           and "True" in subprocess.run([python, "-c", "import torch; print(torch.cuda.is_available())"], capture_output=True, text=True).stdout)

BLOCK = re.compile(r"^```(\w+)( gpu)?(?: exits=([\d,]+))?( printed)?\n(.*?)^```$", re.M | re.S)
ran, left_out, said = 0, 0, ""
with tempfile.TemporaryDirectory(prefix="syslab_docs_") as name:
    folder = pathlib.Path(name)
    for entry in root.iterdir():
        if entry.is_dir() and not entry.name.startswith((".", "build")):
            (folder / entry.name).symlink_to(entry)
    (folder / "build").symlink_to(build)
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(python)
    environment = {key: value for key, value in os.environ.items() if key not in ("SYSLAB_DB", "SYSLAB_LIBRARY")}
    environment |= {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "NO_COLOR": "1", "SYSLAB_PYTHON": python,
                    "PYTHONDONTWRITEBYTECODE": "1",
                    # containers run this as root, which Open MPI wants to be told twice
                    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    for language, gpu, code, printed, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        head = text.splitlines()[0] if text else ""
        if head.startswith("# file: "):
            (folder / head[len("# file: "):]).write_text(text, encoding="utf-8")
            continue
        if printed:
            for line in text.splitlines():
                if not re.search(".*".join(map(re.escape, line.split("…"))), said):
                    print(f"FAILED: the page says that this is printed: {line}")
                    sys.exit(1)
        if language != "sh":
            continue
        if gpu and not has_gpu:
            left_out += 1
            continue
        if not gpu and os.environ.get("SYSLAB_DOCS_ONLY") == "gpu":
            continue
        lines = [line for line in text.splitlines() if not line.startswith(("ninja ", "meson "))]
        if "SYSLAB_DOCS_CASES" in os.environ:
            few = os.environ["SYSLAB_DOCS_CASES"]
            lines = [re.sub(r" --cases \d+", "", line) for line in lines]
            lines = [re.sub(r"(syslab check (?!.*--until).*)$", rf"\1 --cases {few}", line) for line in lines]
        if "SYSLAB_DOCS_BUDGET" in os.environ and "5" in (code or "").split(","):
            short = rf"\1 --budget {os.environ['SYSLAB_DOCS_BUDGET']}"
            whole = re.sub(r"(syslab (?:claim|compare|verify)\b)(?!(?:.|\\\n)*--budget)", short, "\n".join(lines))
            lines = whole.split("\n")
        done = subprocess.run(["bash", "-e", "-c", "\n".join(lines)], cwd=folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=500)
        said = done.stdout
        print("$ " + "\n$ ".join(lines) + "\n" + done.stdout[-3000:], flush=True)
        if done.returncode not in map(int, (code or "0").split(",")):
            print(f"FAILED: exit code {done.returncode}, the page says {code or 0}")
            sys.exit(1)
        ran += 1
print(f"{ran} blocks of {page.name} run as written" + (f", {left_out} left out: no GPU" if left_out else ""))
sys.exit(0 if ran else 1)
