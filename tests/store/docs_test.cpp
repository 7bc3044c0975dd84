// The queries that docs/schema.md shows are queries that run.
#include <gtest/gtest.h>

#include "tests/store/full_database.hpp"

namespace syslab::store {
namespace {

using namespace test;

std::vector<std::string> sql_blocks(const std::string& page) {
  static const std::string kOpen = "```sql\n";
  std::vector<std::string> blocks;
  for (std::size_t at = page.find(kOpen); at != std::string::npos; at = page.find(kOpen, at + 1)) {
    const std::size_t begin = at + kOpen.size();
    blocks.push_back(page.substr(begin, page.find("```", begin) - begin));
  }
  return blocks;
}

TEST(SchemaPage, EveryQueryRuns) {
  const Folder folder;
  make_full_database(folder / "a.db");
  const Store store = Store::open(folder / "a.db", Mode::create);
  const std::vector<std::string> queries = sql_blocks(bytes_of(fs::path(SYSLAB_SOURCE) / "docs/schema.md"));
  EXPECT_EQ(queries.size(), 11U);
  for (const std::string& sql : queries) EXPECT_NO_THROW(store.query(sql)) << sql;
}

TEST(SchemaPage, EveryViewIsExplained) {
  const Folder folder;
  const Store store = Store::open(folder / "a.db", Mode::create);
  const std::string page = bytes_of(fs::path(SYSLAB_SOURCE) / "docs/schema.md");
  const std::string readme = bytes_of(fs::path(SYSLAB_SOURCE) / "db/README.md");
  const ResultSet named = store.query(
      "SELECT name FROM (SELECT name, type FROM sqlite_schema UNION SELECT name, type FROM sqlite_temp_schema) WHERE "
      "type "
      "IN ('table', 'view') AND name NOT LIKE 'sqlite_%'");
  EXPECT_GT(named.rows.size(), 40U);
  for (const auto& row : named.rows) {
    const std::string& name = row[0].text;
    EXPECT_NE(readme.find("`" + name + "`"), std::string::npos) << name << " is missing in db/README.md";
    if (name.substr(0, 2) == "v_") {
      EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name << " is missing in docs/schema.md";
    }
  }
}

}  // namespace
}  // namespace syslab::store
