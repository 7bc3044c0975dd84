"""Libraries to link against that offer what a given older glibc offered, made from this machine's own glibc.

A glibc keeps every symbol that it ever had, each under the version of the release that brought it. What an older
release had is therefore known here: each symbol, at the newest of its versions that is no newer than that release. A
symbol that came later is missing from the stub, and whoever uses it is refused by the linker, by name.
"""
import pathlib
import re
import subprocess

# What were libraries of their own until 2.34: a program for older ones must name them, and finds their symbols there.
ONCE_APART = ("libpthread.so.0", "libdl.so.2", "librt.so.1")
SYMBOL = re.compile(
    r"\s*\d+:\s+\S+\s+(\S+)\s+(FUNC|IFUNC|OBJECT)\s+(?:GLOBAL|WEAK)\s+DEFAULT\s+"
    r"(?!UND|ABS)\S+\s+(\w+)@{1,2}GLIBC_(\d[\d.]*)")


def number(version):
    return tuple(int(part) for part in version.split("."))


def offered(library):
    """[(symbol, version as numbers, is it data, its size)] of a library of this machine's glibc."""
    table = subprocess.run(["readelf", "--dyn-syms", "--wide", library], check=True, capture_output=True,
                           text=True).stdout
    for line in table.splitlines():
        if found := SYMBOL.match(line):
            size, kind, name, version = found.groups()
            yield name, number(version), kind == "OBJECT", int(size, 0)


def at_most(library, newest):
    """{symbol: (version, is it data, size)} of what the library offered at `newest`."""
    kept: dict[str, tuple[tuple, bool, int]] = {}
    for name, version, is_data, size in offered(library):
        if version <= newest and version > kept.get(name, ((),))[0]:
            kept[name] = (version, is_data, size)
    return kept


def text(version):
    return "GLIBC_" + ".".join(map(str, version))


def write_stub(compiler, symbols, soname, folder):
    lines = [".section .note.GNU-stack,\"\",@progbits"]
    for label, (name, (version, is_data, size)) in enumerate(symbols.items()):
        kind = "object" if is_data else "function"
        lines += [".data" if is_data else ".text", ".balign 32", f".globl s{label}", f".type s{label}, %{kind}",
                  f"s{label}:",
                  f".zero {max(size, 8) if is_data else 1}", f".size s{label}, {size}",
                  f".symver s{label}, {name}@@{text(version)}, remove"]
    versions = sorted({version for version, _, _ in symbols.values()})
    before, script = "", []
    for version in versions:
        script.append(f"{text(version)} {{ }} {before};")
        before = text(version)
    source, map_ = folder / (soname + ".s"), folder / (soname + ".map")
    source.write_text("\n".join(lines) + "\n")
    map_.write_text("\n".join(script) + "\n")
    subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{soname}",
                    *([f"-Wl,--version-script={map_}"] if versions else []),
                    "-o", folder / soname, source], check=True)


def write_stubs(compiler, newest, folder):
    """Writes libc, libm and those once apart into `folder`, which -L names. `newest`: (2, 28)."""
    folder.mkdir(parents=True)

    def own(name):
        return subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True,
                              text=True).stdout.strip()

    loader = next(line.split("interpreter: ")[1].rstrip("]") for line in subprocess.run(
        ["readelf", "--program-headers", "--wide", "/proc/self/exe"], check=True, capture_output=True,
        text=True).stdout.splitlines() if "interpreter: " in line)
    for soname, library in (("libc.so.6", own("libc.so.6")), ("libm.so.6", own("libm.so.6")),
                            (pathlib.Path(loader).name, loader)):
        write_stub(compiler, at_most(library, newest), soname, folder)
    for soname in ONCE_APART:
        write_stub(compiler, {}, soname, folder)
        (folder / (soname.split(".so")[0] + ".so")).symlink_to(soname)
    (folder / "libm.so").symlink_to("libm.so.6")
    (folder / "libc.so").write_text(f"GROUP ( libc.so.6 {own('libc_nonshared.a')} AS_NEEDED ( "
                                    f"{pathlib.Path(loader).name} ) )\n")
