// Behind a verdict `unclear`: what would make it clear.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compare/judgement.hpp"

namespace syslab::cli {

// More wants to run than there are processors: then a call's time holds what it has waited.
struct Crowd {
  double load = 0;     // of the last minute, of the whole machine, which processes in other containers make, too
  int processors = 1;  // of the whole machine, whichever this process may use
};
std::optional<Crowd> crowd();  // now; nothing: there is none

// A sentence: so many launches would tell, or with what --delta these do, or that others must end first. Empty where
// the verdict is another, or has no interval. `launch_seconds`: what each launch took.
std::string what_would_do(const Judgement& judgement, std::span<const double> launch_seconds,
                          const std::optional<Crowd>& crowd);

}  // namespace syslab::cli
