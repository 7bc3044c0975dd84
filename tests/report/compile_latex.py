#!/usr/bin/env python3
"""Everything that is written as LaTeX compiles: compile_latex.py PATH_OF_latex_documents [SEED]

Exit 77 where no LaTeX with what reports need is installed (Debian: texlive-latex-base texlive-latex-recommended
texlive-science).
"""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
ON_OUR_PAGE = ("names", "report")  # the others: a page of somebody else's, and texts with no place to break a line at


def engine():
    for name in ("pdflatex", "lualatex"):
        if shutil.which(name):
            return name
    return None


def has_packages():
    find = shutil.which("kpsewhich")
    names = ("booktabs.sty", "siunitx.sty", "longtable.sty")
    return find is not None and all(
        subprocess.run([find, name], capture_output=True, check=False).returncode == 0 for name in names)


def compile_in(folder, program, name):
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", f"{name}.tex"]
    made = subprocess.run(command, cwd=folder, capture_output=True, timeout=240, check=False)
    log = (folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
    if made.returncode != 0:
        at = log.find("\n!")
        print(f"{name}.tex does not compile:\n{log[max(at, 0):][:2000]}")
        return False
    pages = log[log.rfind("Output written on"):].split("\n")[0]
    missing = [line for line in log.splitlines() if line.startswith("Missing character")]
    if missing:
        print(f"{name}.tex: the fonts lack characters that should read U+…:\n" + "\n".join(missing[:5]))
        return False
    too_wide = [line for line in log.splitlines() if line.startswith("Overfull \\hbox")] if name in ON_OUR_PAGE else []
    if too_wide:
        print(f"{name}.tex: runs over its column or page:\n" + "\n".join(too_wide[:5]))
        return False
    print(f"{name}.tex: {pages}")
    return True


def main():
    program = engine()
    if program is None or not has_packages():
        print("skipped: no pdflatex or lualatex with booktabs, siunitx and longtable here")
        return SKIP
    seed = sys.argv[2] if len(sys.argv) > 2 else str(random.SystemRandom().randrange(1 << 31))
    print(f"{program}, seed {seed}")
    with tempfile.TemporaryDirectory(prefix="syslab-latex-") as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.argv[1], name, seed], check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        results = [compile_in(folder, program, document)
                   for document in ("bare", "handin", "names", "report", "strings")]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
