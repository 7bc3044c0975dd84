#!/usr/bin/env python3
"""Writes a C++ file that holds a file's bytes as SYMBOL and their number as SYMBOLBytes: embed_bytes.py OUTPUT
NAMESPACE SYMBOL FILE"""
import pathlib
import sys

output, namespace, symbol, file = sys.argv[1:]
content = pathlib.Path(file).read_bytes()
lines = "\n".join("    " + "".join(f"{byte}," for byte in content[i:i + 32]) for i in range(0, len(content), 32))
pathlib.Path(output).write_text(f"""// Written by tools/embed_bytes.py.
namespace {namespace} {{
extern const unsigned char {symbol}[];
extern const unsigned long {symbol}Bytes;
const unsigned char {symbol}[] = {{
{lines}
}};
const unsigned long {symbol}Bytes = sizeof {symbol};
}}  // namespace {namespace}
""", encoding="utf-8")
