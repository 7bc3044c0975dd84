#include "claim/page.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "claim/alteration.hpp"
#include "claim/derived.hpp"
#include "claim/programs.hpp"
#include "claim/quoted.hpp"
#include "core/error.hpp"
#include "core/text/format_factor.hpp"
#include "core/text/json_text.hpp"
#include "core/text/shell_word.hpp"
#include "core/text/text.hpp"
#include "report/document.hpp"
#include "store/cells.hpp"
#include "words/speed_words.hpp"

namespace syslab::claim {
namespace {

using report::Bullets;
using report::Document;
using report::Heading;
using report::Paragraph;
using report::plain_text;
using report::Text;
using store::text_cell;

report::Table cases_of(const File& claim, const verdict::SpeedFinding& finding) {
  const double border = border_of(claim.statement, claim.tolerance).log();
  report::Table table;
  table.source.title = "Every case";
  table.source.caption =
      fmt::format("How many times as fast {} is as {}, measured in turns, with its 95 % interval over launches.",
                  claim.faster.label, claim.slower.label);
  table.source.columns = {{"case", "1", "s", "left"},
                          {"times as fast", "1", "s", "right"},
                          {"95 %", "1", "s", "right"},
                          {"launches", "1", "s", "right"},
                          {"checked", "1", "s", "right"}};
  for (const report::Column& column : table.source.columns) table.result.columns.push_back(column.name);
  for (std::size_t i = 0; i < claim.cases.size(); ++i) {
    const Case& one = claim.cases[i];
    const std::optional<verdict::Speed>& speed = finding.cases[i];
    const auto launches = stats::launch_means(for_stats(one.blocks)).size();
    table.result.rows.push_back({text_cell(full_title(claim, one)),
                                 text_cell(speed ? factor_text(speed->factor, std::exp(border)) : "–"),
                                 text_cell(speed ? words::interval_text(*speed, border) : "–"),
                                 text_cell(std::to_string(launches)), text_cell(std::to_string(one.checked))});
  }
  return table;
}

std::string text_at(const Json& json, const char* pointer, const std::string& otherwise) {
  const Json::json_pointer at(pointer);
  return json.contains(at) && json.at(at).is_string() ? json.at(at).get<std::string>() : otherwise;
}

std::string gpus_of(const Json& environment) {
  std::string text;
  for (const Json& gpu : environment.value("gpu", Json::array())) {
    text += (text.empty() ? "" : ", ") + text_at(gpu, "/name", "a GPU");
  }
  return text.empty() ? "none" : text;
}

Text item(const std::string& name, const std::string& value) { return report::strong(name) + plain_text(": " + value); }

Text side_of(const Side& side, const ShellSigns signs) {
  if (!side.command.empty()) {
    return plain_text(side.label + ", the command ") + Text{{report::Style::code, shell_word(side.command, signs)}} +
           plain_text(", with the files it names of SHA-256 " + (side.is_mine ? side.digest : in_quotes(side.digest)));
  }
  return plain_text(side.is_mine ? fmt::format("{}, a file of SHA-256 {}", side.label, side.digest)
                                 : fmt::format("{}, of syslab at revision {}", side.label, in_quotes(side.digest)));
}

// One that was searched for several experiments, such as both passes, counts once, and has passed where it did for all.
std::string laws_of(const Side& side) {
  std::map<Contract, std::set<std::string>, std::greater<>> passed;  // the full one first
  for (const Law& law : side.laws) {
    if (law.outcome == Outcome::passed) passed[law.contract].insert(law.name);
  }
  std::string others;
  std::set<std::string> told;
  for (const Law& law : side.laws) {
    if (law.outcome == Outcome::passed) continue;
    passed[law.contract].erase(law.name);
    const std::string said = fmt::format(", {} ({}) {}", law.name, to_string(law.contract), to_string(law.outcome));
    if (told.insert(said).second) others += said;
  }
  std::erase_if(passed, [](const auto& of) { return of.second.empty(); });
  std::string text;
  for (const auto& [contract, names] : passed) {
    text += fmt::format("{}{} of contract {} passed", text.empty() ? "" : ", ",
                        counted(static_cast<std::int64_t>(names.size()), "law"), to_string(contract));
  }
  if (side.laws.empty()) return "none was searched with this code";
  return text.empty() ? others.substr(2) : text + others;
}

// Columns: a list of GPUs or of laws, or a sentence of a warning, is read whole.
constexpr std::size_t kShownOnPage = 400;

// What nobody but the author can know.
std::string claimed(const std::string& text) { return "claimed: " + in_quotes(text, kShownOnPage); }

Bullets facts_of(const File& claim, const ShellSigns signs) {
  const Json environment = parse_json(claim.environment_json);
  Bullets facts;
  facts.items = {item("Processor", claimed(text_at(environment, "/cpu/model", "not told"))),
                 item("GPU", claimed(gpus_of(environment))),
                 item("Driver", claimed(text_at(environment, "/cuda/driver", "none"))),
                 item("Made", claimed(claim.made_at)),
                 report::strong("Faster") + plain_text(": ") + side_of(claim.faster, signs),
                 report::strong("Slower") + plain_text(": ") + side_of(claim.slower, signs),
                 item("Laws of " + claim.faster.label, claimed(laws_of(claim.faster))),
                 item("Laws of " + claim.slower.label, claimed(laws_of(claim.slower))),
                 item("Protocol", claim.question.protocol + ", in turns")};
  if (!is_of_programs(claim)) {
    facts.items.push_back(
        item("Inputs", fmt::format("{}, drawn from seed {}", in_quotes(claim.question.data), claim.question.seed)));
  }
  for (const auto& [name, digest] : claim.digests) facts.items.push_back(item("SHA-256 of --" + name, digest));
  return facts;
}

// As the file says.
bool is_made_without_walls(const File& claim) {
  return text_at(parse_json(claim.environment_json), "/env/SYSLAB_WALLS", "") == "none";
}

std::string command_of(const File& claim, const std::string& file, const ShellSigns signs) {
  std::string command = "syslab verify " + shell_word(file, signs);
  std::set<std::string> told;  // sides may differ in axes alone
  for (const Side* side : {&claim.faster, &claim.slower}) {
    if (!side->is_mine || !told.insert(side->name).second) continue;
    if (!side->command.empty()) {
      command += fmt::format(" --command {}={}", shell_word(side->name, signs), shell_word(side->command, signs));
    } else if (side->name != "reference") {
      command +=
          fmt::format(" --mine {}=FILE{}", shell_word(side->name, signs), claim.digests.empty() ? "" : ".py:NAME");
    }
  }
  if (!claim.digests.empty()) command += " --reference FILE.py:NAME --inputs FILE.py:NAME";
  return command;
}

}  // namespace

std::string write_page(const File& claim, const std::string& file, report::Format format) {
  const verdict::SpeedFinding finding = finding_of(claim);
  // Fonts of LaTeX lack most letters, and a line that is copied has to have its own.
  const ShellSigns signs = format == report::Format::latex ? ShellSigns::ascii : ShellSigns::printable;
  Document page;
  page.title = "A claim: " + to_string(claim.statement);
  page.blocks = {
      Paragraph{plain_text(fmt::format("By the times in the file it is {}: {}.", verdict::to_string(finding.verdict),
                                       reason_of(claim)))},
      cases_of(claim, finding),
      Heading{2, plain_text("Where and of what"), "where"},
      Paragraph{report::marked("These are words of the file. `verify` compares them with the machine on which it runs, "
                               "all but the date and the laws.")},
      facts_of(claim, signs),
      Heading{2, plain_text("Verify it"), "verify"},
      report::Code{command_of(claim, file, signs)},
      Paragraph{plain_text(fmt::format("It measures every case again, in turns, and says confirmed, "
                                       "refuted, unclear or other hardware. Up to {:g} % "
                                       "less than claimed counts as what was claimed.",
                                       100 * claim.tolerance))}};
  if (const std::vector<stats::TimingWarning> warnings = all_warnings(claim.cases); !warnings.empty()) {
    Bullets told;
    for (const stats::TimingWarning& one : warnings) told.items.push_back(plain_text(claimed(stats::sentence(one))));
    page.blocks.insert(page.blocks.begin() + 2, {Heading{2, plain_text("Warnings"), "warnings"}, std::move(told)});
  }
  if (is_made_without_walls(claim)) {
    page.blocks.insert(page.blocks.begin() + 1,
                       Paragraph{report::marked("It was measured with `SYSLAB_WALLS=none`, so no walls limited what "
                                                "the measured code could do.")});
  }
  if (!claim.altered.empty()) {
    Bullets told;
    for (const Alteration& one : claim.altered) told.items.push_back(plain_text(to_string(one)));
    page.blocks.insert(page.blocks.begin(),
                       {Paragraph{plain_text("This file is not as syslab wrote it, or contradicts itself:")}, told});
  }
  if (!claim.is_sealed) page.blocks.insert(page.blocks.begin(), Paragraph{plain_text(std::string(kNoSeal))});
  switch (format) {
    case report::Format::markdown:
      return write_markdown(page);
    case report::Format::latex:
      return write_tex(page);
    case report::Format::html:
      return write_html(page);
    case report::Format::json:
      if (!claim.is_sealed) {
        throw Error(ErrorKind::check, fmt::format("'{}' is of a version without a seal, and is not sealed now", file));
      }
      if (claim.altered.empty()) return to_text(claim);
      throw Error(ErrorKind::check,
                  fmt::format("'{}' was altered, and is not sealed again: {}", file, to_string(claim.altered.front())));
    case report::Format::csv:
      break;
  }
  throw Error(ErrorKind::usage, "a claim is a page (md, tex, html) or JSON, no CSV");
}

}  // namespace syslab::claim
