// The laws of rope, each bound to one rung.
#pragma once

#include <vector>

#include "check/law.hpp"
#include "ops/rope/rope.hpp"
#include "property_tests/statement.hpp"

namespace syslab::rope {

std::vector<check::Law> laws(const Rung& rung);
std::vector<property::Statement> law_list();  // ids and statements, in the same order

}  // namespace syslab::rope
