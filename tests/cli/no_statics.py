"""Rooms that serve what is judged have no statics that are made when the program starts: they work before those are
made.

    no_statics.py FOLDER…      of their objects
"""
import pathlib
import subprocess
import sys

objects = [str(file) for folder in sys.argv[1:] for file in pathlib.Path(folder).rglob("*.o")]
listing = subprocess.run(["nm", "-C", "-A", *objects], check=True, capture_output=True, text=True).stdout
found = sorted({line.split(":")[0] for line in listing.splitlines() if "_GLOBAL__sub_I_" in line})
for name in found:
    print(f"has statics that are made when the program starts: {name}; make them in the function that uses them")
print(f"{len(objects)} objects, {len(found)} with such statics")
sys.exit(0 if objects and not found else 1)
