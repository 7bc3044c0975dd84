#include "worker/wire/check_number.hpp"

#include <fmt/format.h>

#include <cmath>

namespace syslab::worker {

void check_number(CaseContext& context, std::string name, double found, double expected, double tolerance,
                  const std::string& how) {
  CheckRecord check;
  check.name = std::move(name);
  check.cases_run = 1;
  // The distance of equal infinities is 0.
  check.worst_error = found == expected ? 0 : std::abs(found - expected);
  check.tolerance = tolerance;
  check.outcome = *check.worst_error <= tolerance ? Outcome::passed : Outcome::falsified;
  check.message = fmt::format("{}: {}, where {} was expected", how, found, expected);
  context.emit(check);
  if (check.outcome != Outcome::passed) throw CheckFailed(check.message);
}

}  // namespace syslab::worker
