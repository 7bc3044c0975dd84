// Sources and tools of this binary: filled in by Meson at build time.
#pragma once

#include <string>

#include "core/text/json.hpp"

namespace syslab {

struct BuildInfo {
  std::string version;  // of syslab, "0.1.0"
  std::string git_sha;  // "unknown" outside a checkout
  bool git_dirty = false;
  std::string compiler;  // "gcc 12.2.0"
  std::string flags;
  std::string build_type;  // "release"
  bool cuda = false;       // built with the CUDA toolkit
  std::string git_diff;    // SHA-256 of the changes to tracked files; empty when there are none
};

const BuildInfo& build_info();
Json to_json(const BuildInfo& info);

}  // namespace syslab
