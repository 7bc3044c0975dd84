// Cases of the store, made runnable again.
#pragma once

#include "core/device_kind.hpp"
#include "plan/plan.hpp"
#include "session/context.hpp"
#include "session/mine_file.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// Error(usage) when --db names no file: reading must not make one.
void require_database(const Context& context);

// Warns of runs that are dated in the future: what is the latest leaves them out.
void warn_of_future_runs(const Context& context, const store::Store& store);

// Error(usage) if this binary has no such experiment any more, or another version of it. `mine_device`: where
// somebody's own implementation runs.
plan::PlannedCase planned_case(const registry::Registry& registry, const store::PlanRow& row,
                               DeviceKind mine_device = DeviceKind::cpu);

// Where one of the experiment's own runs; `otherwise` of one that it does not know.
DeviceKind device_of(const registry::Experiment& experiment, std::string_view implementation,
                     DeviceKind otherwise = DeviceKind::cpu);

// Adds the --mine file of a run's implementation to the plan, once. Error(usage) if it may not be loaded
// (session/mine_file.hpp), is gone, or is not the one that the run was made with.
void add_mine(plan::Plan& plan, store::RowId run, const store::ImplementationRow& implementation, MineFiles& files);

std::uint64_t parse_seed(const std::string& text);  // Error(store) when it is none

}  // namespace syslab::cli
