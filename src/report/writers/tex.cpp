// LaTeX: a document that compiles by itself with pdflatex or lualatex, or a bare tabular to be \input. Rules of
// booktabs, numbers in siunitx columns with widths from the data.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/text.hpp"
#include "report/cells.hpp"
#include "report/contents.hpp"
#include "report/document.hpp"
#include "report/grid.hpp"
#include "report/writers/tex_number.hpp"
#include "report/writers/writers.hpp"

namespace syslab::report {
namespace {

// A file's name as \href takes it; no reader of PDF goes to a place in it.
std::string target_of(const Span& link) {
  std::string target;
  for (const char c : link.target.substr(0, link.target.find('#'))) target += c == '%' ? R"(\%)" : std::string(1, c);
  return target;
}

// What \label and \ref take of a name.
std::string tex_label(std::string label) {
  std::erase_if(label, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != ':' && c != '_'; });
  return label;
}

// TeX takes several spaces for one, and none for one that begins a line.
std::string with_all_spaces(const std::string& escaped) {
  std::string out;
  for (std::size_t at = 0; at < escaped.size(); ++at) {
    const bool beside_another =
        escaped[at] == ' ' && (at == 0 || escaped[at - 1] == ' ' || at + 1 == escaped.size() || escaped[at + 1] == ' ');
    out += beside_another ? R"(\ )" : std::string(1, escaped[at]);
  }
  return out;
}

// A span without places to break a line at but its spaces.
std::string tex_span(const Span& span) {
  const std::string escaped = escape_tex(span.text);
  switch (span.style) {
    case Style::plain:
      return escaped;
    case Style::code:
      return R"(\texttt{)" + with_all_spaces(escaped) + "}";
    case Style::strong:
      return R"(\textbf{)" + escaped + "}";
    case Style::emphasis:
      return R"(\emph{)" + escaped + "}";
    case Style::link:
      return R"(\href{run:)" + target_of(span) + "}{" + escaped + "}";
    case Style::anchor:
      return R"(\syslabanchor{)" + span.target + "}";
    case Style::number:
      return fmt::format(R"(\syslabsee{{{}}}{{{}}})", escaped, tex_label(span.target));
    case Style::next:
      return R"(\syslabnextline{})";
    case Style::source:
      break;
  }
  return {};
}

// A name or a path has no space to break a line at, so a long one may break after the characters that join its parts.
std::string breakable(const Span& span) {
  constexpr std::size_t kLong = 24;  // characters; a shorter one fits into the next line
  const std::string_view joints = span.style == Style::code ? "._/:" : "_/";
  std::string out, piece;
  const auto flush = [&] {
    if (!piece.empty()) out += tex_span({span.style, std::exchange(piece, {})});
  };
  for (std::size_t from = 0; from < span.text.size();) {
    const std::size_t end = std::min(span.text.find(' ', from), span.text.size());
    const bool is_long = end - from > kLong;
    for (std::size_t at = from; at < end; ++at) {
      piece += span.text[at];
      if (!is_long || at + 1 == end || joints.find(span.text[at]) == std::string_view::npos) continue;
      flush();
      out += "\\allowbreak{}";
    }
    if (end < span.text.size()) piece += ' ';
    from = end + 1;
  }
  flush();
  return out;
}

std::string tex_in_line(const Text& text) {
  std::string out;
  for (const Span& span : text) out += span.style == Style::code ? breakable(span) : tex_span(span);
  return out;
}

// --- tables ---

constexpr std::size_t kWidestText = 36;  // characters; what is longer is broken into lines
constexpr std::size_t kWidestCode = 40;  // what hand_in_table() shortens a name to, and some

struct TexColumn {
  std::string spec;
  bool numeric = false;
  bool wraps = false;
  std::size_t width = 0;  // characters
};

TexColumn tex_column(const Grid& grid, std::size_t index) {
  const Column& column = grid.columns[index];
  TexColumn made;
  made.width = std::max(width_of(heading_of(column)), width_of(unit_of(column)));
  std::vector<TexNumber> numbers;
  for (const auto& row : grid.rows) {
    made.width = std::max(made.width, width_of(row[index].span.text));
    if (const auto number = tex_number(row[index].span.text)) numbers.push_back(*number);
  }
  made.numeric = column.align == "right" && !numbers.empty();
  if (made.numeric) {
    made.spec = number_column(numbers);
  } else if (const std::size_t widest = is_code(column) ? kWidestCode : kWidestText; made.width > widest) {
    made.width = widest;
    made.wraps = true;
    // A letter of prose is half an em wide on average, each of typewriter somewhat more.
    const std::size_t width = is_code(column) ? kWidestCode * 11 / 20 : kWidestText / 2;
    made.spec = fmt::format(R"(>{{\raggedright\arraybackslash}}p{{{}em}})", width);
  } else {
    made.spec = column.align == "right" ? "r" : "l";
  }
  return made;
}

// Name above unit. In braces, because every text in a column of numbers must be.
std::string head_cell(const Column& column) {
  const std::string name = escape_tex(heading_of(column)), unit = escape_tex(unit_of(column));
  if (unit.empty()) return "{" + name + "}";
  const char side = column.align == "right" ? 'r' : 'l';
  return fmt::format(R"({{\begin{{tabular}}[b]{{@{{}}{}@{{}}}}{}\\{}\end{{tabular}}}})", side, name, unit);
}

std::string body_cell(const GridCell& cell, const TexColumn& column) {
  const auto number = column.numeric && cell.span.style == Style::plain ? tex_number(cell.span.text) : std::nullopt;
  if (number) return number->text;
  return "{" + (column.wraps ? breakable(cell.span) : tex_span(cell.span)) + "}";
}

struct TexGrid {
  std::string specs, head, body;
  std::size_t width = 0;  // characters
};

TexGrid tex_grid(const Grid& grid) {
  TexGrid made;
  std::vector<TexColumn> columns;
  for (std::size_t i = 0; i < grid.columns.size(); ++i) {
    columns.push_back(tex_column(grid, i));
    made.specs += columns.back().spec;
    made.head += (i > 0 ? " & " : "") + head_cell(grid.columns[i]);
    constexpr std::size_t kGap = 2;
    made.width += columns.back().width + kGap;
  }
  made.head += " \\\\\n";
  for (const auto& row : grid.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) made.body += (i > 0 ? " & " : "") + body_cell(row[i], columns[i]);
    made.body += " \\\\\n";
  }
  return made;
}

