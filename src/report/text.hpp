// Text with as much markup as a report needs, so that each writer sets it in its own way: captions, notes, questions
// and sentences say `code` between backticks and nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syslab::report {

// source: the file that a sentence is made by. No reader sees it: a comment, where the format has one.
// anchor: a place in the document that its contents lead to; no reader sees it either.
// number: "Table" or "Figure" with the number of one, where the format numbers them; elsewhere nothing.
// next: what follows is of another matter and begins a line.
enum class Style { plain, code, strong, emphasis, link, source, anchor, number, next };

struct Span {
  Style style = Style::plain;
  std::string text;
  std::string target = {};  // of a link: a file beside the report, perhaps with #anchor; of an anchor its name; of a
                            // number the label of the table or picture (document.hpp)
};

using Text = std::vector<Span>;

// What stands between backticks becomes a code span; two together stand for one, and so does one that is never closed.
Text marked(std::string_view text);
// Any text within one that marked() reads: its backticks are doubled.
std::string unmarked(std::string_view text);
Text plain_text(std::string text);
Text strong(std::string text);
Text next_line();
Text source_text(std::string file);  // nothing of an empty name

// Pieces behind each other.
Text operator+(Text first, const Text& second);

// Without the markup.
std::string bare(const Text& text);

}  // namespace syslab::report
