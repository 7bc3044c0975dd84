// Models by the names of one hand-out, without models that only the other one asks for.
#pragma once

#include <string>

#include "store/store.hpp"

namespace syslab::report {

// Drops rows about models that only the other hand-out asks for, if others remain, and calls the hand-out's own by its
// names: xl26 is the xl of 2026 and the 2.7B of 2025, which asks it of no step of several ranks. Both hand-outs at once
// (empty): nothing changes.
void keep_models_of(const std::string& handout, store::ResultSet& result);

}  // namespace syslab::report
