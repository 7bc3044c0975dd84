// The laws of the global norm, each bound to one rung.
#pragma once

#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "ops/global_norm/global_norm.hpp"

namespace syslab::global_norm {

std::vector<check::Law> laws(const Rung& rung);
std::vector<LawInfo> law_list();  // ids and statements, in the same order

}  // namespace syslab::global_norm
