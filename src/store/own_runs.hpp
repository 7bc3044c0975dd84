// Which runs this user's own program wrote. Otherwise anyone who hands in a database could, by paths in it to files
// that are loaded, decide what is run here.
#pragma once

#include "core/mac.hpp"
#include "store/connection.hpp"
#include "store/store.hpp"

namespace syslab::store {

// Whether the run's plan names files of --mine.
bool loads_files(Connection& db, RowId run);

// Keeps a message authentication code over the run's uid and each file of its plan: name, path and digest.
void sign_run(Connection& db, RowId run, const Key& key);

}  // namespace syslab::store
