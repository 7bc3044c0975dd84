#include "compare/github.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "compare/verdict_table.hpp"
#include "core/error.hpp"
#include "core/process/environment_variable.hpp"
#include "core/text/command_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "report/writers/writers.hpp"
#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

using stats::Verdict;

enum class Level { well, warning, error };

Level level_of(const verdict::Judgement& it) {
  if (it.verdict == Verdict::slower || it.failed_a || it.failed_b) return Level::error;
  return it.verdict == Verdict::faster || it.verdict == Verdict::same ? Level::well : Level::warning;
}

// As GitHub's runner reads them: text that was stored must begin no command of its own.
std::string escaped(std::string_view text, bool is_property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

std::string said(const verdict::Judgement& it) {
  return it.failed_a || it.failed_b ? words::reason(it) : words::sentence(it, words::kPinnedSide, words::kNowSide);
}

std::string annotation(std::string_view level, const std::string& file, const std::string& title,
                       const std::string& text) {
  return fmt::format("::{} {}title={}::{}\n", level, file.empty() ? "" : "file=" + escaped(file, true) + ",",
                     escaped(title, true), escaped(text, false));
}

const char* mark_of(Level level) { return level == Level::error ? "❌" : level == Level::warning ? "⚠️" : "✅"; }

}  // namespace

std::string annotated_file(const std::vector<Submitted>& mine, std::string_view implementation) {
  namespace fs = std::filesystem;
  const auto own = std::ranges::find(mine, implementation, &Submitted::name);
  if (own == mine.end()) return {};
  fs::path file = own->path();
  if (own->is_command()) {  // its program, or a script that it runs: the first that is a file of the user's
    const std::optional<CommandPlace> place = parse_command_place(own->path());
    file.clear();
    for (const std::string& word : place ? syslab::command_words(place->command) : std::vector<std::string>{}) {
      std::error_code none;
      const fs::path named = fs::path(place->folder) / word;
      if (file.empty() && fs::is_regular_file(named, none)) file = named.lexically_normal();
    }
  }
  const std::string workspace = environment_variable("GITHUB_WORKSPACE");
  if (workspace.empty() || file.empty()) return file.string();
  const fs::path relative = file.lexically_relative(workspace);
  return relative.empty() || *relative.begin() == ".." ? file.string() : relative.string();
}

std::string github_annotations(const std::vector<GatedLine>& lines, const std::vector<std::string>& missing) {
  std::string text;
  for (const auto& [title, it, file] : lines) {
    const Level level = level_of(it);
    if (level == Level::well) continue;
    text += annotation(level == Level::error ? "error" : "warning", file,
                       fmt::format("{}: {}", title, words::word_of(it)), said(it));
  }
  for (const std::string& line : missing) text += annotation("error", "", "missing", line);
  return text;
}

std::string github_summary(const std::string& against, const std::vector<GatedLine>& lines,
                           const std::vector<std::string>& missing, const std::string& about_pin) {
  std::vector<const GatedLine*> sorted;
  for (const GatedLine& line : lines) sorted.push_back(&line);
  std::stable_sort(sorted.begin(), sorted.end(), [](const GatedLine* a, const GatedLine* b) {
    return level_of(a->judgement) > level_of(b->judgement);
  });
  const auto ill = std::count_if(lines.begin(), lines.end(),
                                 [](const GatedLine& line) { return level_of(line.judgement) == Level::error; });
  std::string text =
      fmt::format("### Gate against {}\n\n{}: {} slower or wrong{}.\n\n", report::escape_markdown(against),
                  counted(static_cast<std::int64_t>(lines.size()), "case"), ill,
                  missing.empty() ? "" : fmt::format(", {} missing", missing.size()));
  if (!about_pin.empty()) text += report::escape_markdown(about_pin) + "\n\n";
  text += "| | case | pinned | now | change | 95 % | verdict |\n|---|---|---:|---:|---:|---:|---|\n";
  for (const GatedLine* line : sorted) {
    const verdict::Judgement& it = line->judgement;
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", mark_of(level_of(it)),
                        report::escape_markdown(line->title), value_text(it.quantity, it.seconds_a),
                        value_text(it.quantity, it.seconds_b), it.log_ratio ? words::change_text(it) : "–",
                        it.low ? words::interval_text(it) : "–",
                        report::escape_markdown(it.reason.cause == verdict::Cause::none
                                                    ? words::word_of(it)
                                                    : fmt::format("{}: {}", words::word_of(it), words::reason(it))));
  }
  for (const std::string& line : missing) {
    text += fmt::format("| ❌ | {} | – | – | – | – | missing |\n", report::escape_markdown(line));
  }
  return text + "\n";
}

void require_github() {
  const std::string file = environment_variable("GITHUB_STEP_SUMMARY");
  if (file.empty()) {
    throw Error(ErrorKind::usage,
                "--github writes its summary to the file that GITHUB_STEP_SUMMARY names, as GitHub "
                "Actions sets it, and it is not set");
  }
  if (!std::ofstream(file, std::ios::app)) {
    throw Error(ErrorKind::usage, fmt::format("--github: '{}' (GITHUB_STEP_SUMMARY) cannot be written to", file));
  }
}

void tell_github(const Context& context, const std::string& against, const std::vector<GatedLine>& lines,
                 const std::vector<std::string>& missing, const std::string& about_pin) {
  const std::string annotations = github_annotations(lines, missing);
  // Not by the console, which prints no commands. What others wrote in them is escaped.
  const std::string text = printable(annotations);
  std::FILE* const to = context.console.json() ? stderr : stdout;
  if (std::fwrite(text.data(), 1, text.size(), to) != text.size() || std::fflush(to) != 0) {
    if (to == stdout) throw_errno(ErrorKind::store, "write to standard output", errno, "fwrite");
  }
  const std::string file = environment_variable("GITHUB_STEP_SUMMARY");
  std::ofstream out(file, std::ios::app | std::ios::binary);
  out << github_summary(against, lines, missing, about_pin);
  out.close();
  if (!out) throw Error(ErrorKind::store, fmt::format("'{}' (GITHUB_STEP_SUMMARY) could not be written", file));
}

}  // namespace syslab::cli
