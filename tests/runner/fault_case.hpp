// A fault that a self-test meets, and what the runner must say of it: a test a value.
#pragma once

#include <ostream>
#include <string>

#include "worker/wire/wire.hpp"

namespace syslab::runner {

struct ExpectedEnd {
  std::string fault;
  Status status;
  std::string detail;  // part of it

  friend void PrintTo(const ExpectedEnd& it, std::ostream* out) { *out << it.fault; }
};

template <typename Info>
std::string fault_of(const Info& info) {
  return info.param.fault;
}

}  // namespace syslab::runner
