// An experiment as data: what it asks, over which axes, with which implementations, and which function runs one case.
// Everything the tool does with it (list, describe, plan, run, check, report) follows from this object.
//
//   Experiment describe() {
//     return experiment("flash_forward")
//         .title("FlashAttention-2 forward pass").problem("2026", "flash_forward", 15)
//         .axis("seq", {128, 512}, "queries and keys")
//         .implementation({.name = "flash_tiled", ...})
//         .runs(run_case);
//   }
//   SYSLAB_EXPERIMENT(flash_forward, describe);
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/axis.hpp"
#include "contract/law.hpp"
#include "contract/role.hpp"
#include "contract/rung_fact.hpp"
#include "core/device_kind.hpp"
#include "core/value.hpp"
#include "registry/evidence.hpp"

namespace syslab::worker {
class CaseContext;  // what a running case sees; the registry only passes it on
}

namespace syslab::registry {

Values pow2(int low_exponent, int high_exponent);  // 2^low … 2^high

// Ranks of a case on one host, at most: each is a process of its own.
inline constexpr int kMostRanks = 64;

// A file by the axis that names it.
struct NamedFile {
  std::string axis, file;
};

// One implementation as the registry shows it. `name` is the value of the reserved axis `impl`.
struct Implementation {
  std::string name;
  std::string teaches;
  std::vector<std::string> dtypes;  // empty: does not depend on a dtype
  Role role = Role::ours;
  std::string unavailable;  // why this build cannot run it: its cases are shown, and skipped; empty: it can
  DeviceKind device = DeviceKind::cpu;
  int minimum_sm = 0;  // compute capability that it needs, 80 for 8.0; 0: any, or no GPU
  int maximum_sm = 0;  // the last that it runs on; 0: every newer one will do
  std::string takes;   // rungs of operators that it stands on, and why these; empty: it is one itself
  // What a class on ranks is timed beside: it joins where such a class does, or where it is named, on the device that
  // is asked for; and one worker starts its ranks.
  bool beside_classes = false;
  std::vector<RungFact> facts;  // what reports print of it, beyond these fields
};

// A row of the rule by which the library chooses where a call names no implementation.
struct Choice {
  std::string implementation;
  std::string because;
};

struct Metric {
  std::string name;  // "time", "tflops", "worst_error"
  std::string unit;  // "s", "TFLOP/s", "1"
  std::string help;
};

// Cases that the experiment knows to be pointless or impossible, with the reason that the table prints.
struct SkipRule {
  std::string reason;
  std::function<bool(const Params&, std::string_view implementation)> applies;
};

// Where the hand-outs pose it.
struct HandoutProblem {
  std::string handout;  // "2025" or "2026"
  std::string problem;  // the problem's id there
  int points = 0;
};

// One registered problem. Its tables and sentences lie in experiments/FAMILY/ID/tables/, embedded at build time.
struct Experiment {
  std::string id;
  std::string version = "1";  // raised when the meaning of a number changes; part of every case's identity
  std::string title;
  std::string question;             // a paragraph: what is asked and what to look at
  std::string protocol = "kernel";  // how to measure it unless --protocol says otherwise (smoke: always quick)
  std::string analogue;             // "our analogue: …" where the problem's name promises a tool that we do not use
  std::vector<std::string> aliases;
  std::vector<std::string> tags;
  std::vector<HandoutProblem> problems;
  std::vector<Axis> axes;
  // The reserved axis `world_size`: how many ranks, each a worker process, do a case together. Closed at 1 unless the
  // experiment says otherwise; then any number up to kMostRanks can be asked for.
  Axis ranks{"world_size", {std::int64_t{1}}, "ranks: processes that do a case together", true, {}};
  std::string limit_axis;  // by which its ranks limit their waits for each other, in milliseconds; empty: none
  std::map<std::string, Preset> presets;
  std::vector<Evidence> evidence;  // empty: derived from its presets (src/evidence/demand.hpp)
  std::vector<Implementation> implementations;
  std::vector<Choice> chosen;  // of a call that names none, the first that takes it; empty: there is no such call
  std::vector<Metric> metrics;
  std::vector<LawInfo> laws;
  // Which of ours a law is of, where ladders of several operators stand side by side. Empty: of all.
  std::function<bool(std::string_view law, std::string_view implementation)> is_law_of;
  std::vector<SkipRule> skips;
  // In place of the product of its axes: exactly these, of which axes choose. Of `function`, whose cases a file gives.
  std::vector<Params> points;
  // Why one of its implementations cannot do a case, as the worker itself would say it: the case is told as
  // `unsupported` and not run. Nothing: it can. Told "world_size", too.
  std::function<std::optional<std::string>(const Params&, std::string_view implementation)> refusal;
  // Error(usage) for a point of the grid that makes no sense, before anything runs; told "world_size", too.
  std::function<void(const Params&)> expectation;
  bool accepts_mine = false;   // --mine implementations can join
  bool times_mine = true;      // and not only be searched by laws
  bool mine_on_ranks = false;  // and is a class, whose ranks one worker starts
  std::string timed_by;        // the experiment that times what is only checked here; empty: none
  bool oom_is_an_answer = false;
  std::function<double(const Params&)> flops;  // per call; empty: not counted
  std::function<double(const Params&)> bytes;  // compulsory traffic per call
  // Predicted peak; told "world_size", too.
  std::function<double(const Params&, std::string_view implementation)> memory_bytes;
  // Measures one case, or searches one law (request().law), in a worker process.
  std::function<void(worker::CaseContext&)> run;

