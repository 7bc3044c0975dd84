// Which runs count as this user's own: proved by her key, and by nothing that a file says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/connection.hpp"
#include "store/options.hpp"
#include "tests/store/dump.hpp"

namespace syslab::store {
namespace {

using namespace test;

OpenOptions with_key(std::uint8_t first) {
  OpenOptions options = default_options();
  options.key = [first] { return Key{first}; };
  return options;
}

std::vector<PlanRow> a_plan_of_mine() {
  std::vector<PlanRow> plan = a_plan(2);
  plan[1].implementation = {
      .name = "me", .digest = "d", .language = "C", .is_mine = true, .path = "/home/me/kernel.so"};
  return plan;
}

RowId make(const fs::path& path, std::uint8_t key = 1) {
  Store store = Store::open(path, Mode::create, with_key(key));
  return store.begin_run(a_run(), a_plan_of_mine());
}

bool is_own(const fs::path& path, std::uint8_t key = 1) {
  const Store store = Store::open(path, Mode::read_only, with_key(key));
  return store.is_own(store.find_run("latest")->id);
}

TEST(OwnRuns, OnlyTheKeyThatMadeTheRunKnowsItAgain) {
  const Folder folder;
  make(folder / "a.db");
  EXPECT_TRUE(is_own(folder / "a.db"));
  EXPECT_FALSE(is_own(folder / "a.db", 2));
}

void write_path(const fs::path& path, const char* place) {
  Connection raw(path.string(), Connection::Access::read_write, path);
  raw.execute("DROP TRIGGER IF EXISTS plan_case_no_update");
  raw.execute(fmt::format("UPDATE plan_case SET mine_path = '{}' WHERE mine_path IS NOT NULL", place));
}

// Whoever may write the file shows another path, and writes the signed one back before the proof is asked for.
TEST(OwnRuns, WhatIsProvedIsWhatWasRead) {
  const Folder folder;
  const RowId run = make(folder / "a.db");
  const Store store = Store::open(folder / "a.db", Mode::read_write, with_key(1));
  write_path(folder / "a.db", "/tmp/hers.so");
  {
    const OneState one(store);
    ASSERT_EQ(store.plan_state(run).at(1).plan.implementation.path, "/tmp/hers.so");
    write_path(folder / "a.db", "/home/me/kernel.so");
    EXPECT_FALSE(store.is_own(run));
  }
  EXPECT_TRUE(store.is_own(run));
}

TEST(OwnRuns, AnythingThatIsLoadedIsPartOfTheProof) {
  const Folder folder;
  make(folder / "a.db");
  for (const char* change :
       {"UPDATE plan_case SET mine_path = '/home/me/kernel.s0' WHERE mine_path IS NOT NULL",
        "UPDATE plan_case SET mine_path = 'x' WHERE mine_path IS NULL",
        "UPDATE implementation SET digest = 'e' WHERE is_mine", "UPDATE implementation SET name = 'm' WHERE is_mine",
        "UPDATE implementation SET is_mine = 1", "UPDATE run_mac SET mac = zeroblob(32)", "DELETE FROM run_mac",
        "UPDATE run SET uid = 'f' || substr(uid, 2); UPDATE run_mac SET run_uid = 'f' || substr(run_uid, 2)",
        // The same letters, cut in another place.
        "UPDATE implementation SET name = 'med', digest = '' WHERE is_mine"}) {
    fs::copy_file(folder / "a.db", folder / "b.db", fs::copy_options::overwrite_existing);
    {
      Connection raw((folder / "b.db").string(), Connection::Access::read_write, folder / "b.db");
      raw.checkpoint_on_close();
      for (const char* table : {"run", "plan_case", "implementation", "run_mac"}) {
        for (const char* what : {"update", "delete"}) raw.execute(fmt::format("DROP TRIGGER {}_no_{}", table, what));
      }
      raw.execute(change);
    }
    EXPECT_FALSE(is_own(folder / "b.db")) << change;
  }
}

TEST(OwnRuns, ParametersAndConditionsArePartOfTheProof) {
  const Folder folder;
  std::vector<PlanRow> plan = a_plan(2);
  plan[1].names_files = true;
  Store::open(folder / "a.db", Mode::create, with_key(1)).begin_run(a_run(), plan);
  EXPECT_TRUE(is_own(folder / "a.db")) << "a file that an axis names needs a proof, as one of --mine does";
  for (const char* change :
       {"UPDATE case_def SET params = replace(params, '101', '102')", "UPDATE case_def SET experiment = 'other'",
        "UPDATE plan_case SET seed = '1'", "UPDATE plan_case SET world_size = 2", "UPDATE plan_case SET seq = seq + 5",
        "UPDATE plan_case SET skip_reason = '' WHERE seq = 0", "UPDATE run SET verb = 'check'",
        R"(UPDATE run SET protocol = '{"name": "kernel"}')", "UPDATE run SET root_seed = '0'",
        "DELETE FROM plan_case WHERE seq = 1"}) {
    fs::copy_file(folder / "a.db", folder / "b.db", fs::copy_options::overwrite_existing);
    {
      Connection raw((folder / "b.db").string(), Connection::Access::read_write, folder / "b.db");
      raw.checkpoint_on_close();
      for (const char* table : {"run", "plan_case", "case_def"}) {
        for (const char* what : {"update", "delete"}) raw.execute(fmt::format("DROP TRIGGER {}_no_{}", table, what));
      }
      raw.execute(change);
    }
    EXPECT_FALSE(is_own(folder / "b.db")) << change;
  }
}

// Puts other parameters under the uid of a case, before a run of it is made here.
TEST(OwnRuns, ARowUnderAnothersNameIsNotTaken) {
  const Folder folder;
  make(folder / "a.db");
  {
    Connection raw((folder / "a.db").string(), Connection::Access::read_write, folder / "a.db");
    raw.checkpoint_on_close();
    raw.execute("DROP TRIGGER case_def_no_update; UPDATE case_def SET params = replace(params, '101', '102')");
  }
  Store store = Store::open(folder / "a.db", Mode::create, with_key(1));
  EXPECT_THROW(store.begin_run(a_run(), a_plan_of_mine()), Error);
  EXPECT_EQ(count(store, "SELECT count(*) FROM run"), 1) << "and nothing of the run is kept";
  Store other = Store::open(folder / "b.db", Mode::create, with_key(1));
  EXPECT_THROW(other.merge(folder / "a.db"), Error);
  EXPECT_EQ(count(other, "SELECT count(*) FROM case_def"), 0);
}

TEST(OwnRuns, MergingCarriesProofsAndMakesNone) {
  const Folder folder;
  make(folder / "mine.db");
  make(folder / "theirs.db", 2);
  Store all = Store::open(folder / "all.db", Mode::create, with_key(1));
  all.merge(folder / "theirs.db");
  EXPECT_FALSE(all.is_own(all.find_run("latest")->id));
  // A wrong proof that came first does not keep the right one out.
  {
    fs::copy_file(folder / "mine.db", folder / "spoilt.db");
    Connection raw((folder / "spoilt.db").string(), Connection::Access::read_write, folder / "spoilt.db");
    raw.checkpoint_on_close();
    raw.execute("DROP TRIGGER run_mac_no_update; UPDATE run_mac SET mac = zeroblob(32)");
  }
  const std::string uid = text(Store::open(folder / "mine.db", Mode::read_only), "SELECT uid FROM run");
  all.merge(folder / "spoilt.db");
  EXPECT_FALSE(all.is_own(all.find_run(uid)->id));
  all.merge(folder / "mine.db");
  EXPECT_TRUE(all.is_own(all.find_run(uid)->id));
}

TEST(OwnRuns, NoKeyIsAskedForWhereNothingIsLoaded) {
  const Folder folder;
  OpenOptions options = default_options();
  options.key = []() -> Key { throw Error(ErrorKind::config, "no key here"); };
  Store store = Store::open(folder / "a.db", Mode::create, options);
  const RowId ours = store.begin_run(a_run(), a_plan(2));
  EXPECT_FALSE(store.is_own(ours));
  EXPECT_TRUE(store.notices().empty());
  const RowId mine = store.begin_run(a_run(), a_plan_of_mine());
  EXPECT_FALSE(store.is_own(mine));
  ASSERT_EQ(store.notices().size(), 1U) << "and what it means is told once";
  EXPECT_NE(store.notices()[0].find("no key here"), std::string::npos);
}

}  // namespace
}  // namespace syslab::store
