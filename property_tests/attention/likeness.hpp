// What a fault looks like.
#pragma once

#include <string>

namespace syslab::attention {

struct Likeness {
  std::string cause;  // as Finding has it: "a mask that shows one key too few"
  std::string shown;  // what shows it, and where to look: "that alone gives all 128 elements as found; look at …"
  std::string words() const { return cause + ": " + shown; }
};

}  // namespace syslab::attention
