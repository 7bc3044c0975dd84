#include "report/figure/svg.hpp"

#include <fmt/format.h>

#include <cctype>

#include "core/error.hpp"
#include "report/figure/script.hpp"

namespace syslab::report {
namespace {

constexpr const char* kFonts =
    "system-ui,-apple-system,&quot;Segoe UI&quot;,&quot;Noto Sans&quot;,Helvetica,Arial,sans-serif";
// :root is the picture only where it is a document of its own; within a page it takes the page's colour.
constexpr const char* kStyle = "svg:root{color:#1f2328}@media(prefers-color-scheme:dark){svg:root{color:#e6edf3}}";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t begin = 0;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, begin)) {
    result.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  text = result.append(text, begin);
}

// "rgb(  0, 114, 178)" as "#0072b2", the ink as currentColor, the grid's as currentColor, too (its class makes it
// faint).
std::string colour(std::string_view channels) {
  unsigned rgb = 0, value = 0;
  for (const char c : channels) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) value = 10 * value + static_cast<unsigned>(c - '0');
    if (c == ',') {
      rgb = (rgb << 8) | (value & 0xFF);
      value = 0;
    }
  }
  const std::string text = fmt::format("#{:06x}", (rgb << 8) | (value & 0xFF));
  return text == kInk || text == kFaintInk ? "currentColor" : text;
}

// Marks in white are halos that would hide what is behind them on a page of another colour.
void drop_halos(std::string& svg) {
  constexpr std::string_view kOpen = "<use ", kWhite = "color='white'/>";
  for (std::size_t at = svg.find(kWhite); at != std::string::npos; at = svg.find(kWhite, at)) {
    const std::size_t open = svg.rfind(kOpen, at);
    if (open == std::string::npos) return;
    svg.erase(open, at + kWhite.size() - open);
    at = open;
  }
}

// Only within tags: a label may contain "rgb(1,2,3)".
void replace_colours(std::string& svg) {
  std::string result;
  bool in_tag = false;
  for (std::size_t i = 0; i < svg.size(); ++i) {
    if (svg[i] == '<') in_tag = true;
    if (svg[i] == '>') in_tag = false;
    if (in_tag && svg.compare(i, 4, "rgb(") == 0) {
      const std::size_t close = svg.find(')', i);
      if (close == std::string::npos) break;
      result += colour(std::string_view(svg).substr(i + 4, close - i - 4));
      i = close;
      continue;
    }
    result += svg[i];
  }
  svg = std::move(result);
}

// Half of what gnuplot writes are empty groups.
void drop_empty_groups(std::string& svg) {
  std::size_t begin = 0;
  while ((begin = svg.find("<g ", begin)) != std::string::npos) {
    const std::size_t close = svg.find('>', begin);
    std::size_t next = close + 1;
    while (next < svg.size() && std::isspace(static_cast<unsigned char>(svg[next])) != 0) ++next;
    if (svg.compare(next, 4, "</g>") != 0) {
      begin = close;
      continue;
    }
    next += 4;
    while (next < svg.size() && svg[next] == '\n') ++next;
    svg.erase(begin, next - begin);
  }
}

void drop_between(std::string& svg, std::string_view open, std::string_view close) {
  for (std::size_t begin = svg.find(open); begin != std::string::npos; begin = svg.find(open, begin)) {
    const std::size_t end = svg.find(close, begin);
    if (end == std::string::npos) return;
    svg.erase(begin, end + close.size() - begin);
  }
}

std::string attribute(const std::string& svg, std::string_view name) {
  const std::size_t at = svg.find(fmt::format("{}=\"", name));
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 2;
  return svg.substr(begin, svg.find('"', begin) - begin);
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F) {
      escaped += "\xEF\xBF\xBD";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string dress_svg(const std::string& drawn, const std::string& prefix, const std::string& title,
                      const std::string& description) {
  const std::string box = attribute(drawn, "viewBox");
  const std::size_t body = drawn.find("<g id=\"gnuplot_canvas\">");
  const std::size_t end = drawn.rfind("</svg>");
  if (box.empty() || body == std::string::npos || end == std::string::npos || end < body) {
    throw Error(ErrorKind::internal, "gnuplot wrote no SVG that syslab understands");
  }
  std::string svg = drawn.substr(body, end - body);
  drop_between(svg, "<filter", "</filter>\n");
  drop_between(svg, "<title>", "</title>");  // names that gnuplot gives to plots
  drop_between(svg, "<rect x=\"0\" y=\"0\"", "/>\n");
  // The groups' own colour attribute would change the meaning of currentColor within them.
  drop_halos(svg);
  replace_all(svg, " color=\"black\"", "");
  replace_all(svg, " color=\"white\"", "");
  replace_all(svg, " font-family=\"sans-serif\"", "");
  replace_all(svg, "class=\"gridline\"", "stroke-opacity=\"0.15\"");
  replace_all(svg, "id=\"gnuplot_canvas\"", "");
  replace_all(svg, "id=\"gnuplot_plot_", fmt::format("id=\"{}-plot-", prefix));
  replace_all(svg, "'#gpPt", fmt::format("'#{}-mark-", prefix));
  replace_all(svg, "id='gpPt", fmt::format("id='{}-mark-", prefix));
  replace_all(svg, "id='gpDot'", fmt::format("id='{}-dot'", prefix));
  replace_all(svg, "'#gpDot'", fmt::format("'#{}-dot'", prefix));
  replace_colours(svg);
  drop_empty_groups(svg);
  const std::string size = box.substr(box.find(' ', box.find(' ') + 1) + 1);
  const std::size_t space = size.find(' ');
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" class=\"figure\" "
      "viewBox=\"{0}\" width=\"{1}\" height=\"{2}\" role=\"img\" aria-labelledby=\"{3}-title {3}-desc\" "
      "font-family=\"{4}\">\n"
      "<title id=\"{3}-title\">{5}</title>\n<desc id=\"{3}-desc\">{6}</desc>\n<style>{7}</style>\n{8}</svg>\n",
      box, size.substr(0, space), size.substr(space + 1), prefix, kFonts, escape_xml(title), escape_xml(description),
      kStyle, svg);
}

}  // namespace syslab::report
