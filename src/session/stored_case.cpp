#include "session/stored_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/error.hpp"
#include "core/text/command_text.hpp"

namespace syslab::cli {

void require_database(const Context& context) {
  std::error_code ignored;
  if (std::filesystem::exists(context.global.database, ignored)) return;
  throw Error(ErrorKind::usage,
              fmt::format("there is no database '{}'; `syslab run NAME` makes one, --db names another",
                          context.global.database));
}

void warn_of_future_runs(const Context& context, const store::Store& store) {
  const std::int64_t runs = store.count_future_runs();
  if (runs == 0) return;
  context.console.warn(fmt::format("warning: {} dated in the future; every other run counts as newer",
                                   runs == 1 ? "one run is" : fmt::format("{} runs are", runs)));
}

std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw Error(ErrorKind::store, fmt::format("the stored seed '{}' is no number", text));
  }
  return seed;
}

DeviceKind device_of(const registry::Experiment& experiment, std::string_view implementation, DeviceKind otherwise) {
  const registry::Implementation* known = experiment.find_implementation(implementation);
  return known != nullptr && !known->beside_classes ? known->device : otherwise;
}

plan::PlannedCase planned_case(const registry::Registry& registry, const store::PlanRow& row, DeviceKind mine_device) {
  plan::PlannedCase planned;
  planned.index = row.seq;
  planned.experiment = &registry.find(row.experiment);
  if (planned.experiment->version != row.version) {
    throw Error(ErrorKind::usage,
                fmt::format("{} is now version {}, stored is version {}: their numbers do not mean the "
                            "same; make a new run",
                            row.experiment, planned.experiment->version, row.version));
  }
  planned.params = row.params;
  planned.implementation = row.implementation.name;
  planned.device = device_of(*planned.experiment, planned.implementation, mine_device);
  planned.world_size = row.world_size;
  planned.task = row.task;
  planned.law = row.law;
  if (!row.skip_reason.empty()) planned.skip_reason = row.skip_reason;
  planned.seed = parse_seed(row.seed);
  planned.case_uid = row.case_uid;
  return planned;
}

void add_mine(plan::Plan& plan, store::RowId run, const store::ImplementationRow& implementation, MineFiles& files) {
  if (!implementation.is_mine) return;
  const auto known = std::find_if(plan.mine.begin(), plan.mine.end(),
                                  [&](const Submitted& mine) { return mine.name == implementation.name; });
  if (known != plan.mine.end()) return;
  Submitted mine = files.find(run, implementation, ChangedFile::taken);
  if (mine.digest != implementation.digest) {
    throw Error(
        ErrorKind::usage,
        mine.is_command()
            ? fmt::format("the command '{}', or a file that it names, has changed since the run was made, and its "
                          "results would pass for that one's; make a new run",
                          parse_command_place(mine.path())->command)
            : fmt::format("'{}' is not the file that the run was made with, and its results would pass for that one's; "
                          "make a new run",
                          mine.path()));
  }
  plan.mine.push_back(std::move(mine));
}

}  // namespace syslab::cli
