#include "cli/check_submission.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/check_verdict.hpp"
#include "cli/folder_of_mine.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "report/table.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "session/this_machine.hpp"
#include "submission/adapters.hpp"
#include "submission/folder.hpp"
#include "submission/locked.hpp"
#include "submission/survey.hpp"
#include "verdict/law_row.hpp"
#include "words/check_words.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

struct Named {
  std::string name, path;
};

// "me=." or "." alone, which takes the folder's name; nothing for a file.
std::optional<Named> submission_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    const std::string path = submission::project_of(text);
    if (!submission::is_submission(path)) return std::nullopt;
    return Named{submission::name_of(path), path};
  }
  const std::string path = submission::project_of(text.substr(equals + 1));
  if (!submission::is_submission(path)) return std::nullopt;
  return Named{trim(text.substr(0, equals)), path};
}

using verdict::is_wrong;

struct CheckedLaw {
  verdict::LawRow row;
  verdict::LawFact fact;
};

bool is_left_open(const CheckedLaw& law) { return law.row.open; }

// One function of adapters.py, and what became of it.
struct Row {
  const submission::Adapter* adapter = nullptr;
  submission::Answer answer;
  bool at_import = false;   // it fails there, before there are inputs
  bool open = false;        // it fails for want of what this Python lacks
  std::string not_checked;  // why not, though it is implemented
  std::vector<CheckedLaw> laws;
  Exit exit = Exit::well;

  std::pair<int, int> held_of(bool handout) const {
    int held = 0, of = 0;
    for (const auto& [row, fact] : laws) {
      if ((row.contract == Contract::handout) != handout) continue;
      const bool passed = row.outcome == Outcome::passed;
      if (!handout && row.open) continue;
      // Of the hand-out's all are wanted; beyond it, those that what is promised lets be tried.
      of += handout || passed || is_wrong(row.outcome) ? 1 : 0;
      held += passed ? 1 : 0;
    }
    return {held, of};
  }
};

// Why laws of the hand-out were not tried, or say nothing, the first reason alone; empty: all were, and do.
std::string untried(const std::vector<CheckedLaw>& laws) {
  const auto open = std::ranges::find_if(laws, &is_left_open);
  if (open != laws.end()) return "open: " + open->row.lacks->text();
  const auto one = std::ranges::find_if(laws, [](const CheckedLaw& law) {
    return law.row.contract == Contract::handout && law.row.outcome == Outcome::not_run;
  });
  return one == laws.end() ? "" : "not all tried: " + first_line(one->row.message);
}

std::string share(std::pair<int, int> held_of) {
  return held_of.second == 0 ? "–" : fmt::format("{} of {}", held_of.first, held_of.second);
}

std::vector<CheckedLaw> laws_of(const Context& context, const CheckedOnce& checked, const std::string& year) {
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  const auto judged = judged_laws(store, checked.run);
  std::vector<CheckedLaw> rows;
  verdict::SameFindings same;
  for (const plan::PlannedCase& planned : checked.plan.cases) {
    if (!is_mine(checked.plan, planned)) continue;
    const auto found = judged.find(planned.index);
    const JudgedLaw law = found == judged.end() ? JudgedLaw{Outcome::not_run, "not begun", ""} : found->second;
    const verdict::LawFact fact = fact_of(checked.plan, planned, law, year, same);
    rows.push_back({{.law = planned.law,
                     .experiment = planned.experiment->id,
                     .contract = plan::contract_of(planned).value_or(Contract::handout),
                     .outcome = law.outcome,
                     .finding = law.finding,
                     .applies = law.applies,
                     .open = verdict::is_open(fact),
                     .out_of_time = law.out_of_time,
                     .lacks = law.lacks,
                     .message = law.outcome == Outcome::passed ? "" : law.message,
                     .input = is_wrong(law.outcome) ? input_of(law.counterexample) : "",
                     .check = law.check,
                     .tries = law.cases_run},
                    fact});
  }
  return rows;
}

