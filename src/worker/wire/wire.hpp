// The messages of the worker's wire format, version 1 (docs/worker-wire.md says the same for people of any language).
//
// A worker reads frames (core/process/pipe.hpp) from its standard input and writes frames to its standard output;
// standard error is free text. Each frame is a JSON object with a "type".
//
//   host → worker   hello   asked first              worker → host   hello: its version, name, language, serves[]
//                   case    of those who serve it                    records below, as they come, then one end
//                   call    of those who serve it                    returned or failed (worker/judged/call.hpp)
//                   burst   in a case of task `paired`               ready, then burst for each
//                   (worker/cases/bursts.hpp) finish  ends its bursts                          the rest of its records,
//                   then end bye     or the end of the pipe                   nothing: it exits 0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "contract/finding.hpp"
#include "contract/measure_spec.hpp"
#include "contract/outcome.hpp"
#include "contract/status.hpp"
#include "contract/submitted.hpp"
#include "contract/task.hpp"
#include "core/device_kind.hpp"
#include "core/rank_error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/units.hpp"
#include "core/value.hpp"

namespace syslab::worker {

inline constexpr int kWireVersion = 1;

// The exit code of a worker in which a thread found no memory (std::bad_alloc), so that nothing could be answered.
inline constexpr int kOutOfMemoryExit = 113;

// How deep facts may nest. They are stored below lists of ranks and of launches, and read again from there and from
// what is printed of them.
inline constexpr std::size_t kMostFactLevels = kMostLevels - 10;

// One attempt, as the host asks for it. Its timeout is the host's own, and travels with a law alone.
struct CaseRequest : MeasureSpec {
  std::string experiment;
  Params params;
  std::string implementation;
  std::optional<Submitted> mine;        // runs instead of one of ours
  DeviceKind device = DeviceKind::cpu;  // where it runs
  std::uint64_t seed = 0;
  std::string case_uid;
  int world_size = 1;      // ranks that do the case together, each a worker
  int own_ranks = 1;       // ranks that this one worker starts for the case, in place of that
  int rank = 0;            // which of them this one is
  int device_index = 0;    // which GPU of those that the process sees is this rank's, on "cuda"
  std::string rendezvous;  // how the ranks find each other ("file:DIR"); empty: one alone
  Task task = Task::measure;
  std::string law;           // Task::law: its id
  std::string reproduce;     // Task::law: replay exactly this counterexample (RapidCheck's string)
  Nanoseconds burst{};       // Task::paired: length of one burst aimed at
  bool fresh = false;        // what is judged is started for this case, and ends with it
  bool starts = false;       // it says `started` once that is there, and waits for `go` before its first call
  bool kernel_code = false;  // its kernels' code is asked for, too, once it was timed (worker/cases/kernel_code.hpp)
};

// --- records, worker → host -----------------------------------------------------------------------------------------

// In place of a rank: of all ranks of an attempt together. The host's alone; no worker says it.
inline constexpr int kAllRanks = -1;

struct MetricRecord {
  std::string name, unit;
  std::optional<double> value, low, high;  // value and 95 % interval
  std::optional<std::int64_t> n;           // samples behind it
  std::string note;                        // required when there is no value
  int rank = 0;
};

// Raw samples of one series, in order of time. `values` in `unit`; `flags` empty or one per value.
struct SampleRecord {
  std::string series, unit;  // "time", "s"
  int launch = 0, rank = 0;
  std::int64_t first_index = 0;
  std::vector<double> values;
  std::vector<std::int64_t> flags;
};

// The outcome of a comparison with the reference or of a law.
struct CheckRecord {
  std::string name;  // "reference:out", "attention.causal_prefix"
  Outcome outcome = Outcome::not_run;
  std::int64_t cases_run = 0, shrinks_tried = 0, shrinks_taken = 0;
  std::string seed;                 // unsigned 64-bit as text
  std::string reproduce;            // for replay
  std::string counterexample_json;  // object, name → value; empty: none
  std::string message;
  std::optional<double> worst_error, tolerance;
  double fraction_checked = 1.0;     // of the outputs
  std::optional<Contract> contract;  // of laws
  Finding finding;                   // laws: what was met
};

struct ArtifactRecord {
  std::string kind, media_type, content;  // content as text
};

struct MemoryEventRecord {
  std::int64_t t_ns = 0, delta_bytes = 0;
  std::string tag, category;
  int rank = 0;
};

// Kernels of one name in one phase, summed over what was recorded; no phase: over all phases.
struct KernelStatRecord {
  std::string phase, kernel;
  std::int64_t calls = 0, total_ns = 0, min_ns = 0, max_ns = 0;
  int rank = 0;
};

// An interval of a timeline, on a clock that begins with the recording.
struct SpanRecord {
  std::string track, name, category;  // "host", "forward", "phase"
  std::int64_t start_ns = 0, end_ns = 0;
  int rank = 0;
};

struct ProgressRecord {
  std::string text;     // "0.42 % of 0.50 % wanted"
  double fraction = 0;  // of this case, 0…1
};

// A fact about how the attempt was made, for its stored protocol: {"stop": "precision", "k": 4, …}.
struct FactRecord {
  std::string json;  // an object, merged into the attempt's facts
};

struct EndRecord {
  Status status = Status::ok;
  std::string detail;  // one line for people; empty when ok
  // The fault, if one of several ranks did not end well. The worker then exits with its number.
  std::optional<Fault> fault{};
};

using Record = std::variant<MetricRecord, SampleRecord, CheckRecord, ArtifactRecord, MemoryEventRecord,
                            KernelStatRecord, SpanRecord, ProgressRecord, FactRecord, EndRecord>;

// --- a case of task `paired`, worker → host; no records, nothing to store -------------------------------------------

// Checked and warm; from now on it uses no processor but for the bursts that are ordered.
struct Ready {
  std::int64_t calls_per_burst = 1;  // for the whole launch
  double seconds_per_call = 0;       // as the warm-up found it: what a burst will take
};

struct Burst {
  double seconds_per_call = 0;
};

Json to_json(const Ready& ready);
Json to_json(const Burst& burst);
// Error(comm) naming the field when a message is not one, or its numbers make no sense.
Ready ready_from_json(const Json& json);
Burst burst_from_json(const Json& json);

Json to_json(const CaseRequest& request);
CaseRequest case_request_from_json(const Json& json);
Json to_json(const Record& record);
// Error(comm) naming the field when a record is not one: a foreign worker's mistake must be readable.
Record record_from_json(const Json& json);

// How long a process that tells which kernels ran (task `code`) may take where so much is left of the case's own time,
// whose end waits for it: never so long that a case which was measured would be ended.
std::chrono::milliseconds patience_within(Nanoseconds left);

}  // namespace syslab::worker
