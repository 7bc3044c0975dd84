// Who is how fast, as a class may see it: places that do not claim more than the intervals do, and aliases for names.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/files/mac.hpp"
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

// What a list that is ordered by a number alone, such as Gradescope's, may order `one` of `all` by: who shares a place
// has the same number, the smallest ratio of the place. Of one that is graded alone, the ratio rounded down to a power
// of most_doubt(): neighbours that chance may have put apart mostly have one number, though two on either side of a
// step have not.
double ordering_number(const std::vector<Ranked>& all, const Ranked& one);

// "quiet-heron-214", from an id and a key; nobody finds the id without the key. Should two of `ids` get the same, the
// later one by name gets another.
std::map<std::string, std::string> aliases(const std::vector<std::string>& ids, const Key& key);

}  // namespace syslab::grade
