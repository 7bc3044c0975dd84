// The inputs that an implementation in another process declares at start-up that it accepts.
#pragma once

#include "core/text/json.hpp"

namespace syslab {

class DeclaresDomain {
 public:
  virtual ~DeclaresDomain() = default;
  virtual const Json& declared_domain() const = 0;  // an object; empty if nothing was declared
};

}  // namespace syslab
