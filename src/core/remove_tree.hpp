// Removes a folder with all that is in it, whatever somebody has put there to prevent it: folders in folders by the
// thousand, which take a descriptor or a stack frame each where they are descended into, and folders that may not be
// read. Links are removed and not followed.
#pragma once

#include <string>

namespace syslab {

// False if something could not be removed. What is not there is no failure.
bool remove_tree(const std::string& path) noexcept;

}  // namespace syslab
