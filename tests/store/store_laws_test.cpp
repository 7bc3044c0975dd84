// Laws of the store: what is merged, killed or reopened is what was written, whatever was written.
//
// A random history is drawn as plain data first, then played on stores; so a counterexample prints as the history.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>

#include "store/reservoir.hpp"
#include "store/utf8.hpp"
#include "tests/laws/expect_law.hpp"
#include "tests/store/dump.hpp"

namespace syslab::store {
namespace {

using namespace test;

constexpr int kPlanned = 4;

// One thing that happens to a store.
struct Step {
  enum class Kind { run, start, beat, finish, close } kind = Kind::run;
  int plan_seq = 0;
  int status = 0;       // of finish
  double value = 0;     // any double at all
  std::string message;  // any bytes at all
  bool announced = false;
};
using History = std::vector<Step>;

std::ostream& operator<<(std::ostream& out, const Step& step) {
  static constexpr const char* kNames[] = {"run", "start", "beat", "finish", "close"};
  return out << kNames[static_cast<int>(step.kind)] << "(seq " << step.plan_seq << ", status " << step.status << ", "
             << step.value << ", " << step.message.size() << " bytes" << (step.announced ? ", announced" : "") << ")";
}

rc::Gen<Step> steps() {
  using Kind = Step::Kind;
  return rc::gen::build<Step>(
      rc::gen::set(&Step::kind,
                   rc::gen::weightedElement<Kind>(
                       {{1, Kind::run}, {2, Kind::start}, {1, Kind::beat}, {6, Kind::finish}, {1, Kind::close}})),
      rc::gen::set(&Step::plan_seq, rc::gen::inRange(0, kPlanned)),
      rc::gen::set(&Step::status, rc::gen::inRange(0, static_cast<int>(Status::aborted) + 1)),
      rc::gen::set(&Step::value, rc::gen::oneOf(rc::gen::arbitrary<double>(),
                                                rc::gen::element(std::nan(""), HUGE_VAL, -0.0, 5e-324))),
      rc::gen::set(&Step::message, rc::gen::container<std::string>(rc::gen::arbitrary<char>())),
      rc::gen::set(&Step::announced, rc::gen::arbitrary<bool>()));
}

rc::Gen<History> histories() { return rc::gen::resize(12, rc::gen::container<History>(steps())); }

AttemptRow attempt_of(const Step& step) {
  AttemptRow row;
  row.plan_seq = step.plan_seq;
  row.status = static_cast<Status>(step.status);
  row.detail = step.message;
  row.records = {worker::MetricRecord{.name = "m", .unit = "1", .value = step.value},
                 worker::SampleRecord{.series = "s", .unit = "1", .values = {step.value, 1.0}}, a_check()};
  return row;
}

// Plays a history step by step; `done(i, uid)` hears of each step once it has returned.
class Player {
 public:
  explicit Player(const fs::path& path) : store_(Store::open(path, Mode::create)) { begin_run(); }

  std::string play(const Step& step) {
    switch (step.kind) {
      case Step::Kind::run:
        begin_run();
        return {};
      case Step::Kind::start:
        open_ = {new_uuid7(), step.plan_seq};
        store_.attempt_started(run_, step.plan_seq, open_.first);
        return {};
      case Step::Kind::beat:
        if (!open_.first.empty()) store_.heartbeat(open_.first);
        return {};
      case Step::Kind::close:
        store_.close_abandoned();
        return {};
      case Step::Kind::finish:
        break;
    }
    AttemptRow row = attempt_of(step);
    if (step.announced && !open_.first.empty()) std::tie(row.uid, row.plan_seq) = std::exchange(open_, {});
    return store_.finish_attempt(run_, row);
  }

 private:
  void begin_run() {
    run_ = store_.begin_run(a_run(), a_plan(kPlanned));
    open_ = {};
  }

