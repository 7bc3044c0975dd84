// The command line's options, by verb. Plain data: parsed by command_line.cpp, executed by one file per verb.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compare/options.hpp"
#include "core/device_kind.hpp"
#include "session/options.hpp"

namespace syslab::cli {

struct ListOptions {
  std::vector<std::string> patterns;
  std::string tag;
  std::string handout;
};

struct DescribeOptions {
  std::string name;
};

struct PlanOptions {
  SelectionOptions selection;
  MeasuringOptions measuring;
  std::string budget;  // of a whole hand-out: where it would end
};

enum class Laws { none, quick, full };
constexpr int law_cases(Laws laws) { return laws == Laws::full ? 100 : 20; }

struct RunOptions {
  static constexpr bool kRunsCases = true;
  SelectionOptions selection;
  Laws laws = Laws::quick;  // before the cases
  std::optional<Contract> contract;
  MeasuringOptions measuring;
  std::string data = "normal";
  std::string timeout = "10m";
  std::string budget;     // empty: none
  std::string isolation;  // "case", "reuse"; empty: the device's default
  std::string label;
  bool must_answer = false;  // what --mine names has not been checked where none of its cases was tried
};

struct CheckOptions {
  static constexpr bool kRunsCases = true;
  SelectionOptions selection;
  std::optional<Contract> contract;
  std::optional<int> cases;    // tries a law, however long they take; none: as the depth says
  bool deep = false;           // the deeper of two depths
  bool as_graded = false;      // as deep as `grade`
  bool imports_alone = false;  // of a submission: no law is searched
  std::string keyword;         // only laws whose name holds this
  // Of --mine under both contracts: globs of the laws that are searched beyond the hand-out; empty: all.
  std::vector<std::string> beyond;
  int jobs = 1;  // laws at a time
  bool exit_first = false;
  bool strict = false;       // what is found beyond what is promised fails the check
  bool last_failed = false;  // only laws that failed when they were last searched
  bool watch = false;        // again whenever a file of --mine is saved
  std::string until;         // empty: no longer than the tries take
  std::string emit;          // a PyTorch test of the first counterexample; empty: none
  std::string map;           // an SVG of where the first counterexample is wrong; empty: none
  std::string timeout = "10m";
  std::string memory_limit;
  std::string label;
};

struct ResumeOptions {
  static constexpr bool kRunsCases = true;
  std::string run;                // empty: the newest that can be resumed
  bool failed = false;            // failed cases too, not only missing ones
  bool try_oom = false;           // those that ran out of memory, or were predicted to, as run's --try-oom does
  bool force = false;             // though this build is not the run's
  std::string budget;             // of this resumption; empty: none
  std::vector<std::string> mine;  // "me=kernel.so": in place of the recorded files
  std::string python;             // their interpreter; empty: SYSLAB_PYTHON, else python3
};

struct ReplayOptions {
  static constexpr bool kRunsCases = true;
  std::string check;
  std::vector<std::string> mine;  // as resume's
  std::string python;             // as resume's
};

// "me >= 1.10 x naive", measured and written to a file.
struct ClaimOptions {
  static constexpr bool kRunsCases = true;
  std::string statement, output;
  SelectionOptions selection;
  std::optional<std::string> protocol;
  std::string data = "normal";
  std::optional<int> launches;
  std::optional<std::string> budget, tolerance;
  std::string timeout = "10m";  // of one launch
  std::string memory_limit;
  std::string label;
};

// A claim's file, measured again here.
struct VerifyOptions {
  static constexpr bool kRunsCases = true;
  std::string claim;
  SelectionOptions files;  // --mine, --command, --reference, --inputs, --python: what is measured is the claim's
  std::optional<int> launches;
  std::optional<std::string> budget;
  std::string timeout = "10m";
  std::string memory_limit;
  std::string label;
};

struct DiffOptions {
  std::string a, b;  // runs, or pins
  std::optional<std::string> delta;
};

struct PinOptions {
  std::optional<std::string> name, run;  // neither: list
  std::string note;
};

struct ReportOptions {
  std::vector<std::string> experiments;
  std::string handout;  // empty: of the report's default, which says what else the store holds
  std::string format;   // empty: Markdown
  std::string output;   // empty: standard output
  bool leaderboard = false;
  bool answers = true, figures = true;
  bool appendix = false;  // of the whole write-up: everything, in a file beside the output
  bool sources = false;   // only the queries that it is made by
};

struct QueryOptions {
  std::string sql;  // or a file that ends in .sql
  std::string format;
  std::string output;
};

struct MergeOptions {
  std::vector<std::string> databases;
  bool trust = false;  // their runs count as measured here
};

struct ImportOptions {
  std::vector<std::string> files;
  std::string author;
};

// Which runs a smaller copy keeps; pinned ones always.
struct PruneOptions {
  std::string output;               // empty: only told
  std::optional<std::size_t> keep;  // the newest N
  std::string younger_than;         // "90d"
  std::vector<std::string> runs, drop;
  bool samples = true;
};

// Which model's gradients, and over which link.
struct PlanBucketsOptions {
  std::string trace;                       // a file
  std::optional<std::string> curve;        // a database; nothing: the global one
  std::string implementation;              // of its measurements, where it has several
  std::optional<int> ranks;                // likewise
  std::string device, protocol;            // likewise
  std::optional<std::string> alpha, beta;  // the law in place of measurements
};

// A folder of submissions, each checked in a process of its own.
struct GradeOptions {
  static constexpr bool kRunsCases = true;
  std::string submissions, output;
  std::string handout;
  std::string rubric;                   // a file; empty: the one that is shipped
  std::string written, roster;          // CSV files; empty: none
  std::string since;                    // a date; empty: nothing is taken as it is known
  bool no_retry = false;                // of what ran out of time
  std::string gradescope;               // an autograder's zip to write in place of grading
  std::string wheel;                    // of tools/release, that goes into it
  bool names = false;                   // on the leaderboard, in place of aliases
  bool dry_run = false;                 // nothing is graded: what could be
  bool despite_open = false;            // graded, though most of the submissions would be open
  std::string python;                   // empty: SYSLAB_PYTHON, else python3; never a submission's own
  std::uint64_t seed = 0;               // hidden from students unless 0
  int cases = 0;                        // tries a law; 0: check --as-graded
  int jobs = 1;                         // submissions at a time
  DeviceKind device = DeviceKind::cpu;  // of ranks of data parallelism
  std::string limit = "10m";            // of a submission
  std::string timeout = "2m";           // of a law
  std::string memory_limit = "4Gi";
};

// A folder in which plain `check` needs no options.
struct InitOptions {
  std::string handout;  // empty: whose functions are there, else 2026
  std::string mine;     // "me"; empty: the folder's name
  std::string python;   // empty: the folder's own, else none is named
};

struct LogOptions {
  static constexpr bool kRunsCases = true;  // with --confirm
  std::int64_t number = 20;                 // of runs, the newest
  std::string experiment;                   // empty: runs; else its times over revisions
  std::vector<std::string> assignments, implementations;
  bool confirm = false;
  std::optional<std::string> budget, delta;
  std::string output;  // an SVG; empty: none
};

struct ShowOptions {
  std::string uid;  // of a run, an attempt, a check or a comparison
};

struct EnvOptions {};

struct DoctorOptions {
  std::optional<std::string> run;  // is this run fit to publish?
  bool noise = false;              // measure what this machine calls different
  std::string budget = "1m";       // of --noise
  bool selftest = false;           // run everything that runs here
  std::string output = "syslab-selftest.json";
};

struct CompletionOptions {
  std::string shell;  // "bash", "zsh", "fish"
};

struct WorkerOptions {
  bool probe = false;  // say what GPUs there are, and end
};

using VerbOptions = std::variant<ListOptions, DescribeOptions, PlanOptions, RunOptions, CheckOptions, ResumeOptions,
                                 ReplayOptions, CompareOptions, BisectOptions, ClaimOptions, VerifyOptions, DiffOptions,
                                 PinOptions, GateOptions, ReportOptions, QueryOptions, MergeOptions, ImportOptions,
                                 InitOptions, GradeOptions, PlanBucketsOptions, PruneOptions, LogOptions, ShowOptions,
                                 EnvOptions, DoctorOptions, CompletionOptions, WorkerOptions>;

struct CommandLine {
  GlobalOptions global;
  VerbOptions verb;
};

}  // namespace syslab::cli
