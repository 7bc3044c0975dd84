// Predictions for a plan, from what the database knows of this machine.
#pragma once

#include "plan/predict.hpp"
#include "session/session.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// Fills the plan's predictions for a run under `conditions` on this machine. `store`: where stored durations and rates
// come from; null where there is none yet. Nothing is predicted out of memory when conditions.try_oom.
void forecast(plan::Plan& plan, const store::Store* store, const Conditions& conditions);

}  // namespace syslab::cli
