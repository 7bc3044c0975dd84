// The schema as numbered steps and views, and how a file is brought up to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/connection.hpp"

namespace syslab::store {

struct Migration {
  int version = 0;
  std::string name, sql;
};

struct View {
  std::string name, sql;
};

struct Schema {
  std::vector<Migration> migrations;  // versions 1, 2, 3, …
  std::vector<View> views;
  int version() const { return static_cast<int>(migrations.size()); }
};

// db/migrations/NNNN_*.sql and db/views/*.sql as embedded. Error(internal) when a number is missing or double.
Schema embedded_schema();

// Error(store) when the file's digests of applied migrations differ from ours: it was made by another history of the
// schema, and its version number does not mean what we think.
void verify_history(Connection& connection, const Schema& schema);

// Brings the file to the schema's version inside one BEGIN IMMEDIATE, re-reading the version first, so that two starts
// at once do it once. An older file with content is copied to "FILE.v<version>.bak" before; the copy's path is returned
// when one was made. Views are replaced where their text differs; they are not data. Error(store) leaves the file as
// it was. `keep_copy`: false for files that are copies themselves.
std::optional<std::filesystem::path> migrate(Connection& connection, const Schema& schema, const std::string& now,
                                             bool keep_copy);

// For files that must not change: views that differ are laid over the stored ones as temporary views.
void overlay_views(Connection& connection, const Schema& schema);
// All views as temporary ones, which stand on whatever temporary tables hide the file's.
void lay_views_over(Connection& connection, const Schema& schema);

}  // namespace syslab::store
