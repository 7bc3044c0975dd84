// A claim in a file: JSON, data alone. Nothing in it is ever executed, and it names no file to load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "claim/statement.hpp"
#include "contract/outcome.hpp"
#include "core/text/json.hpp"
#include "stats/paired.hpp"
#include "stats/timing_warning.hpp"

namespace syslab::claim {

// What to measure, in the words of the command line, so that another build plans the same cases.
struct Question {
  std::vector<std::string> experiments, assignments, devices;
  std::optional<std::string> preset;
  std::uint64_t seed = 0;
  std::string protocol, data;
  std::string reads;  // of a command: the pattern of the number that it prints; empty: its process is timed
};

// A law that was searched for counterexamples with the same code, as the author's database had it.
struct Law {
  std::string name;  // "weighted_sum.linearity"
  Contract contract = Contract::full;
  Outcome outcome = Outcome::not_run;
  std::int64_t inputs = 0;
};

// Who stood on a side when the claim was made.
struct Side {
  std::string label;
  bool is_mine = false;   // handed in: whoever verifies names a file
  std::string digest;     // SHA-256 of that file; of our own rungs the program's revision
  std::string name;       // the implementation's; `label` may be axes
  std::string command;    // of a command: its text, to be read and never started; else empty
  std::vector<Law> laws;  // empty: none was stored
};

// A burst's time per call, in the order in which it was measured.
struct Block {
  int launch = 0, block = 0;
  std::string order;  // "ABBA" or "BAAB"; A is the slower side
  std::vector<double> seconds;
  double log_ratio = 0;
};

// The ratio that its times have.
double log_ratio_of(const Block& block);

struct Case {
  std::string title, experiment, version;  // the title as it is written; claim/derived.hpp has what is shown
  std::string params;                      // JSON of what both sides share
  std::int64_t checked = 0;  // launches of a side in which its results were compared with the oracle and right
  std::vector<Block> blocks;
  std::string faster_code, slower_code;  // on a GPU: digests of the kernels that ran (docs/history.md); else empty
  std::vector<stats::TimingWarning> warnings;  // that the verdict was told with
  double faster_mhz = 0, slower_mhz = 0;       // on a GPU: its clock in the bursts, median over launches; 0: not told
  std::int64_t ranks = 1;  // of both sides; 1 too where they differ in it, which their labels then say
};

// Something in the file that `claim` would not have written there.
struct Alteration {
  enum class Kind {
    unsealed,   // no seal: what was edited cannot be told
    changed,    // a part is not the one that was sealed
    blocks,     // of a case: missing, counted otherwise than they are made, or of too few launches
    checked,    // of a case: other launches were compared with the oracle than were timed
    revision,   // a side of ours is of another revision than the build that measured it
    derived,    // a title, label, name or kind of machine is not what the other parts make of it
    doubled,    // a case that is there twice
    times,      // of a case: a block's ratio is not that of its times, or there is no case at all
    unknown,    // a field, a fact of the machine or a warning that no claim of this version has
    date,       // it was made at no date of UTC, or in the future
    not_shown,  // the times do not confirm the sentence
  };
  Kind kind = Kind::changed;
  std::string where;            // a part ("tolerance"), a case by its axes or a side by its label
  std::string found, expected;  // in words
};

// What another machine of the same kind may differ by, where --tolerance does not say.
constexpr double kTolerance = 0.01;

struct File {
  Statement statement;
  double tolerance = kTolerance;
  Question question;
  Side faster, slower;
  std::map<std::string, std::string> digests;  // of --reference and --inputs; else empty
  std::vector<Case> cases;
  std::string made_at;              // ISO 8601, UTC
  std::string machine_kind;         // runner::comparability_key
  std::string environment_json;     // facts of the machine
  std::string build_json;           // of the program
  std::vector<Alteration> altered;  // of one that was read (claim/alteration.hpp)
  bool is_sealed = true;            // false: of a version that had no seal, so that nobody can see edits of its parts
};

constexpr std::string_view kNoSeal =
    "This claim has no seal, as syslab wrote claims before version 2: nobody can see whether the file was edited.";

// Median of a side's bursts, 'A' or 'B'; 0 without blocks.
double side_seconds(const Case& one, char side);

// Of all cases, each once.
std::vector<stats::TimingWarning> all_warnings(const std::vector<Case>& cases);

std::vector<stats::PairedBlock> for_stats(const std::vector<Block>& blocks);

// What its own samples say, without tolerance.
verdict::SpeedFinding finding_of(const File& file);
// Why it is found so, in a sentence.
std::string reason_of(const File& file);

std::string to_text(const File& file);
// Error(usage) naming the file, what was found and what was expected, for anything that is not a claim of a version
// that this program knows. One that was altered is read, and says so. At most 64 MiB are read.
File read_claim(const std::filesystem::path& path);
File from_text(const std::string& name, const std::string& text);

}  // namespace syslab::claim
