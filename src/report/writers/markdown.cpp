// Markdown as GitHub reads it: pipe tables, numbers to the right, one unit in the header.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "core/text/text.hpp"
#include "report/cells.hpp"
#include "report/contents.hpp"
#include "report/document.hpp"
#include "report/grid.hpp"
#include "report/writers/writers.hpp"

namespace syslab::report {
namespace {

// An underscore within a word marks nothing: names are read as they are.
bool is_within_word(std::string_view text, std::size_t at) {
  const auto is_of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return text[at] == '_' && at > 0 && at + 1 < text.size() && is_of_word(text[at - 1]) && is_of_word(text[at + 1]);
}

// Without looking at the text around it.
std::string escape_inline(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "<br>";
    } else if (c == '\0') {
      out += "\xEF\xBF\xBD";
    } else if (code < 0x20 || code == 0x7F) {
      out += fmt::format("&#{};", code);
    } else {
      if (std::string_view("\\`*_[]<>|~&$#").find(c) != std::string_view::npos && !is_within_word(text, at))
        out += '\\';
      out += c;
    }
  }
  return out;
}

std::size_t longest_run_of_backticks(std::string_view text) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// More backticks than the text has together, so that none ends it. A reader takes away a space from both ends where
// both have one.
std::string code_span(const std::string& text) {
  const std::string fence(longest_run_of_backticks(text) + 1, '`');
  const bool loses_ends = text.front() == ' ' && text.back() == ' ' && text.find_first_not_of(' ') != std::string::npos;
  const bool padded = text.front() == '`' || text.back() == '`' || loses_ends;
  return fence + (padded ? " " : "") + text + (padded ? " " : "") + fence;
}

// An element of HTML, in which Markdown finds nothing of its own: every sign that means something is an entity.
std::string code_element(const std::string& text) {
  std::string out = "<code>";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\0') {
      out += "\xEF\xBF\xBD";
    } else if (code < 0x20 || code == 0x7F || std::ispunct(code) != 0) {
      out += fmt::format("&#{};", code);
    } else {
      out += c;
    }
  }
  return out + "</code>";
}

// Always code. Lines end no code span but in the source; in a cell of a table a pipe ends it.
std::string as_code(const std::string& text, const bool in_cell) {
  if (text.empty()) return {};
  const auto cannot_be_in_a_span = [&](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F || (in_cell && c == '|');
  };
  return std::ranges::any_of(text, cannot_be_in_a_span) ? code_element(text) : code_span(text);
}

std::string anchor_text(const std::string& name) { return "<a id=\"" + name + "\"></a>"; }

std::string span_in_text(const Span& span) {
  switch (span.style) {
    case Style::plain:
      return escape_inline(span.text);
    case Style::code:
      return as_code(span.text, false);
    case Style::strong:
      return "**" + escape_inline(span.text) + "**";
    case Style::emphasis:
      return "*" + escape_inline(span.text) + "*";
    case Style::link:
      return "[" + escape_inline(span.text) + "](" + span.target + ")";
    case Style::source:
      return "<!-- " + span.text + " -->";
    case Style::anchor:
      return anchor_text(span.target);
    case Style::next:
      return "<br>";
    case Style::number:
      break;
  }
  return {};
}

// Above a table or a picture.
std::string source_line(const std::string& file) { return file.empty() ? "" : "<!-- " + file + " -->\n"; }

std::string markdown_in_line(const Text& text) {
  std::string out;
  for (const Span& span : text) out += span_in_text(span);
  return out;
}

std::string row_of(const std::vector<std::string>& cells) { return fmt::format("| {} |\n", fmt::join(cells, " | ")); }

std::string head_of(const Grid& grid) {
  std::vector<std::string> names, marks;
  for (const Column& column : grid.columns) {
    const std::string name = escape_markdown(heading_of(column)), unit = unit_of(column);
    names.push_back(unit.empty() ? name : name + " " + unit);
    marks.emplace_back(column.align == "right" ? "---:" : ":---");
  }
  return row_of(names) + row_of(marks);
}

// Spaces at the ends of a cell are protected.
std::string cell_text(const Span& span) {
  if (span.style == Style::code) return as_code(span.text, true);
  return span.style == Style::strong ? "**" + escape_markdown(span.text) + "**" : escape_markdown(span.text);
}

std::string grid_text(const Grid& grid) {
  std::string out = head_of(grid);
  for (const auto& row : grid.rows) {
    std::vector<std::string> cells;
    for (const GridCell& cell : row) cells.push_back(cell_text(cell.span));
    out += row_of(cells);
  }
  return out;
}

std::string warning_text(const std::string& warning) { return "> **" + escape_inline(warning) + "**\n\n"; }

