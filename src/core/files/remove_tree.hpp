// Removes a folder with all that is in it, whatever somebody has put there to prevent it: folders in folders by the
// thousand, which take a descriptor or a stack frame each where they are descended into, and folders that may not be
// read. Links are removed and not followed.
#pragma once

#include <chrono>
#include <string>

namespace syslab {

// Of a folder that somebody else filled: a million files take minutes, for which nobody waits.
inline constexpr std::chrono::seconds kMostCleaning{20};

// False if something could not be removed, or not within `most` (0: however long that takes). What is not there is no
// failure.
bool remove_tree(const std::string& path, std::chrono::milliseconds most = std::chrono::milliseconds(0)) noexcept;

}  // namespace syslab
