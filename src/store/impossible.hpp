// What no measurement says, in a file from elsewhere: tables and histories are made of such rows without a second look.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/connection.hpp"

namespace syslab::store {

// The first time in a table that merges that is not as utc_now() writes one, and where:
// "run 01a1…: started_at is '2026-02-30T25:61:00Z'". `database` is "main", or the name of an attached file with our
// schema. A NULL is no time, and allowed where the schema allows it. Histories sort by times as texts.
std::optional<std::string> impossible_time(Connection& db, std::string_view database);

// The first value that cannot be, likewise: "attempt 01a1…: 'time' took -1 s". It is one of these: a negative or
// infinite time; an interval that does not contain its value; a negative count of samples or tries; a share beyond 0 to
// 1; a rank that the case does not have (-1 is all ranks).
std::optional<std::string> impossible_value(Connection& db, std::string_view database);

// Environments, builds, implementations and cases whose uid is not the SHA-256 of what they say, at most `at_most` of a
// kind: "environment 01a1…".
std::vector<std::string> wrong_facts(Connection& db, std::string_view database, std::size_t at_most);

}  // namespace syslab::store
