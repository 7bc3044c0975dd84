// A law as lists show it; experiments turn it into what the registry keeps.
#pragma once

#include <string>

namespace syslab::property {

struct Statement {
  std::string id;               // "attention.causal_prefix"
  std::string statement;        // one line
  bool against_oracle = false;  // holds the rung against the oracle, which is what the rung "reference" is
};

}  // namespace syslab::property
