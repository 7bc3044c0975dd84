#!/usr/bin/env python3
"""Writes a C++ file that defines one text constant: embed_text.py OUTPUT NAMESPACE SYMBOL FILE"""
import pathlib
import sys

output, namespace, symbol, file = sys.argv[1:]
CHUNK = 8000  # compilers limit one literal; adjacent literals are joined
text = pathlib.Path(file).read_text(encoding="utf-8")
if ')~~"' in text:
    sys.exit(f"embed_text.py: {file} contains the delimiter of its own literal")
literals = "\n".join(f'    R"~~({text[i:i + CHUNK]})~~"' for i in range(0, len(text), CHUNK))
pathlib.Path(output).write_text(f"""// Written by tools/embed_text.py.
namespace {namespace} {{
extern const char* const {symbol};
const char* const {symbol} =
{literals};
}}  // namespace {namespace}
""", encoding="utf-8")
