// `check --watch`: again whenever what is checked was saved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "session/context.hpp"
#include "verdict/exit_code.hpp"

namespace syslab::cli {

// What tells a saved file from the one before. Its times are in nanoseconds. Programs set the time of writing, as a
// copy or an archive does; the system alone sets that of the change.
struct Stamp {
  std::int64_t written = 0, changed = 0;
  std::uintmax_t bytes = 0, file = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};
using Stamps = std::map<std::filesystem::path, Stamp>;

// Of the sources (Python, C++, CUDA, libraries) that --mine's texts "me=flash.py:Class", "me=kernel.so" and "me=." are
// made of: of a folder, or the one that a Python file lies in, all below it but what is hidden, at most 10,000.
Stamps stamps_of(const std::vector<std::string>& mine);

// Checks, and again after each change, until a signal comes: what failed first, and all once that holds. A file that
// cannot be served after a change, half an edit, is told of and waited for. Returns how the last check ended.
Exit watch(const Context& context, const std::vector<std::string>& mine,
           const std::function<Exit(bool only_failed)>& check);

}  // namespace syslab::cli
