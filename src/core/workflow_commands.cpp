#include "core/workflow_commands.hpp"

#include <cstdlib>

namespace syslab {

std::string without_workflow_commands(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (line_begins && rest.starts_with("::")) {
      out += "\\x3a";
    } else if (rest.starts_with("##[")) {
      out += "\\x23";
    } else {
      out += text[at];
    }
    line_begins = text[at] == '\n' || (line_begins && (text[at] == ' ' || text[at] == '\t'));
  }
  return out;
}

bool is_read_by_a_runner() { return std::getenv("GITHUB_ACTIONS") != nullptr; }

std::string obeyed_by_nobody(std::string text) {
  return is_read_by_a_runner() ? without_workflow_commands(text) : text;
}

}  // namespace syslab
