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
  // Devices, pipes and links are written through: the renaming would put a plain file in their place, and as root even
  // in that of /dev/stdout.
  std::error_code failed, ignored;
  const auto found = std::filesystem::symlink_status(file, ignored).type();
  const bool replace = found == std::filesystem::file_type::not_found || found == std::filesystem::file_type::regular;
  const std::string unfinished = replace ? fmt::format("{}.{}.tmp", file, ::getpid()) : file;
  {
    std::ofstream out(unfinished, std::ios::binary);
    out << text;
    out.close();
    if (!out) failed = std::error_code(errno, std::generic_category());
  }
  if (!failed && replace) std::filesystem::rename(unfinished, file, failed);
  if (!failed) return;
  if (replace) std::filesystem::remove(unfinished, ignored);
  throw Error(ErrorKind::usage, fmt::format("cannot write '{}': {}", file, failed.message()));
}

}  // namespace syslab::cli
