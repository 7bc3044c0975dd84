// What would rather be believed than be right: files that are handed in, and when one of them has got what it wanted.
#pragma once

#include <string>
#include <vector>

namespace syslab::experiment_selftest_hostile {

enum class Wants {
  to_pass,     // its results are wrong, not its own, or not there in time: it has succeeded if its case ends `ok`
  to_be_fast,  // it works for so long a call: if its time is less
  to_reach,    // it tells what it could do that only the outside may: if that is not nothing
  to_harm,     // its results may be right: if the worker dies, or anything is left (which none of the others may do,
               // either)
};

struct HandIn {
  std::string file, name;  // of a class; of a library `name` is HOSTILE in hostile.c
  Wants wants = Wants::to_pass;
  double works_s = 0;  // of to_be_fast
};

// Of "class" or "library".
std::vector<HandIn> hand_ins(const std::string& kind);

}  // namespace syslab::experiment_selftest_hostile
