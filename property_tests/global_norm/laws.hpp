// The laws of the global norm, each bound to one rung.
#pragma once

#include <string>
#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "ops/global_norm/global_norm.hpp"

namespace syslab::global_norm {

std::vector<check::Law> laws(const Rung& rung);
std::vector<LawInfo> law_list();            // ids and statements, in the same order
std::string never_drawn(const Rung& rung);  // what no law draws, at any depth (property_tests/left_out.hpp)

}  // namespace syslab::global_norm
