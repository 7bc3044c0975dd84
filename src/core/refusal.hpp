// An implementation answered a call with an exception or an error status instead of a result. A law decides whether it
// may; its results are then unknown.
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
