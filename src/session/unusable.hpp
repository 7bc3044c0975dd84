// A library or file of --mine that cannot be used at all, told once: by the first law, before anything is searched.
#pragma once

#include <set>
#include <string>

#include "plan/plan.hpp"
#include "runner/runner.hpp"

namespace syslab::cli {

class Usability {
 public:
  explicit Usability(const plan::Plan& plan) : plan_(plan) {}

  // Error(usage) if this is the first law of somebody's implementation and ended in an error before it could search:
  // the library was not loaded or speaks another ABI, the file could not be imported, the domain makes no sense. It
  // would be the answer of every other law, too.
  void require(const runner::AttemptResult& result);

 private:
  const plan::Plan& plan_;
  std::set<std::string> usable_;
};

}  // namespace syslab::cli
