#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/folder_of_mine.hpp"
#include "cli/handout.hpp"
#include "cli/plan_table.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/text/text.hpp"
#include "session/forecast.hpp"
#include "session/selection.hpp"
#include "store/damaged.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

// Stored results improve predictions; without any, or if they may not be read, the plan is still valid. A damaged file
// is an error: the run that is planned would end with it.
std::optional<store::Store> stored(const Context& context) {
  std::error_code ignored;
  if (!std::filesystem::exists(context.global.database, ignored)) return std::nullopt;
  try {
    return store::Store::open(context.global.database, store::Mode::read_only);
  } catch (const store::DamagedDatabase&) {
    throw;
  } catch (const Error& error) {
    context.console.note(fmt::format("predicted without what is stored: {}", error.what()));
    return std::nullopt;
  }
}

struct Counts {
  std::int64_t to_run = 0, skipped = 0, oom = 0;
  double most_bytes = 0;
};

Counts counts_of(const plan::Plan& plan) {
  Counts counts;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (planned.skip_reason) {
      ++counts.skipped;
    } else if (!planned.predicted_oom.empty()) {
      ++counts.oom;
    } else {
      ++counts.to_run;
      counts.most_bytes = std::max(counts.most_bytes, planned.predicted_bytes);
    }
  }
  return counts;
}

}  // namespace

Exit execute(const Context& context, const PlanOptions& options) {
  if (is_whole_handout(options.selection)) return plan_handout(context, options);
  const SelectionOptions words = with_adapters(context, options.selection);
  worker::choose_python_interpreter(words.python);
  const plan::Selection selection = to_selection(context, words);
  plan::Plan plan = plan::make_plan(*selection.registry, selection);
  // As `run` does: laws first, then of both together the part of this shard.
  plan::Plan before = laws_before(selection, std::nullopt, plan);
  plan = joined(std::move(before), std::move(plan));
  keep_shard(context.console, options.selection, plan);
  const auto laws = static_cast<std::int64_t>(
      std::erase_if(plan.cases, [](const plan::PlannedCase& planned) { return planned.task == plan::Task::law; }));
  plan = joined(std::move(plan), {});  // numbered from 1 again
  const Conditions conditions = to_conditions(options.measuring, plan, options.selection.preset == "smoke");
  const std::optional<store::Store> store = stored(context);
  forecast(plan, store ? &*store : nullptr, conditions);
  const Console& console = context.console;
  note_crowded_ranks(console, plan);
  const Counts counts = counts_of(plan);
  const plan::Total total = plan::predicted_total(plan);
  if (console.json()) {
    Json cases = Json::array();
    for (const plan::PlannedCase& planned : plan.cases) cases.push_back(plan::to_json(planned));
    console.print_document({{"root_seed", std::to_string(plan.root_seed)},
                            {"protocol", conditions.protocol},
                            {"launches", conditions.launches},
                            {"cases", cases},
                            {"to_run", counts.to_run},
                            {"skipped", counts.skipped},
                            {"predicted_oom", counts.oom},
                            {"laws", laws},
                            {"most_bytes", counts.most_bytes},
                            {"predicted_seconds", Seconds(total.time).count()},
                            {"without_prediction", total.unknown}});
    return Exit::well;
  }
  std::string text = plan_tables(console, plan);
  text += fmt::format("{} to run, {} skipped", counted(counts.to_run, "case"), counts.skipped);
  if (counts.oom > 0) text += fmt::format(", {} out of memory (--try-oom tries)", counts.oom);
  if (counts.most_bytes > 0) {
    text += ", at most " + format_bytes(static_cast<std::uint64_t>(counts.most_bytes)) + " at a time";
  }
  if (total.time.count() > 0) {
    text += fmt::format(", about {} under protocol {}", format_duration(total.time), conditions.protocol);
  }
  if (total.unknown > 0) text += fmt::format("; {} without a prediction", counted(total.unknown, "case"));
  if (laws > 0) text += fmt::format("; run searches {} first (--laws none: does not)", counted(laws, "law"));
  console.print(text + "\n");
  return Exit::well;
}

}  // namespace syslab::cli
