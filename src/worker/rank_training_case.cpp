#include "worker/rank_training_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "stats/summary.hpp"

namespace syslab::worker {

StepCheck loss_check(double loss) {
  return {.name = "loss",
          .error = std::isfinite(loss) ? 0 : std::numeric_limits<double>::quiet_NaN(),
          .message = fmt::format("the mean over all rows is {}", loss)};
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

std::vector<StepCheck> with_certificate(const std::function<std::vector<StepCheck>()>& compare) {
  StepCheck certificate{.name = "certificate",
                        .message = "a network of exact numbers ends with the bits of one process"};
  try {
    std::vector<StepCheck> all = compare();
    all.insert(all.begin(), certificate);
    return all;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::check) throw;
    certificate.error = std::numeric_limits<double>::quiet_NaN();
    certificate.message = error.what();
    return {certificate};
  }
}

}  // namespace syslab::worker