std::string tabular_of(const Grid& grid) {
  const TexGrid made = tex_grid(grid);
  return fmt::format("\\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n{}\\bottomrule\n\\end{{tabular}}\n", made.specs,
                     made.head, made.body);
}

// A font size at which that many characters fit on a line of the preamble's page, lying or upright.
std::string_view size_for(std::size_t characters, bool upright) {
  if (upright) return characters <= 92 ? R"(\small)" : characters <= 112 ? R"(\footnotesize)" : R"(\scriptsize)";
  if (characters <= 130) return R"(\small)";
  if (characters <= 165) return R"(\footnotesize)";
  if (characters <= 190) return R"(\scriptsize)";
  return R"(\tiny)";
}

std::string tex_caption(const std::string& title, const std::string& caption, const std::string& label) {
  const std::string name = escape_tex(title);
  return fmt::format(R"(\caption[{}]{{\textbf{{{}.}} {}}}\label{{{}}})", name, name, tex_in_line(marked(caption)),
                     tex_label(label));
}

std::string tex_notes(const std::vector<std::string>& notes, const std::string& footnote) {
  std::string out;
  for (const std::string& note : notes) out += "\\syslabnote{" + tex_in_line(marked(note)) + "}\n";
  if (!footnote.empty()) out += "\\syslabnote{" + tex_in_line(marked(footnote)) + "}\n";
  return out;
}

std::string tex_missing(const std::string& title, const std::string& caption, const Text& why) {
  return fmt::format("\\paragraph{{{}.}} {} \\emph{{{}}}\n", escape_tex(title), tex_in_line(marked(caption)),
                     tex_in_line(why));
}

std::string tex_warning(const Table& table) {
  if (table.warning.empty() || !holds_times(table.source)) return {};
  return "\\syslabwarning{" + escape_tex(table.warning) + "}\n";
}

std::string caption_of(const Table& table) {
  return tex_caption(table.source.title, whole_caption(table.source), number_label(table));
}

// Of a hand-in: few rows, which stay together and where they belong.
std::string short_table(const Table& table) {
  if (table.result.rows.empty())
    return tex_missing(table.source.title, whole_caption(table.source), without_rows(table));
  const Grid grid = grid_of(table);
  return fmt::format(
      "{}\\nopagebreak\\begin{{table}}[H]\\centering\n{}\n{{{}\\syslabfit{{%\n{}}}}}\n{}\\end{{table}}\n",
      tex_warning(table), caption_of(table), size_for(tex_grid(grid).width, true), tabular_of(grid),
      tex_notes(table.source.notes, foot_of(table)));
}

std::string long_table(const Table& table) {
  if (table.result.rows.empty())
    return tex_missing(table.source.title, whole_caption(table.source), without_rows(table));
  const TexGrid made = tex_grid(grid_of(table));
  std::string out = tex_warning(table);
  out += fmt::format("{{{}\\begin{{longtable}}{{{}}}\n{} \\\\\n\\toprule\n{}\\midrule\n\\endfirsthead\n",
                     size_for(made.width, false), made.specs, caption_of(table), made.head);
  out += fmt::format("\\toprule\n{}\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n{}\\end{{longtable}}}}\n", made.head,
                     made.body);
  return out + tex_notes(table.source.notes, foot_of(table));
}

// --- the document ---

// The letter of a part, "(a)" or "(a)–(c)", stands where other items have a dot.
std::string tex_item(const Text& item) {
  if (!has_letter(item)) return "\\item {}" + tex_in_line(item) + "\n";
  return "\\item[" + tex_in_line({item.front()}) + "]" + tex_in_line({item.begin() + 1, item.end()}) + "\n";
}

