#include "cli/report_error.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/workflow_commands.hpp"

namespace syslab::cli {

Exit report_error(const Console* console, bool json, ErrorKind kind, const std::string& message) {
  if (json) {
    const Json error{{"error", {{"kind", to_string(kind)}, {"message", message}}}};
    fmt::print("{}\n", printed_json(repaired_json_text(error)));
  }
  const std::string name = console == nullptr ? "error:" : console->styled_error("error:", Style::bad);
  to_error(fmt::format("{} {}\n", name, with_lines_below(printable(message))));
  return exit_of(kind);
}

}  // namespace syslab::cli
