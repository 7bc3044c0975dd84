// Many submissions, each checked in a process and a folder of its own within limits of time, memory and files. One that
// misbehaves costs its own line and nothing else.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/json.hpp"

namespace syslab::grade {

struct Submission {
  std::string id;  // name of its folder or zip, up to the last '@'
  std::filesystem::path path;
  std::string when{};  // behind the '@': "2026-05-03T17:00" of ada@2026-05-03T17:00.zip
  int earlier = 0;     // hand-ins of the same id that do not count
};

// Folders and zips in `folder`, by id. Of several with one id the newest counts: the one whose `when` is last as text.
// Error(usage) when there is none, or two have one id and one `when`.
std::vector<Submission> submissions_in(const std::filesystem::path& folder);

struct BatchOptions {
  std::filesystem::path submissions, output;  // `output`/.work keeps what is known already
  std::string handout;
  std::vector<std::string> experiments;  // that are searched; none: all that the hand-out's adapters answer
  std::uint64_t seed = 0;
  int cases = 0;                                                                 // tries a law
  int jobs = 1;                                                                  // submissions at a time
  std::chrono::milliseconds limit{};                                             // of a submission
  std::string timeout, memory_limit;                                             // of a case, as `check` takes them
  std::function<void(const Submission&, const Json& record, bool known)> ended;  // one call at a time
};

// What `check` said of each, in their order; {"error": "…"} of one that could not be checked. One that was checked
// before, with the same files, seed, limits and program, is not checked again.
std::vector<Json> check_all(const std::vector<Submission>& submissions, const BatchOptions& options);

}  // namespace syslab::grade
