// Deaths and shortages: what was acknowledged is found again, and the file is sound.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <set>
#include <thread>

#include "tests/store/fixture.hpp"

namespace syslab::store {
namespace {

using namespace test;

// Runs `body(write end of a pipe)` in a child; what it prints comes back line by line, and it may be killed.
class Child {
 public:
  template <typename Body>
  explicit Child(Body&& body) {
    int ends[2];
    if (::pipe(ends) != 0) throw Error(ErrorKind::internal, "pipe failed");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      int code = 1;
      try {
        body(ends[1]);
        code = 0;
      } catch (const std::exception& error) {
        const std::string line = std::string("error ") + error.what() + "\n";
        [[maybe_unused]] const auto written = ::write(ends[1], line.data(), line.size());
      }
      ::_exit(code);
    }
    ::close(ends[1]);
    read_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill();
    wait();
  }
  void kill() const {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  // Everything the child printed; waits for its end.
  std::vector<std::string> wait() {
    if (pid_ <= 0) return {};
    std::string all;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(read_, buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(got));
    }
    ::close(read_);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    std::vector<std::string> lines;
    for (std::size_t begin = 0, end = 0; (end = all.find('\n', begin)) != std::string::npos; begin = end + 1) {
      lines.push_back(all.substr(begin, end - begin));  // a line cut short by a kill was not acknowledged
    }
    return lines;
  }

 private:
  pid_t pid_ = -1;
  int read_ = -1;
};

void say(int fd, const std::string& text) {
  const std::string line = text + "\n";
  if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(3);
}

std::set<std::string> finished_attempts(const Store& store) {
  std::set<std::string> uids;
  for (const auto& row : store.query("SELECT attempt_uid FROM v_attempt WHERE status = 'ok'").rows) {
    uids.insert(row[0].text);
  }
  return uids;
}

void expect_sound(const Store& store) {
  EXPECT_EQ(text(store, "PRAGMA integrity_check"), "ok");
  // One transaction an attempt: an end, if there, is there with everything that came before it.
  EXPECT_EQ(count(store,
                  "SELECT count(*) FROM v_attempt t WHERE status = 'ok' AND (facts IS NULL OR NOT checked OR "
                  "(SELECT count(*) FROM series s JOIN sample x ON x.series_id = s.id "
                  "WHERE s.attempt_id = t.attempt_id) <> 3)"),
            0);
  EXPECT_EQ(count(store, "SELECT count(*) FROM v_attempt WHERE status = 'running' AND facts IS NOT NULL"), 0);
}

TEST(StoreCrash, WhatWasAcknowledgedBeforeAKillIsFoundAgain) {
  std::mt19937 random(20260501);
  const auto begin = std::chrono::steady_clock::now();
  std::size_t acknowledged_in_all = 0;
  int rounds = 0, longest_us = 60'000;
  // Enough rounds and enough promises, however slow the machine: some seconds on an idle one, a minute at most.
  const auto proved = [&] { return rounds >= 10 && acknowledged_in_all > 100; };
  const auto spent = [&] { return std::chrono::steady_clock::now() - begin; };
  for (; rounds < 60 && (proved() ? spent() < std::chrono::seconds(6) : spent() < std::chrono::minutes(1)); ++rounds) {
    const Folder folder;
    const fs::path path = folder / "a.db";
    Child writer([&](int out) {
      Store store = Store::open(path, Mode::create);
      const RowId run = store.begin_run(a_run(), a_plan(20));
      for (int i = 0;; ++i) {
        AttemptRow attempt = an_attempt(i % 20);
        attempt.uid = new_uuid7();
        store.attempt_started(run, attempt.plan_seq, attempt.uid);
        store.heartbeat(attempt.uid);
        say(out, store.finish_attempt(run, attempt));
      }
    });
    // From "not yet created" to "well under way"
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<>(0, longest_us)(random)));
    writer.kill();
    const std::vector<std::string> acknowledged = writer.wait();
    acknowledged_in_all += acknowledged.size();
    // A busy machine, or a sanitizer, takes longer to get under way: about half of the kills shall come after that.
    longest_us = acknowledged.empty() ? std::min(longest_us * 5 / 4, 4'000'000) : std::max(longest_us * 4 / 5, 60'000);

    Store store = Store::open(path, Mode::create);  // makes it where the writer did not come so far
    const std::set<std::string> found = finished_attempts(store);
    for (const std::string& uid : acknowledged) {
      ASSERT_TRUE(found.contains(uid)) << "round " << rounds << ": " << uid << " was acknowledged and is lost";
    }
    // At most one more was committed and not yet printed, and at most one had begun.
    EXPECT_LE(found.size(), acknowledged.size() + 1);
    EXPECT_LE(store.close_abandoned(), 1);
    EXPECT_EQ(count(store, "SELECT count(*) FROM v_attempt WHERE status = 'running'"), 0);
    expect_sound(store);
  }
  EXPECT_GE(rounds, 10);
  EXPECT_GT(acknowledged_in_all, 100U) << "the writers were killed before they could prove anything";
}

