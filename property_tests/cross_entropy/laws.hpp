// The laws of the cross-entropy, each bound to one rung.
#pragma once

#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "ops/cross_entropy/cross_entropy.hpp"

namespace syslab::cross_entropy {

std::vector<check::Law> laws(const Rung& rung);
std::vector<LawInfo> law_list();  // ids and statements, in the same order

}  // namespace syslab::cross_entropy
