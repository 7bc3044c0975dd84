// Submissions: the --mine implementations of a run, handed in under an author's alias.
#pragma once

#include <string>

#include "store/connection.hpp"
#include "store/store.hpp"

namespace syslab::store {

// Links the run to the submission of its plan's --mine implementations; the same author handing in the same files again
// is the same submission. Does nothing for a run that has none. Inside the caller's transaction.
void register_submission(Connection& db, RowId run, const std::string& author, const std::string& at);

}  // namespace syslab::store
