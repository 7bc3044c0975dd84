// One HTML page with everything in it: style, script, pictures. It reads without the script, which adds sorting, a
// filter and a switch between light and dark.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "report/cells.hpp"
#include "report/contents.hpp"
#include "report/document.hpp"
#include "report/grid.hpp"
#include "report/writers/writers.hpp"
#include "store/utf8.hpp"

namespace syslab::report {
namespace {

std::string resource(const std::string& path) {
  const auto text = find_resource(path);
  if (!text) throw Error(ErrorKind::internal, fmt::format("this binary does not carry '{}'", path));
  return std::string(*text);
}

std::string html_in_line(const Text& text) {
  std::string out;
  for (const Span& span : text) {
    const std::string escaped = escape_html(span.text);
    switch (span.style) {
      case Style::plain:
        out += escaped;
        break;
      case Style::code:
        out += "<code>" + escaped + "</code>";
        break;
      case Style::strong:
        out += "<strong>" + escaped + "</strong>";
        break;
      case Style::emphasis:
        out += "<em>" + escaped + "</em>";
        break;
      case Style::link:
        out += "<a href=\"" + escape_html(span.target) + "\">" + escaped + "</a>";
        break;
      case Style::source:
        out += "<!-- " + escaped + " -->";
        break;
      case Style::anchor:
        out += "<a id=\"" + escape_html(span.target) + "\"></a>";
        break;
      case Style::next:
        out += "<br>";
        break;
      case Style::number:
        break;
    }
  }
  return out;
}

// Numbers, and how a row ended, which stays in sight however far a table scrolls.
std::string class_of(const Column& column) {
  if (column.format == "status" || column.format == "outcome") return R"( class="status")";
  return column.align == "right" ? R"( class="n")" : "";
}

// In a box of its own that scrolls. `style`: what a box does that stands where our style sheet is not.
std::string table_element(const Grid& grid, std::string_view style = {}) {
  std::string out = fmt::format("<div class=\"wide\"{}><table>\n<thead><tr>", style);
  for (const Column& column : grid.columns) {
    const std::string unit = unit_of(column);
    out += fmt::format(R"(<th scope="col"{}>{}{}</th>)", class_of(column), escape_html(heading_of(column)),
                       unit.empty() ? "" : " <small>" + escape_html(unit) + "</small>");
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : grid.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const GridCell& cell = row[i];
      // Rounded numbers are sorted by their exact values.
      const bool rounded = grid.columns[i].align == "right" && !cell.value.empty() && cell.value != cell.span.text;
      out += fmt::format("<td{}{}>{}</td>", class_of(grid.columns[i]),
                         rounded ? fmt::format(R"( data-v="{}")", escape_html(cell.value)) : "",
                         html_in_line({cell.span}));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string html_caption(const std::string& title, const std::string& caption) {
  return "<strong>" + escape_html(title) + ".</strong> " + html_in_line(marked(caption));
}

std::string warning_of(const std::string& warning) {
  return "<p class=\"warning\" role=\"note\">" + escape_html(warning) + "</p>\n";
}

std::string html_notes(const std::vector<std::string>& notes, const std::string& footnote) {
  std::string out;
  for (const std::string& note : notes) out += "<p class=\"note\">" + html_in_line(marked(note)) + "</p>\n";
  if (!footnote.empty()) out += "<p class=\"foot\">" + html_in_line(marked(footnote)) + "</p>\n";
  return out;
}

std::string html_missing(const std::string& title, const std::string& caption, const Text& why) {
  return "<p>" + html_caption(title, caption) + "</p>\n<p class=\"missing\">" + html_in_line(why) + "</p>\n";
}

struct HtmlBlockWriter {
  std::string operator()(const Contents&) const { return {}; }  // they are the navigation's
  std::string operator()(const Heading& heading) const {
    const std::string anchor = escape_html(heading.anchor);
    return fmt::format("<h{0} id=\"{1}\"><a href=\"#{1}\">{2}</a></h{0}>\n", heading.level, anchor,
                       html_in_line(heading.text));
  }
  std::string operator()(const Paragraph& paragraph) const {
    const std::string text = html_in_line(paragraph.text);
    switch (paragraph.tone) {
      case Tone::plain:
        return "<p>" + text + "</p>\n";
      case Tone::meta:
        return "<p class=\"meta\">" + text + "</p>\n";
      case Tone::missing:
        return "<p class=\"missing\">" + text + "</p>\n";
      case Tone::warning:
        return "<p class=\"warning\" role=\"note\">" + text + "</p>\n";
      case Tone::answer:
        return "<p class=\"answer\">" + text + "</p>\n";
    }
    return {};
  }
  std::string operator()(const Code& code) const { return "<pre><code>" + escape_html(code.text) + "</code></pre>\n"; }
  std::string operator()(const Bullets& bullets) const {
    const bool parts = std::ranges::all_of(bullets.items, has_letter);
    std::string out = parts ? "<ul class=\"parts\">\n" : "<ul>\n";
    for (const Text& item : bullets.items) out += "<li>" + html_in_line(item) + "</li>\n";
    return bullets.items.empty() ? "" : out + "</ul>\n";
  }
  std::string operator()(const Table& table) const {
    if (table.result.rows.empty())
      return html_missing(table.source.title, whole_caption(table.source), without_rows(table));
    std::string out = "<section class=\"table\">\n" + html_in_line(source_text(table.source.file));
    if (!table.warning.empty() && holds_times(table.source)) out += warning_of(table.warning);
    // Not in a <caption>: that would scroll away with a wide table.
    out += "<p class=\"caption\">" + html_caption(table.source.title, whole_caption(table.source)) + "</p>\n";
    return out + table_element(grid_of(table)) + html_notes(table.source.notes, foot_of(table)) + "</section>\n";
  }
  std::string operator()(const Picture& picture) const {
    if (!picture.missing.empty()) return html_missing(picture.title, picture.caption, marked(picture.missing));
    return "<figure>\n" + html_in_line(source_text(picture.source)) +
           (picture.warning.empty() ? "" : warning_of(picture.warning)) + "<figcaption>" +
           html_caption(picture.title, picture.caption) + "</figcaption>\n<div class=\"wide\">" + picture.svg +
           "</div>\n" + html_notes(picture.notes, picture.footnote) + "</figure>\n";
  }
};

std::string entry_of(const Heading& heading, const std::string& text) {
  std::string letters;
  for (const std::string& letter : heading.listed.letters) {
    letters +=
        fmt::format("<a href=\"#{}\">{}</a>", escape_html(letter_anchor(heading.anchor, letter)), escape_html(letter));
  }
  if (!letters.empty()) letters = " <span class=\"letters\">" + letters + "</span>";
  return fmt::format("<li><a href=\"#{}\">{}</a>{}</li>\n", escape_html(heading.anchor), text, letters);
}

// Of a hand-in its problems by section, else all sections.
std::string navigation_of(const Document& document) {
  std::string out = "<nav aria-label=\"Contents\"><ol>\n";
  const std::vector<ListedSection> listed = contents_of(document);
  for (const ListedSection& section : listed) {
    out += fmt::format("<li class=\"section\">{}</li>\n", escape_html(section.name));
    for (const Heading* heading : section.problems) out += entry_of(*heading, escape_html(heading->listed.title));
  }
  for (const Block& block : document.blocks) {
    const auto* heading = std::get_if<Heading>(&block);
    if (listed.empty() && heading != nullptr && heading->level <= 2)
      out += entry_of(*heading, html_in_line(heading->text));
  }
  return out + "</ol></nav>\n";
}

std::string replaced(std::string text, std::string_view field, const std::string& value) {
  const std::size_t at = text.find(field);
  if (at == std::string::npos)
    throw Error(ErrorKind::internal, fmt::format("reports/page.html has no field {}", field));
  return text.replace(at, field.size(), value);
}

}  // namespace

std::string escape_html(std::string_view text) {
  const std::optional<std::string> repaired = store::repaired_utf8(text);
  std::string out;
  for (const char c : repaired ? std::string_view(*repaired) : text) {
    const auto code = static_cast<unsigned char>(c);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\r':
        out += "&#13;";  // bare, it would be read as a line feed
        break;
      default:
        if ((code < 0x20 && c != '\n' && c != '\t') || code == 0x7F) {
          out += "\xEF\xBF\xBD";
        } else {
          out += c;
        }
    }
  }
  return out;
}

constexpr std::string_view kScrolls = R"( style="overflow-x: auto")";

std::string write_html(const Table& table) { return table_element(grid_of(table), kScrolls); }

std::string write_html(const store::ResultSet& result) {
  return result.columns.empty() ? std::string() : table_element(grid_of(result), kScrolls);
}

std::string write_html(const Document& document) {
  std::string body;
  for (const Block& block : document.blocks) body += std::visit(HtmlBlockWriter{}, block);
  // The body last: it may contain anything, even the name of a field.
  std::string page = replaced(resource("reports/page.html"), "{{style}}", resource("reports/page.css"));
  page = replaced(page, "{{script}}", resource("reports/page.js"));
  page = replaced(page, "{{title}}", escape_html(document.title));
  page = replaced(page, "{{heading}}", escape_html(document.title));
  page = replaced(page, "{{contents}}", navigation_of(document));
  return replaced(page, "{{body}}", body);
}

}  // namespace syslab::report
