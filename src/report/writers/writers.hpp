// One function a format; table.hpp's write() chooses.
#pragma once

#include <string>
#include <vector>

#include "report/table.hpp"

namespace syslab::report {

// A text as one cell of a GitHub pipe table, or within a paragraph: what is shown is the text itself. A line break
// becomes <br>, other control characters their entity; NUL, which no Markdown can hold, becomes U+FFFD.
std::string escape_markdown(std::string_view text);
// RFC 4180: quoted where it holds a comma, a quote, a line break, or space at an end.
std::string escape_csv(std::string_view text);

// Compiles and shows the text with pdflatex and with lualatex, in a paragraph as in a cell; line breaks become spaces,
// characters that fonts of LaTeX lack read "U+4E2D".
std::string escape_tex(std::string_view text);
// The text itself between tags and in a quoted attribute; characters that HTML cannot hold become U+FFFD.
std::string escape_html(std::string_view text);

std::string write_markdown(const Table& table);
std::string write_markdown(const store::ResultSet& result);
std::string write_tex(const Table& table);  // a bare tabular, to be \input
std::string write_tex(const store::ResultSet& result);
std::string write_html(const Table& table);  // a table element
std::string write_html(const store::ResultSet& result);
std::string write_csv(const Table& table);
std::string write_csv(const store::ResultSet& result);
std::string write_json(const Table& table);
std::string write_json(const std::vector<Table>& tables);  // a list
std::string write_json(const store::ResultSet& result);

}  // namespace syslab::report
