"""A shared library of the distribution that asks for a newer glibc than it uses anything of: its symbols moved from
libpthread and libdl into libc with 2.34, and were given that version, while the older one stays. The copy asks for the
older one."""
import struct
import subprocess
from dataclasses import dataclass

from stubs import ONCE_APART, number, text


@dataclass
class Need:
    at: int  # where in the file it stands
    index: int  # what symbols call it
    version: str


def sections(data):
    if data[:6] != b"\x7fELF\x02\x01":
        raise SystemExit("older_glibc: libraries are read of 64 bits, the lowest first")
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + size * each) for each in range(count)]
    base = headers[names][4]
    return {data[base + h[0]:data.index(b"\0", base + h[0])].decode(): (h[4], h[5]) for h in headers}


def elf_hash(name):
    value = 0
    for letter in name.encode():
        value = (value << 4) + letter
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def string(data, at):
    return data[at:data.index(b"\0", at)].decode()


def needs(data, parts):
    """[[Need]], those of one library together."""
    at, strings = parts[".gnu.version_r"][0], parts[".dynstr"][0]
    while True:
        _, count, _, first, following = struct.unpack_from("<HHIII", data, at)
        group, entry = [], at + first
        for _ in range(count):
            _, _, index, name, step = struct.unpack_from("<IHHII", data, entry)
            group.append(Need(entry, index, string(data, strings + name)))
            entry += step
        yield group
        if not following:
            return
        at += following


def newer(need, newest):
    return need.version.startswith("GLIBC_2") and number(need.version[6:]) > newest


def lower(library, offered, newest):
    """Changes the file `library`. `offered`: what glibc had at `newest`, as stubs.at_most tells it."""
    data = bytearray(library.read_bytes())
    parts = sections(data)
    if ".gnu.version_r" not in parts or not any(newer(need, newest) for group in needs(data, parts) for need in group):
        return
    symbols, versions, strings = parts[".dynsym"], parts[".gnu.version"][0], parts[".dynstr"][0]
    wanted = set()

    def older(place):
        name = string(data, strings + struct.unpack_from("<I", data, symbols[0] + 24 * place)[0])
        if name not in offered:
            raise SystemExit(f"older_glibc: {library.name} needs {name}, which glibc {'.'.join(map(str, newest))} does "
                             "not have")
        return text(offered[name][0])

    used = [struct.unpack_from("<H", data, versions + 2 * place)[0] for place in range(symbols[1] // 24)]
    for group in needs(data, parts):
        bad = {need.index for need in group if newer(need, newest)}
        wanted |= {older(place) for place, index in enumerate(used) if index in bad}
    # patchelf leaves the words of what it added: these are the names of versions that the file did not have yet.
    words = [word for version in sorted(wanted) for word in ("--add-needed", version)]
    subprocess.run(["patchelf", *words, library], check=True)
    subprocess.run(["patchelf", *[word.replace("add", "remove") for word in words], library], check=True)
    subprocess.run(["patchelf", *[word for name in ONCE_APART for word in ("--add-needed", name)], library], check=True)
    data = bytearray(library.read_bytes())
    parts = sections(data)
    symbols, versions, (strings, length) = parts[".dynsym"], parts[".gnu.version"][0], parts[".dynstr"]
    for group in needs(data, parts):
        free = [need for need in group if newer(need, newest)]
        if not free:
            continue
        bad = {need.index for need in free}
        index_of = {need.version: need.index for need in group if need not in free}
        for place, index in enumerate(used):
            if index not in bad:
                continue
            version = older(place)
            if version not in index_of:
                if not free:
                    raise SystemExit(f"older_glibc: {library.name} has no room for {version}")
                rename(data, free[0], version, strings, length)
                index_of[version] = free.pop(0).index
            struct.pack_into("<H", data, versions + 2 * place, index_of[version])
        for need in free:  # nobody uses it any more: the same as another, which the loader does not mind
            rename(data, need, next(iter(index_of)), strings, length)
    library.write_bytes(data)


def rename(data, need, version, strings, length):
    at = data.find(b"\0" + version.encode() + b"\0", strings, strings + length)
    if at < 0:
        raise SystemExit(f"older_glibc: the name {version} did not stay in the library")
    struct.pack_into("<I", data, need.at, elf_hash(version))
    struct.pack_into("<I", data, need.at + 8, at + 1 - strings)
    need.version = version
