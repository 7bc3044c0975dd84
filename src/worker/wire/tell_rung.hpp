// Which rung of an operator a step took, and why that one: facts of the attempt, "attention_rung" and
// "attention_because", that every row of a model's step is stored with.
#pragma once

#include <string>

#include "worker/cases/case_context.hpp"

namespace syslab::worker {

void tell_rung(CaseContext& context, const std::string& operation, const std::string& rung, const std::string& because);

}  // namespace syslab::worker
