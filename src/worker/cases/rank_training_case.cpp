#include "worker/cases/rank_training_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "stats/summary.hpp"

namespace syslab::worker {
namespace {

// That a loss is a number.
StepCheck loss_check(double loss) {
  return {.name = "loss",
          .error = std::isfinite(loss) ? 0 : std::numeric_limits<double>::quiet_NaN(),
          .message = fmt::format("the mean over all rows is {}", loss)};
}

// What `compare` found, the certificate among it; Error(check) is one that does not hold.
std::vector<StepCheck> with_certificate(const std::function<std::vector<StepCheck>(device::Stream)>& compare,
                                        device::Stream stream) {
  try {
    return compare(stream);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::check) throw;
    return {{.name = kCertificate, .error = std::numeric_limits<double>::quiet_NaN(), .message = error.what()}};
  }
}

}  // namespace

RankSeries training_steps(const std::shared_ptr<StepWorkload>& workload) {
  RankSeries steps;
  steps.refresh = [workload] { workload->refresh(); };
  steps.call = [workload] { workload->run(); };
  steps.verify = [workload] { return loss_check(workload->loss()); };
  return steps;
}

RankSeries kept_steps(const std::shared_ptr<StepWorkload>& workload, std::function<void()> step,
                      std::function<void()> keep) {
  RankSeries series = training_steps(workload);
  series.refresh = [keep = std::move(keep), refresh = series.refresh] {
    keep();
    refresh();
  };
  series.call = std::move(step);
  return series;
}

void tell_training(CaseContext& context, double tokens, double parameters, double loss,
                   const std::vector<double>& seconds) {
  context.metric("tokens_per_second", "1/s", tokens * context.world_size() / stats::summarize(seconds).median);
  context.metric("loss", "1", loss);
  context.metric("parameters", "1", parameters);
}

void emit_span(CaseContext& context, std::string track, std::string name, std::string category, double begin,
               double end) {
  context.emit(SpanRecord{.track = std::move(track),
                          .name = std::move(name),
                          .category = std::move(category),
                          .start_ns = std::llround(1e9 * begin),
                          .end_ns = std::llround(1e9 * std::max(begin, end))});
}

void emit_phases(CaseContext& context, std::span<const PhaseEnds> steps) {
  if (steps.empty()) return;
  emit_series(context, "forward", steps, [](const PhaseEnds& one) { return one.forward; });
  emit_series(context, "backward", steps, [](const PhaseEnds& one) { return one.backward - one.forward; });
  emit_series(context, "update", steps, [](const PhaseEnds& one) { return one.update - one.backward; });
}

void run_rank_training(CaseContext& context, device::Kind device, const std::optional<std::string>& refusal,
                       const std::function<void(RankCase&)>& meet) {
  if (refusal) throw Unsupported(*refusal);
  RankCase made;
  made.device = device;
  meet(made);
  made.check = [compare = made.check](device::Stream stream) { return with_certificate(compare, stream); };
  run_rank_case(context, made);
}

}  // namespace syslab::worker
