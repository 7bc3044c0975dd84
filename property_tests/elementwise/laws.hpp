// The laws of the element-wise operators, each bound to one rung.
#pragma once

#include <vector>

#include "check/law.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "property_tests/statement.hpp"

namespace syslab::elementwise {

std::vector<check::Law> laws(const Rung& rung);
std::vector<property::Statement> law_list();  // ids and statements, in the same order

}  // namespace syslab::elementwise
