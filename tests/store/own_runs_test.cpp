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
