// Which runs this user's own program wrote. Otherwise anyone who hands in a database could, by paths in it, decide
// which files are loaded, read and written here.
#pragma once

#include "core/files/mac.hpp"
#include "store/connection.hpp"
#include "store/store.hpp"

namespace syslab::store {

// Whether the run's plan names files of --mine.
bool loads_files(Connection& db, RowId run);

// Keeps a message authentication code over the run and its whole plan: cases with their parameters, implementations
// with their files' paths and digests, how they are measured. A migration that changes one of these columns makes the
// code invalid, and `resume` then asks for the files.
void sign_run(Connection& db, RowId run, const Key& key);

}  // namespace syslab::store