// In a hand-in at the margin, and above the page.
std::string tex_part(const Text& item) {
  return fmt::format("\\syslabpart{{{}}}{}\n", escape_tex(item.front().text),
                     tex_in_line({item.begin() + 1, item.end()}));
}

// A line a problem, with the page that it begins on.
std::string tex_contents(const Document& document) {
  std::string out;
  for (const ListedSection& section : contents_of(document)) {
    out += fmt::format("\\syslabsection{{{}}}\n", escape_tex(section.name));
    for (const Heading* heading : section.problems) {
      std::string letters;
      for (const std::string& letter : heading->listed.letters) {
        letters +=
            fmt::format("\\syslabletter{{{}}}{{{}}}", letter_anchor(heading->anchor, letter), escape_tex(letter));
      }
      out += fmt::format("\\syslabentry{{sec:{}}}{{{}}}{{{}}}\n", heading->anchor, escape_tex(heading->listed.title),
                         letters);
    }
  }
  return out.empty() ? out : "\\begin{syslabcontents}\n" + out + "\\end{syslabcontents}\n";
}

struct TexBlockWriter {
  const Document& document;
  bool hand_in = document.hand_in;

  std::string operator()(const Contents&) const { return tex_contents(document); }
  std::string operator()(const Heading& heading) const {
    if (!heading.listed.title.empty()) {
      return fmt::format("\\syslabproblem{{{}}}{{{}}}\\label{{sec:{}}}\n", escape_tex(heading.listed.title),
                         tex_in_line(heading.text), heading.anchor);
    }
    return fmt::format("\\{}{{{}}}\\label{{sec:{}}}\n", heading.level <= 2 ? "section" : "subsection",
                       tex_in_line(heading.text), heading.anchor);
  }
  std::string operator()(const Paragraph& paragraph) const {
    std::string text = tex_in_line(paragraph.text);
    const bool is_whole = !paragraph.text.empty() && paragraph.text.front().style == Style::number;
    if (is_whole) text = "{" + text + "\\par}";  // \syslabsee holds within
    switch (paragraph.tone) {
      case Tone::plain:
      case Tone::meta:
        return text + "\n";
      case Tone::missing:
        return "\\emph{" + text + "}\n";
      case Tone::warning:
        return "\\syslabwarning{" + text + "}\n";
      case Tone::answer:
        return "\\syslabanswer{" + text + "}\n";
    }
    return {};
  }
  std::string operator()(const Code& code) const {
    return "\\begin{flushleft}\n" + tex_in_line({{Style::code, code.text}}) + "\n\\end{flushleft}\n";
  }
  std::string operator()(const Bullets& bullets) const {
    if (bullets.items.empty()) return {};
    const bool parts = hand_in && std::ranges::all_of(bullets.items, has_letter);
    const std::string list = parts ? "syslabparts" : "itemize";
    std::string out = fmt::format("\\begin{{{}}}\n", list);
    for (const Text& item : bullets.items) out += parts ? tex_part(item) : tex_item(item);
    return out + fmt::format("\\end{{{}}}\n", list);
  }
  std::string operator()(const Table& table) const { return hand_in ? short_table(table) : long_table(table); }
  std::string operator()(const Picture& picture) const {
    if (!picture.missing.empty()) return tex_missing(picture.title, picture.caption, marked(picture.missing));
    // In a hand-in it stands on the page of the answer above it.
    std::string out = hand_in ? "\\nopagebreak\\begin{figure}[H]\\centering\n" : "\\begin{figure}[htbp]\\centering\n";
    if (!picture.warning.empty()) out += "\\syslabwarning{" + escape_tex(picture.warning) + "}\n";
    out += fmt::format("{}\n\\includegraphics[width=0.8\\linewidth,height={}\\textheight,keepaspectratio]{{{}}}\n",
                       tex_caption(picture.title, picture.caption, number_label(picture)), hand_in ? "0.42" : "0.7",
                       picture.file);
    return out + tex_notes(picture.notes, picture.footnote) + "\\end{figure}\n";
  }
};

}  // namespace

std::string write_tex(const Table& table) { return tabular_of(grid_of(table)); }

std::string write_tex(const store::ResultSet& result) {
  return result.columns.empty() ? std::string() : tabular_of(grid_of(result));
}

std::string write_tex(const Document& document) {
  const auto preamble = find_resource("reports/preamble.tex");
  if (!preamble) throw Error(ErrorKind::internal, "this binary does not carry 'reports/preamble.tex'");
  std::string out(*preamble);
  out += fmt::format("\n{}\n\\begin{{document}}\n\\syslabtitle{{{}}}\n{}",
                     document.hand_in ? "\\syslabhandin" : "\\syslabappendix", escape_tex(document.title),
                     document.hand_in ? "" : "\\tableofcontents\n");
  for (const Block& block : document.blocks) out += "\n" + std::visit(TexBlockWriter{document}, block);
  return out + "\n\\end{document}\n";
}

}  // namespace syslab::report
