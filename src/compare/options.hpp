// What a comparison, and a gate, is asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "session/options.hpp"

namespace syslab::cli {

struct CompareOptions {
  static constexpr bool kRunsCases = true;
  SelectionOptions selection;  // its names hold the sides, too: "A:impl=naive"
  std::optional<std::string> protocol;
  std::string data = "normal";
  std::optional<int> launches;        // nothing: until it is enough
  std::optional<std::string> budget;  // of all points together; nothing: two minutes, or none where `launches` is said
  std::optional<std::string> delta, detect;
  bool same_on_purpose = false;
  std::string timeout = "10m";  // of one launch
  std::string memory_limit;
  std::string label;
};

// GOOD, BAD and a case: which commit between them made it slower?
struct BisectOptions {
  static constexpr bool kRunsCases = true;
  std::string good, bad;
  SelectionOptions selection;  // the case; its --mine, if any, is what has a history
  std::string repository;      // empty: that of --mine, else where this runs
  std::string build_command, artifact;
  std::optional<std::string> protocol;
  std::string data = "normal";
  std::optional<int> launches;  // at most, of a step
  std::string budget = "15m";
  std::optional<std::string> delta;
  std::string timeout = "10m";  // of one launch
  std::string memory_limit;
};

struct GateOptions {
  static constexpr bool kRunsCases = true;
  std::string against;               // a pin, or a run
  std::vector<std::string> names;    // experiments; empty: all of the pinned run
  std::vector<std::string> mine;     // "me=kernel.so": in place of the pinned run's recorded files
  std::optional<std::string> build;  // the program that made the pinned run
  std::optional<int> launches;
  std::optional<std::string> budget, delta;
  std::string timeout = "10m";
  std::string label;
  bool github = false;  // annotations, and a page in GITHUB_STEP_SUMMARY
};

}  // namespace syslab::cli
