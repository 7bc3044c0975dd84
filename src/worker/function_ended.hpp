#pragma once

#include "core/error.hpp"

namespace syslab::worker {

// The process of somebody's function ended in a call. Its case tells it without a kind in front: nothing is wrong with
// how the two talk.
class FunctionEnded : public Error {
 public:
  explicit FunctionEnded(const std::string& message) : Error(ErrorKind::comm, message) {}
};

}  // namespace syslab::worker
