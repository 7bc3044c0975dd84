// The store: one SQLite file with everything a run found. This room alone sees sqlite3. Schema: db/README.md.
//
// One transaction per finished attempt; append-only; a newer, foreign or damaged file is refused unchanged. What a
// writing call acknowledges by returning survives a power cut, but for claims, starts and heartbeats of attempts.
// Several processes may write to a file at once; their attempts share syncs of the disk.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/value.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::store {

using RowId = std::int64_t;

// A fact about an implementation of ours as the program that makes the run knows it: contract/rung_fact.hpp.
struct RungFactRow {
  std::string experiment, rung, fact, value;
  std::string unit;  // empty: none
};

struct RunRow {
  std::string uid;   // UUIDv7; empty: a new one is made
  std::string verb;  // "run", "check"
  std::string label;
  std::vector<std::string> argv;
  std::string protocol_json;  // the measuring protocol
  std::string root_seed;
  std::string environment_json;  // facts
  std::string comparability_key;
  std::string build_json;  // core/build_info.hpp
  // An alias of whoever handed in the --mine implementations of the plan: they become one submission. Empty: nobody's.
  std::string author;
  std::vector<RungFactRow> rung_facts;  // of our implementations in the plan
};

// An implementation as it stood when measured.
struct ImplementationRow {
  std::string name, digest, language;
  bool is_mine = false;
  std::string path;  // of a --mine file, as given
  std::string role;  // contract/role.hpp, as text; empty: ours, or a --mine file
};

// One case of a run's plan: what `resume` compares with what was done.
struct PlanRow {
  int seq = 0;
  std::string experiment, version, case_uid;
  Params params;
  ImplementationRow implementation;
  int world_size = 1;
  Task task = Task::measure;
  std::string law;
  std::string seed;
  std::string skip_reason;
  bool names_files = false;  // an axis names a file that the case reads or writes; written only
};

struct AttemptRow {
  std::string uid;  // empty: a new one is made
  int plan_seq = 0;
  Status status = Status::ok;
  std::string detail;
  std::string facts_json = "{}";
  std::string started_at, ended_at;
  std::vector<worker::Record> records;
};

// A planned case of a stored run and where it stands.
struct PlanState {
  PlanRow plan;
  std::optional<Status> last_status;  // nothing: never finished
  int attempts = 0;
};

struct StoredRun {
  RowId id = 0;
  std::string uid, verb, started_at, label, protocol_json, root_seed, build_sha;
  std::vector<std::string> argv;
};

// A stored check, with what `replay` needs.
struct StoredCheck {
  RowId run = 0;
  std::string uid, experiment, implementation, law, seed, reproduce, counterexample_json, message;
  Outcome outcome = Outcome::not_run;
  Params params;
  int world_size = 1;
  std::string mine_path, implementation_digest;
  std::string protocol_json;  // of its run
};

// One comparison of two sides, with the blocks that it was made of (table `comparison`).
struct ComparisonRow {
  struct Block {
    int launch = 0, block = 0;
    std::string order;              // "ABBA"
    std::array<double, 4> seconds;  // in order of time
    double log_ratio = 0;
  };
  struct Attempt {
    char side = 'A';  // 'A' | 'B'
    int launch = 0;
    std::string uid;  // of a stored attempt, of any run
  };
  std::string uid;  // empty: a new one is made
  std::string experiment;
  Params params;  // what both sides share
  std::string metric = "time", unit = "s", mode = "interleaved";
  std::string side_a_json, side_b_json;  // objects with at least "label"
  std::optional<double> value_a, value_b;
  int launches = 0, block_count = 0;
  std::optional<double> log_ratio, low, high, p_value;
  double delta = 0.01;
  std::string verdict, reason;
  std::string confirms;  // uid of the comparison that this one repeats, or empty
  std::string facts_json = "{}";
  std::vector<Block> blocks;
  std::vector<Attempt> attempts;
};

// What a comparison's verdict became among all of its sweep.
struct SweepVerdict {
  std::string comparison_uid;
  int tests = 1;
  double q_value = 1;
  std::string verdict, reason;
};

