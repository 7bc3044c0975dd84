#include "grade/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/process/environment_variable.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "grade/board.hpp"
#include "grade/record.hpp"
#include "grade/suspicions.hpp"
#include "store/cells.hpp"
#include "submission/adapters.hpp"

namespace syslab::grade {
namespace {

using store::real_cell;
using store::text_cell;

// What an input of attention has where nothing is special about it, and is not worth a word.
constexpr std::array<std::string_view, 6> kUsual{
    "gain=1", "scale=0", "heads_per_kv=1", "layout_in=contiguous", "layout_out=contiguous", "mixed_layouts=0"};

// "batch 1, head_dim 16, mask top_left" of "batch=1 head_dim=16 mask=top_left"; never the seed.
std::string in_words(const std::string& input) {
  std::string words;
  for (const std::string& one : split(input, ' ')) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos || one.find("seed") != std::string::npos) continue;
    if (std::ranges::find(kUsual, one) != kUsual.end()) continue;
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", one.substr(0, equals), one.substr(equals + 1));
  }
  return words;
}

// What is wrong about a law, in a line. What somebody's code says, or what came out of it, may tell hidden inputs.
std::string finding(const Law& law, const PageOptions& options) {
  const std::string words = in_words(law.input);
  if (law.out_of_time) return printable(law.name + " ran out of time");
  if (law.open) return printable(law.name + " is open" + (options.seed_is_hidden ? "" : ": " + law.lacks));
  std::string text = law.name + " does not hold";
  if (!words.empty()) text += " with " + words;
  if (options.seed_is_hidden) return printable(text);
  if (!law.message.empty()) text += ": " + first_line(law.message);
  if (!law.cause.empty()) text += "; looks like " + law.cause;
  return printable(text);
}

std::string reason(const ItemScore& score, const PageOptions& options) {
  const bool cut = options.seed_is_hidden && !score.at_import;
  return printable(first_line(cut ? score.why : score.text()));
}

// Of Markdown and HTML in a text that is neither.
std::string plain(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    if (std::string_view("\\`*{}[]<>#|&").find(letter) != std::string_view::npos) safe += '\\';
    safe += letter;
  }
  return safe;
}

std::string xml(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  }
  return safe;
}

std::string output_of(const ItemScore& score, const PageOptions& options) {
  std::string text = reason(score, options);
  for (const Law& law : score.laws) {
    if (!law.held) text += "\n" + finding(law, options);
  }
  return text;
}

std::string command_of(const Rubric& rubric, const Item& item, const PageOptions& options) {
  const submission::Adapter* const found = submission::find_adapter(item.function);
  const bool elsewhere = options.device != DeviceKind::cpu && found != nullptr && submission::is_of_ranks(*found);
  return fmt::format("syslab check {} --handout {} --mine me=. {}{}", item.experiment, rubric.handout,
                     options.cases > 0 ? fmt::format("--cases {}", options.cases) : "--as-graded",
                     elsewhere ? fmt::format(" --device {}", to_string(options.device)) : "");
}

// Problems of which something is decided, by their places in the rubric.
std::vector<std::size_t> decided_in(const Rubric& rubric, const std::vector<Graded>& all) {
  std::vector<std::size_t> decided;
  for (std::size_t i = 0; i < rubric.problems.size(); ++i) {
    const auto& items = rubric.problems[i].items;
    if (std::ranges::any_of(items, [](const Item& item) { return !item.written; }) ||
        std::ranges::any_of(all, [i](const Graded& one) { return one.scores[i].checked() > 0; })) {
      decided.push_back(i);
    }
  }
  return decided;
}

// Of whom nothing was handed in: no points, and none open.
ProblemScore nothing_of(const Problem& problem) {
  ProblemScore score{.problem = &problem, .items = {}};
  for (const Item& item : problem.items) score.items.push_back({.item = &item});
  return score;
}

