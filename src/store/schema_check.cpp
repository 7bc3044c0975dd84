#include "store/schema_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "core/printable.hpp"

namespace syslab::store {
namespace {

constexpr std::int64_t kFirstWithoutViews = 3;

using Name = std::pair<std::string, std::string>;  // ("table", "run")
struct Definition {
  std::string table, sql;
  bool operator==(const Definition&) const = default;
};
using Objects = std::map<Name, Definition>;

Objects objects_of(Connection& connection, std::string_view database) {
  Objects objects;
  Statement rows(connection, fmt::format("SELECT type, name, tbl_name, sql FROM {}.sqlite_schema", database));
  while (rows.step()) objects[{rows.text(0), rows.text(1)}] = {rows.text(2), rows.text(3)};
  return objects;
}

// Running migrations takes longer than everything else in opening: once for the same ones.
const Objects& made_by(const Schema& schema, std::int64_t version) {
  static std::mutex one_at_a_time;
  static std::map<std::vector<std::string>, Objects> made;
  std::vector<std::string> statements;
  for (const Migration& migration : schema.migrations) {
    if (migration.version <= version) statements.push_back(migration.sql);
  }
  const std::lock_guard lock(one_at_a_time);
  if (const auto found = made.find(statements); found != made.end()) return found->second;
  Connection memory(":memory:", Connection::Access::read_write, ":memory:");
  Transaction together(memory);
  for (const Migration& migration : schema.migrations) {
    if (migration.version <= version) apply(memory, migration);
  }
  return made.emplace(std::move(statements), objects_of(memory, "main")).first->second;
}

// Of all objects but views, which a file of an older version may have.
std::string digest_of(const Objects& objects) {
  std::string all;
  for (const auto& [name, definition] : objects) {
    if (name.first == "view") continue;
    for (const std::string& part : {name.first, name.second, definition.table, definition.sql}) {
      all += part;
      all += '\0';
    }
  }
  return sha256_hex(all);
}

bool has_views(const Objects& objects) {
  return std::ranges::any_of(objects, [](const auto& object) { return object.first.first == "view"; });
}

// Accepts names like v_attempt, and none that could be anything else where it is written into a statement.
bool is_name_of_view(const std::string& name) {
  return name.starts_with("v_") && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

std::set<std::string> listed_views(Connection& connection, std::string_view database) {
  std::set<std::string> names;
  Statement rows(connection, fmt::format("SELECT name FROM {}.view_digest", database));
  while (rows.step()) {
    if (is_name_of_view(rows.text(0))) names.insert(rows.text(0));
  }
  return names;
}

// "the view 'v_evil' is none that syslab makes"; nothing if all is well.
std::optional<std::string> difference(const Objects& found, const Objects& expected, bool views_apart) {
  for (const auto& [name, definition] : found) {
    const auto ours = expected.find(name);
    if (ours == expected.end()) {
      if (views_apart && name.first == "view") continue;
      return fmt::format("the {} '{}' is none that syslab makes", name.first, name.second);
    }
    if (ours->second != definition) {
      return fmt::format("the {} '{}' is not as syslab makes it", name.first, name.second);
    }
  }
  for (const auto& [name, definition] : expected) {
    if (name.first == "table" && found.find(name) == found.end()) {
      return fmt::format("there is no table '{}'", name.second);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string schema_digest(const Schema& schema, int version) { return digest_of(made_by(schema, version)); }

std::vector<std::string> missing_objects(Connection& connection, const Schema& schema) {
  const Objects found = objects_of(connection, "main");
  std::vector<std::string> missing;
  for (const auto& [name, definition] : made_by(schema, connection.integer("PRAGMA main.user_version"))) {
    if (name.first == "view" || found.contains(name)) continue;
    missing.push_back(fmt::format("the {} '{}' is missing", name.first, name.second));
  }
  return missing;
}

void require_our_schema(Connection& connection, const Schema& schema) {
  require_our_schema(connection, schema, "main", connection.shown_as());
}

void require_our_schema(Connection& connection, const Schema& schema, std::string_view database,
                        const std::filesystem::path& shown_as) {
  const ReadTransaction one_state(connection);  // for all checks
  const std::int64_t version = connection.integer(fmt::format("PRAGMA {}.user_version", database));
  const Objects found = objects_of(connection, database);
  const bool views_apart = version > 0 && version < kFirstWithoutViews;
  const auto known = schema.digests.find(static_cast<int>(version));
  const bool is_known =
      known != schema.digests.end() && known->second == digest_of(found) && (views_apart || !has_views(found));
  std::optional<std::string> wrong;
  if (!is_known) wrong = difference(found, made_by(schema, version), views_apart);
  if (!wrong && views_apart) {
    const std::set<std::string> listed = listed_views(connection, database);
    for (const auto& [name, definition] : found) {
      if (name.first == "view" && !listed.contains(name.second)) {
        wrong = fmt::format("the view '{}' is none that syslab makes", name.second);
      }
    }
  }
  if (!wrong) return;
  throw Error(
      ErrorKind::store,
      printable(fmt::format("database '{}': its schema (version {}) is not syslab's own: {}. Whoever put that there "
                            "may have changed more; the file was left as it was and nothing of it was used. If you "
                            "did it yourself, undo it with the sqlite3 program; otherwise ask for another copy",
                            shown_as.string(), version, *wrong)));
}

}  // namespace syslab::store
