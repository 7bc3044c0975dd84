// What a submission's adapters.py answers, found out in a process of its own behind the walls of a judged one.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/lack.hpp"
#include "submission/folder.hpp"

namespace syslab::submission {

enum class State { absent, not_implemented, implemented, fails };
std::string_view to_string(State state);  // in words: "not implemented"
std::optional<State> state_of(std::string_view words);

struct Answer {
  State state = State::absent;
  std::string why;              // of State::fails, one line
  std::optional<Lack> lacks{};  // of State::fails: what a process of ours has found that this Python lacks
  bool out_of_time = false;     // of State::fails
};

struct Survey {
  std::string python, torch, triton;      // versions; empty: not there
  std::string asks;                       // what its files require of Python and torch, in words; empty: nothing
  std::map<std::string, Answer> answers;  // of every function of adapters(), by name
};

// What to do where its Python has no torch, one sentence.
std::string without_torch(const Survey& found);

// For the import of a framework from a cold disk, among others.
inline constexpr std::chrono::milliseconds kImporting{3 * 60'000};

// What hangs, dies or cannot be imported fails with every function that it seems to implement; never an Error for what
// the submission does. Error(usage) when there is no Python.
Survey survey(const Folder& folder, std::chrono::milliseconds timeout, std::uint64_t memory_limit_bytes);

}  // namespace syslab::submission