std::vector<std::string> answered(const submission::Adapter& adapter, const std::vector<std::string>& names) {
  std::vector<std::string> chosen;
  for (const std::string& id : split(adapter.experiments, ' ')) {
    const bool named = names.empty() || std::ranges::any_of(names, [&](const std::string& pattern) {
                         return pattern == "all" || glob_match(pattern, id);
                       });
    if (named && !id.empty()) chosen.push_back(id);
  }
  return chosen;
}

class SubmissionCheck {
 public:
  SubmissionCheck(const Context& context, const CheckOptions& options, Named named)
      : context_(context), options_(options), named_(std::move(named)), folder_(named_.path) {}

  Exit run() {
    choose_python();
    tell_missing_walls(context_.console);
    const auto limit =
        std::chrono::duration_cast<std::chrono::milliseconds>(duration_option("--timeout", options_.timeout));
    hide_database(context_.global.database);  // the survey runs what is handed in
    found_ = submission::survey(folder_, std::min(submission::kImporting, limit),
                                bytes_option("--memory-limit", options_.memory_limit));
    for (const submission::Adapter& adapter : submission::adapters()) {
      if (!submission::is_of(adapter, options_.selection.handout) || !is_wanted(adapter)) continue;
      Row row{.adapter = &adapter, .answer = found_.answers[std::string(adapter.function)]};
      // A year's own functions are of no interest to whoever follows the other year and did not say so.
      if (row.answer.state == submission::State::absent && options_.selection.handout.empty()) continue;
      row.at_import = row.answer.state == submission::State::fails;
      row.open = row.answer.lacks && submission::is_of_surroundings(*row.answer.lacks, options_.selection.handout);
      if (row.answer.state == submission::State::implemented) check(row);
      rows_.push_back(std::move(row));
    }
    if (rows_.empty()) {
      throw Error(ErrorKind::usage,
                  "no function of a hand-out's adapters.py answers what is named; without a name all "
                  "of the hand-out is checked");
    }
    const bool none = std::ranges::all_of(rows_, [](const Row& row) { return row.laws.empty(); });
    if (none && !unnamed_.empty()) throw Error(ErrorKind::usage, unnamed_.front());
    tell();
    return exit();
  }

 private:
  // Of the project itself, else what is asked for; a worker finds it in the environment.
  void choose_python() const {
    const std::string& asked = options_.selection.python;
    worker::choose_python_interpreter(asked.empty() ? python_of_folder(context_.console, folder_.root()) : asked);
  }

  bool is_wanted(const submission::Adapter& adapter) const {
    const std::vector<std::string>& names = options_.selection.names;
    return names.empty() || !answered(adapter, names).empty();
  }

  DeviceKind device_of(const submission::Adapter& adapter) const {
    const bool on_gpus = options_.selection.devices == std::vector<std::string>{"cuda"};
    return on_gpus && submission::is_of_ranks(adapter) ? DeviceKind::cuda : adapter.device;
  }

  // Empty: it can be checked here.
  std::string why_not_checked(const submission::Adapter& adapter) const {
    if (adapter.door.empty()) {
      return adapter.experiments.empty() ? "called by the checks of its problem" : "has no door yet";
    }
    return device_of(adapter) == DeviceKind::cuda && !machine_of(context_, true).has_gpu() ? "needs a GPU" : "";
  }

