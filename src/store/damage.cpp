// Store::damage(): what is wrong with a file, as far as reading all of it shows.
#include <fmt/format.h>

#include <optional>

#include "core/files/hash.hpp"
#include "store/impl.hpp"
#include "store/impossible.hpp"
#include "store/schema_check.hpp"

namespace syslab::store {
namespace {

constexpr int kMostOfAKind = 20;

void check_pages(Connection& db, std::vector<std::string>& damage) {
  Statement rows(db, fmt::format("PRAGMA integrity_check({})", kMostOfAKind));
  while (rows.step()) {
    if (rows.text(0) != "ok") damage.push_back(rows.text(0));
  }
}

void check_references(Connection& db, std::vector<std::string>& damage) {
  Statement rows(db,
                 "SELECT \"table\", \"parent\", count(*) FROM pragma_foreign_key_check GROUP BY 1, 2 ORDER BY 1, 2");
  while (rows.step()) {
    damage.push_back(fmt::format("{} rows of {} refer to rows of {} that are not there", rows.integer(2), rows.text(0),
                                 rows.text(1)));
  }
}

// That nothing else is there was checked when the file was opened.
void check_schema(Connection& db, const Schema& schema, std::vector<std::string>& damage) {
  for (const std::string& missing : missing_objects(db, schema)) {
    damage.push_back(missing + " (`syslab merge` into a new file makes it again)");
  }
}

// `sql` returns a row's name, its content and the digest that is stored with it.
void check_digests(Connection& db, std::string_view what, std::string_view sql, std::vector<std::string>& damage) {
  Statement rows(db, sql);
  int found = 0;
  while (rows.step() && found < kMostOfAKind) {
    if (sha256_hex(rows.text(1)) == rows.text(2)) continue;
    damage.push_back(fmt::format("{} {} is not what its SHA-256 says", what, rows.text(0)));
    ++found;
  }
}

}  // namespace

std::vector<std::string> Store::damage() const {
  Connection& db = impl_->db();
  std::vector<std::string> damage;
  try {
    check_pages(db, damage);
    check_references(db, damage);
    check_schema(db, impl_->options.schema, damage);
    for (const std::string& wrong : wrong_facts(db, "main", kMostOfAKind)) {
      damage.push_back(fmt::format("the {} is not what its SHA-256 says", wrong));
    }
    check_digests(db, "the artifact", "SELECT uid, content, sha256 FROM artifact", damage);
    if (const std::optional<std::string> found = impossible_time(db, "main")) {
      damage.push_back(*found + ", a time that does not exist");
    }
    if (const std::optional<std::string> found = impossible_value(db, "main")) {
      damage.push_back(*found + ", which no measurement says");
    }
  } catch (const Error& error) {  // as far as it can be read
    damage.emplace_back(error.what());
  }
  return damage;
}

}  // namespace syslab::store