// Of several attempts that are stored at once: the uid of one, or why it is not stored.
struct StoredAttempt {
  std::string uid;
  std::optional<Error> refused;
};

struct PinRow {
  std::string name, at, run_uid, note;
};

enum class Mode { create, read_write, read_only };

// Results of a query, as text or numbers, for tables.
struct Cell {
  enum class Type { null, integer, real, text } type = Type::null;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
};
struct ResultSet {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

struct MergeCounts {
  std::int64_t runs = 0, attempts = 0, already_there = 0;
  // Attempts, comparisons and pins that were not taken, since nobody vouched for them: of runs that were measured here,
  // to which they would add as if they were measured here, too; and names of runs.
  std::int64_t left_out = 0;
};

// What merge() takes, and how the origin of runs is recorded.
struct MergeOptions {
  std::optional<std::vector<std::string>> runs;  // uids; nothing: all
  bool samples = true;                           // raw samples too; what was computed from them is always merged
  // Whether the runs that arrive count as measured here (shards of one sweep). Never true for runs that the other file
  // itself has from somebody it does not trust.
  bool trusted = false;
  bool keep_arrivals = false;  // a copy of a store, not a merge of two: the origin of runs stays as it is
  // The comparability_key that facts of a machine have. Environments with another one are refused; null: none are.
  std::string (*key_of_machine)(const Json& facts) = nullptr;
};

class ReadTransaction;
struct OpenOptions;  // store/options.hpp: what tests put in place of the machine

inline constexpr std::chrono::milliseconds kLongestQuery = std::chrono::seconds{20};
// What Store::query() says of one that takes longer.
std::string query_takes_longer(std::chrono::milliseconds longest);

// For one thread at a time. A store must not be used in a child made by fork(): the child opens its own.
class Store {
 public:
  // create: makes the file if there is none, migrates an older one after copying it aside. Error(store) with the reason
  // for a file that is not a database, not ours, newer than this binary, or unwritable; the file is left as it was.
  // read_write: the file must be there. read_only: works on read-only files and folders, too.
  static Store open(const std::filesystem::path& path, Mode mode);
  static Store open(const std::filesystem::path& path, Mode mode, OpenOptions options);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // What the user should hear once: a network file system, a migration and its copy; from begin_run() on, that this
  // user's key could not be had. Often empty.
  const std::vector<std::string>& notices() const;

  // --- writing ---
  RowId begin_run(const RunRow& run, const std::vector<PlanRow>& plan);  // one transaction
  std::string run_uid(RowId run) const;
  // Whether this user's own program wrote the run and its plan (files of --mine, parameters), in whatever file it is
  // now: proved by a key that only this user has. False for runs that name no files, which need no proof, and for those
  // of builds whose proof covered less.
  bool is_own(RowId run) const;
  void attempt_started(RowId run, int plan_seq, const std::string& attempt_uid);
  // Skipped if it cannot be written at once: a missing heartbeat is no reason to lose a measurement.
  void heartbeat(const std::string& attempt_uid);
  // The whole attempt in one transaction; returns its uid once it is committed. Of more than 50,000 samples a random
  // part is kept, and the attempt's facts say so. Works whether or not attempt_started() was called for its uid.
  std::string finish_attempt(RowId run, const AttemptRow& attempt);
  // All of them in one transaction with one sync; each whole or not at all, so that one that cannot be stored does not
  // lose the others. In their order. Error(store) when none was stored.
  std::vector<StoredAttempt> finish_attempts(RowId run, const std::vector<AttemptRow>& attempts);
  // Closes attempts that never ended and have no live writer as `aborted`. Returns how many. A writer that this process
  // can see is judged by its process; any other by its last heartbeat, dead after a minute of silence.
  int close_abandoned();

  // Who is at work on the run, as "process 4711 on this machine"; nothing when nobody is. The same judgement as
  // close_abandoned(), which comes first.
  std::optional<std::string> writer_at_work(RowId run) const;

  // The comparison with its blocks and links, in one transaction; returns its uid. Error(internal) for an attempt that
  // is not stored.
  std::string add_comparison(RowId run, const ComparisonRow& comparison);
  void add_sweep_verdicts(const std::vector<SweepVerdict>& verdicts);  // one transaction
  // Gives the run a name. Pins are never moved: the newest of a name counts, the others are its history.
  void add_pin(const std::string& name, const std::string& run_uid, const std::string& note);

