// Options common to verbs: where results are stored, how they are shown, which cases to run, how to measure them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace syslab::cli {

// Verbs that run cases say so in their options: `static constexpr bool kRunsCases = true`.
template <typename Options>
inline constexpr bool kRunsCases = requires {
  requires Options::kRunsCases;
};

enum class Color { automatic, always, never };

struct GlobalOptions {
  std::string database = "syslab.db";
  bool json = false;
  bool quiet = false;
  Color color = Color::automatic;
};

// Which experiments, at which points, with which implementations.
struct SelectionOptions {
  std::vector<std::string> names;
  std::vector<std::string> assignments;  // "seq=128,1024"
  std::optional<std::string> preset;
  std::vector<std::string> implementations;
  std::vector<std::string> devices;   // "cpu", "cuda", "cpu,cuda"; empty: by the machine
  std::vector<std::string> mine;      // "me=kernel.so"
  std::string reference, inputs;      // "file.py:name": --mine is a function of any arguments
  bool backward = false;              // and its gradients are cases, too
  std::vector<std::string> commands;  // "./bench {n}", "old=./bench {n}": any program
  std::string reads;                  // "time: {} ms": the number that it prints; empty: its process's time
  std::string python;                 // interpreter of --mine in Python; empty: SYSLAB_PYTHON, else python3
  std::string handout;
  std::uint64_t seed = 0;
  std::string shard;  // "3/8": of the cases every eighth, from the third on; empty: all
  plan::FileNames file_names = plan::FileNames::taken;
  std::string author;  // alias under which --mine is handed in; empty: SYSLAB_AUTHOR, else the name given to --mine
};

// How the cases of a run are measured, apart from their limits.
struct MeasuringOptions {
  std::optional<std::string> protocol;
  std::optional<int> launches;  // else the protocol's
  std::string memory_limit;
  bool try_oom = false;  // include cases that need too much memory
};

}  // namespace syslab::cli
