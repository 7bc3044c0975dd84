#include "claim/page.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "core/format_factor.hpp"
#include "core/json_text.hpp"
#include "core/printable.hpp"
#include "core/text.hpp"
#include "report/document.hpp"
#include "store/cells.hpp"

namespace syslab::claim {
namespace {

using report::Bullets;
using report::Document;
using report::Heading;
using report::Paragraph;
using report::plain_text;
using report::Text;
using store::text_cell;

report::Table cases_of(const File& claim, const Finding& finding) {
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
    const std::optional<Speed>& speed = finding.cases[i];
    const auto launches = stats::launch_means(for_stats(one.blocks)).size();
    table.result.rows.push_back({text_cell(one.title), text_cell(speed ? factor_text(speed->factor) : "–"),
                                 text_cell(speed ? interval_text(*speed) : "–"), text_cell(std::to_string(launches)),
                                 text_cell(std::to_string(one.checked))});
  }
  return table;
}

std::string text_at(const Json& json, const char* pointer, const std::string& otherwise) {
  const Json value = json.value(Json::json_pointer(pointer), Json());
  return value.is_string() ? printable(value.get<std::string>()) : otherwise;
}

std::string gpus_of(const Json& environment) {
  std::string text;
  for (const Json& gpu : environment.value("gpu", Json::array())) {
    text += (text.empty() ? "" : ", ") + text_at(gpu, "/name", "a GPU");
  }
  return text.empty() ? "none" : text;
}

Text item(const std::string& name, const std::string& value) { return report::strong(name) + plain_text(": " + value); }

std::string side_of(const Side& side) {
  if (!side.command.empty()) {
    return fmt::format("{}, the command {}, with the files it names of SHA-256 {}", side.label, side.command,
                       side.digest);
  }
  return fmt::format("{}, {} {}", side.label, side.is_mine ? "a file of SHA-256" : "of syslab at revision",
                     side.digest);
}

// One that was searched for several experiments, such as both passes, counts once, and has passed where it did for all.
std::string laws_of(const Side& side) {
  std::map<std::string, std::set<std::string>> passed;  // by contract
  for (const Law& law : side.laws) {
    if (law.outcome == "passed") passed[law.contract].insert(law.name);
  }
  std::string others;
  std::set<std::string> told;
  for (const Law& law : side.laws) {
    if (law.outcome == "passed") continue;
    passed[law.contract].erase(law.name);
    const std::string said = fmt::format(", {} ({}) {}", law.name, law.contract, law.outcome);
    if (told.insert(said).second) others += said;
  }
  std::erase_if(passed, [](const auto& of) { return of.second.empty(); });
  std::string text;
  for (const auto& [contract, names] : passed) {
    text += fmt::format("{}{} of contract {} passed", text.empty() ? "" : ", ",
                        counted(static_cast<std::int64_t>(names.size()), "law"), contract);
  }
  if (side.laws.empty()) return "none was searched with this code";
  return text.empty() ? others.substr(2) : text + others;
}

Bullets facts_of(const File& claim) {
  const Json environment = parse_json(claim.environment_json);
  Bullets facts;
  facts.items = {item("Processor", text_at(environment, "/cpu/model", "not told")),
                 item("GPU", gpus_of(environment)),
                 item("Driver", text_at(environment, "/cuda/driver", "none")),
                 item("Made", claim.made_at),
                 item("Faster", side_of(claim.faster)),
                 item("Slower", side_of(claim.slower)),
                 item("Laws of " + claim.faster.label, laws_of(claim.faster)),
                 item("Laws of " + claim.slower.label, laws_of(claim.slower)),
                 item("Protocol", claim.question.protocol + ", in turns"),
                 item("Inputs", fmt::format("{}, drawn from seed {}", claim.question.data, claim.question.seed))};
  for (const auto& [name, digest] : claim.digests) facts.items.push_back(item("SHA-256 of --" + name, digest));
  return facts;
}

std::string command_of(const File& claim, const std::string& file) {
  std::string command = "syslab verify " + shell_word(file);
  std::set<std::string> told;  // sides may differ in axes alone
  for (const Side* side : {&claim.faster, &claim.slower}) {
    if (!side->is_mine || !told.insert(side->name).second) continue;
    if (!side->command.empty()) {
      command += fmt::format(" --command {}={}", shell_word(side->name), shell_word(side->command));
    } else if (side->name != "reference") {
      command += fmt::format(" --mine {}=FILE{}", shell_word(side->name), claim.digests.empty() ? "" : ".py:NAME");
    }
  }
  if (!claim.digests.empty()) command += " --reference FILE.py:NAME --inputs FILE.py:NAME";
  return command;
}

}  // namespace

std::string write_page(const File& claim, const std::string& file, report::Format format) {
  const Finding finding = finding_of(claim);
  Document page;
  page.title = "A claim: " + to_string(claim.statement);
  page.blocks = {Paragraph{plain_text(fmt::format("On the machine where it was made it is {}: {}.",
                                                  to_string(finding.verdict), finding.reason))},
                 cases_of(claim, finding),
                 Heading{2, plain_text("Where and of what"), "where"},
                 facts_of(claim),
                 Heading{2, plain_text("Verify it"), "verify"},
                 Paragraph{report::marked("`" + command_of(claim, file) + "`")},
                 Paragraph{plain_text(fmt::format("It measures every case again, in turns, and says confirmed, "
                                                  "refuted, unclear or other hardware. Up to {:g} % "
                                                  "less than claimed counts as what was claimed.",
                                                  100 * claim.tolerance))}};
  switch (format) {
    case report::Format::markdown:
      return write_markdown(page);
    case report::Format::latex:
      return write_tex(page);
    case report::Format::html:
      return write_html(page);
    case report::Format::json:
      return to_text(claim);
    case report::Format::csv:
      break;
  }
  throw Error(ErrorKind::usage, "a claim is a page (md, tex, html) or JSON, no CSV");
}

}  // namespace syslab::claim
