#include "experiments/ddp/collective_case.hpp"

#include <memory>

#include "comm/accounting.hpp"
#include "device/stream.hpp"
#include "stats/summary.hpp"
#include "trials/case_ranks.hpp"
#include "worker/cases/rank_case.hpp"

namespace syslab {
namespace {

using parallel::MeasuredCollective;

StepCheck found(MeasuredCollective& one) {
  return {.name = "result",
          .error = one.error(),
          .tolerance = one.tolerance(),
          .message = one.what() + ": every element of this rank's result against the formula"};
}

std::vector<worker::RankSeries> series_of(MeasuredCollective& one) {
  const auto series = [&one](const char* name, int calls) {
    return worker::RankSeries{.name = name,
                              .calls = calls,
                              .refresh = [&one, calls] { one.refresh(calls); },
                              .call = [&one] { one.call(); },
                              .results = [&one] { return one.results(); },
                              .verify = [&one] { return found(one); }};
  };
  return {series("time", 1), series("pipelined", kPipelined)};
}

}  // namespace

void run_collective_case(worker::CaseContext& context, const std::string& backend, comm::Operation operation,
                         std::int64_t bytes, const MakeAllReduce& instead) {
  const std::unique_ptr<comm::Communicator> ranks = parallel::join(parallel::case_rank(context.request(), backend));
  std::shared_ptr<MeasuredCollective> measured;  // made by the first who has a stream
  const auto on = [&](device::Stream stream) -> MeasuredCollective& {
    if (measured) return *measured;
    const std::int64_t elements = bytes / static_cast<std::int64_t>(sizeof(float));
    measured = std::make_shared<MeasuredCollective>(
        *ranks, operation, bytes, stream,
        instead ? instead(*ranks, elements, stream) : MeasuredCollective::AllReduce{});
    return *measured;
  };
  worker::RankCase made;
  made.device = ranks->kind();
  parallel::keep_in_step(made, *ranks);
  made.check = [&](device::Stream stream) {
    MeasuredCollective& one = on(stream);
    one.refresh();
    one.call();
    device::synchronize(stream);
    return std::vector{found(one)};
  };
  made.start = [&](device::Stream stream) {
    MeasuredCollective& one = on(stream);
    worker::RankRun run;
    run.series = series_of(one);
    run.tell = [&](worker::CaseContext& told, const std::vector<std::vector<double>>& seconds) {
      // The bytes that all ranks moved equal the formula's exactly, if the backend counts them.
      comm::check_accounting(*ranks);
      const auto moved = static_cast<double>(one.bytes());
      const double one_by_one = stats::summarize(seconds[0]).median, pipelined = stats::summarize(seconds[1]).median;
      const double factor = parallel::bus_factor(operation, ranks->size());
      told.metric("payload_bytes", "B", moved);
      told.metric("algbw", "GB/s", 1e-9 * moved / one_by_one);
      told.metric("busbw", "GB/s", 1e-9 * moved / one_by_one * factor);
      told.metric("algbw_pipelined", "GB/s", 1e-9 * moved / pipelined);
      told.metric("busbw_pipelined", "GB/s", 1e-9 * moved / pipelined * factor);
      told.metric("bus_factor", "1", factor);
    };
    run.owner = measured;
    return run;
  };
  worker::run_rank_case(context, made);
}

}  // namespace syslab
