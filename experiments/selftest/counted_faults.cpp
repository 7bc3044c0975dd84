#include "experiments/selftest/counted_faults.hpp"

#include <fmt/format.h>

namespace syslab::selftest {

void CountedFaults::expect_none(std::string_view property, std::int64_t violations, std::string_view what) {
  worker::CheckRecord check;
  check.name = fmt::format("selftest:{}", property);
  check.outcome = violations == 0 ? Outcome::passed : Outcome::falsified;
  check.cases_run = trials_;
  check.worst_error = static_cast<double>(violations);
  check.tolerance = 0;
  if (violations != 0) check.message = fmt::format("{} {}", violations, what);
  context_.emit(check);
  if (first_.empty()) first_ = check.message;
}

void CountedFaults::end() const {
  if (!first_.empty()) throw worker::CheckFailed(first_);
}

}  // namespace syslab::selftest
