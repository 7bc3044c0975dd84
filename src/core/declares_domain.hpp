// What an implementation in another process says of itself when it starts: what it promises to take.
#pragma once

#include "core/json.hpp"

namespace syslab {

class DeclaresDomain {
 public:
  virtual ~DeclaresDomain() = default;
  virtual const Json& declared_domain() const = 0;  // an object; empty where it says nothing
};

}  // namespace syslab
