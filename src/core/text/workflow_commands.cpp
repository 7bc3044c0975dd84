#include "core/text/workflow_commands.hpp"

#include <cstdlib>

#include "core/text/printable.hpp"

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
    // Of what is no ASCII some is white space to the runner (U+00A0, U+3000 and more): all of it counts as that.
    const auto byte = static_cast<unsigned char>(text[at]);
    line_begins = byte == '\n' || byte == '\r' || (line_begins && (byte <= ' ' || byte >= 0x7F));
  }
  return out;
}

bool is_read_by_a_runner() { return std::getenv("GITHUB_ACTIONS") != nullptr; }

std::string obeyed_by_nobody(std::string text) {
  return is_read_by_a_runner() ? without_workflow_commands(text) : text;
}

std::string printed_json(std::string_view text) {
  std::string json = printable_json(text);
  if (!is_read_by_a_runner()) return json;
  for (std::size_t at = 0; (at = json.find("##[", at)) != std::string::npos;) json.replace(at, 1, "\\u0023");
  return json;
}

}  // namespace syslab
