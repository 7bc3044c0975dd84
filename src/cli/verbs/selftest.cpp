#include "cli/verbs/selftest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/output_file.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/build_info.hpp"
#include "core/files/temporary_folder.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "core/text/workflow_commands.hpp"
#include "runner/environment.hpp"
#include "runner/interruption.hpp"
#include "store/store.hpp"

namespace syslab::cli {
namespace {

constexpr int kFormat = 1;
constexpr int kInputs = 2;
constexpr const char* kSmokeBudget = "40s";  // of the smoke cases
constexpr std::size_t kShown = 10;           // failures on a terminal; the file has all

constexpr const char* kCases = R"(
SELECT a.experiment, a.implementation, coalesce(a.facts ->> '$.device', '') AS device, coalesce(a.law, '') AS law,
       coalesce(a.case_text, '') AS case_text, a.status, coalesce(a.ending, '') AS ending,
       coalesce((SELECT k.message FROM check_result k
                  WHERE k.attempt_id = a.attempt_id AND k.outcome IN ('falsified', 'error') LIMIT 1), a.message, '')
  FROM v_attempt a
 ORDER BY a.experiment, a.implementation, a.law, a.case_text)";

// What ended it early: somebody's signal, or a lab that failed.
std::optional<Exit> run_all(const Context& context) {
  CheckOptions laws;
  laws.selection.names = {"all"};
  laws.cases = kInputs;
  if (execute(context, laws) == Exit::tool) return Exit::tool;
  if (runner::Interruption::latest() != 0) return Exit::incomplete;
  RunOptions smoke;
  smoke.selection.names = {"all"};
  smoke.selection.preset = "smoke";
  smoke.laws = Laws::none;
  smoke.budget = kSmokeBudget;
  if (execute(context, smoke) == Exit::tool) return Exit::tool;
  return runner::Interruption::latest() == 0 ? std::nullopt : std::optional(Exit::incomplete);
}

Json cases_of(const store::Store& store) {
  Json all = Json::array();
  for (const auto& row : store.query(kCases).rows) {
    Json one{{"experiment", row[0].text}, {"implementation", row[1].text}, {"device", row[2].text}};
    if (!row[3].text.empty()) one["law"] = row[3].text;
    if (!row[4].text.empty()) one["case"] = row[4].text;
    one["status"] = row[5].text;
    one["ending"] = row[6].text;
    if (row[6].text != "ok") one["message"] = printable(row[7].text);
    all.push_back(std::move(one));
  }
  return all;
}

std::string summary_of(const Json& cases, const std::map<std::string, int>& endings, std::int64_t not_reached) {
  std::string text;
  std::size_t shown = 0;
  for (const Json& one : cases) {
    if (one.at("ending") != "failed") continue;
    if (++shown > kShown) continue;
    const std::string message = one.at("message").get<std::string>();
    text += fmt::format("{:<12} {} {} {}: {}\n", one.at("status").get<std::string>(),
                        one.at("experiment").get<std::string>(), one.at("implementation").get<std::string>(),
                        one.value("law", one.value("case", "")), message.substr(0, message.find('\n')));
  }
  if (shown > kShown) text += fmt::format("… and {} more\n", shown - kShown);
  const auto count = [&](const char* ending) {
    const auto found = endings.find(ending);
    return found == endings.end() ? 0 : found->second;
  };
  return text + fmt::format("selftest: {}, {} ok, {} failed, {} not for this machine{}\n",
                            counted(static_cast<std::int64_t>(cases.size()), "case"), count("ok"), count("failed"),
                            count("not_asked"), not_reached > 0 ? fmt::format(", {} not reached", not_reached) : "");
}

}  // namespace

Exit run_selftest(const Context& context, const std::string& output) {
  if (!context.console.json()) require_writable(context, output);
  const TemporaryFolder folder;
  GlobalOptions global = context.global;
  global.database = folder.path() + "/selftest.db";
  global.json = false;
  global.quiet = true;
  const Console quiet(global);
  context.console.note(fmt::format("every implementation, {} inputs a law and its smoke cases: a minute", kInputs));
  if (const std::optional<Exit> early = run_all({context.registry, global, quiet, context.arguments})) {
    context.console.note(*early == Exit::tool ? "the lab itself failed: nothing was written"
                                              : "interrupted: nothing was written");
    return *early;
  }

  const store::Store store = store::Store::open(global.database, store::Mode::read_only);
  const Json cases = cases_of(store);
  const std::int64_t not_reached = store.query("SELECT coalesce(sum(missing), 0) FROM v_run").rows[0][0].integer;
  std::map<std::string, int> endings;
  for (const Json& one : cases) ++endings[one.at("ending").get<std::string>()];
  const Json document{{"format", "syslab selftest"},
                      {"format_version", kFormat},
                      {"build", to_json(build_info())},
                      {"environment", runner::facts_for_strangers(runner::environment_facts())},
                      {"endings", endings},
                      {"not_reached", not_reached},
                      {"cases", cases}};
  const Exit exit = endings.contains("failed") ? Exit::wrong : Exit::well;
  if (context.console.json()) {
    context.console.print_document(document);
    return exit;
  }
  write_output(context, output, printed_json(document.dump(1, ' ', false, Json::error_handler_t::replace)) + "\n");
  context.console.print(summary_of(cases, endings, not_reached) + fmt::format("wrote {}\n", output));
  return exit;
}

}  // namespace syslab::cli
