// The program that runs one side of a comparison: this one, or another build of syslab, asked about itself.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "session/console.hpp"

namespace syslab::cli {

// What another build knows about an experiment, from its `describe --json`.
struct DescribedExperiment {
  std::string version;  // empty: it does not have it
  std::set<std::string> implementations, axes;
};

struct SideBuild {
  std::string path;                         // as given; empty: this program
  std::vector<std::string> worker_command;  // empty: this program's
  std::string digest;                       // SHA-256 of the program's file; empty: this program
  std::string code;                         // core/files/machine_code.hpp, its revision blanked; empty: unknown
  std::string facts;                        // JSON, as `env` tells: core/build_info.hpp
  int wire_version = 0;                     // 0: it does not tell
  int measuring_version = 1;                // of its protocols (measure/protocol.hpp); 1 does not tell
  std::map<std::string, DescribedExperiment> experiments;  // of another build
  bool is_other() const { return !path.empty(); }
};

SideBuild this_build();

// Asks `path` about itself and about experiments. Error(usage) with the reason when it is no syslab that can be run
// here.
SideBuild ask_build(const std::string& path, const std::vector<std::string>& experiments);

// The program that `build=` names: a file, or a revision of the repository of this folder, which is built then and kept
// (kept_builds.hpp). A commit's full name is never a file: it may come out of a database, beside which files may lie.
// Error(usage) where it is neither, or does not build; Error(comm) on Ctrl-C meanwhile.
std::string program_of(const Console& console, const std::string& build);

// What keeps two builds from being compared at a case, a line each: the experiment is missing, has another version, or
// lacks the implementation or an axis; the worker's wire format differs. Empty: nothing. The builds know the
// experiments.
std::vector<std::string> differing(const SideBuild& a, const plan::PlannedCase& case_a, const SideBuild& b,
                                   const plan::PlannedCase& case_b);

// How its implementations are told apart from those of another revision: "4f2c…", "4f2c…+changes".
std::string revision_of(const std::string& facts);

}  // namespace syslab::cli
