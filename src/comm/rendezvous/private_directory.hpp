// Directories in which ranks find each other: what lies in one is believed, so that nobody else may put anything there.
#pragma once

#include <filesystem>

namespace syslab::comm {

// For this user alone, with the directories above it where they are missing, too. False: it was there. Error(comm).
bool make_private_directory(const std::filesystem::path& directory);

// Error(usage), with the remedy, for one that belongs to another user or that others may write to.
void expect_private(const std::filesystem::path& directory);

}  // namespace syslab::comm