void add_columns(std::vector<std::string>& columns, const std::string& problem, Audience audience) {
  columns.push_back(problem);
  if (audience == Audience::program) columns.insert(columns.end(), {problem + ".open", problem + ".possible"});
}

void add_cells(std::vector<store::Cell>& row, const ProblemScore& score, Audience audience) {
  const double open = hundredths(score.problem->points - score.checked());
  if (audience == Audience::program) {
    for (const double each : {score.earned(), open, score.problem->points}) row.push_back(real_cell(each));
  } else if (score.checked() <= 0) {
    row.push_back(text_cell("open"));
  } else if (open > 0) {
    row.push_back(text_cell(fmt::format("{:g} (+{:g} open)", score.earned(), open)));
  } else {
    row.push_back(real_cell(score.earned()));
  }
}

}  // namespace

std::string item_name(const Problem& problem, const Item& item) {
  return item.part.empty() ? problem.id : fmt::format("{} ({})", problem.id, item.part);
}

double Graded::earned() const {
  double sum = 0;
  for (const ProblemScore& one : scores) sum += one.earned();
  return hundredths(sum);
}

double Graded::checked() const {
  double sum = 0;
  for (const ProblemScore& one : scores) sum += one.checked();
  return sum;
}

std::string Graded::error() const { return text_field(record, "error"); }

std::string note_of(const Graded& one) {
  if (!one.error().empty()) return one.error();
  for (const ProblemScore& score : one.scores) {
    const auto lacking = std::ranges::find_if(score.items, &ItemScore::lacking);
    if (lacking != score.items.end()) return lacking->text();
  }
  if (one.earned() > 0) return ran_out_of_time(one.record) ? "some of it ran out of time" : "";
  for (const ProblemScore& score : one.scores) {
    for (const ItemScore& item : score.items) {
      if (item.fails) return item.text();
    }
  }
  return ran_out_of_time(one.record) ? "ran out of time" : "";
}

store::ResultSet table_of(const Rubric& rubric, const std::vector<Graded>& all, Audience audience,
                          const std::map<std::string, std::string>& roster) {
  store::ResultSet table;
  table.columns = {"student", "points", "checked", "open"};
  if (audience == Audience::program) table.columns.emplace_back("possible");
  if (!roster.empty()) table.columns.insert(table.columns.begin() + 1, "name");
  const std::vector<std::size_t> shown = decided_in(rubric, all);
  for (const std::size_t problem : shown) add_columns(table.columns, rubric.problems[problem].id, audience);
  table.columns.emplace_back("note");
  const auto add_total = [&](std::vector<store::Cell>& row, double earned, double checked) {
    for (const double each : {earned, checked, rubric.points() - checked}) row.push_back(real_cell(each));
    if (audience == Audience::program) row.push_back(real_cell(rubric.points()));
  };
  std::map<std::string, std::string> missing = roster;
  for (const Graded& one : all) {
    std::vector<store::Cell> row{text_cell(one.id)};
    const auto known = roster.find(one.id);
    if (!roster.empty()) row.push_back(text_cell(known == roster.end() ? "" : known->second));
    add_total(row, one.earned(), one.checked());
    for (const std::size_t problem : shown) add_cells(row, one.scores[problem], audience);
    std::string note = printable(note_of(one));
    if (!roster.empty() && known == roster.end()) note += (note.empty() ? "" : "; ") + std::string("not on the roster");
    row.push_back(text_cell(std::move(note)));
    table.rows.push_back(std::move(row));
    missing.erase(one.id);
  }
  for (const auto& [id, name] : missing) {
    std::vector<store::Cell> row{text_cell(id), text_cell(name)};
    add_total(row, 0, rubric.points());
    for (const std::size_t problem : shown) add_cells(row, nothing_of(rubric.problems[problem]), audience);
    row.push_back(text_cell("nothing handed in"));
    table.rows.push_back(std::move(row));
  }
  return table;
}

