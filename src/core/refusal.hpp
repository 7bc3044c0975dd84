// An implementation answered a call with an exception or an error status instead of a result. Whether it may is a law's
// question; what its results are is not known then.
#pragma once

#include <string>
#include <utility>

#include "core/error.hpp"

namespace syslab {

class Refusal : public Error {
 public:
  explicit Refusal(const std::string& message, std::string call = {})
      : Error(ErrorKind::check, message, std::move(call)) {}
};

}  // namespace syslab
