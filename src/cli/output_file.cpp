#include "cli/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

// A device, a pipe, a link: written through, and its name says nothing of a format. The renaming of a finished file
// would put a plain one in its place, and as root even in that of /dev/stdout.
bool is_special(const fs::path& path) {
  std::error_code ignored;
  const auto found = fs::symlink_status(path, ignored).type();
  return found != fs::file_type::not_found && found != fs::file_type::regular;
}

[[noreturn]] void refuse(const fs::path& path, const std::error_code& why) {
  // No folder is made for a report: a mistyped one would go unseen.
  const fs::path folder = path.parent_path();
  std::error_code ignored;
  if (!folder.empty() && !fs::is_directory(folder, ignored)) {
    const bool taken = fs::exists(folder, ignored);
    throw Error(ErrorKind::usage,
                fmt::format("cannot write '{}': {} '{}'; {}", path.string(),
                            taken ? "it would lie in what is no folder," : "there is no folder", folder.string(),
                            taken ? "choose another place with -o FILE"
                                  : fmt::format("make it first (mkdir -p '{}') or choose another place with -o FILE",
                                                folder.string())));
  }
  throw Error(ErrorKind::usage,
              fmt::format("cannot write '{}': {}; choose another place with -o FILE", path.string(), why.message()));
}

// A file that is written whole under another name and takes its own by place(); removed if it never does.
class Unfinished {
 public:
  Unfinished(fs::path path, const std::string& bytes) : path_(std::move(path)) {
    std::error_code ignored;
    replaces_ = !is_special(path_);
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

report::Format format_of(const Context& context, const std::string& option, const std::string& file) {
  using report::Format;
  static const std::map<std::string, Format> kFormats{
      {"", Format::markdown}, {"md", Format::markdown}, {"markdown", Format::markdown}, {"tex", Format::latex},
      {"html", Format::html}, {"htm", Format::html},    {"csv", Format::csv},           {"json", Format::json}};
  std::string word = option;
  if (word.empty() && context.global.json) word = "json";
  if (word.empty() && !is_special(file)) {
    const std::string ending = fs::path(file).extension().string();
    word = ending.empty() ? "" : ending.substr(1);
  }
  const auto format = kFormats.find(word);
  if (format != kFormats.end()) return format->second;
  std::string advice = "end its name in one of them or add --to";
  if (word == "pdf") advice = "write a .tex and run pdflatex on it, or print a .html";
  throw Error(ErrorKind::usage,
              fmt::format("cannot write '{}': '.{}' is not a format that syslab writes (md, tex, html, csv, "
                          "json): {}",
                          file, word, advice));
}

void write_output(const Context& context, const std::string& file, const std::string& text) {
  if (file.empty()) return context.console.print(text);
  Unfinished(file, text).place();
}

void write_output(const Context& context, const std::string& file, const report::Report& report) {
  if (file.empty()) return context.console.print(report.text);
  // The text before its pictures: where it cannot be written, no folder for them is made.
  Unfinished text(file, report.text);
  std::vector<Unfinished> files;
  for (const report::ReportFile& beside : report.files) {
    const fs::path path = fs::path(file).parent_path() / beside.path;
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    if (failed) refuse(path.parent_path(), failed);
    files.emplace_back(path, beside.bytes);
  }
  for (Unfinished& beside : files) beside.place();
  text.place();
}

}  // namespace syslab::cli