  Store store_;
  RowId run_ = 0;
  std::pair<std::string, int> open_;
};

void play(const fs::path& path, const History& history) {
  Player player(path);
  for (const Step& step : history) player.play(step);
}

std::string dump_of(const fs::path& path) { return dump(Store::open(path, Mode::read_only)); }

void merge(const fs::path& into, const std::vector<fs::path>& parts) {
  Store store = Store::open(into, Mode::create);
  for (const fs::path& part : parts) store.merge(part);
}

TEST(StoreLaws, MergingIsIdempotentAndOrderFree) {
  property::expect_law("store.merge_order_free", 8, [](check::Observation&) {
    const auto parts = *rc::gen::resize(3, rc::gen::nonEmpty(rc::gen::container<std::vector<History>>(histories())));
    const Folder folder;
    std::vector<fs::path> files;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      files.push_back(folder.path() / ("part" + std::to_string(i) + ".db"));
      play(files.back(), parts[i]);
    }
    merge(folder / "forward.db", files);
    const std::string merged = dump_of(folder / "forward.db");

    merge(folder / "forward.db", files);
    RC_ASSERT(dump_of(folder / "forward.db") == merged);

    std::reverse(files.begin(), files.end());
    merge(folder / "backward.db", files);
    RC_ASSERT(dump_of(folder / "backward.db") == merged);

    // Through a store in between: (a ∪ b) ∪ (a ∪ c) …
    merge(folder / "first.db", {files.front()});
    merge(folder / "through.db", {folder / "backward.db", folder / "first.db"});
    RC_ASSERT(dump_of(folder / "through.db") == merged);
  });
}

TEST(StoreLaws, CopiesOfOneRunThatWentOnApartUnite) {
  property::expect_law("store.split_runs_unite", 10, [](check::Observation&) {
    const History before = *histories();
    const History left = *histories();
    const History right = *histories();
    const Folder folder;
    play(folder / "left.db", before);
    fs::copy_file(folder / "left.db", folder / "right.db");
    const auto go_on = [](const fs::path& path, const History& history) {
      Store store = Store::open(path, Mode::read_write);
      const RowId run = store.find_run("latest")->id;
      for (const Step& step : history) {
        if (step.kind == Step::Kind::finish) store.finish_attempt(run, attempt_of(step));
      }
      return static_cast<std::int64_t>(
          std::count_if(history.begin(), history.end(), [](const Step& s) { return s.kind == Step::Kind::finish; }));
    };
    const std::int64_t common = count(Store::open(folder / "left.db", Mode::read_only), "SELECT count(*) FROM attempt");
    const std::int64_t more = go_on(folder / "left.db", left) + go_on(folder / "right.db", right);
    merge(folder / "lr.db", {folder / "left.db", folder / "right.db"});
    merge(folder / "rl.db", {folder / "right.db", folder / "left.db"});
    RC_ASSERT(dump_of(folder / "lr.db") == dump_of(folder / "rl.db"));
    const Store united = Store::open(folder / "lr.db", Mode::read_only);
    RC_ASSERT(count(united, "SELECT count(*) FROM attempt") == common + more);
  });
}

TEST(StoreLaws, WhatWasAcknowledgedOutlivesAKill) {
  property::expect_law("store.kill", 20, [](check::Observation&) {
    const History history = *rc::gen::nonEmpty(histories());
    const std::size_t last = *rc::gen::inRange<std::size_t>(0, history.size());
    const Folder folder;
    int ends[2];
    RC_ASSERT(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      Player player(folder / "a.db");
      for (std::size_t i = 0; i <= last; ++i) {
        const std::string uid = player.play(history[i]);
        if (!uid.empty() && ::write(ends[1], uid.data(), uid.size()) != static_cast<ssize_t>(uid.size())) ::_exit(1);
      }
      ::kill(::getpid(), SIGKILL);  // no destructor runs, nothing is folded together
    }
    ::close(ends[1]);
    std::string acknowledged;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
      acknowledged.append(buffer, static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);

    const Store store = Store::open(folder / "a.db", Mode::read_write);
    const auto finished = column(store, "SELECT attempt_uid FROM v_attempt WHERE facts IS NOT NULL ORDER BY 1");
    RC_ASSERT(finished.size() == acknowledged.size() / 36);
    for (const std::string& uid : finished) RC_ASSERT(acknowledged.find(uid) != std::string::npos);
    RC_ASSERT(text(store, "PRAGMA integrity_check") == "ok");
  });
}

TEST(StoreLaws, AnyNumberAndAnyBytesAreReadBackOrSaidToBeMissing) {
  property::expect_law("store.round_trip", 25, [](check::Observation&) {
    Step step = *steps();
    step.kind = Step::Kind::finish;
    step.announced = false;
    const Folder folder;
    play(folder / "a.db", {step});
    const Store store = Store::open(folder / "a.db", Mode::read_only);
    const auto row = store
                         .query(
                             "SELECT m.value, m.note, t.status, t.message, "
                             "(SELECT value FROM sample ORDER BY idx LIMIT 1) "
                             "FROM v_attempt t JOIN metric m ON m.attempt_id = t.attempt_id")
                         .rows.at(0);
    if (std::isnan(step.value)) {
      RC_ASSERT(row[0].type == Cell::Type::null);
      RC_ASSERT(!row[1].text.empty());
      RC_ASSERT(row[4].type == Cell::Type::null);
    } else {
      RC_ASSERT(row[0].real == step.value);
      RC_ASSERT(row[4].real == step.value);
    }
    RC_ASSERT(row[2].text == std::string(to_string(static_cast<Status>(step.status))));
    RC_ASSERT(row[3].text == repaired_utf8(step.message).value_or(step.message));
  });
}

TEST(StoreLaws, RepairedTextIsWellFormedAndWellFormedTextIsLeftAlone) {
  property::expect_law("store.utf8", 500, [](check::Observation&) {
    const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    const std::string once = repaired_utf8(bytes).value_or(bytes);
    RC_ASSERT(!repaired_utf8(once));
    RC_ASSERT(once.find('\0') == std::string::npos);
    const std::string ascii_and_more = "a µ → 𝄞 " + once;
    RC_ASSERT(!repaired_utf8(ascii_and_more));
  });
}

TEST(StoreLaws, AReservoirIsFairAndFull) {
  property::expect_law("store.reservoir", 300, [](check::Observation&) {
    const auto sizes = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 1000));
    const auto limit = *rc::gen::inRange<std::int64_t>(0, 2000);
    const auto quotas = sample_quotas(sizes, limit);
    const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    RC_ASSERT(std::accumulate(quotas.begin(), quotas.end(), std::int64_t{0}) == std::min(total, limit));
    std::int64_t level = 0;  // the most that any series got
    for (const std::int64_t quota : quotas) level = std::max(level, quota);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      RC_ASSERT(quotas[i] <= sizes[i]);
      if (quotas[i] < sizes[i]) RC_ASSERT(quotas[i] >= level - 1);  // cut only to the common level
      const auto chosen = choose_indices(sizes[i], quotas[i], 7 + i);
      RC_ASSERT(static_cast<std::int64_t>(chosen.size()) == quotas[i]);
      RC_ASSERT(std::is_sorted(chosen.begin(), chosen.end()));
      RC_ASSERT(std::adjacent_find(chosen.begin(), chosen.end()) == chosen.end());
      for (const std::int64_t index : chosen) RC_ASSERT(index >= 0 && index < sizes[i]);
    }
  });
}

}  // namespace
}  // namespace syslab::store