std::string title_text(const std::string& title, const std::string& caption) {
  return "**" + escape_inline(title) + ".**" + (caption.empty() ? "" : " " + markdown_in_line(marked(caption))) +
         "\n\n";
}

std::string notes_text(const std::vector<std::string>& notes, const std::string& footnote) {
  std::string out;
  for (const std::string& note : notes) out += "\n" + markdown_in_line(marked(note)) + "\n";
  if (!footnote.empty()) out += "\n<sub>" + markdown_in_line(marked(footnote)) + "</sub>\n";
  return out;
}

std::string items_text(const Bullets& bullets) {
  std::string out;
  for (const Text& item : bullets.items) out += "- " + markdown_in_line(item) + "\n";
  return out;
}

std::string link_text(const std::string& text, const std::string& anchor) {
  return fmt::format("[{}](#{})", escape_inline(text), anchor);
}

// An item a section: its problems, each followed by its letters.
std::string contents_text(const Document& document) {
  std::string out;
  for (const ListedSection& section : contents_of(document)) {
    std::vector<std::string> problems;
    for (const Heading* heading : section.problems) {
      problems.push_back(link_text(heading->listed.title, heading->anchor));
      for (const std::string& letter : heading->listed.letters) {
        problems.back() += " " + link_text(letter, letter_anchor(heading->anchor, letter));
      }
    }
    out += fmt::format("- {}: {}\n", escape_inline(section.name), fmt::join(problems, " · "));
  }
  return out;
}

struct MarkdownBlockWriter {
  const Document& document;

  std::string operator()(const Contents&) const { return contents_text(document); }
  std::string operator()(const Heading& heading) const {
    const std::string anchor = heading.anchor.empty() ? "" : " " + anchor_text(heading.anchor);
    return std::string(static_cast<std::size_t>(heading.level), '#') + " " + markdown_in_line(heading.text) + anchor +
           "\n";
  }
  std::string operator()(const Paragraph& paragraph) const {
    const std::string text = markdown_in_line(paragraph.text);
    switch (paragraph.tone) {
      case Tone::plain:
      case Tone::meta:
        return text + "\n";
      case Tone::missing:
        return "*" + text + "*\n";
      case Tone::warning:
        return "> **" + text + "**\n";
      case Tone::answer:
        return "> *" + text + "*\n";
    }
    return {};
  }
  std::string operator()(const Code& code) const {
    const std::string fence(std::max<std::size_t>(3, longest_run_of_backticks(code.text) + 1), '`');
    return fence + "sh\n" + code.text + "\n" + fence + "\n";
  }
  std::string operator()(const Bullets& bullets) const { return items_text(bullets); }
  std::string operator()(const Table& table) const { return write_markdown(table); }
  std::string operator()(const Picture& picture) const {
    std::string out = source_line(picture.source) + title_text(picture.title, picture.caption);
    if (!picture.missing.empty()) return out + markdown_in_line(marked(picture.missing)) + "\n";
    if (!picture.warning.empty()) out += warning_text(picture.warning);
    out += fmt::format("![{}]({}.svg)\n", escape_inline(picture.title), picture.file);
    return out + notes_text(picture.notes, picture.footnote);
  }
};

}  // namespace

std::string escape_markdown(std::string_view text) {
  if (text.empty()) return {};
  // A cell is trimmed when it is read: a space at an end must not look like one.
  const auto guarded = [](char c) { return c == ' ' ? std::string("&#32;") : escape_inline(std::string(1, c)); };
  if (text.size() == 1) return guarded(text.front());
  return guarded(text.front()) + escape_inline(text.substr(1, text.size() - 2)) + guarded(text.back());
}

std::string write_markdown(const Table& table) {
  std::string out = source_line(table.source.file) + title_text(table.source.title, whole_caption(table.source));
  if (table.result.rows.empty()) return out + markdown_in_line(without_rows(table)) + "\n";
  if (!table.warning.empty() && holds_times(table.source)) out += warning_text(table.warning);
  return out + grid_text(grid_of(table)) + notes_text(table.source.notes, foot_of(table));
}

std::string write_markdown(const store::ResultSet& result) {
  return result.columns.empty() ? std::string() : grid_text(grid_of(result));
}

std::string write_markdown(const Document& document) {
  std::string out = "# " + escape_inline(document.title) + "\n";
  for (const Block& block : document.blocks) out += "\n" + std::visit(MarkdownBlockWriter{document}, block);
  return out;
}

std::string write_sentences(const Table& table) {
  std::vector<Text> found;
  std::ranges::transform(sentences(table), std::back_inserter(found), &Sentence::marked);
  if (found.empty()) found.push_back(without_rows(table));
  return items_text(Bullets{found});
}

}  // namespace syslab::report
