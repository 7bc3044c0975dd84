// What a hand-out's own lock file gives a right submission: a version of torch, and packages. What this machine's
// Python lacks of that is no fault of the submission.
#pragma once

#include <string_view>

#include "core/lack.hpp"

namespace syslab::submission {

struct Locked {
  std::string_view handout;
  std::string_view torch;     // "2.11"
  std::string_view packages;  // that can be imported there, apart by spaces
};

// Of a year; of another text the newest.
const Locked& locked_of(std::string_view handout);

// Whether the first numbers of a version, "1.13.0a0+git", are lower than all of another, "2.11".
bool is_older(std::string_view version, std::string_view than);

// Whether an established lack is this Python's and not the submission's: of a part of torch where this torch is older
// than the hand-out's, of a package where the hand-out has it or the submission's own files require it. Which names the
// torch of the hand-out has, nobody asks: a person looks at what is open.
bool is_of_surroundings(const Lack& lack, std::string_view handout);

}  // namespace syslab::submission
