#include "store/schema_check.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/files/hash.hpp"
#include "core/text/printable.hpp"

namespace syslab::store {
namespace {

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
    if (migration.version <= version) memory.execute(migration.sql);
  }
  return made.emplace(std::move(statements), objects_of(memory, "main")).first->second;
}

std::string digest_of(const Objects& objects) {
  std::string all;
  for (const auto& [name, definition] : objects) {
    for (const std::string& part : {name.first, name.second, definition.table, definition.sql}) {
      all += part;
      all += '\0';
    }
  }
  return sha256_hex(all);
}

// "the view 'v_evil' is none that syslab makes"; nothing if all is well.
std::optional<std::string> difference(const Objects& found, const Objects& expected) {
  for (const auto& [name, definition] : found) {
    const auto ours = expected.find(name);
    if (ours == expected.end()) {
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
    if (found.contains(name)) continue;
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
  const auto known = schema.digests.find(static_cast<int>(version));
  std::optional<std::string> wrong;
  if (known == schema.digests.end() || known->second != digest_of(found)) {
    wrong = difference(found, made_by(schema, version));
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
