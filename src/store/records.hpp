// Writing what an attempt found, inside the caller's transaction.
#pragma once

#include <span>

#include "core/text/json.hpp"
#include "store/connection.hpp"
#include "store/store.hpp"

namespace syslab::store {

// Writes samples, metrics, checks, artifacts, memory events, kernels and spans. What could not be kept as it came (a
// reservoir of samples, a metric given twice) is told in `facts`, an object. Facts and ends among the records are not
// written: AttemptRow carries them.
void write_records(Connection& db, RowId attempt, const std::string& attempt_uid,
                   std::span<const worker::Record> records, Json& facts);

}  // namespace syslab::store
