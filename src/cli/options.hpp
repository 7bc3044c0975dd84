// What a command line asks for, verb by verb. Plain data: parsed by command_line.cpp, carried out by one file a verb.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compare/options.hpp"
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
};

enum class Laws { none, quick, full };

struct RunOptions {
  SelectionOptions selection;
  Laws laws = Laws::quick;  // before the cases
  std::optional<std::string> contract;
  MeasuringOptions measuring;
  std::string data = "normal";
  std::string timeout = "10m";
  std::string budget;     // empty: none
  std::string isolation;  // "case", "reuse"; empty: the device's default
  std::string label;
};

struct CheckOptions {
  SelectionOptions selection;
  std::optional<std::string> contract;
  int cases = 100;  // tries a law
  std::string timeout = "10m";
  std::string memory_limit;
  std::string label;
};

struct ResumeOptions {
  std::string run = "latest";
  bool failed = false;   // failed cases too, not only missing ones
  bool try_oom = false;  // those that ran out of memory, or were predicted to, as run's --try-oom does
  bool force = false;    // though this build is not the run's
  std::string budget;    // of this resumption; empty: none
};

struct ReplayOptions {
  std::string check;
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

// Whose gradients, and over which link.
struct PlanBucketsOptions {
  std::string trace;                       // a file
  std::optional<std::string> curve;        // a database; nothing: the global one
  std::string implementation;              // of its measurements, where it has several
  std::optional<int> ranks;                // likewise
  std::optional<std::string> alpha, beta;  // the law in place of measurements
};

struct EnvOptions {};

struct DoctorOptions {
  std::optional<std::string> run;  // is this run fit to publish?
  bool noise = false;              // measure what this machine calls different
  std::string budget = "1m";       // of --noise
};

struct WorkerOptions {
  bool probe = false;  // say what GPUs there are, and end
};

using VerbOptions =
    std::variant<ListOptions, DescribeOptions, PlanOptions, RunOptions, CheckOptions, ResumeOptions, ReplayOptions,
                 CompareOptions, DiffOptions, PinOptions, GateOptions, ReportOptions, QueryOptions, MergeOptions,
                 ImportOptions, PlanBucketsOptions, PruneOptions, EnvOptions, DoctorOptions, WorkerOptions>;

struct CommandLine {
  GlobalOptions global;
  VerbOptions verb;
};

}  // namespace syslab::cli
