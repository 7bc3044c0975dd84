// `--command './bench {n}'`: somebody's program as an implementation.
#pragma once

#include <string>

#include "core/text/command_text.hpp"
#include "plan/plan.hpp"

namespace syslab::plan {

// Error(usage) where the folder or its program is not there.
Submitted command_mine(std::string name, const CommandPlace& place);
// Of Submitted::path: the words, and each file of up to 256 MiB that one of them, or what follows its "=", names as
// written. No case is known here: the files of "in{n}.txt" are in no digest, nor what `sh -c` reads.
std::string digest_of_command(const std::string& path);

}  // namespace syslab::plan
