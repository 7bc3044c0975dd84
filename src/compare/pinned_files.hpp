// Files of the user's that a pinned run measured, and what they are now. A database keeps their digests, not their
// contents: `gate --build` brings an old syslab back, never an old file.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace syslab::cli {

struct PinnedFile {
  Submitted now;
  std::string pinned_digest;
  bool has_changed() const { return now.digest != pinned_digest; }
};

// Those that changed since the pinned run, by name; empty: none did.
std::vector<PinnedFile> changed_files(const std::vector<PinnedFile>& files);

// Error(usage) if one changed: both sides of `--build` would measure what it is now.
void require_pinned_files(const std::string& run_uid, const std::vector<PinnedFile>& files);

// What `--build` compares, if the pinned run measured files of the user's, none of which changed; empty without files.
std::string what_build_compares(const std::vector<PinnedFile>& files);

// How to compare this pin's cases in turns: `--build`, or `compare` with a copy of the old file if one changed.
std::string hint_of_turns(const std::vector<PinnedFile>& files);

}  // namespace syslab::cli
