"""libsyslab.so exports what syslab.h declares, and nothing else.

    exported_symbols.py libsyslab.so syslab.h
"""
import re
import subprocess
import sys

library, header = sys.argv[1:]
listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
exported = {line.split()[-1] for line in listing.splitlines()}
declared = set(re.findall(r"SYSLAB_API [^;(]*?\b(syslab_\w+)\(", open(header, encoding="utf-8").read()))

for name in sorted(exported - declared):
    print(f"exported but not declared: {name}")
for name in sorted(declared - exported):
    print(f"declared but not exported: {name}")
print(f"{len(exported)} exported, {len(declared)} declared")
sys.exit(0 if exported == declared and declared else 1)
