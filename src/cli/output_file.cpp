#include "cli/output_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <vector>

#include "core/error.hpp"
#include "core/files/user_file.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

// Files that a report must never overwrite: the database and SQLite's files next to it, which lie next to the file that
// a link points to.
std::vector<fs::path> kept_by(const Context& context) {
  std::vector<fs::path> kept;
  const std::string& name = context.global.database;
  for (const std::string& database : {name, behind_links(name).string()}) {
    for (const char* end : {"", "-wal", "-shm", "-journal"}) kept.emplace_back(database + end);
  }
  return kept;
}

}  // namespace

report::Format format_of(const Context& context, const std::string& option, const std::string& file) {
  using report::Format;
  static const std::map<std::string, Format> kFormats{
      {"", Format::markdown}, {"md", Format::markdown}, {"markdown", Format::markdown}, {"tex", Format::latex},
      {"html", Format::html}, {"htm", Format::html},    {"csv", Format::csv},           {"json", Format::json}};
  std::string word = option;
  if (word.empty() && context.global.json) word = "json";
  if (word.empty() && special_kind(file).empty()) {
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
  FileInMaking(file, text, kept_by(context)).place();
}

void require_writable(const Context& context, const std::string& file) {
  const FileInMaking draft(file, "", kept_by(context));
}

void write_output(const Context& context, const std::string& file, const report::Report& report) {
  if (file.empty()) return context.console.print(report.text);
  const std::vector<fs::path> kept = kept_by(context);
  // The text before its pictures: if it cannot be written, no folder for them is created.
  FileInMaking text(file, report.text, kept);
  std::vector<FileInMaking> files;
  for (const report::ReportFile& beside : report.files) {
    const fs::path path = fs::path(file).parent_path() / beside.path;
    std::error_code failed;
    if (path.has_parent_path()) fs::create_directories(path.parent_path(), failed);
    if (failed) {
      throw Error(kind_of_write_error(failed.value()),
                  fmt::format("cannot make the folder '{}': {}; choose another place with -o FILE",
                              path.parent_path().string(), failed.message()));
    }
    files.emplace_back(path, beside.bytes, kept);
  }
  for (FileInMaking& beside : files) beside.place();
  text.place();
}

}  // namespace syslab::cli
