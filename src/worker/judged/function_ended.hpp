#pragma once

#include "core/finding_kind.hpp"

namespace syslab::worker {

// The process of somebody's function ended in a call. Its case tells it without a kind in front: nothing is wrong with
// how the two talk.
class FunctionEnded : public FoundFault {
 public:
  explicit FunctionEnded(const std::string& message) : FoundFault(ErrorKind::comm, FindingKind::crash, message) {}
};

}  // namespace syslab::worker
