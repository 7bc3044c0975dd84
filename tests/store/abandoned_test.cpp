#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/options.hpp"
#include "store/writer.hpp"
#include "tests/store/fixture.hpp"

namespace syslab::store {
namespace {

using namespace test;

// A store whose attempts are signed by `writer`, its clock at `now`.
Store store_of(const fs::path& path, const Writer& writer, const std::string& now) {
  OpenOptions options = default_options();
  options.writer = writer;
  options.now = [now] { return now; };
  return Store::open(path, Mode::create, options);
}

Writer on_another_host() {
  return {.host = "elsewhere", .boot_id = "other-boot", .pid_namespace = "pid:[1]", .pid = 1, .start_ticks = 1};
}

// Begins one attempt as `writer` at noon, with a heartbeat 30 s later.
std::string begin_attempt(const fs::path& path, const Writer& writer) {
  const std::string uid = new_uuid7();
  RowId run = 0;
  {
    Store store = store_of(path, writer, "2026-05-01T12:00:00.000Z");
    run = store.begin_run(a_run(), a_plan(1));
    store.attempt_started(run, 0, uid);
  }
  store_of(path, writer, "2026-05-01T12:00:30.000Z").heartbeat(uid);
  return uid;
}

TEST(StoreAbandoned, AnAttemptOfADeadProcessIsClosedAsAborted) {
  const Folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    Store store = Store::open(folder / "a.db", Mode::create);
    const RowId run = store.begin_run(a_run(), a_plan(1));
    store.attempt_started(run, 0, new_uuid7());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  Store store = Store::open(folder / "a.db", Mode::read_write);
  EXPECT_EQ(store.close_abandoned(), 1);
  EXPECT_EQ(text(store, "SELECT status FROM v_attempt"), "aborted");
  EXPECT_EQ(store.plan_state(store.find_run("latest")->id).at(0).last_status, Status::aborted);
  EXPECT_EQ(store.close_abandoned(), 0) << "closed once";
}

TEST(StoreAbandoned, AnAttemptOfALivingProcessIsLeftAlone) {
  const Folder folder;
  begin_attempt(folder / "a.db", this_writer());
  // A day without a heartbeat: the process is seen to live, whatever its clock says.
  Store store = store_of(folder / "a.db", this_writer(), "2026-05-02T12:00:00.000Z");
  EXPECT_EQ(store.close_abandoned(), 0);
}

TEST(StoreAbandoned, AReusedProcessNumberIsNotTheWriter) {
  const Folder folder;
  Writer before_us = this_writer();
  before_us.start_ticks -= 1;
  begin_attempt(folder / "a.db", before_us);
  Store store = store_of(folder / "a.db", this_writer(), "2026-05-01T12:00:31.000Z");
  EXPECT_EQ(store.close_abandoned(), 1);
}

TEST(StoreAbandoned, AnotherHostIsJudgedByItsLastHeartbeat) {
  const Folder folder;
  begin_attempt(folder / "a.db", on_another_host());
  EXPECT_EQ(store_of(folder / "a.db", this_writer(), "2026-05-01T12:01:25.000Z").close_abandoned(), 0) << "55 s ago";
  EXPECT_EQ(store_of(folder / "a.db", this_writer(), "2026-05-01T11:00:00.000Z").close_abandoned(), 0)
      << "a clock that goes ahead of ours is no silence";
  EXPECT_EQ(store_of(folder / "a.db", this_writer(), "2026-05-01T12:01:35.000Z").close_abandoned(), 1) << "65 s ago";
}

TEST(StoreAbandoned, AProcessOfAnotherContainerIsJudgedByItsLastHeartbeat) {
  const Folder folder;
  Writer contained = this_writer();
  contained.pid_namespace = "pid:[7]";
  contained.pid = 2'000'000'000;  // here there is no such process
  begin_attempt(folder / "a.db", contained);
  EXPECT_EQ(store_of(folder / "a.db", this_writer(), "2026-05-01T12:00:45.000Z").close_abandoned(), 0);
  EXPECT_EQ(store_of(folder / "a.db", this_writer(), "2026-05-01T12:02:00.000Z").close_abandoned(), 1);
}

TEST(StoreAbandoned, ARunWithALivingWriterIsAtWorkEvenBetweenTwoAttempts) {
  const Folder folder;
  int hold[2];
  ASSERT_EQ(::pipe(hold), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(hold[1]);
    {
      Store store = Store::open(folder / "a.db", Mode::create);
      store.finish_attempt(store.begin_run(a_run(), a_plan(2)), an_attempt(0));
    }
    char byte = 0;
    while (::read(hold[0], &byte, 1) > 0) {  // lives until the parent closes
    }
    ::_exit(0);
  }
  ::close(hold[0]);
  const auto work = [&] {
    const Store store = Store::open(folder / "a.db", Mode::create);
    const auto run = store.find_run("latest");
    return run ? store.writer_at_work(run->id) : std::nullopt;
  };
  for (int tries = 0; tries < 1000 && !work(); ++tries) ::usleep(10'000);
  EXPECT_EQ(work().value_or("nobody"), "process " + std::to_string(child) + " on this machine");
  ::close(hold[1]);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(work().value_or("nobody"), "nobody");
}

TEST(StoreAbandoned, AWriterOutOfSightIsAtWorkWhileItsAttemptIsOpen) {
  const Folder folder;
  const std::string uid = begin_attempt(folder / "a.db", on_another_host());
  Store store = store_of(folder / "a.db", on_another_host(), "2026-05-01T12:00:40.000Z");
  const RowId run = store.find_run("latest")->id;
  EXPECT_NE(store.writer_at_work(run).value_or("nobody").find("elsewhere"), std::string::npos);
  AttemptRow attempt = an_attempt(0);
  attempt.uid = uid;
  store.finish_attempt(run, attempt);
  EXPECT_EQ(store.writer_at_work(run).value_or("nobody"), "nobody");
}

TEST(StoreAbandoned, ARealEndOutweighsAMistakenOne) {
  const Folder folder;
  const std::string uid = begin_attempt(folder / "a.db", on_another_host());
  ASSERT_EQ(store_of(folder / "a.db", this_writer(), "2026-05-01T13:00:00.000Z").close_abandoned(), 1);
  // It was only suspended, and finishes after all.
  Store store = store_of(folder / "a.db", on_another_host(), "2026-05-01T12:59:00.000Z");
  AttemptRow attempt = an_attempt(0);
  attempt.uid = uid;
  store.finish_attempt(store.find_run("latest")->id, attempt);
  EXPECT_EQ(text(store, "SELECT status FROM v_attempt"), "ok");
  EXPECT_EQ(count(store, "SELECT count(*) FROM v_attempt"), 1);
  EXPECT_EQ(count(store, "SELECT count(*) FROM v_failures"), 0);
}

}  // namespace
}  // namespace syslab::store
