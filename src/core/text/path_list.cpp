#include "core/text/path_list.hpp"

namespace syslab {

std::string path_list(std::span<const std::string> paths) {
  std::string list;
  for (const std::string& path : paths) {
    if (!list.empty()) list += ':';
    for (const char letter : path) {
      if (letter == ':' || letter == '\\') list += '\\';
      list += letter;
    }
  }
  return list;
}

std::vector<std::string> paths_in(std::string_view list) {
  std::vector<std::string> paths(1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == ':') {
      paths.emplace_back();
    } else {
      if (list[i] == '\\' && i + 1 < list.size()) ++i;
      paths.back() += list[i];
    }
  }
  std::erase_if(paths, [](const std::string& path) { return path.empty(); });
  return paths;
}

}  // namespace syslab
