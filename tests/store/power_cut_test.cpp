// Power cuts, bad and full disks: what was acknowledged is found again, whole, and the file is sound.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "store/options.hpp"
#include "tests/store/fixture.hpp"
#include "tests/store/recorded_files.hpp"

namespace syslab::store {
namespace {

using namespace test;

constexpr int kInLog = 100;  // attempts: so many that the log is copied into the database on the way
constexpr int kInJournal = 6;

// What the store said that it had, and when.
struct Acknowledged {
  std::size_t at = 0;  // how many events the files had by then
  std::string uid;
};

struct Sweep {
  FileHistory history;
  std::vector<Acknowledged> attempts, runs, pins;
};

OpenOptions with_journal(bool is_network) {
  OpenOptions options = default_options();
  options.network_file_system = [is_network](const fs::path&) {
    return is_network ? std::optional<std::string>("nfs") : std::nullopt;
  };
  return options;
}

// A sweep from the making of its database to its end, recorded.
Sweep recorded_sweep(bool is_network) {
  const int attempts = is_network ? kInJournal : kInLog;
  const Folder folder;
  RecordedFiles files;
  Sweep sweep;
  {
    Store store = Store::open(folder / "a.db", Mode::create, with_journal(is_network));
    const RowId run = store.begin_run(a_run(), a_plan(attempts));
    const std::string run_uid = store.run_uid(run);
    sweep.runs.push_back({files.now(), run_uid});
    for (int i = 0; i < attempts; ++i) {
      AttemptRow attempt = an_attempt(i);
      attempt.uid = new_uuid7();
      store.attempt_started(run, i, attempt.uid);
      store.heartbeat(attempt.uid);
      store.finish_attempt(run, attempt);
      sweep.attempts.push_back({files.now(), attempt.uid});
    }
    store.add_pin("best", run_uid, "");
    sweep.pins.push_back({files.now(), "best"});
  }
  sweep.history = files.history();
  return sweep;
}

std::set<std::string> column_of(const Store& store, const std::string& sql) {
  std::set<std::string> texts;
  for (const auto& row : store.query(sql).rows) texts.insert(row[0].text);
  return texts;
}

void expect_all(const std::vector<Acknowledged>& acknowledged, std::size_t at, const std::set<std::string>& found) {
  for (const Acknowledged& one : acknowledged) {
    ASSERT_TRUE(one.at > at || found.contains(one.uid)) << one.uid << " was acknowledged and is lost";
  }
}

void expect_whole(const Store& store) {
  ASSERT_EQ(text(store, "PRAGMA quick_check"), "ok");
  ASSERT_EQ(count(store, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
  // An end, if there, is there with everything that came before it.
  ASSERT_EQ(count(store,
                  "SELECT count(*) FROM v_attempt t WHERE status = 'ok' AND (facts IS NULL OR NOT checked OR "
                  "(SELECT count(*) FROM series s JOIN sample x ON x.series_id = s.id "
                  "WHERE s.attempt_id = t.attempt_id) <> 3)"),
            0);
}

void expect_survives(const Sweep& sweep, const fs::path& folder, std::size_t at, Unsynced kept) {
  SCOPED_TRACE("power cut before event " + std::to_string(at) + ", of unsynced writes " +
               std::to_string(static_cast<int>(kept)));
  sweep.history.leave(folder, at, kept, static_cast<unsigned>(at));
  const Store store = Store::open(folder / "a.db", Mode::create);  // makes it where the writer did not come so far
  expect_whole(store);
  expect_all(sweep.runs, at, column_of(store, "SELECT uid FROM run"));
  expect_all(sweep.attempts, at, column_of(store, "SELECT attempt_uid FROM v_attempt WHERE status = 'ok'"));
  expect_all(sweep.pins, at, column_of(store, "SELECT name FROM pin"));
}

// Before each sync, at which most is unsynced, behind it, and at each acknowledgement.
std::set<std::size_t> moments(const Sweep& sweep) {
  std::set<std::size_t> moments{sweep.history.events.size()};
  for (std::size_t i = 0; i < sweep.history.events.size(); ++i) {
    if (sweep.history.events[i].kind == FileEvent::Kind::synced) moments.insert({i, i + 1});
  }
  for (const auto* all : {&sweep.runs, &sweep.attempts, &sweep.pins}) {
    for (const Acknowledged& one : *all) moments.insert(one.at);
  }
  return moments;
}

class PowerCut : public ::testing::TestWithParam<bool> {};

TEST_P(PowerCut, AtEachSyncOfASweepNothingAcknowledgedIsLost) {
  const Sweep sweep = recorded_sweep(GetParam());
  ASSERT_GT(moments(sweep).size(), 2 * sweep.attempts.size()) << "each attempt is synced";
  constexpr Unsynced kSomething[] = {Unsynced::all, Unsynced::first_ones, Unsynced::some_sectors};
  const Folder folder;
  unsigned turn = 0;
  for (const std::size_t at : moments(sweep)) {
    // Behind a sync, the worst is to lose all that was not synced; before it, whatever of it is there.
    const auto& events = sweep.history.events;
    const bool is_before_sync = at < events.size() && events[at].kind == FileEvent::Kind::synced;
    expect_survives(sweep, folder / "cut", at,
                    is_before_sync ? kSomething[turn++ % std::size(kSomething)] : Unsynced::none);
    if (HasFatalFailure()) return;
  }
}

// Otherwise the test above would try less than it says.
TEST(PowerCutTest, TheSweepCopiesItsLogIntoTheDatabase) {
  const Sweep sweep = recorded_sweep(/*is_network=*/false);
  const auto& events = sweep.history.events;
  const auto is_after_runs = [&](const FileEvent& event) {
    const auto at = static_cast<std::size_t>(&event - events.data());
    return at > sweep.attempts.front().at && at < sweep.attempts.back().at;
  };
  EXPECT_TRUE(std::ranges::any_of(events, [&](const FileEvent& event) {
    return is_after_runs(event) && event.kind == FileEvent::Kind::written && event.file == "a.db";
  }));
}

INSTANTIATE_TEST_SUITE_P(Journals, PowerCut, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "rollback" : "write_ahead"; });

// --- disks that fail ------------------------------------------------------------------------------------------------

struct Failure {
  const char* name;
  DiskFault fault;
  int times;
  const char* says;
};

// A store that is written to, until a change of its files fails; each change in its turn.
class FailingDisk : public ::testing::TestWithParam<Failure> {
 protected:
  // One with a run of three cases, made once.
  static const std::string& begun_store() {
    static const std::string bytes = [] {
      const Folder folder;
      Store::open(folder / "a.db", Mode::create).begin_run(a_run(), a_plan(3));
      return bytes_of(folder / "a.db");
    }();
    return bytes;
  }

  // The files' changes that the writing of three attempts takes. `written`: by then, the store is still open.
  static int write(RecordedFiles& files, const fs::path& path, int failing, std::vector<std::string>& acknowledged,
                   std::string& error, std::size_t& written) {
    Store store = Store::open(path, Mode::read_write);
    const RowId run = store.find_run("latest")->id;
    files.fail_at(failing, GetParam().fault, failing < 0 ? 0 : GetParam().times);
    for (int i = 0; i < 3; ++i) {
      try {
        acknowledged.push_back(store.finish_attempt(run, an_attempt(i)));
      } catch (const Error& failed) {
        EXPECT_EQ(failed.kind(), ErrorKind::store);
        error = failed.what();
      }
    }
    const int changes = files.changes();
    written = files.now();
    files.fail_no_more();
    return changes;
  }
};

TEST_P(FailingDisk, AtWhicheverChangeIsAClearErrorAndLosesNothingAcknowledged) {
  int changes = 1;
  bool has_failed = false;
  for (int failing = -1; failing < changes; ++failing) {
    SCOPED_TRACE("change " + std::to_string(failing) + " fails");
    const Folder folder;
    std::vector<std::string> acknowledged;
    std::string error;
    FileHistory history;
    std::size_t written = 0;
    write_bytes(folder / "a.db", begun_store());
    {
      RecordedFiles files;
      const int made = write(files, folder / "a.db", failing, acknowledged, error, written);
      if (failing < 0) changes = made;
      history = files.history();
    }
    if (failing < 0) {
      ASSERT_EQ(acknowledged.size(), 3U) << error;
      continue;
    }
    has_failed = has_failed || !error.empty();
    if (!error.empty()) {
      EXPECT_NE(error.find(GetParam().says), std::string::npos) << error;
      EXPECT_NE(error.find((folder / "a.db").string()), std::string::npos) << error;
    } else {
      EXPECT_EQ(acknowledged.size(), 3U);
    }
    // As it is now, and as it would be after a power cut at this moment.
    history.leave(folder / "cut", written, Unsynced::none, 1);
    for (const fs::path& path : {folder / "a.db", folder / "cut" / "a.db"}) {
      const Store store = Store::open(path, Mode::read_write);
      expect_whole(store);
      const std::set<std::string> found = column_of(store, "SELECT attempt_uid FROM v_attempt WHERE status = 'ok'");
      for (const std::string& uid : acknowledged) ASSERT_TRUE(found.contains(uid)) << uid << " is lost";
    }
  }
  EXPECT_TRUE(has_failed);
}

INSTANTIATE_TEST_SUITE_P(Disks, FailingDisk,
                         ::testing::Values(Failure{"a_write_once", DiskFault::write, 1, "disk I/O error"},
                                           Failure{"a_sync_once", DiskFault::sync, 1, "disk I/O error"},
                                           Failure{"all_from_then_on", DiskFault::write, 1'000'000, "disk I/O error"},
                                           Failure{"full", DiskFault::full, 1'000'000, "the disk is full"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace syslab::store