TEST(StoreCrash, TwoWritersAtOnceBothSucceed) {
  const Folder folder;
  const fs::path path = folder / "a.db";
  constexpr int kEach = 200;
  const auto body = [&](int out) {
    Store store = Store::open(path, Mode::create);  // both may be the first
    const RowId run = store.begin_run(a_run(), a_plan(kEach));
    for (int i = 0; i < kEach; ++i) say(out, store.finish_attempt(run, an_attempt(i)));
  };
  Child first(body), second(body), third(body);
  std::vector<std::string> all;
  for (Child* child : {&first, &second, &third}) {
    for (const std::string& line : child->wait()) all.push_back(line);
  }
  ASSERT_EQ(all.size(), 3U * kEach) << (all.empty() ? "" : all.back());
  const Store store = Store::open(path, Mode::read_only);
  const std::set<std::string> found = finished_attempts(store);
  for (const std::string& uid : all) EXPECT_TRUE(found.contains(uid)) << uid;
  EXPECT_EQ(count(store, "SELECT count(*) FROM run"), 3);
  EXPECT_EQ(count(store, "SELECT max(version) FROM schema_migration"), store.schema_version());
  expect_sound(store);
}

TEST(StoreCrash, ManyStartsAtOnceMakeTheFileOnce) {
  for (int round = 0; round < 5; ++round) {
    const Folder folder;
    const fs::path path = folder / "a.db";
    const auto body = [&](int out) {
      Store::open(path, Mode::create);
      say(out, "opened");
    };
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < 6; ++i) children.push_back(std::make_unique<Child>(body));
    for (const auto& child : children) EXPECT_EQ(child->wait(), std::vector<std::string>{"opened"});
  }
}

TEST(StoreCrash, AFullDiskIsAClearErrorAndTheFileStaysSound) {
  const Folder folder;
  const fs::path path = folder / "a.db";
  Child writer([&](int out) {
    Store store = Store::open(path, Mode::create);
    const RowId run = store.begin_run(a_run(), a_plan(1));
    const rlimit limit{256 << 10, 256 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    AttemptRow attempt = an_attempt(0);
    for (int i = 0; i < 100'000; ++i) say(out, store.finish_attempt(run, attempt));
  });
  std::vector<std::string> lines = writer.wait();
  ASSERT_GT(lines.size(), 1U) << "nothing was written before the limit, or the limit's signal killed the writer";
  const std::string error = lines.back();
  lines.pop_back();
  EXPECT_EQ(error.substr(0, 6), "error ");
  EXPECT_NE(error.find("disk full"), std::string::npos) << error;
  EXPECT_NE(error.find(path.string()), std::string::npos) << error;

  Store store = Store::open(path, Mode::read_write);
  expect_sound(store);
  const std::set<std::string> found = finished_attempts(store);
  EXPECT_EQ(found.size(), lines.size());
  for (const std::string& uid : lines) EXPECT_TRUE(found.contains(uid));
  // And it can be written again once there is room.
  const RowId run = store.find_run("latest")->id;
  store.finish_attempt(run, an_attempt(0));
}

TEST(StoreCrash, AFullDiskAtCreationLeavesNoHalfStore) {
  const Folder folder;
  const fs::path path = folder / "a.db";
  Child writer([&](int) {
    const rlimit limit{16 << 10, 16 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Store::open(path, Mode::create);
  });
  const std::vector<std::string> lines = writer.wait();
  ASSERT_EQ(lines.size(), 1U) << "the limit's signal killed it, or it claimed to succeed";
  EXPECT_EQ(lines[0].substr(0, 6), "error ");
  Store store = Store::open(path, Mode::create);  // with room, the same path works
  expect_sound(store);
}

}  // namespace
}  // namespace syslab::store
