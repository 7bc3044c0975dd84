// The seed of a command line, which no other process is to read: from it, what is judged could make its inputs, and the
// answers, before it is asked.
#pragma once

#include <string>
#include <vector>

namespace syslab::cli {

// Any process of this machine may read another's command line (/proc/PID/cmdline): from now on it shows stars.
void cover_seed(int argc, char** argv);

// `--seed -`: the first line of `input` takes the place of the `-`, so that the seed never stands in a command line,
// which is there to be read from the start of a program until it is covered. Error(usage) where nothing is to be read.
void take_seed(std::vector<std::string>& arguments, int input);

}  // namespace syslab::cli