store::ResultSet checks_of(const std::vector<Graded>& all, const std::string& database) {
  store::ResultSet table;
  table.columns = {"student", "item", "law", "holds", "replay"};
  const std::string chosen = environment_variable("SYSLAB_PYTHON");
  const std::string python = chosen.empty() ? "" : " --python " + shell_word(chosen);
  for (const Graded& one : all) {
    for (const ProblemScore& score : one.scores) {
      for (const ItemScore& item : score.items) {
        for (const Law& law : item.laws) {
          if (law.check.empty()) continue;
          table.rows.push_back({text_cell(one.id), text_cell(item_name(*score.problem, *item.item)),
                                text_cell(law.name),
                                text_cell(law.held   ? "yes"
                                          : law.open ? "open"
                                                     : "no"),
                                text_cell(fmt::format("syslab replay {} --db {} --mine me={}{}", law.check,
                                                      shell_word(database), shell_word(one.path), python))});
        }
      }
    }
  }
  return table;
}

store::ResultSet suspicions_of(const std::vector<Graded>& all) {
  store::ResultSet table;
  table.columns = {"student", "file", "line", "why", "text"};
  for (const Graded& one : all) {
    const auto add = [&](const std::string& file, int line, const std::string& why, const std::string& text) {
      table.rows.push_back(
          {text_cell(one.id), text_cell(printable(file)), real_cell(line), text_cell(why), text_cell(printable(text))});
    };
    if (const auto found = one.record.find("suspicions"); found != one.record.end() && found->is_array()) {
      for (const Json& each : *found) {
        add(text_field(each, "file"), each.value("line", 0), text_field(each, "why"), text_field(each, "text"));
      }
    }
    const auto timings = one.record.find("timings");
    if (timings == one.record.end() || !timings->is_object()) continue;
    for (const auto& [name, timing] : timings->items()) {
      if (!timing.is_object()) continue;
      for (const Suspicion& each : suspicions_of_kernels(timing.value("kernels", Json()), name)) {
        add(each.file, each.line, each.why, each.text);
      }
    }
  }
  return table;
}

std::string evidence_page(const Rubric& rubric, const Graded& one, const PageOptions& options,
                          std::span<const Board> boards) {
  std::string page =
      fmt::format("# {}: hand-out {}\n\n{:g} of {:g} points that are decided; {:g} are open.\n", plain(one.id),
                  rubric.handout, one.earned(), one.checked(), rubric.points() - one.checked());
  if (const std::string handed_in = std::filesystem::path(one.path).filename().string(); !handed_in.empty()) {
    page += fmt::format("\nHanded in: {}\n", plain(printable(handed_in)));
  }
  if (const std::string left_out = text_field(one.record, kLeftOut); !left_out.empty()) {
    page += fmt::format("\nLeft out: {}\n", plain(left_out));
  }
  if (!one.error().empty()) page += fmt::format("\nNothing could be checked: {}\n", plain(printable(one.error())));
  if (const std::string digest = text_field(one.record, "digest"); !digest.empty()) {
    page += fmt::format("\nCode: SHA-256 `{}`; Python {}, torch {}\n", digest, plain(text_field(one.record, "python")),
                        plain(text_field(one.record, "torch")));
  }
  if (!options.walls_missing.empty()) {
    page += fmt::format("\nJudged without these walls: {}\n", plain(options.walls_missing));
  }
  for (const ProblemScore& score : one.scores) {
    for (const ItemScore& item : score.items) {
      if (item.item->written && item.open) continue;
      page += fmt::format("\n## {}: {}\n\n", plain(item_name(*score.problem, *item.item)),
                          item.open ? fmt::format("open ({:g} points)", item.item->points)
                                    : fmt::format("{:g} of {:g} points", item.earned, item.item->points));
      if (item.why != one.error()) page += plain(reason(item, options)) + "\n";
      for (const Law& law : item.laws) {
        page += law.held ? fmt::format("\n- holds{}: {}", law.tries > 0 ? " for " + counted(law.tries, "input") : "",
                                       plain(law.name))
                         : fmt::format("\n- **{}**", plain(finding(law, options)));
      }
      if (!item.laws.empty()) {
        page += fmt::format("\n\nAgain, in the project's folder:\n\n    {}\n", command_of(rubric, *item.item, options));
      }
    }
  }
  for (const Board& board : boards) page += standing(board, one.id);
  std::string written;
  for (const ProblemScore& score : one.scores) {
    for (const ItemScore& item : score.items) {
      if (item.item->written && item.open) {
        written += fmt::format("{}{}", written.empty() ? "" : ", ", plain(item_name(*score.problem, *item.item)));
      }
    }
  }
  if (!written.empty()) page += fmt::format("\n## Open: graded by a person\n\n{}\n", written);
  return page;
}

