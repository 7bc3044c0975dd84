#include "cli/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"

namespace syslab::cli {

report::Format format_of(const Context& context, const std::string& option) {
  if (option == "csv") return report::Format::csv;
  if (option == "json" || (option.empty() && context.global.json)) return report::Format::json;
  return report::Format::markdown;
}

void write_output(const Context& context, const std::string& file, const std::string& text) {
  if (file.empty()) {
    context.console.print(text);
    return;
  }
  const std::string unfinished = fmt::format("{}.{}.tmp", file, ::getpid());
  std::error_code failed;
  {
    std::ofstream out(unfinished, std::ios::binary);
    out << text;
    out.close();
    if (!out) failed = std::error_code(errno, std::generic_category());
  }
  if (!failed) std::filesystem::rename(unfinished, file, failed);
  if (!failed) return;
  std::error_code ignored;
  std::filesystem::remove(unfinished, ignored);
  throw Error(ErrorKind::usage, fmt::format("cannot write '{}': {}", file, failed.message()));
}

}  // namespace syslab::cli
