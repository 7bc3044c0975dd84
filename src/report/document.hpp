// A report before it has a format: headings, paragraphs, lists, tables and pictures in order. The content is decided
// once (report.cpp); each writer does its layout (markdown.cpp, tex.cpp, html.cpp).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "report/table.hpp"
#include "report/text.hpp"

namespace syslab::report {

// What the contents of a hand-in have of a problem.
struct Listed {
  std::string section, title;        // the hand-out's section: problems of one that follow each other stand together
  std::vector<std::string> letters;  // of its parts; each has an anchor, letter_anchor()
};

struct Heading {
  int level = 2;  // 2: a section, 3 below it
  Text text;
  std::string anchor;  // what a link to it is called; unique in the document
  Listed listed = {};  // without a title: in no contents
};

inline std::string letter_anchor(const std::string& heading, const std::string& letter) {
  return heading + "-" + letter;
}

// Where the contents stand: the headings that are listed, with links. An HTML page has them beside it.
struct Contents {};

enum class Tone {
  plain,
  meta,     // which problem of which hand-out
  warning,  // must not be overlooked
  missing,  // what was not measured, and how it would be
  answer,   // a place that is left for the reader's own words
};

struct Paragraph {
  Text text;
  Tone tone = Tone::plain;
};

// A command line, or other text that is copied as it is, byte by byte.
struct Code {
  std::string text;
};

struct Bullets {
  std::vector<Text> items;
};

struct Picture {
  std::string id, experiment, title, caption;
  std::string svg;   // the picture, inline
  std::string file;  // next to the report, without extension: "figures/flash_forward-time"; empty: not written
  std::string missing;
  bool left_out = false;  // nobody wanted figures: it stands nowhere, but what it fills says so
  std::vector<std::string> notes;
  std::string warning, footnote;
  std::vector<std::string> fills;
  std::string source = {};  // the .sql file, from the source root
};

// What a span of Style::number calls a table or a picture by.
inline std::string number_label(const Table& table) {
  return "tab:" + (table.source.experiment == "*" ? "" : table.source.experiment + ":") + table.source.id;
}
inline std::string number_label(const Picture& picture) { return "fig:" + picture.id; }

using Block = std::variant<Heading, Contents, Paragraph, Code, Bullets, Table, Picture>;

struct Document {
  std::string title;
  std::vector<Block> blocks;
  bool hand_in = false;  // answers first, to be printed; else everything there is
};

// Whether an item is a part of a problem behind its letter: "(a)" or "(a)–(c)".
inline bool has_letter(const Text& item) {
  return !item.empty() && item.front().style == Style::strong && item.front().text.starts_with("(");
}

std::string write_markdown(const Document& document);
std::string write_tex(const Document& document);
std::string write_html(const Document& document);

}  // namespace syslab::report