  // Takes the run for this process to work on. If several processes ask at once, one gets it; the others get
  // the name of its owner, as from writer_at_work(). Kept alive by heartbeat(); free again when released, or when its
  // owner is gone by the judgement of close_abandoned().
  std::optional<std::string> claim_run(RowId run);
  void release_run(RowId run);

  // --- reading ---
  // By uid, its beginning, its ending (UUIDv7 begin with the time, so endings tell runs of one minute apart), or
  // "latest": the newest that is not dated in the future, if there is one. Error(usage) when ambiguous.
  std::optional<StoredRun> find_run(const std::string& uid_or_prefix_or_latest) const;
  // Runs that are dated in the future, because a clock was wrong when they began.
  std::int64_t count_future_runs() const;
  std::vector<PlanState> plan_state(RowId run) const;
  std::vector<PinRow> pins() const;                               // by name, newest first
  std::optional<PinRow> find_pin(const std::string& name) const;  // the newest of that name
  std::optional<StoredCheck> find_check(const std::string& uid_or_prefix) const;
  // One read-only statement. Error(usage) with SQLite's message when it is wrong or would write, and when it takes
  // longer than `longest`: queries of a report take less; what takes more is a mistake, or meant to exhaust this
  // process. SQLite looks at the time between its instructions alone, and one call of instr() or replace() can take
  // minutes: for SQL of other people, a caller that must go on or end needs a watchdog of its own.
  ResultSet query(const std::string& sql, const std::vector<Cell>& parameters = {},
                  std::chrono::milliseconds longest = kLongestQuery) const;
  // For many queries on the views of attempts, as a report makes them: what v_attempt, v_newest and v_measured hold is
  // computed once and kept in memory, and every query from now on sees these attempts and no later ones. Nothing is
  // written to the file, and no reading transaction stays open. Only on a store opened read_only.
  //
  // `versions`: for each experiment the version with visible measurements. The numbers of others mean something else
  // (registry::Experiment::version) and must not be shown with them; only v_run still counts their attempts.
  void hold_still(const std::map<std::string, std::string>& versions = {});
  // After hold_still(): query() with only what was measured here, or is vouched for, in v_attempt, v_newest, v_measured
  // and whatever stands on them. Else the same as query().
  ResultSet query_own(const std::string& sql, const std::vector<Cell>& parameters = {}) const;
  // How many measurements of the experiment are of another version.
  std::int64_t count_other_versions(const std::string& experiment, const std::string& version) const;
  // Reads everything: pages and indexes, references between rows, the schema, the digests of facts and artifacts, and
  // whether times exist.
  // Nothing: no damage that these show (a number that has changed inside its row is none).
  std::vector<std::string> damage() const;
  int schema_version() const;
  std::string journal_mode() const;  // "wal"; "delete" on a network file system

  // Adds everything of `other` that is not here yet; again changes nothing.
  MergeCounts merge(const std::filesystem::path& other, const MergeOptions& options = {});
  // A run that was made elsewhere, whole, in one transaction. `digest` is the source's: when it was taken in before,
  // nothing is written and nothing returned. Otherwise the run's uid.
  std::optional<std::string> import_run(const RunRow& run, const std::vector<PlanRow>& plan,
                                        const std::vector<AttemptRow>& attempts, const std::string& digest);

  struct Impl;

 private:
  explicit Store(std::unique_ptr<Impl> impl);
  friend class OneState;

  std::unique_ptr<Impl> impl_;
};

// While this lives, all that is read from the store is of one state of its file, whatever others write meanwhile: what
// was read and is then proved to be this user's own (is_own) is the same. Nothing is written, and writers of a file
// without a log wait for it: not for long.
class OneState {
 public:
  explicit OneState(const Store& store);
  OneState(const OneState&) = delete;
  OneState& operator=(const OneState&) = delete;
  ~OneState();

 private:
  std::unique_ptr<ReadTransaction> transaction_;
};

}  // namespace syslab::store
