#include "session/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/process/environment_variable.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "core/text/workflow_commands.hpp"

namespace syslab::cli {
namespace {

constexpr std::array<std::string_view, 5> kStyles{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[1;31m"};

bool color_wanted(Color color, int descriptor) {
  if (color != Color::automatic) return color == Color::always;
  if (!environment_variable("NO_COLOR").empty() || environment_variable("TERM") == "dumb") return false;
  return ::isatty(descriptor) == 1;
}

std::string painted(std::string_view text, Style style, bool color) {
  if (!color || style == Style::plain) return std::string(text);
  const char* code = style == Style::bold ? "1" : style == Style::good ? "32" : style == Style::bad ? "1;31" : "2";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

// Messages of foreign workers may contain bytes that are not UTF-8: they become U+FFFD instead of an exception.
std::string dumped(const Json& json, int indent) {
  return printed_json(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

// No text can control the terminal; only our own styles do.
std::string styled_and_printable(std::string_view text, bool color) {
  std::string out;
  while (!text.empty()) {
    const std::size_t escape = color ? std::min(text.find("\x1b["), text.size()) : text.size();
    out += printable(text.substr(0, escape));
    text.remove_prefix(escape);
    const auto* const own =
        std::ranges::find_if(kStyles, [&](std::string_view style) { return text.starts_with(style); });
    if (own != kStyles.end()) {
      out += *own;
      text.remove_prefix(own->size());
    } else if (!text.empty()) {
      out += printable(text.substr(0, 1));
      text.remove_prefix(1);
    }
  }
  return out;
}

std::string shown(std::string_view text, bool color) { return obeyed_by_nobody(styled_and_printable(text, color)); }

void write_whole(std::FILE* file, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0) {
    throw_errno(ErrorKind::store, "write to standard output", errno, "fwrite");
  }
}

}  // namespace

Console::Console(const GlobalOptions& options)
    : json_(options.json),
      quiet_(options.quiet),
      output_color_(color_wanted(options.color, STDOUT_FILENO)),
      error_color_(color_wanted(options.color, STDERR_FILENO)),
      output_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      error_is_terminal_(::isatty(STDERR_FILENO) == 1) {}

Console Console::without_output() const {
  Console silent = *this;
  silent.silent_ = true;
  return silent;
}

void Console::print(std::string_view text) const {
  if (!silent_) write_whole(stdout, shown(text, output_color_));
}

void Console::print_line(const Json& json) const {
  if (!silent_) write_whole(stdout, dumped(json, -1) + "\n");
}

void Console::print_document(const Json& json) const {
  if (!silent_) write_whole(stdout, dumped(json, 2) + "\n");
}

void Console::note(std::string_view line) const {
  if (!quiet_) warn(line);
}

void Console::warn(std::string_view line) const {
  to_error(fmt::format("{}\n", with_lines_below(shown(line, error_color_))));
}

std::string Console::styled(std::string_view text, Style style) const { return painted(text, style, output_color_); }

std::string Console::styled_error(std::string_view text, Style style) const {
  return painted(text, style, error_color_);
}

void to_error(std::string_view said) {
  const std::string text = obeyed_by_nobody(std::string(said));
  if (std::fwrite(text.data(), 1, text.size(), stderr) != text.size()) std::clearerr(stderr);
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string lines, line;
  const auto end_line = [&] {
    if (!line.empty()) lines += std::string(indent, ' ') + line + "\n";
    line.clear();
  };
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    if (!line.empty() && line.size() + 1 + word.size() + indent > width) end_line();
    if (!line.empty()) line += ' ';
    line += word;
  }
  end_line();
  return lines;
}

}  // namespace syslab::cli
