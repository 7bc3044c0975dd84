#include "comm/rendezvous/slurm_names.hpp"

#include <charconv>
#include <optional>

#include "core/text/text.hpp"

namespace syslab::comm {
namespace {

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::string slurm_first_host(std::string_view node_list) {
  // Names may have several brackets (rack[1-2]node[3-4]): of each the first number, digits as they are written.
  std::string host;
  for (std::size_t at = 0; at < node_list.size() && node_list[at] != ',';) {
    if (node_list[at] != '[') {
      host += node_list[at++];
      continue;
    }
    const std::size_t close = node_list.find(']', at);
    if (close == std::string_view::npos) return {};
    const std::string_view inside = node_list.substr(at + 1, close - at - 1);
    host += inside.substr(0, inside.find_first_of(",-"));
    at = close + 1;
  }
  return host;
}

std::vector<int> slurm_tasks_per_node(std::string_view text) {
  std::vector<int> tasks;
  if (text.empty()) return tasks;
  for (const std::string& part : split(text, ',')) {
    const std::size_t open = part.find("(x");
    const auto count = whole_number(std::string_view(part).substr(0, open));
    std::optional<int> nodes = 1;
    if (open != std::string::npos) {
      if (part.back() != ')') return {};
      nodes = whole_number(std::string_view(part).substr(open + 2, part.size() - open - 3));
    }
    constexpr int kMostNodes = 1'000'000;
    if (!count || !nodes || *nodes > kMostNodes) return {};
    tasks.insert(tasks.end(), static_cast<std::size_t>(*nodes), *count);
  }
  return tasks;
}

}  // namespace syslab::comm
