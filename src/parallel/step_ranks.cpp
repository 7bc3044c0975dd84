#include "parallel/step_ranks.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <numeric>

#include "parallel/grouped_adamw.hpp"

namespace syslab::parallel {

std::vector<double> exchange(comm::Communicator& ranks, double value) {
  std::vector<double> values;
  for (const std::string& text : ranks.exchange(fmt::format("{:a}", value))) {
    values.push_back(std::strtod(text.c_str(), nullptr));
  }
  return values;
}

std::vector<double> shares_of(comm::Communicator& ranks, std::int64_t rows) {
  std::vector<double> shares = exchange(ranks, static_cast<double>(rows));
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= all;
  return shares;
}

DataParallelResult result_of(comm::Communicator& ranks, train::TrainingStep& step, const std::vector<double>& shares) {
  const train::StepResult own = step.result();
  DataParallelResult made{
      .losses = exchange(ranks, own.loss), .gradient_norm = own.gradient_norm, .skipped = own.skipped};
  made.loss = std::inner_product(made.losses.begin(), made.losses.end(), shares.begin(), 0.0);
  return made;
}

std::string text_of(const train::OptimizerOptions& options) {
  return fmt::format("{}\nclipped at {}\n{}", GroupedAdamW::text_of(options.adamw),
                     options.max_norm ? fmt::format("{:a}", *options.max_norm) : "no norm",
                     options.skip_non_finite ? "skips what is not finite" : "takes every step");
}

}  // namespace syslab::parallel
