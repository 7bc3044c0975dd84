// What a check may come to beside the submission itself: what the interpreter has installed, and the GPUs.
#pragma once

#include <filesystem>
#include <string>

namespace syslab::grade {

// The interpreter's version, each package that it finds with its version, and the GPUs that are to be seen, as one
// digest: another one may make another grade of the same files.
std::string digest_of_surroundings();

// Error(usage) where that interpreter has no torch: every submission would lack it, and earn nothing for that.
void require_torch();

// Of all files of a submission's own copy, with their names: what it reads need not be source code.
std::string digest_of_files(const std::filesystem::path& folder);

}  // namespace syslab::grade
