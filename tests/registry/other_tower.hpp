// What the registry's templates read of the workload's ladders and parameters, which this room does not see.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "registry/registry.hpp"

namespace syslab::registry {

enum class Kind { cpu, cuda };

struct Rung {
  std::string name, teaches;
  std::vector<DType> dtypes;
  bool is_peer = false;
  std::string unavailable;
  Kind device = Kind::cpu;
  int minimum_sm = 0;
};

struct Param {
  std::string name;
  Values values;
  std::string help;
  bool closed = false;
  Values also;
  std::map<std::string, std::map<std::string, Value>> by_handout = {};
};

}  // namespace syslab::registry
