// The checks of a case that counts violations: one a property, each of which must be 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "worker/cases/case_context.hpp"

namespace syslab::selftest {

class CountedFaults {
 public:
  // `trials`: how often each property was tried.
  CountedFaults(worker::CaseContext& context, std::int64_t trials) : context_(context), trials_(trials) {}

  // `what` goes on after the number: "processes are left".
  void expect_none(std::string_view property, std::int64_t violations, std::string_view what);
  void end() const;  // CheckFailed with the first violation

 private:
  worker::CaseContext& context_;
  std::int64_t trials_;
  std::string first_;
};

}  // namespace syslab::selftest
