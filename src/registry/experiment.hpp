// An experiment as data: what it asks, over which axes, with which implementations, and which function runs one case.
// Everything the tool does with it (list, describe, plan, run, check, report) follows from this object.
//
//   const Experiment kFlashForward = experiment("flash_forward")
//       .title("FlashAttention-2 forward pass").problem("2026", "flash_forward", 15)
//       .axis("seq", {128, 512}, "queries and keys")
//       .implementation({"flash_tiled", ...}).reference("reference")
//       .runs(run_case);
//   SYSLAB_EXPERIMENT(kFlashForward);
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.hpp"

namespace syslab::worker {
class CaseContext;  // what a running case sees; the registry only passes it on
}

namespace syslab::registry {

using Values = std::vector<Value>;
Values pow2(int low_exponent, int high_exponent);  // 2^low … 2^high

// A named list of values. `impl`, `world_size` and `device` are reserved and never declared.
struct Axis {
  std::string name;
  Values values;  // the default grid, and the type of every value given on the command line
  std::string help;
  // When closed, only the declared values (and those in `also`) are accepted: dtype=fp8 is an error, seq=1000 is not.
  bool closed = false;
  Values also;
  // Words for another value in each hand-out: {"xl", {{"2025", "xl25"}, {"2026", "xl26"}}}. A case holds the value,
  // never the word.
  std::map<std::string, std::map<std::string, Value>> by_handout = {};

  bool accepts(const Value& value) const;  // of its type; closed: one of its values; negative only where one of them is
};

// Ranks of a case on one host, at most: each is a process of its own.
inline constexpr int kMostRanks = 64;

// One implementation as the registry shows it. `name` is the value of the reserved axis `impl`.
struct Implementation {
  std::string name;
  std::string teaches;
  std::vector<std::string> dtypes;  // empty: does not depend on a dtype
  bool is_reference = false;        // the oracle that others are checked against
  bool is_peer = false;             // what users would pick instead
  std::string unavailable;          // why this build cannot run it: its cases are shown, and skipped; empty: it can
  std::string device = "cpu";       // the value of the reserved axis `device` under which it runs: "cpu", "cuda"
  int minimum_sm = 0;               // compute capability that it needs, 80 for 8.0; 0: any, or no GPU
  std::string takes;                // rungs of operators that it stands on, and why these; empty: it is one itself
};

struct Metric {
  std::string name;  // "time", "tflops", "worst_error"
  std::string unit;  // "s", "TFLOP/s", "1"
  std::string help;
};

// A property searched by RapidCheck, as the registry shows it; the worker binds it to an implementation.
struct LawInfo {
  std::string id;                  // "attention.causal_prefix"
  std::string statement;           // "changing keys after i leaves output row i as it was"
  bool against_reference = false;  // compares with the reference: of the reference itself it would prove nothing
};

// Cases that the experiment knows to be pointless or impossible, with the reason that the table prints.
struct SkipRule {
  std::string reason;
  std::function<bool(const Params&, std::string_view implementation)> applies;
};

// A named choice of axis values (and of implementations, under "impl", of devices, under "device", and of numbers of
// ranks, under "world_size"): `smoke`, `laptop`, `paper`.
using Preset = std::map<std::string, Values>;

// Where the hand-outs pose it.
struct HandoutProblem {
  std::string handout;  // "2025" or "2026"
  std::string problem;  // the problem's id there
  int points = 0;
};

// One registered problem. Its tables and sentences stand in experiments/<id>/tables/, embedded at build time.
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
  std::map<std::string, Preset> presets;
  std::vector<Implementation> implementations;
  std::vector<Metric> metrics;
  std::vector<LawInfo> laws;
  std::vector<SkipRule> skips;
  // Why one of its implementations cannot do a case, as the worker itself would say it: the case is told as
  // `unsupported` and not run. Nothing: it can. Told "world_size", too.
  std::function<std::optional<std::string>(const Params&, std::string_view implementation)> refusal;
  // Error(usage) for a point of the grid that makes no sense, before anything runs; told "world_size", too.
  std::function<void(const Params&)> expectation;
  bool accepts_mine = false;  // --mine implementations can join
  bool oom_is_an_answer = false;
  std::function<double(const Params&)> flops;  // per call; empty: not counted
  std::function<double(const Params&)> bytes;  // compulsory traffic per call
  // Predicted peak; told "world_size", too.
  std::function<double(const Params&, std::string_view implementation)> memory_bytes;
  // Measures one case, or searches one law (request().law), in a worker process.
  std::function<void(worker::CaseContext&)> run;

  bool takes_ranks() const { return !ranks.closed; }
  const Axis* find_axis(std::string_view name) const;
  const Implementation* find_implementation(std::string_view name) const;
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
  Builder& world_sizes(Values values);  // by default: {1, 2, 4}; `memory` is then of one rank
  Builder& preset(std::string name, Preset preset);
  Builder& implementation(Implementation implementation);
  Builder& implementations(std::vector<Implementation> implementations);  // registry/ladder.hpp makes them
  Builder& metric(std::string name, std::string unit, std::string help);
  Builder& laws(std::vector<LawInfo> laws);
  Builder& skip_if(std::string reason, std::function<bool(const Params&, std::string_view implementation)> applies);
  Builder& refuses(std::function<std::optional<std::string>(const Params&, std::string_view implementation)> why);
  Builder& expects(std::function<void(const Params&)> what);  // besides what was asked before
  Builder& accepts_mine();
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
