// The times of a file from elsewhere: histories sort by them as texts, so each must be a time that exists.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/connection.hpp"

namespace syslab::store {

// The first time in a table that merges that is not as utc_now() writes one, and where:
// "run 01a1…: started_at is '2026-02-30T25:61:00Z'". `database` is "main", or the name of an attached file with our
// schema. A NULL is no time, and allowed where the schema allows it.
std::optional<std::string> impossible_time(Connection& db, std::string_view database);

// The first metric or sample in seconds that is negative or infinite, likewise: "attempt 01a1…: 'time' took -1 s".
std::optional<std::string> impossible_duration(Connection& db, std::string_view database);

}  // namespace syslab::store
