// Output: results to standard output, messages about progress to standard error.
#pragma once

#include <string>
#include <string_view>

#include "core/text/json.hpp"
#include "session/options.hpp"

namespace syslab::cli {

enum class Style { plain, bold, good, bad, dim };

class Console {
 public:
  // Colours on a terminal unless NO_COLOR is set (https://no-color.org) or --color says otherwise.
  explicit Console(const GlobalOptions& options);

  // The same, but nothing goes to standard output: of work within a command that has a document to print.
  Console without_output() const;

  bool json() const { return json_; }
  bool quiet() const { return quiet_; }
  bool output_is_terminal() const { return output_is_terminal_; }
  bool error_is_terminal() const { return error_is_terminal_; }

  // To standard output; Error(store) when it cannot be written (a full disk, a closed pipe).
  void print(std::string_view text) const;
  void print_line(const Json& json) const;      // one line, flushed: a reader sees it at once
  void print_document(const Json& json) const;  // indented
  // To standard error; nothing under --quiet.
  void note(std::string_view line) const;
  // The same under --quiet, too: what changes how far a verdict can be trusted.
  void warn(std::string_view line) const;

  std::string styled(std::string_view text, Style style) const;        // for standard output
  std::string styled_error(std::string_view text, Style style) const;  // for standard error

 private:
  bool json_, quiet_, silent_ = false;
  bool output_color_, error_color_, output_is_terminal_, error_is_terminal_;
};

// To standard error, ignoring failures: a closed terminal must not end the work.
void to_error(std::string_view text);

// Text broken at spaces into lines of at most `width` columns, every one indented; ends in a newline.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace syslab::cli
