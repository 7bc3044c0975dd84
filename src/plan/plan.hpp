// From names and axis assignments to the exact list of cases, with skips and their reasons. Nothing runs here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/outcome.hpp"
#include "contract/shortage.hpp"
#include "contract/submitted.hpp"
#include "contract/task.hpp"
#include "core/device_kind.hpp"
#include "core/text/units.hpp"
#include "plan/machine.hpp"
#include "registry/registry.hpp"

namespace syslab::plan {

inline constexpr std::string_view kReferenceName = "reference";  // of a function's reference, as an implementation

// Those that join one experiment: of a name at most one.
std::vector<Submitted> joining(const std::vector<Submitted>& mine, const registry::Experiment& experiment);
// Of "--mine NAME=PATH": a C library, a Python class, or, with --reference, any function.
// Error(usage) when the text is not NAME=…, the file is missing, or a .py has no ":Class".
// A function's reference and inputs may stand behind it, as in the store: "me=flash.py:fn against ref.py:fn on
// in.py:cases"; a command as there, too: "me=in /home/me: ./bench {n}".
Submitted parse_mine(std::string_view text);
// "NAME=FILE" or "NAME=FILE:CLASS", split as parse_mine() splits it; nobody looks whether there is such a file.
// Error(usage) where a part is missing.
struct MineWords {
  std::string name, file, inside;  // inside: a class, a function, a library's symbol; or empty
};
MineWords split_mine(std::string_view text);
// Whether parse_mine() makes a function of the text, with its reference and inputs; nobody looks for its files.
bool names_function(std::string_view text);
// Of --command: "NAME=./bench {n}", or "./bench {n}", which is called `me`; starts in the folder in which we are.
// Error(usage) where there is no such program.
Submitted parse_command(std::string_view text);
// SHA-256 of the file; of a function, of the three digests of its file, its reference's and its inputs': what it is
// judged by belongs to it. Of a command, of its text and of the files of the user's that it names.
std::string digest_of(const Submitted& mine);
// "FILE.py:NAME" or "FILE.so:SYMBOL" of --reference, "FILE.py:NAME" or a manifest "FILE.json" of --inputs, with the
// file's absolute path; a manifest is called "FILE.json:manifest". Error(usage) naming the option.
std::string parse_python_place(std::string_view option, std::string_view text);

// "-a seq=128,256", "-a seq=128:512:128", "-a seq=pow2:7:12": name and values, typed by the axis it will meet.
struct AxisAssignment {
  std::string name;
  std::vector<std::string> values;  // expanded, still text
};
AxisAssignment parse_assignment(std::string_view text);  // Error(usage) when malformed

// Whether axes may name files (AxisKind::file). `refused`: the words come from a claim or a database, which somebody
// else may have written and which chooses no file of this machine.
enum class FileNames { taken, refused };

struct Selection {
  std::vector<std::string> patterns;
  std::vector<AxisAssignment> assignments;
  std::optional<std::string> preset;
  std::optional<registry::Preset> unnamed_preset;  // in place of a named one; of the one experiment that is selected
  std::vector<std::string> implementations;        // --impl, globs; empty: all
  std::vector<std::string> devices;                // --device: "cpu", "cuda"; as -a device=
  std::vector<Submitted> mine;
  std::string author;   // alias of whoever hands in `mine`; empty: each has its own name
  std::string handout;  // "", "2025", "2026": experiments that the hand-out poses
  std::uint64_t root_seed = 0;
  FileNames file_names = FileNames::taken;
  Machine machine;  // that the cases are to run on
  // What is selected from, with the axes and points that files of --mine and words of --command give.
  std::shared_ptr<const registry::Registry> registry;
};

using syslab::Task;

struct PlannedCase {
  int index = 0;  // position in the plan, the order of running
  const registry::Experiment* experiment = nullptr;
  Params params;
  std::string implementation;
  DeviceKind device = DeviceKind::cpu;  // where it runs
  int world_size = 1;
  Task task = Task::measure;
  std::string law;  // when task == law
  std::optional<std::string> skip_reason;
  bool unsupported = false;       // skip_reason is what machine or implementation cannot ("needs 6 GPUs"), not what was
                                  // left out: its status is `unsupported`
  std::optional<Shortage> needs;  // skip_reason is that there are too few
  double predicted_bytes = 0;     // 0: not predicted
  Nanoseconds predicted_time{};   // of one attempt, all its launches; 0: not predicted (plan/predict.hpp)
  bool time_was_measured = false;  // of the same case, not estimated
  std::string predicted_from;      // "measured 2 days ago", "estimated at 12 GFLOP/s …"
  std::string predicted_oom;       // "needs 242 GiB, this machine has 24 GiB"; empty: it fits, or is to be tried
  std::uint64_t seed = 0;          // of the case: derived from root seed, experiment and params only, so that all
                                   // implementations meet the same inputs
  std::string case_uid;            // core/ids.hpp
};

struct Plan {
  std::vector<PlannedCase> cases;
  std::vector<PlannedCase> falsified;  // of a run that goes on: laws that failed before, which no case stands for
  std::vector<Submitted> mine;
  std::string author;
  std::uint64_t root_seed = 0;
  Machine machine;                                     // that it was made for
  std::shared_ptr<const registry::Registry> registry;  // of the selection: the cases' experiments lie there
};

// Error(usage) for unknown experiments, axes, presets, implementations and values that an axis does not take, each with
// the nearest names. With several experiments, an axis or a preset need only be known to one of them: an axis applies
// to those that have it, and those without the preset are left out.
Plan make_plan(const registry::Registry& registry, const Selection& selection);
// The cases of `check`: every law of every selected experiment for every selected implementation but the reference's
// own oracle laws; --mine alone when there is one and --impl names none. `contract` becomes the case's parameter
// "contract".
Plan make_law_plan(const registry::Registry& registry, const Selection& selection, Contract contract);
std::optional<Contract> contract_of(const PlannedCase& planned);  // none: it is no law

// Takes from `laws` those of implementations of which `measured` skips every case: what cannot be measured as asked
// needs no search first.
void leave_out_unmeasured(Plan& laws, const Plan& measured);

// Why an implementation of the experiment's own cannot do a case of so many ranks; nothing when it can, and of somebody
// else's.
std::optional<std::string> refusal_of(const registry::Experiment& experiment, const Params& params,
                                      std::string_view implementation, int world_size);

// Marks a case of more ranks than there are places or GPUs for.
void note_too_many_ranks(PlannedCase& planned, const Machine& machine);

// Skips again, on this machine, a case of a stored plan that was skipped. One that this machine could run keeps the
// reason that it has.
void skip_again(PlannedCase& planned, const Machine& machine);

Json to_json(const PlannedCase& planned);

}  // namespace syslab::plan
