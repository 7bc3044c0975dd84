// The laws of the cross-entropy, each bound to one rung.
#pragma once

#include <vector>

#include "check/law.hpp"
#include "ops/cross_entropy/cross_entropy.hpp"
#include "property_tests/statement.hpp"

namespace syslab::cross_entropy {

std::vector<check::Law> laws(const Rung& rung);
std::vector<property::Statement> law_list();  // ids and statements, in the same order

}  // namespace syslab::cross_entropy
