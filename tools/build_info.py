#!/usr/bin/env python3
"""Writes build_info.cpp: version, git revision, compiler. Called by Meson; touches the file only when it changes."""
import hashlib
import json
import subprocess
import sys

output, source_root, version, compiler, flags, build_type, cuda = sys.argv[1:]


def git(*arguments):
    try:
        done = subprocess.run(["git", "-C", source_root, *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


sha = git("rev-parse", "HEAD") or "unknown"
dirty = "true" if git("status", "--porcelain", "--untracked-files=no") else "false"
# Of a tree with changes, which ones: two builds of one revision are the same code only if this agrees. A repository
# without a commit has nothing to differ from.
diff = hashlib.sha256((git("diff", "HEAD", "--binary") or "").encode()).hexdigest() if dirty == "true" else ""
quote = json.dumps
text = f"""// Written by tools/build_info.py.
#include "core/build_info.hpp"

#include <nlohmann/json.hpp>

namespace syslab {{

const BuildInfo& build_info() {{
  static const BuildInfo info{{
      {quote(version)}, {quote(sha)}, {dirty}, {quote(compiler)}, {quote(flags)},
      {quote(build_type)}, {cuda}, {quote(diff)}}};
  return info;
}}

Json to_json(const BuildInfo& info) {{
  return {{{{"version", info.version}},
          {{"git_sha", info.git_sha}},
          {{"git_dirty", info.git_dirty}},
          {{"compiler", info.compiler}},
          {{"flags", info.flags}},
          {{"build_type", info.build_type}},
          {{"cuda", info.cuda}},
          {{"git_diff", info.git_diff}}}};
}}

}}  // namespace syslab
"""
try:
    with open(output, encoding="utf-8") as file:
        unchanged = file.read() == text
except OSError:
    unchanged = False
if not unchanged:
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)
