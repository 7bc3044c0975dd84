#include "runner/ranks/ranks.hpp"

#include "runner/ranks/gang.hpp"
#include "runner/ranks/verdict.hpp"

namespace syslab::runner {

Launch run_ranks(const LaunchOrder& order, const RunOptions& options, Workers& workers, const Observer& observer,
                 const Interruption& interruption) {
  workers.set_aside();  // it would hold memory of a GPU that a rank is about to have
  const OomWitness witness;
  Watch watch(interruption, [&] {
    if (observer.heartbeat) observer.heartbeat(order.planned);
  });
  const auto pass_on = [&](worker::ProgressRecord progress) {
    if (!order.progress_of.empty()) progress.text = order.progress_of + ", " + progress.text;
    if (observer.progress) observer.progress(order.planned, progress);
  };
  Gang gang(order.request, {options.worker_command, options.environment, options.places},
            order.planned.experiment->limit_of_waits(order.request.params));
  gang.hear({}, {}, {order.deadline, watch, pass_on});
  std::vector<RankEnding> ranks = gang.endings();
  return judge_ranks(ranks, options, witness);
}

}  // namespace syslab::runner
