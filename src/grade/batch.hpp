// Many submissions, each checked in a process and a folder of its own within limits of time, memory and files. One that
// misbehaves costs its own line and nothing else.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/device_kind.hpp"
#include "core/text/json.hpp"
#include "grade/hand_ins.hpp"
#include "grade/rubric.hpp"

namespace syslab::grade {

// In the output folder: everything that was checked and timed, for appeals.
inline constexpr const char* kStoreName = "lab.db";

struct BatchOptions {
  std::filesystem::path submissions, output;  // a folder or a list; `output`/.work keeps what is known already
  std::string handout;
  std::vector<std::string> experiments;  // that are searched; none: nothing is, a person grades all of it
  std::vector<std::string> beyond;       // globs of laws that are searched beyond the hand-out's
  std::vector<Item> timed;               // one after the other, when all are checked
  // What was handed in before, and has not changed, keeps what is known of it, whatever else has changed; empty:
  // nothing.
  std::string since;
  bool retry = true;  // what ran out of time or ended without an answer
  std::uint64_t seed = 0;
  int cases = 0;                                                                 // tries a law; 0: `--as-graded`
  int jobs = 1;                                                                  // submissions at a time
  DeviceKind device = DeviceKind::cpu;                                           // of ranks
  std::chrono::milliseconds limit{};                                             // of a submission
  std::string timeout, memory_limit;                                             // of a case, as `check` takes them
  std::function<void(const Submission&, const Json& record, bool known)> ended;  // one call at a time
  std::function<void(const Submission&, const Json& record)> timed_one;
  std::function<bool()> interrupted;  // asked by all threads, many times a second; empty: never
};

// What `check` said of each, in their order; {"error": "…"} of one that could not be checked. One that was checked
// before, with the same files, seed, limits, program, installed packages and GPUs, is not checked again, unless it ran
// out of time or ended without an answer; timings are kept likewise. Throws Interrupted (own_process.hpp) if
// `interrupted` says so; what had ended is kept then.
std::vector<Json> check_all(const std::vector<Submission>& submissions, const BatchOptions& options);

// The same, but that no law is searched: of one that was not checked before, what can be imported of it. Nothing is
// written; without an `output` nothing is known from before.
std::vector<Json> look_at_all(const std::vector<Submission>& submissions, const BatchOptions& options);

}  // namespace syslab::grade
