// Several paths in one variable of the environment: ':' between them, and a '\' before every ':' or '\' that belongs to
// one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syslab {

std::string path_list(std::span<const std::string> paths);
std::vector<std::string> paths_in(std::string_view list);  // empty ones are left out

}  // namespace syslab