  bool takes_ranks() const { return !ranks.closed; }
  std::chrono::milliseconds limit_of_waits(const Params& params) const;
  const Axis* find_axis(std::string_view name) const;
  // Files that a case of these parameters reads or writes because an axis names them (AxisKind::file).
  std::vector<NamedFile> files_named_by(const Params& params) const;
  const Implementation* find_implementation(std::string_view name) const;
  const LawInfo* find_law(std::string_view id) const;
  bool has_laws_of_handout() const;  // whether a test of the hand-out looks at one of its laws
  // Whether one worker starts all ranks of a case that is measured, in place of a worker a rank.
  bool starts_ranks(std::string_view implementation) const;
};

// Fluent construction; every setter returns the builder, the conversion checks and hands out the experiment.
class Builder {
 public:
  explicit Builder(std::string id) { experiment_.id = std::move(id); }
  Builder& version(std::string text);
  Builder& title(std::string text);
  Builder& question(std::string text);
  Builder& protocol(std::string name);
  Builder& analogue(std::string text);
  Builder& alias(std::string name);
  Builder& tags(std::vector<std::string> names);
  Builder& problem(std::string handout, std::string problem, int points);
  Builder& axes(std::vector<Axis> list);  // registry/ladder.hpp makes them
  Builder& axis(std::string name, Values values, std::string help);
  Builder& closed_axis(std::string name, Values values, std::string help, Values also = {});
  // Values name files that a case reads or writes, but for `declared` ones, which stand for none or for our own.
  Builder& file_axis(std::string name, Values declared, std::string help);
  Builder& limits_waits_by(std::string axis);
  Builder& world_sizes(Values values);  // `memory` is of one rank
  Builder& preset(std::string name, Preset preset);
  Builder& evidence(Evidence evidence);
  Builder& all_evidence(std::vector<Evidence> list);
  Builder& implementation(Implementation implementation);
  Builder& implementations(std::vector<Implementation> implementations);       // registry/ladder.hpp makes them
  Builder& chosen(std::string_view implementation, std::string_view because);  // in the rule's order
  Builder& metric(std::string name, std::string unit, std::string help);
  Builder& metrics(std::vector<Metric> list);
  Builder& laws(std::vector<LawInfo> laws);
  Builder& laws_of(std::function<bool(std::string_view law, std::string_view implementation)> is_law_of);
  Builder& skip_if(std::string reason, std::function<bool(const Params&, std::string_view implementation)> applies);
  Builder& refuses(std::function<std::optional<std::string>(const Params&, std::string_view implementation)> why);
  Builder& expects(std::function<void(const Params&)> what);  // besides what was asked before
  Builder& accepts_mine();
  Builder& accepts_mine_for_laws(std::string timed_by = {});
  Builder& accepts_classes_on_ranks();
  Builder& oom_is_an_answer();
  Builder& flops(std::function<double(const Params&)> formula);
  Builder& bytes(std::function<double(const Params&)> formula);
  Builder& memory(std::function<double(const Params&, std::string_view)> formula);
  Builder& runs(std::function<void(worker::CaseContext&)> body);
  operator Experiment() const;  // NOLINT: the builder ends where an Experiment is wanted

 private:
  Experiment experiment_;
};

inline Builder experiment(std::string id) { return Builder(std::move(id)); }

}  // namespace syslab::registry
