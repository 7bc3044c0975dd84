// Which columns hold JSON, as db/checks/json.sql says, and which value of them is none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "store/connection.hpp"

namespace syslab::store {

// Table and column.
std::vector<std::pair<std::string, std::string>> json_columns();

// "database 'lab.db': a value of its run.protocol is malformed JSON; expected JSON"; empty: all of them are JSON.
std::string malformed_json_in(Connection& db);

}  // namespace syslab::store
