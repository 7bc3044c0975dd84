// Which columns hold JSON, as db/checks/json.sql says, and which value of them is none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "store/connection.hpp"

namespace syslab::store {

// Table and column.
std::vector<std::pair<std::string, std::string>> json_columns();

// Which value is none, and in which row: "its run.protocol is malformed JSON; expected JSON (run 0198…)". Text that
// nests too deep, for SQLite no JSON either, is told apart. Empty: all of them are JSON, argv a list and params an
// object.
std::string json_fault_in(Connection& db);
// The same after "database 'lab.db': ".
std::string malformed_json_in(Connection& db);

}  // namespace syslab::store
