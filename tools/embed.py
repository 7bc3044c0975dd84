#!/usr/bin/env python3
"""Writes a C++ file that holds text files of the source tree: embed.py OUTPUT SOURCE_ROOT FILE..."""
import pathlib
import sys

output, root, files = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
CHUNK = 8000  # compilers limit one literal; adjacent literals are joined


def name_of(file):
    """A family of experiments is a folder for people: experiments/FAMILY/ID/tables/x.sql is
    experiments/ID/tables/x.sql."""
    parts = file.parts
    return "/".join(parts[:1] + parts[2:]) if parts[0] == "experiments" else file.as_posix()


entries = []
for file in sorted((pathlib.Path(f).resolve().relative_to(root) for f in files), key=lambda p: p.as_posix()):
    text = (root / file).read_text(encoding="utf-8")
    if ')~~"' in text:
        sys.exit(f"embed.py: {file} contains the delimiter of its own literal")
    literals = "".join(f'\n     R"~~({text[i:i + CHUNK]})~~"' for i in range(0, max(len(text), 1), CHUNK))
    # Its length: clang will not count so far.
    entries.append(f'    {{"{name_of(file)}",{literals}sv, "{file.as_posix()}"}},\n')

pathlib.Path(output).write_text(f"""// Written by tools/embed.py.
#include "core/resources.hpp"

namespace syslab {{
namespace {{

using namespace std::string_view_literals;

constexpr Resource kResources[] = {{
{"".join(entries)}    {{"", "", ""}},
}};

}}  // namespace

std::vector<Resource> resources(std::string_view prefix) {{
  std::vector<Resource> found;
  for (const Resource& resource : kResources) {{
    if (!resource.path.empty() && resource.path.substr(0, prefix.size()) == prefix) found.push_back(resource);
  }}
  return found;
}}

std::optional<std::string_view> find_resource(std::string_view path) {{
  for (const Resource& resource : kResources) {{
    if (!path.empty() && resource.path == path) return resource.text;
  }}
  return std::nullopt;
}}

}}  // namespace syslab
""", encoding="utf-8")