std::string gradescope_results(const Rubric& rubric, const Graded& one, const PageOptions& options,
                               std::span<const Board> boards) {
  Json tests = Json::array();
  std::string open;
  for (const ProblemScore& score : one.scores) {
    for (const ItemScore& item : score.items) {
      if (item.open && !item.item->written) {
        open += fmt::format("\nopen: {}: {}", item_name(*score.problem, *item.item), reason(item, options));
      }
      if (item.open) continue;
      tests.push_back({{"name", item_name(*score.problem, *item.item)},
                       {"score", item.earned},
                       {"max_score", item.item->points},
                       {"status", item.is_full() ? "passed" : "failed"},
                       {"output", output_of(item, options)}});
    }
  }
  Json ranked = Json::array();
  for (const ProblemScore& score : one.scores) {
    for (const ItemScore& item : score.items) {
      const auto board = std::ranges::find(boards, item.item, &Board::item);
      if (board == boards.end()) continue;
      const auto own = std::ranges::find(board->ranked, one.id, &Ranked::id);
      if (own == board->ranked.end()) continue;
      ranked.push_back(
          {{"name", fmt::format("{}: time / {}'s", item_name(*score.problem, *item.item), item.item->reference)},
           {"value", std::stod(fmt::format("{:.3g}", ordering_number(board->ranked, *own)))},
           {"order", "asc"}});
    }
  }
  Json all{{"score", one.earned()},
           {"output",
            fmt::format("{:g} of {:g} points that are decided; {:g} are open{}", one.earned(), one.checked(),
                        rubric.points() - one.checked(), one.error().empty() ? "" : ": " + printable(one.error())) +
                open},
           {"tests", std::move(tests)}};
  if (!ranked.empty()) all["leaderboard"] = std::move(ranked);
  return repaired_json_text(all) + "\n";
}

std::string junit(const Rubric& rubric, const std::vector<Graded>& all, const PageOptions& options) {
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += fmt::format("<testsuites name=\"hand-out {}\">\n", rubric.handout);
  for (const Graded& one : all) {
    std::string cases;
    int tests = 0, failures = 0, skipped = 0;
    for (const ProblemScore& score : one.scores) {
      for (const ItemScore& item : score.items) {
        if (item.item->written && item.open) continue;
        ++tests;
        cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml(one.id),
                             xml(item_name(*score.problem, *item.item)));
        if (item.open) {
          ++skipped;
          cases += fmt::format("><skipped message=\"{}\"/></testcase>\n", xml(reason(item, options)));
        } else if (!item.is_full()) {
          ++failures;
          cases += fmt::format("><failure message=\"{:g} of {:g} points\">{}</failure></testcase>\n", item.earned,
                               item.item->points, xml(output_of(item, options)));
        } else {
          cases += "/>\n";
        }
      }
    }
    text += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{}  </testsuite>\n",
                        xml(one.id), tests, failures, skipped, cases);
  }
  return text + "</testsuites>\n";
}

}  // namespace syslab::grade
