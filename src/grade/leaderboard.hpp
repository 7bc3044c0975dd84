// Who is how fast, as a class may see it: places that do not claim more than the intervals do, and aliases for names.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/mac.hpp"
#include "grade/timing.hpp"

namespace syslab::grade {

struct Ranked {
  std::string id, alias;
  Timing timing;
  int place = 0;
  bool shared = false;  // somebody else has the place, too
};

// Fastest first. A place is one more than the number of those who are surely faster, whose whole interval lies below:
// no place is lost to an interval that overlaps.
void rank(std::vector<Ranked>& all);

// The own line and the three above it, in the order of `all`; nothing for an id that is not ranked.
std::vector<Ranked> around(const std::vector<Ranked>& all, const std::string& id);

// "quiet-heron-214", from an id and a key; nobody finds the id without the key. Should two of `ids` get the same, the
// later one by name gets another.
std::map<std::string, std::string> aliases(const std::vector<std::string>& ids, const Key& key);

}  // namespace syslab::grade
