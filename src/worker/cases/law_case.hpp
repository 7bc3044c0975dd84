// A case that is a law: searched, or replayed, for one implementation.
#pragma once

#include <vector>

#include "check/law.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::worker {

// Finds the requested law among `laws` (already bound to the implementation), searches it within the request's number
// of cases, or replays the request's counterexample, and emits one CheckRecord. The contract is the parameter
// "contract", `full` where there is none.
//
// Throws Error(usage) if no law has the requested name, CheckFailed if the law is falsified or breaks down, Unsupported
// if it could not be searched far enough to say anything: neither ever looks passed.
void run_law(CaseContext& context, const std::vector<check::Law>& laws);

// What is stored of a law that was searched or replayed.
CheckRecord check_record(const check::Law& law, check::Contract contract, const check::LawResult& result);

// Of a law with --mine that ranks of Python answer: Error(usage) for a library.
void require_class_for_ranks(const CaseContext& context);

}  // namespace syslab::worker
