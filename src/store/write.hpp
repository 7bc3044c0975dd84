// Writing a run and its attempts, inside the caller's transaction: of what happens here, case by case, and of what
// arrives whole from elsewhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/connection.hpp"
#include "store/store.hpp"
#include "store/writer.hpp"

namespace syslab::store {

// What a caller left empty is NULL in the database.
inline std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// The uids of shared facts (a case's is in core/ids.hpp): SHA-256 of what each says, `facts` as canonical text.
std::string environment_uid(const std::string& comparability_key, const std::string& facts);
std::string build_uid(const std::string& facts);
std::string implementation_uid(const ImplementationRow& row);

// The run with its shared facts and its plan. `run.uid` empty: a new one is made.
RowId write_run(Connection& db, const RunRow& run, const std::vector<PlanRow>& plan, const std::string& started_at);

// A finished attempt with all it found; returns its uid. `now` is its end where it names none.
std::string write_attempt(Connection& db, RowId run, const AttemptRow& row, const std::string& now,
                          const Writer& writer);

}  // namespace syslab::store
