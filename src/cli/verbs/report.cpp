#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "claim/page.hpp"
#include "cli/handout.hpp"
#include "cli/output_file.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "report/deliverables.hpp"
#include "report/leaderboard.hpp"
#include "report/report.hpp"
#include "report/table.hpp"
#include "session/progress.hpp"
#include "session/stored_case.hpp"

namespace syslab::cli {

namespace {

namespace fs = std::filesystem;

// answers/<problem>.md in this folder: the person's own words.
std::map<std::string, std::string> own_words(const Console& console) {
  constexpr std::uint64_t kLargest = 1 << 20;
  std::map<std::string, std::string> words;
  std::error_code none;
  if (fs::exists("answers", none) && !fs::is_directory("answers", none)) {
    throw Error(ErrorKind::usage,
                "'answers' is no folder: your own words belong in answers/PROBLEM.md, a file a problem; rename it");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator("answers", none)) {
    if (entry.path().extension() != ".md") continue;
    const std::string problem = entry.path().stem().string();
    const auto named = [&](const report::Problem& one) { return one.id == problem; };
    if (std::ranges::any_of(report::handout_problems(), named)) {
      words[problem] = read_user_file(entry.path(), kLargest);
    } else {
      console.note(fmt::format("answers/{}.md is left out: no hand-out has a problem '{}'", problem, problem));
    }
  }
  return words;
}

// "handin.md" has its appendix in "handin-appendix.md".
std::string appendix_of(const std::string& output) {
  const fs::path path(output);
  return path.stem().string() + "-appendix" + path.extension().string();
}

std::vector<report::Missing> missing_of(const Handout& handout, const evidence::Standing& standing) {
  std::vector<report::Missing> missing;
  for (std::size_t i = 0; i < handout.parts.size(); ++i) {
    const evidence::Part& part = handout.parts[i];
    if (missing.empty() || missing.back().problem != part.problem) missing.push_back({.problem = part.problem});
    missing.back().points += part.points - standing.parts[i].worth;
  }
  for (std::size_t i = 0; i < handout.demands.size(); ++i) {
    const evidence::Demand& demand = handout.demands[i];
    if (demand.in_small || demand.parts.empty()) continue;
    const std::string& problem = handout.parts[demand.parts.front()].problem;
    report::Missing& one = *std::ranges::find(missing, problem, &report::Missing::problem);
    one.cases += standing.demands[i].of - standing.demands[i].done;
    one.of += standing.demands[i].of;
  }
  return missing;
}

void add_hand_in(const Context& context, const ReportOptions& options, report::ReportOptions& wanted) {
  if (options.appendix && options.output.empty()) wanted.extent = report::Extent::appendix;
  if (options.appendix && !options.output.empty()) wanted.appendix = appendix_of(options.output);
  if (wanted.extent == report::Extent::appendix) return;
  wanted.own_words = own_words(context.console);
  const auto [handout, standing] = stood(context, wanted.handout);
  wanted.standing = fmt::format("{:.0f} of {:.0f} points", standing.points - standing.worth, standing.points);
  wanted.missing = missing_of(handout, standing);
}

// What is being made, in a line of a terminal that is gone at the end.
class PartsTold {
 public:
  explicit PartsTold(const Console& console) : draws_(!console.quiet() && console.error_is_terminal()) {}
  PartsTold(const PartsTold&) = delete;
  PartsTold& operator=(const PartsTold&) = delete;
  ~PartsTold() {
    if (drawn_) to_error("\r\x1b[2K");
  }
  void tell(const std::string& part, std::size_t done, std::size_t all) {
    if (!draws_) return;
    const std::string line = fmt::format("report: {}/{}, {}", done + 1, all, part);
    to_error("\r\x1b[2K" + line.substr(0, terminal_width() - 1));
    drawn_ = true;
  }

 private:
  bool draws_, drawn_ = false;
};

Exit list_sources(const Console& console, const std::vector<report::SourceFile>& sources) {
  Json all = Json::array();
  std::vector<std::vector<std::string>> cells;
  for (const report::SourceFile& one : sources) {
    all.push_back({{"experiment", one.experiment}, {"kind", one.kind}, {"title", one.title}, {"file", one.file}});
    cells.push_back({one.experiment, one.kind, one.file});
  }
  if (console.json()) {
    console.print_document({{"sources", all}});
  } else {
    console.print(report::write_aligned(
        {{"experiment", "1", "text", "left"}, {"kind", "1", "text", "left"}, {"file", "1", "text", "left"}}, cells));
  }
  return Exit::well;
}

bool names_claim(const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [](const std::string& name) { return name.ends_with(".claim"); });
}

Exit report_claim(const Context& context, const ReportOptions& options) {
  if (options.experiments.size() != 1) {
    throw Error(ErrorKind::usage, "a claim is a page of its own; leave the other names out");
  }
  const std::string& file = options.experiments.front();
  const report::Format format = format_of(context, options.format, options.output);
  write_output(context, options.output, claim::write_page(claim::read_claim(file), file, format));
  return Exit::well;
}

}  // namespace

Exit execute(const Context& context, const ReportOptions& options) {
  if (names_claim(options.experiments)) return report_claim(context, options);
  report::ReportOptions wanted;
  if (!options.handout.empty()) wanted.handout = options.handout;
  wanted.names_others = options.handout.empty();
  wanted.format = format_of(context, options.format, options.output);
  wanted.answers = options.answers;
  wanted.figures = options.figures;
  wanted.files = !options.output.empty();
  if (!options.experiments.empty()) {
    for (const registry::Experiment* experiment : context.registry.select(options.experiments)) {
      wanted.experiments.push_back(experiment->id);
    }
  }
  if (options.sources) return list_sources(context.console, report::sources(context.registry, wanted));
  require_database(context);
  if (options.experiments.empty() && !options.leaderboard) add_hand_in(context, options, wanted);
  store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  warn_of_future_runs(context, store);
  std::map<std::string, std::string> versions;
  for (const registry::Experiment& one : context.registry.experiments()) versions[one.id] = one.version;
  store.hold_still(versions);
  std::optional<PartsTold> told(context.console);
  wanted.progress = [&](const std::string& part, std::size_t done, std::size_t all) { told->tell(part, done, all); };
  if (options.leaderboard) {
    write_output(context, options.output, report::render_leaderboard(store, wanted.experiments, wanted.format));
  } else {
    const report::Report made = report::render(context.registry, store, wanted);
    told.reset();  // before anything of it is seen
    write_output(context, options.output, made);
  }
  if (!options.output.empty()) context.console.note("wrote " + options.output);
  return Exit::well;
}

}  // namespace syslab::cli
