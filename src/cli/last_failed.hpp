// `check --last-failed`: which laws failed when each was last searched for an implementation.
#pragma once

#include "plan/plan.hpp"
#include "session/console.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// Keeps the planned laws whose newest search in this database failed: of our implementations by their names, of --mine
// by file and class, whatever it was called and however it has changed since. A law that ended without an answer (a
// crash, a time limit) has failed, too. Where none did, keeps all, says so and returns false.
bool keep_last_failed(const Console& console, const store::Store& store, plan::Plan& plan);

}  // namespace syslab::cli
