// Identities. Events (runs, attempts, check results, artifacts) get a UUIDv7 (RFC 9562, 5.7), which sorts by time;
// shared facts (environments, builds, cases) get the SHA-256 of their canonical text, so that equal facts become one on
// merge.
#pragma once

#include <string>

#include "core/value.hpp"

namespace syslab {

std::string new_uuid7();

// The identity of a case: experiment id, its version, and canonical parameters. `impl` and `world_size` are not part of
// it.
std::string case_uid(std::string_view experiment, std::string_view version, const Params& params);

}  // namespace syslab
