// Which kinds of mistakes explain a trial: every element of it, and better than what is right does.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "property_tests/attention/mistakes.hpp"
#include "property_tests/attention/trial.hpp"

namespace syslab::attention {

struct Kind {
  const char* look_at;
  std::set<std::int64_t> tiles;  // of keys; with any of these
  bool subtle;
  std::string tiles_words() const;  // "tiles of 32 keys, ", where the mistake says as much
};
using Kinds = std::map<std::string, Kind>;

// `among`: only these kinds are tried. `more`: beside the usual mistakes.
Kinds explaining(const Trial& trial, Pass pass, const Kinds* among = nullptr, std::span<const Mistake> more = {});

// Leaves those that explain another trial, too: there the mistake would be seen if it were made.
void keep_those_of(Kinds& kinds, const Trial& other, Pass pass, std::span<const Mistake> more = {});

}  // namespace syslab::attention
