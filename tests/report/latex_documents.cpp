// Writes the documents that compile_latex.py compiles: the fixture's report, and one of many random texts in every
// place that a text can stand. Arguments: a folder, and a seed (told, so that a failure can be made again).
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "report/document.hpp"
#include "report/report.hpp"
#include "report/writers/writers.hpp"
#include "tests/report/fixture.hpp"
#include "tests/report/tables.hpp"

namespace syslab::report {
namespace {

// Characters that TeX cares about come up often, then any ASCII, Latin-1, signs that we know, anything else, and bytes
// that are no UTF-8.
std::string any_text(std::mt19937& random) {
  static const std::vector<std::string> kSpecial{"\\", "{",    "}",      "$",  "&",  "#",  "^",  "_",  "~",  "%",
                                                 "\"", "'",    "`",      "<",  ">",  "|",  "[",  "]",  "*",  "-",
                                                 ",",  "!",    "?",      "@",  "=",  "+",  "(",  ")",  "\n", " ",
                                                 "^^", "\\\\", "\\end{", "$$", "''", "--", ",,", "<<", "?`"};
  static const std::vector<std::string> kSigns{"×", "µ",      "≤",      "√",      "±",    "…",    "–",    "“",
                                               "∞", "é",      "ÿ",      "ß",      "→",    "ᵀ",    "⟩",    "中",
                                               "😀", "\u0301", "\u200f", "\u0410", "\xff", "\xc3", "\x01", "\x7f"};
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::string text;
  for (std::size_t i = below(24); i > 0; --i) {
    switch (below(4)) {
      case 0:
        text += kSpecial[below(kSpecial.size())];
        break;
      case 1:
        text += kSigns[below(kSigns.size())];
        break;
      case 2:
        text += static_cast<char>(1 + below(255));
        break;
      default:
        text += static_cast<char>('a' + below(26));
    }
  }
  return text;
}

Document random_document(std::mt19937& random) {
  const auto text = [&] { return any_text(random); };
  Document document{text(), {}};
  for (int i = 0; i < 60; ++i) {
    document.blocks.emplace_back(
        Heading{2 + i % 2, {{Style::plain, text()}, {Style::code, text()}}, fmt::format("h{}", i)});
    document.blocks.emplace_back(
        Paragraph{{{Style::plain, text()}, {Style::strong, text()}, {Style::emphasis, text()}}});
    document.blocks.emplace_back(Bullets{{plain_text(text()), {{Style::code, text()}}}});
    for (const Tone tone : {Tone::warning, Tone::missing, Tone::answer}) {
      document.blocks.emplace_back(Paragraph{plain_text(text()), tone});
    }
    Table table = speeds();
    table.source.id = fmt::format("t{}", i);
    table.source.title = text();
    table.source.caption = text();
    table.source.notes = {text()};
    table.footnote = text();
    table.warning = text();
    for (auto& row : table.result.rows) {
      row[1] = cell(text());
      row[9] = cell(text());
    }
    document.blocks.emplace_back(std::move(table));
  }
  return document;
}

// A hand-in of any texts: contents, letters, answers that name the table below them.
Document random_hand_in(std::mt19937& random) {
  const auto text = [&] { return any_text(random); };
  Document document{text(), {Contents{}}, true};
  for (int i = 0; i < 20; ++i) {
    const std::string name = fmt::format("p{}", i);
    Table table = speeds();
    table.source.id = name;
    table.source.caption = text();
    const Span number{Style::number, "Table", number_label(table)};
    const auto part = [&](const char* letter) {
      return strong(std::string("(") + letter + ")") + Text{{Style::anchor, "", letter_anchor(name, letter)}} +
             plain_text(" " + text());
    };
    document.blocks.emplace_back(Heading{2, plain_text(text()), name, {text(), "T" + text(), {"a", "b"}}});
    document.blocks.emplace_back(Paragraph{Text{number} + plain_text(text())});
    document.blocks.emplace_back(Bullets{{part("a")}});
    document.blocks.emplace_back(std::move(table));
    document.blocks.emplace_back(Bullets{{part("b")}});
  }
  return document;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace
}  // namespace syslab::report

int main(int count, char** arguments) {
  using namespace syslab::report;
  if (count != 3) return 2;
  const std::filesystem::path folder = arguments[1];
  std::mt19937 random(static_cast<std::mt19937::result_type>(std::stoul(arguments[2])));
  FixtureStore fixture;
  fixture.add_smoke_run();
  fixture.add_kernel_run();
  fixture.add_law_run();
  ReportOptions options = everything();
  options.format = Format::latex;
  options.files = true;
  const Report report = render(fixture_registry(), fixture.store(), options);
  write_file(folder / "report.tex", report.text);
  for (const ReportFile& file : report.files) {
    std::filesystem::create_directories((folder / file.path).parent_path());
    write_file(folder / file.path, file.bytes);
  }
  Document names{"Long names", {}};
  Table table = speeds();
  for (auto& row : table.result.rows) row[1] = cell("attention.half_gradients_no_worse_than_naive");
  table.result.rows[0][9] = cell("/home/somebody/a_folder/with_a_long_name/and_one_more/below_it/lab.db is not there");
  table.result.rows[0][8] = cell("error");
  names.blocks.emplace_back(std::move(table));
  write_file(folder / "names.tex", write_tex(names));
  write_file(folder / "strings.tex", write_tex(random_document(random)));
  write_file(folder / "handin.tex", write_tex(random_hand_in(random)));
  write_file(folder / "bare.tex",
             "\\documentclass{article}\n\\usepackage{booktabs,siunitx,textcomp}\n\\usepackage[T1]{fontenc}\n"
             "\\begin{document}\n\\begin{table}\\caption{A bare one.}\n" +
                 write(speeds(), Format::latex) + "\\end{table}\n\\end{document}\n");
}
