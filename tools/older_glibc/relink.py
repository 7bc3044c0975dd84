#!/usr/bin/env python3
"""relink.py BUILD FOLDER GLIBC: links the program and the library of a build again, so that they run where glibc is as
old as GLIBC (2.28).

  FOLDER/syslab, FOLDER/lib/libsyslab.so.0 and the shared libraries that these need beside glibc

Nothing is compiled again. What objects say is which symbols they use; which versions of these the program then asks of
glibc, the linker takes from the libraries that it is given. So it is given stubs of the older glibc (stubs.py); what
that does not have yet comes with us (older_glibc.c), and what else was built against the newer one is linked in:
libstdc++, libfmt, SQLite, libsodium, OpenMP of the program. What stays a shared library is lowered (lower.py). The
layouts of glibc's types never changed.

OpenBLAS, which is opened at run time, is linked from its archive, with the five functions that are looked up in it.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import lower
import stubs

HERE = pathlib.Path(__file__).resolve().parent
STAYS = re.compile(r"lib(c|m|pthread|dl|rt|mvec)\.so|ld-linux|linux-vdso")
BLAS = ("cblas_sgemm", "cblas_dgemm", "openblas_set_num_threads", "openblas_get_config", "openblas_get_corename")


def run(words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        wants = sorted(set(re.findall(r"undefined reference to [`'](.*)'", done.stderr)))
        why = "undefined: " + ", ".join(wants) if wants else done.stderr[-3000:]
        raise SystemExit(f"older_glibc: {pathlib.Path(words[0]).name} failed: {why}")
    return done.stdout


def command_of(build, target):
    words = shlex.split(run(["ninja", "-t", "commands", "-s", target], cwd=build))
    while words and pathlib.Path(words[0]).name == "ccache":
        del words[0]
    if "-o" not in words or any(word.startswith("@") for word in words):
        raise SystemExit(f"older_glibc: {build} does not say how it links {target}")
    return words


class Relinked:
    def __init__(self, build, folder, newest, making):
        self.build, self.folder, self.newest, self.making = build, folder, newest, making
        self.compiler = command_of(build, "syslab")[0]
        stubs.write_stubs(self.compiler, newest, making / "stubs")
        self.offered = stubs.at_most(self.own("libc.so.6"), newest)
        self.late = self.objects()

    def own(self, name):
        """A file of the compiler's or the machine's, or None."""
        path = run([self.compiler, f"-print-file-name={name}"]).strip()
        return path if os.path.isabs(path) else None

    def objects(self):
        """{is it a shared library: what comes along}, beside libfmt."""
        made = {}
        for shared in (False, True):
            made[shared] = self.making / f"older_glibc{shared:d}.o"
            run([self.compiler, "-x", "c", "-O2", "-fPIC", "-fno-builtin", "-fvisibility=hidden",
                 *["-DSYSLAB_SHARED"] * shared, "-c",
                 HERE / "older_glibc.c", "-o", made[shared]])
        self.fmt = self.making / "fmt.o"
        run([self.compiler, "-std=c++20", "-O2", "-fPIC", "-c", HERE / "fmt.cpp", "-o", self.fmt])
        return made

    def linking(self, shared):
        """What every link begins with: names of stubs first, so that no other glibc is found."""
        return [f"-L{self.making / 'stubs'}", "-static-libstdc++", "-static-libgcc", self.late[shared],
                *([] if shared else ["-Wl,--wrap=__libc_start_main"]),
                "-Wl,--push-state,--no-as-needed", "-lpthread", "-ldl", "-lrt", "-Wl,--pop-state"]

    def link(self, target, output):
        words, taken = command_of(self.build, target), []
        shared = "-shared" in words
        for word in words[1:]:
            archive = pathlib.Path(word).with_suffix(".a")
            if word == "-fopenmp" and not shared:  # its archive cannot go into a library
                word = self.own("libgomp.a") or word
            elif pathlib.Path(word).name == "libfmt.so":
                word = self.fmt
            # Which nothing newer is asked of.
            elif word.endswith(".so") and archive.is_file() and archive.stem != "libseccomp":
                word = archive
            taken.append(word)
        taken[taken.index("-o") + 1] = output
        first = taken.index("-Wl,--start-group") if "-Wl,--start-group" in taken else 2
        run([words[0], *taken[:first], *self.linking(shared), *taken[first:]], cwd=self.build)
        self.take_libraries(output)

    def link_openblas(self):
        archive = self.own("libopenblas.a")
        if not archive:
            return
        (self.making / "blas.map").write_text(f"{{ global: {'; '.join(BLAS)}; local: *; }};\n")
        output = self.folder / "lib/libopenblas.so.0"
        run([self.compiler, "-shared", "-o", output, f"-Wl,-soname,{output.name},--no-undefined,--gc-sections",
             f"-Wl,--version-script,{self.making / 'blas.map'}", *(f"-Wl,-u,{name}" for name in BLAS),
             *self.linking(True), archive, "-lm"])

    def take_libraries(self, file):
        for line in run(["ldd", file]).splitlines():
            name, _, path = line.strip().partition(" => ")
            path = path.split(" (")[0]
            kept = self.folder / "lib" / name
            if STAYS.match(name) or not path or kept.exists():
                continue
            if not os.path.isabs(path):
                raise SystemExit(f"older_glibc: {file.name} needs {name}, which is not found here")
            shutil.copy(path, kept)
            kept.chmod(0o755)
            lower.lower(kept, self.offered, self.newest)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    build, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    newest = stubs.number(sys.argv[3])
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as making:
        relinked = Relinked(build, folder, newest, pathlib.Path(making))
        relinked.link("syslab", folder / "syslab")
        library = (build / "src/capi/libsyslab.so").resolve()
        relinked.link(str(library.relative_to(build)), folder / "lib/libsyslab.so.0")
        relinked.link_openblas()


if __name__ == "__main__":
    main()
