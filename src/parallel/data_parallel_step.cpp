#include "parallel/data_parallel_step.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <numeric>

#include "comm/accounting.hpp"
#include "device/stream.hpp"
#include "parallel/grouped_adamw.hpp"
#include "parallel/model_pieces.hpp"
#include "parallel/replicas.hpp"

namespace syslab::parallel {
namespace {

using model::Plane;

// Any double as text and back, to the bit.
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

std::string text_of(const train::OptimizerOptions& options) {
  return fmt::format("{}\nclipped at {}\n{}", GroupedAdamW::text_of(options.adamw),
                     options.max_norm ? fmt::format("{:a}", *options.max_norm) : "no norm",
                     options.skip_non_finite ? "skips what is not finite" : "takes every step");
}

// The others would wait for this rank's gradients in vain.
template <typename Body>
void told(comm::Communicator& ranks, const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    if (ranks.size() > 1) ranks.abort(error.what());
    throw;
  }
}

}  // namespace

DataParallelStep::DataParallelStep(model::Transformer& model, comm::Communicator& ranks,
                                   const DataParallelOptions& options, std::int64_t batch, std::int64_t seq,
                                   device::Stream communication)
    : model_(model),
      ranks_(ranks),
      piece_of_parameter_(piece_of_parameter(model.parameters().layout())),
      sync_(ranks, pieces_of(model.parameters()), model.parameters().whole(Plane::gradient), options.sync,
            communication),
      shares_(shares_of(ranks, batch)),
      share_(shares_[static_cast<std::size_t>(ranks.rank())]),
      step_(model, step_options(options), batch, seq) {
  require_agreement(ranks, "what a step is made of",
                    fmt::format("{} parts\n{} tokens a row\nprecision {}\n{}", options.parts, seq,
                                to_string(model.options().precision), text_of(options.optimizer)));
  device::synchronize(model.stream());
  make_replicas(ranks, model.parameters().whole(Plane::weight), communication);
  model.refresh_weights_copy();
}

train::StepOptions DataParallelStep::step_options(const DataParallelOptions& options) {
  train::StepOptions made{.optimizer = options.optimizer, .parts = options.parts, .loss_weight = share_};
  if (ranks_.size() == 1) return made;
  made.grad_final = [this](int parameter, device::Stream compute) {
    sync_.grad_final(piece_of_parameter_[static_cast<std::size_t>(parameter)], compute);
  };
  made.before_update = [this](device::Stream compute) { sync_.finish(compute); };
  return made;
}

void DataParallelStep::load(int part, std::span<const std::int64_t> ids, std::span<const std::int64_t> targets) {
  step_.load(part, ids, targets);
}

void DataParallelStep::begin(double learning_rate, double loss_scale) {
  told(ranks_, [&] {
    if (ranks_.size() > 1) sync_.begin(model_.stream());
    step_.begin(learning_rate, loss_scale);
  });
}

void DataParallelStep::forward(int part) {
  told(ranks_, [&] { step_.forward(part); });
}

void DataParallelStep::backward(int part) {
  told(ranks_, [&] { step_.backward(part); });
}

void DataParallelStep::update() {
  told(ranks_, [&] { step_.update(); });
}

void DataParallelStep::run(double learning_rate, double loss_scale) {
  told(ranks_, [&] {
    if (ranks_.size() > 1) sync_.begin(model_.stream());
    step_.run(learning_rate, loss_scale);
  });
}

DataParallelResult DataParallelStep::result() {
  const train::StepResult own = step_.result();
  DataParallelResult made{
      .losses = exchange(ranks_, own.loss), .gradient_norm = own.gradient_norm, .skipped = own.skipped};
  made.loss = std::inner_product(made.losses.begin(), made.losses.end(), shares_.begin(), 0.0);
  return made;
}

void DataParallelStep::check() {
  device::synchronize(sync_.stream());
  sync_.check_bytes();
  comm::check_accounting(ranks_);
  require_replicas(ranks_, model_.parameters().whole(Plane::weight), model_.stream());
}

}  // namespace syslab::parallel
