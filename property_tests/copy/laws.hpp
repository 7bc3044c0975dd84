// The laws of the copy, each bound to one rung.
#pragma once

#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "ops/copy/copy.hpp"

namespace syslab::copy {

std::vector<check::Law> laws(const Rung& rung);
std::vector<LawInfo> law_list();  // ids and statements, in the same order

}  // namespace syslab::copy
