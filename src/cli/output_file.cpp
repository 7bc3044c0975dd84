#include "cli/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"

namespace syslab::cli {

report::Format format_of(const Context& context, const std::string& option, const std::string& file) {
  std::string word = option;
  if (word.empty() && context.global.json) word = "json";
  if (word.empty() && !file.empty()) {
    const std::string ending = std::filesystem::path(file).extension().string();
    word = ending.empty() ? "" : ending.substr(1);
  }
  if (word == "tex") return report::Format::latex;
  if (word == "html") return report::Format::html;
  if (word == "csv") return report::Format::csv;
  if (word == "json") return report::Format::json;
  return report::Format::markdown;
}

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::error_code& why) {
  throw Error(ErrorKind::usage, fmt::format("cannot write '{}': {}", path.string(), why.message()));
}

// A file that is written whole under another name and takes its own by place(); removed if it never does.
class Unfinished {
 public:
  Unfinished(fs::path path, const std::string& bytes) : path_(std::move(path)) {
    // Devices, pipes and links are written through: the renaming would put a plain file in their place, and as root
    // even in that of /dev/stdout.
    std::error_code ignored;
    const auto found = fs::symlink_status(path_, ignored).type();
    replaces_ = found == fs::file_type::not_found || found == fs::file_type::regular;
    written_ = replaces_ ? fs::path(fmt::format("{}.{}.tmp", path_.string(), ::getpid())) : path_;
    std::ofstream out(written_, std::ios::binary);
    out << bytes;
    out.close();
    if (out) return;
    const std::error_code failed(errno, std::generic_category());
    if (replaces_) fs::remove(written_, ignored);
    refuse(path_, failed);
  }
  Unfinished(Unfinished&& other) noexcept
      : path_(std::move(other.path_)), written_(std::move(other.written_)), replaces_(other.replaces_) {
    other.replaces_ = false;
  }
  Unfinished& operator=(Unfinished&&) = delete;
  ~Unfinished() {
    std::error_code ignored;
    if (replaces_) fs::remove(written_, ignored);
  }

  void place() {
    if (!replaces_) return;
    std::error_code failed;
    fs::rename(written_, path_, failed);
    if (failed) refuse(path_, failed);
    replaces_ = false;
  }

 private:
  fs::path path_, written_;
  bool replaces_ = false;  // there is something of ours to rename or to remove
};

}  // namespace

void write_output(const Context& context, const std::string& file, const std::string& text) {
  if (file.empty()) return context.console.print(text);
  Unfinished(file, text).place();
}

void write_output(const Context& context, const std::string& file, const report::Report& report) {
  if (file.empty()) return context.console.print(report.text);
  std::vector<Unfinished> files;
  for (const report::ReportFile& beside : report.files) {
    const fs::path path = fs::path(file).parent_path() / beside.path;
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    if (failed) refuse(path.parent_path(), failed);
    files.emplace_back(path, beside.bytes);
  }
  Unfinished text(file, report.text);
  for (Unfinished& beside : files) beside.place();
  text.place();
}

}  // namespace syslab::cli
