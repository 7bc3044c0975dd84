// The laws of rms_norm, each bound to one rung.
#pragma once

#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "ops/rms_norm/rms_norm.hpp"

namespace syslab::rms_norm {

std::vector<check::Law> laws(const Rung& rung);
std::vector<LawInfo> law_list();  // ids and statements, in the same order

}  // namespace syslab::rms_norm
