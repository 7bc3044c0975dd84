#include "runner/attempt.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "runner/combine.hpp"
#include "runner/launch.hpp"
#include "runner/ranks/code.hpp"
#include "runner/ranks/ranks.hpp"
#include "runner/request.hpp"

namespace syslab::runner {

AttemptResult run_attempt(const plan::PlannedCase& planned, const worker::CaseRequest& request,
                          const RunOptions& options, Workers& workers, const Observer& observer,
                          const Interruption& interruption) {
  AttemptResult result;
  result.planned = &planned;
  if (observer.started) observer.started(planned);
  result.started_at = utc_now();
  const auto begin = Clock::now();
  const int wanted = planned.task == plan::Task::law ? 1 : options.launches;
  worker::CaseRequest asked = request;
  asked.kernel_code = wants_kernel_code(planned);
  LaunchOrder order{planned, asked, begin + options.timeout, wanted > 1, {}};
  std::vector<Launch> launches;
  do {
    if (wanted > 1) order.progress_of = fmt::format("launch {} of {}", launches.size() + 1, wanted);
    launches.push_back(request.world_size > 1 ? run_ranks(order, options, workers, observer, interruption)
                                              : run_launch(order, options, workers, observer, interruption));
    asked.kernel_code = false;  // all launches run the same
  } while (launches.back().status == Status::ok && static_cast<int>(launches.size()) < wanted);
  Launch whole = combined(std::move(launches), wanted);
  if (request.world_size > 1 && whole.status == Status::ok && is_code_of_ranks_wanted()) {
    Watch watch(interruption, [&] {
      if (observer.heartbeat) observer.heartbeat(planned);
    });
    whole.facts_json =
        with_code_of_ranks(whole.facts_json, request, {options.worker_command, options.environment, options.places},
                           planned.experiment->limit_of_waits(request.params), order.deadline, watch);
  }
  result.wall = Clock::now() - begin;
  result.ended_at = utc_now();
  result.status = whole.status;
  result.detail = std::move(whole.detail);
  result.records = std::move(whole.records);
  Json facts = parse_json(whole.facts_json);
  facts["device"] = to_string(planned.device);  // said by us: a case that dies early says nothing
  result.facts_json = repaired_json_text(facts);
  return result;
}

}  // namespace syslab::runner
