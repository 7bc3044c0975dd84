"""Unpacks a zip that somebody handed in: SYSLAB_ZIP=FILE.zip python3 syslab_unzip.py FOLDER

Everything is looked at before anything is written. What leaves the folder, is a link or a device, is encrypted, or is
more than a submission has, is refused: one line on standard output that says what was found, and exit code 3. What an
entry declares is not believed: bytes are counted while they are written.
"""
from __future__ import annotations

import os
import resource
import stat
import sys
import zipfile

MOST_FILES = 10_000
MOST_BYTES = 1 << 30
MOST_ZIP_BYTES = 1 << 30
MOST_MEMORY = 2 << 30
PIECE = 1 << 20


class Refused(Exception):
    pass


def quoted(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "…")


def parts_of(entry: zipfile.ZipInfo) -> list[str]:
    """The folders and the name; Refused where they lead out."""
    name = entry.filename
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if "\\" in name:
        raise Refused(f"its entry {quoted(name)} has a '\\' in its path; folders are expected to end with '/'")
    if name.startswith("/") or "\0" in name or (len(name) > 1 and name[1] == ":") or ".." in parts:
        raise Refused(f"its entry {quoted(name)} leaves the folder that it is unpacked into")
    if len(parts) > 32 or any(len(part.encode("utf-8", "replace")) > 255 for part in parts):
        raise Refused(f"its entry {quoted(name)} has a path longer than any file system takes")
    return parts


def look_at(archive: zipfile.ZipFile) -> dict[tuple[str, ...], zipfile.ZipInfo]:
    entries = archive.infolist()
    if len(entries) > MOST_FILES:
        raise Refused(f"it has {len(entries)} entries; a submission has at most {MOST_FILES}")
    declared = sum(entry.file_size for entry in entries)
    if declared > MOST_BYTES:
        raise Refused(f"it unpacks to {declared / 1e9:.1f} GB; a submission has at most {MOST_BYTES / 1e9:.1f} GB")
    wanted: dict[tuple, zipfile.ZipInfo] = {}
    folders: set[tuple] = set()
    for entry in entries:
        parts = parts_of(entry)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind == stat.S_IFLNK:
            raise Refused(f"its entry {quoted(entry.filename)} is a symbolic link")
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise Refused(f"its entry {quoted(entry.filename)} is neither a file nor a folder")
        if entry.flag_bits & 1:
            raise Refused(f"its entry {quoted(entry.filename)} is encrypted")
        if not parts or parts[0] == "__MACOSX":
            continue
        if tuple(parts) in wanted and not entry.is_dir():
            raise Refused(f"its entry {quoted(entry.filename)} is there twice")
        wanted[tuple(parts)] = entry
        folders.update(tuple(parts[:depth]) for depth in range(1, len(parts) + entry.is_dir()))
        # A path makes its folders: each takes as long to make and to remove as a file.
        if len(folders) > MOST_FILES:
            raise Refused(f"its paths make more than {MOST_FILES} folders; a submission has fewer")
    return wanted


def unpack(archive: zipfile.ZipFile, wanted: dict[tuple[str, ...], zipfile.ZipInfo], folder: str) -> None:
    written = 0
    for parts, entry in wanted.items():
        target = os.path.join(folder, *parts)
        if entry.is_dir():
            os.makedirs(target, mode=0o700, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with archive.open(entry) as source, open(target, "xb") as out:
            while piece := source.read(PIECE):
                written += len(piece)
                if written > MOST_BYTES:
                    raise Refused(f"it unpacks to more than the {MOST_BYTES / 1e9:.1f} GB that a submission may have")
                out.write(piece)


def main() -> int:
    path, [folder] = os.environ["SYSLAB_ZIP"], sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    try:
        if os.path.getsize(path) > MOST_ZIP_BYTES:
            raise Refused(f"it has {os.path.getsize(path) / 1e9:.1f} GB; a submission has at most "
                          f"{MOST_ZIP_BYTES / 1e9:.1f} GB")
        with zipfile.ZipFile(path) as archive:
            unpack(archive, look_at(archive), folder)
    except Refused as why:
        print(why)
        return 3
    except MemoryError:
        print("its table of contents does not fit into memory")
        return 3
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, OSError, EOFError,
            ValueError) as why:
        print(f"it cannot be unpacked: {why}".split("\n", maxsplit=1)[0])
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
