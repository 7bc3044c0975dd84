// An implementation answered a call with an exception or an error status instead of a result. A law decides whether it
// may; its results are then unknown.
#pragma once

#include <string>
#include <utility>

#include "core/finding_kind.hpp"

namespace syslab {

class Refusal : public FoundFault {
 public:
  // `kind`: of ranks, that one of them ended or never did.
  explicit Refusal(const std::string& message, std::string call = {}, FindingKind kind = FindingKind::raised,
                   std::optional<Lack> lacks = {})
      : FoundFault(ErrorKind::check, kind, message, std::move(call), std::move(lacks)) {}
};

}  // namespace syslab
