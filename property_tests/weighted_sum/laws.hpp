// The laws of the weighted sum, each bound to one rung: the worked example of laws for an operator.
#pragma once

#include <string>
#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

std::vector<check::Law> laws(const Rung& rung);
std::vector<LawInfo> law_list();  // ids and statements, in the same order
std::string never_drawn(const Rung& rung,
                        check::Contract contract);  // what no law draws, at any depth (property_tests/left_out.hpp)

}  // namespace syslab::weighted_sum