  void check(Row& row) {
    const submission::Adapter& adapter = *row.adapter;
    row.not_checked = why_not_checked(adapter);
    if (options_.imports_alone || !row.not_checked.empty()) return;
    CheckOptions one = options_;
    one.selection.names = answered(adapter, options_.selection.names);
    one.selection.devices = {std::string(to_string(device_of(adapter)))};
    one.selection.mine = {fmt::format("{}={}:{}", named_.name, folder_.adapters().string(), adapter.door)};
    one.selection.python.clear();
    context_.console.note(fmt::format("{}:", adapter.function));
    try {
      const CheckedOnce checked = check_once(context_, one, /*of_folder=*/true);
      row.exit = checked.exit;
      row.laws = laws_of(context_, checked, options_.selection.handout);
    } catch (const NoLawNamed& error) {
      row.not_checked = fmt::format("-k {} names none of its laws", options_.keyword);
      unnamed_.push_back(error.what());
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::store || error.kind() == ErrorKind::internal) throw;
      row.answer = {submission::State::fails, error.what()};
    }
  }

  void tell() const {
    if (context_.console.json()) return context_.console.print_line(record());
    if (context_.console.quiet()) return;
    std::vector<std::vector<std::string>> cells;
    for (const Row& row : rows_) {
      std::string note = row.open                                       ? "open: " + row.answer.lacks->text()
                         : row.answer.state == submission::State::fails ? row.answer.why
                                                                        : row.not_checked;
      if (note.empty()) note = untried(row.laws);
      note = printable(note);
      std::replace(note.begin(), note.end(), '\n', ' ');
      cells.push_back({std::string(row.adapter->function), std::string(submission::to_string(row.answer.state)),
                       share(row.held_of(true)), share(row.held_of(false)), note});
    }
    const std::vector<report::Column> header{{"function", "1", "text", "left"},
                                             {"state", "1", "text", "left"},
                                             {"hand-out's laws", "1", "text", "left"},
                                             {"beyond it", "1", "text", "left"},
                                             {"note", "1", "text", "left"}};
    std::string text = fmt::format(
        "\n{}: {}, Python {}, torch {}\n", named_.name, folder_.adapters().lexically_relative(folder_.root()).string(),
        found_.python.empty() ? "?" : found_.python, found_.torch.empty() ? "none" : found_.torch);
    text += report::write_aligned(header, cells);
    if (found_.torch.empty()) text += "\n" + submission::without_torch(found_) + "\n";
    context_.console.print(printable(text + conclusion()));
  }

  // Of all functions together. One that is not implemented leaves it open.
  verdict::LawVerdict judged() const {
    std::vector<verdict::LawFact> facts;
    for (const Row& row : rows_) {
      for (const CheckedLaw& law : row.laws) {
        facts.push_back(law.fact);
        facts.back().same_as = std::string(row.adapter->function) + ": " + law.fact.same_as;
      }
    }
    return verdict::judge(facts, laws_asked());
  }

  verdict::LawsAsked laws_asked() const {
    return {.beyond_decides = options_.contract == Contract::full, .strict = options_.strict};
  }

  // "; sharded.state_once fails on what is promised", of laws beyond the hand-out that keep its PASS away.
  std::string broken() const {
    std::vector<std::string> laws;
    for (const Row& row : rows_) {
      for (const auto& [found, fact] : row.laws) {
        const bool beyond = fact.part == verdict::Part::beyond;
        if (!beyond || std::ranges::find(laws, found.law) != laws.end()) continue;
        if (verdict::fails_handout(fact.part, fact.outcome, fact.finding, fact.promised)) laws.push_back(found.law);
      }
    }
    return laws.empty() ? "" : fmt::format("; {} fails on what is promised", fmt::join(laws, ", "));
  }

  // What to do next, and in the last line what holds of all.
  std::string conclusion() const {
    int held = 0, of = 0;
    bool any_failed = false;
    std::size_t open = 0, missing = 0;
    for (const Row& row : rows_) {
      const auto [its, its_of] = row.held_of(true);
      held += its;
      of += its_of;
      any_failed = any_failed || std::ranges::any_of(row.laws, [](const CheckedLaw& law) {
                     return is_wrong(law.row.outcome) && !law.row.open;
                   });
      open += row.answer.state == submission::State::not_implemented ? 1 : 0;
      missing += row.answer.state == submission::State::absent ? 1 : 0;
    }
    std::string text = "\n";
    const std::string& year = options_.selection.handout;
    if (any_failed) {
      text += "next: the same command with --last-failed, or --watch for one check at each save\n";
    } else if (held > 0 && held == of && !year.empty() && fs::is_directory(named_.path)) {
      text += fmt::format("next: syslab run --handout {} --mine {}{}, which measures what it asks for\n", year,
                          shell_word(named_.name + "=" + named_.path), db_flag(context_.global));
    }
    const Exit all = exit();
    const char* const word = all == Exit::well    ? "PASS"
                             : all == Exit::wrong ? "FAIL"
                             : is_open()          ? "OPEN"
                                                  : "INCOMPLETE";
    const std::string laws = of == 0 ? "none of the hand-out's laws was searched"
                                     : fmt::format("{} of {} of the hand-out's laws hold", held, of);
    return text + fmt::format("all together: {}: {}{}; {} not implemented{}; {}\n", word, laws, broken(),
                              counted(static_cast<std::int64_t>(open), "function"),
                              missing > 0 ? fmt::format(", {} not there", missing) : "",
                              words::counted_beyond(judged(), laws_asked()));
  }

  // What was looked at held, and the rest needs what this Python lacks.
  bool is_open() const {
    return std::ranges::any_of(rows_,
                               [](const Row& row) { return row.open || std::ranges::any_of(row.laws, &is_left_open); });
  }

  Json record() const {
    Json all = Json::array();
    for (const Row& row : rows_) {
      Json laws = Json::array();
      for (const CheckedLaw& law : row.laws) laws.push_back(verdict::to_json(law.row));
      all.push_back({{"function", std::string(row.adapter->function)},
                     {"problem", std::string(row.adapter->problem)},
                     {"experiments", split(row.adapter->experiments, ' ')},
                     {"device", to_string(row.adapter->device)},
                     {"state", std::string(submission::to_string(row.answer.state))},
                     {"why", row.answer.why},
                     {"open", row.open},
                     {"lacks", row.answer.lacks ? to_json(*row.answer.lacks) : Json()},
                     {"out_of_time", row.answer.out_of_time},
                     {"at_import", row.at_import},
                     {"not_checked", row.not_checked},
                     {"laws", std::move(laws)}});
    }
    Json warnings = Json::object();
    for (const auto& [kind, count] : judged().warnings) warnings[std::string(to_string(kind))] = count;
    return {{"type", "submission"},
            {"warnings", warnings},
            {"name", named_.name},
            {"handout", options_.selection.handout},
            {"digest", folder_.digest()},
            {"python", found_.python},
            {"torch", found_.torch},
            {"triton", found_.triton},
            {"asks", found_.asks},
            {"adapters", std::move(all)},
            {"exit", static_cast<int>(exit())}};
  }

  Exit exit() const {
    Exit all = Exit::well;
    for (const Row& row : rows_) {
      if (row.answer.state == submission::State::fails) all = worse(all, row.open ? Exit::incomplete : Exit::wrong);
      const bool is_there = row.answer.state != submission::State::absent;
      if (!is_there || row.answer.state == submission::State::not_implemented) all = worse(all, Exit::incomplete);
      all = worse(all, row.exit);
    }
    if (rows_.empty()) all = worse(all, Exit::incomplete);  // nothing was judged
    return all;
  }

  const Context& context_;
  const CheckOptions& options_;
  Named named_;
  submission::Folder folder_;
  submission::Survey found_;
  std::vector<Row> rows_;
  std::vector<std::string> unnamed_;  // what -k said of functions of which it names no law
};

}  // namespace

bool adapters_answer_all(const std::vector<std::string>& names, const std::string& handout) {
  return std::ranges::all_of(names, [&](const std::string& name) {
    return std::ranges::any_of(submission::adapters(), [&](const submission::Adapter& adapter) {
      const std::vector<std::string> ids = split(adapter.experiments, ' ');
      return submission::is_of(adapter, handout) && std::ranges::find(ids, name) != ids.end();
    });
  });
}

bool names_submission(const CheckOptions& options) {
  return std::ranges::any_of(options.selection.mine,
                             [](const std::string& text) { return submission_of(text).has_value(); });
}

Exit check_submission(const Context& context, const CheckOptions& options) {
  if (options.selection.mine.size() > 1) {
    throw Error(ErrorKind::usage, "a folder or a zip is checked alone: one --mine; `syslab grade` takes many");
  }
  return SubmissionCheck(context, options, *submission_of(options.selection.mine.front())).run();
}

}  // namespace syslab::cli
