// What verbs, and the code that they share, may use.
#pragma once

#include <string>
#include <vector>

#include "registry/registry.hpp"
#include "runner/places.hpp"
#include "session/console.hpp"
#include "session/options.hpp"
#include "verdict/exit_code.hpp"

namespace syslab::cli {

// What every verb may use.
struct Context {
  const registry::Registry& registry;
  const GlobalOptions& global;
  const Console& console;
  std::vector<std::string> arguments;  // the command line, for the record
  runner::Places* places = nullptr;    // of ranks, where a launcher has started several processes
};

}  // namespace syslab::cli
