#include "store/migrate.hpp"

#include <fmt/format.h>

#include <system_error>

#include "core/build_info.hpp"
#include "core/files/hash.hpp"
#include "core/ids.hpp"
#include "core/resources.hpp"
#include "core/text/text.hpp"
#include "store/damaged.hpp"
#include "store/file_header.hpp"
#include "store/schema_check.hpp"

namespace syslab::store {
namespace {

// "db/views/v_latest.sql" → "v_latest"
std::string stem(std::string_view path) { return std::filesystem::path(path).stem().string(); }

std::string tool() { return fmt::format("syslab {} {}", build_info().version, build_info().git_sha); }

// An unused name, so that no earlier copy is overwritten.
std::filesystem::path copy_path(const std::filesystem::path& file, std::int64_t version) {
  for (int i = 0;; ++i) {
    std::filesystem::path path =
        fmt::format("{}.v{}{}.bak", file.string(), version, i == 0 ? "" : fmt::format("-{}", i));
    if (!std::filesystem::exists(path)) return path;
  }
}

std::filesystem::path copy_aside(const std::filesystem::path& file, std::int64_t version) {
  const std::filesystem::path target = copy_path(file, version);
  // A name that no other file has: other files there were not made here.
  const std::filesystem::path unfinished = fmt::format("{}.{}.part", target.string(), new_uuid7());
  std::error_code ignored;
  try {
    // A connection of its own: one that holds the write lock cannot be copied from.
    Connection(file_uri(file, "mode=ro"), Connection::Access::read_only, file).back_up_to(unfinished);
    std::filesystem::rename(unfinished, target);
  } catch (const std::exception& error) {
    std::filesystem::remove(unfinished, ignored);
    throw Error(ErrorKind::store, fmt::format("database '{}' has an older schema and was not migrated, because no copy "
                                              "of it could be made first: {}",
                                              file.string(), error.what()));
  }
  return target;
}

}  // namespace

Schema embedded_schema() {
  Schema schema;
  for (const Resource& resource : resources("db/migrations/")) {
    const std::string name = stem(resource.path);
    const int expected = schema.version() + 1;  // kFirstVersion at first
    if (name.substr(0, 5) != fmt::format("{:04d}_", expected)) {
      throw Error(ErrorKind::internal,
                  fmt::format("db/migrations: expected number {:04d}, found '{}'", expected, name));
    }
    schema.migrations.push_back({expected, name, std::string(resource.text)});
  }
  if (schema.migrations.empty()) throw Error(ErrorKind::internal, "this binary carries no db/migrations");
  for (const Resource& resource : resources("db/views/")) {
    schema.views.push_back({stem(resource.path), std::string(resource.text)});
  }
  for (const Resource& resource : resources("db/checks/")) schema.checks += resource.text;
  for (const std::string& line : split(find_resource("db/schema_digests.txt").value_or(""), '\n')) {  // "3 0a1b…"
    if (const std::size_t space = line.find(' '); space != std::string::npos && line[0] != '#') {
      schema.digests[std::stoi(line.substr(0, space))] = line.substr(space + 1);
    }
  }
  return schema;
}

void verify_history(Connection& connection, const Schema& schema) {
  const std::int64_t version = connection.integer("PRAGMA user_version");
  std::int64_t seen = kFirstVersion - 1;
  Statement statement(connection, "SELECT version, sha256, tool FROM schema_migration ORDER BY version");
  while (statement.step()) {
    const std::int64_t applied = statement.integer(0);
    if (applied != ++seen || applied > version) break;
    const Migration& ours = schema.migrations.at(static_cast<std::size_t>(applied - kFirstVersion));
    if (statement.text(1) != sha256_hex(ours.sql)) {
      throw Error(ErrorKind::store,
                  fmt::format("database '{}': migration {} was applied by {} with another text than this binary's; the "
                              "schema cannot be trusted, and the file was left as it is. Use that version, or another "
                              "--db",
                              connection.shown_as().string(), ours.name, statement.text(2)));
    }
  }
  if (seen != version) {
    throw DamagedDatabase(
        connection.shown_as(),
        fmt::format("it is damaged: its header has schema version {}, but its list of migrations ends at {}", version,
                    seen));
  }
}

std::optional<std::filesystem::path> migrate(Connection& connection, const Schema& schema, const std::string& now,
                                             bool keep_copy) {
  if (connection.integer("PRAGMA user_version") == schema.version()) return std::nullopt;
  Transaction transaction(connection);
  const std::int64_t found = connection.integer("PRAGMA user_version");  // another start may have been faster
  require_known_version(connection.shown_as(), found, schema.version());
  if (found == schema.version()) return std::nullopt;

  std::optional<std::filesystem::path> copy;
  if (found > 0) {
    require_our_schema(connection, schema);
    verify_history(connection, schema);
    if (keep_copy) copy = copy_aside(connection.shown_as(), found);
  }
  for (const Migration& migration : schema.migrations) {
    if (migration.version <= found) continue;
    connection.execute(migration.sql);
    Statement(connection, "INSERT INTO schema_migration (version, applied_at, sha256, tool) VALUES (?, ?, ?, ?)")
        .run(migration.version, now, sha256_hex(migration.sql), tool());
  }
  connection.execute(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplicationId, schema.version()));
  if (Statement(connection, "PRAGMA foreign_key_check").step()) {
    throw Error(ErrorKind::store, fmt::format("database '{}': migrating from schema {} to {} would break references; "
                                              "nothing was changed",
                                              connection.shown_as().string(), found, schema.version()));
  }
  transaction.commit();
  return copy;
}

void make_views(Connection& connection, const Schema& schema) {
  static constexpr std::string_view kCreate = "CREATE VIEW ";
  std::string all;
  for (const View& view : schema.views) {
    const std::size_t at = view.sql.find(kCreate);
    if (at == std::string::npos)
      throw Error(ErrorKind::internal, fmt::format("db/views/{}.sql creates no view", view.name));
    all += fmt::format("CREATE TEMP VIEW {};\n", view.sql.substr(at + kCreate.size()));
  }
  connection.execute(all);
}

}  // namespace syslab::store
