// Builds of revisions, kept in a folder of limited size: what a comparison with the past needs, and a bisection again
// and again.
//
//   KeptBuilds builds(console, {.repository = "/home/ada/kernels", .command = "make"});
//   const Built built = builds.build(commit);        // from the folder, or built now, with progress
//
// $SYSLAB_BUILDS/syslab-builds, else $XDG_CACHE_HOME/syslab/builds, else ~/.cache/syslab/builds. Above
// $SYSLAB_BUILDS_LIMIT (4Gi) those that were not used for longest are removed, with checkouts that did not become a
// build and those in which other histories build, but nothing that a living process has asked for.
//
// A recipe with an artifact builds all revisions in one checkout, one after the other, so that each costs what has
// changed, and keeps that file of each. One without keeps the whole checkout of each revision (Python files, say, which
// import what lies beside them). Checkouts are worktrees of git: the repository's own is not touched.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/process/process.hpp"
#include "core/text/units.hpp"
#include "session/console.hpp"

namespace syslab::cli {

struct BuildRecipe {
  std::string repository;
  std::string command;   // for `sh -c`, in the checkout; empty: nothing is to be built
  std::string artifact;  // relative to the checkout; empty: the whole checkout is kept
};

// What builds syslab itself.
BuildRecipe recipe_of_syslab(const std::string& repository);

struct Built {
  std::string commit;
  std::string path;          // of the artifact, or of the checkout; empty: it does not build
  std::string failed;        // why; empty: it does
  bool interrupted = false;  // while it was being built
  bool late = false;         // the caller's time was over before it had been built
};

class KeptBuilds {
 public:
  // Error(config) where no folder can be made that this user alone can enter.
  KeptBuilds(const Console& console, BuildRecipe recipe);

  using Clock = std::chrono::steady_clock;
  // A revision that does not build is an answer, which the next call does not ask again. Neither a build nor the wait
  // for another process' goes on behind `end` (then it is `late`), or takes longer than $SYSLAB_BUILDS_TIMEOUT (30m): a
  // build then failed, and a wait is Error(config).
  Built build(const std::string& commit, std::optional<Clock::time_point> end = {});
  const std::string& key() const { return key_; }  // of the recipe: whose builds these are

 private:
  struct Limit {
    Clock::time_point longest;             // of the build
    std::optional<Clock::time_point> end;  // of the caller's time
    std::function<void()> tick;            // meanwhile, from time to time
    bool is_over() const { return Clock::now() > longest; }
    bool is_spent() const { return end && Clock::now() > *end; }
  };
  FileDescriptor await_turn(const Limit& limit, Built& built) const;
  Built make(const std::string& commit, const std::filesystem::path& kept, Limit limit);
  // These say in `built` how it went.
  void check_out(Built& built, const std::filesystem::path& tree, const std::filesystem::path& log, const Limit& limit);
  void run_command(Built& built, const std::filesystem::path& tree, const std::filesystem::path& log,
                   const Limit& limit);
  void run(Built& built, std::vector<std::string> argv, const std::filesystem::path& log, const Limit& limit,
           const char* failure);
  struct Entry {
    std::filesystem::path folder, lock;
    std::filesystem::file_time_type used;
    std::uint64_t bytes;
  };
  std::vector<Entry> entries_of(const std::filesystem::path& recipe);
  void make_room();

  const Console& console_;
  BuildRecipe recipe_;
  std::string key_;
  std::filesystem::path root_, folder_;
  std::uint64_t limit_;
  Nanoseconds longest_;
  std::map<std::string, Built> known_;  // by commit
};

}  // namespace syslab::cli
