// The schema as numbered steps and views, and how a file is brought up to it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/connection.hpp"
#include "store/file_header.hpp"

namespace syslab::store {

struct Migration {
  int version = 0;
  std::string name, sql;
};

struct View {
  std::string name, sql;
};

struct Schema {
  std::vector<Migration> migrations;  // kFirstVersion and what follows it, one after the other
  std::vector<View> views;
  std::string checks;                  // of what is written: statements that make temporary triggers
  std::map<int, std::string> digests;  // of what the migrations up to a version make, where it is known
  int version() const { return kFirstVersion + static_cast<int>(migrations.size()) - 1; }
};

// db/migrations/NNNN_*.sql, db/views/*.sql and db/checks/*.sql as embedded. Error(internal) when a migration's number
// is missing or double.
Schema embedded_schema();

// Error(store) when the file's digests of applied migrations differ from ours: it was made by another history of the
// schema, and its version number does not mean what we think.
void verify_history(Connection& connection, const Schema& schema);

// Brings the file to the schema's version inside one BEGIN IMMEDIATE, re-reading the version and the schema first, so
// that two starts at once do it once. An older file with content is copied to "FILE.v<version>.bak" before; the copy's
// path is returned when one was made. Error(store) leaves the file as it was. `keep_copy`: false for files that are
// copies themselves.
std::optional<std::filesystem::path> migrate(Connection& connection, const Schema& schema, const std::string& now,
                                             bool keep_copy);

// Our views, as temporary objects of this connection. They hide what a file calls by the same names.
void make_views(Connection& connection, const Schema& schema);

}  // namespace syslab::store
