#include "experiments/ddp/own_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "comm/local/local.hpp"
#include "core/error.hpp"
#include "core/index.hpp"
#include "core/text/json_text.hpp"
#include "device/queue.hpp"
#include "parallel/ddp/gradient_sync.hpp"
#include "parallel/replicas.hpp"
#include "property_tests/data_parallel/sent.hpp"

namespace syslab {
namespace {

using data_parallel::Strategy;
using device::Stream;

constexpr std::chrono::seconds kOwnPatience{20};    // of a rank with the others
constexpr std::chrono::microseconds kOwnLate{300};  // far longer than the host work of a step that might not wait

class OwnRanks final : public CallChannel {
 public:
  explicit OwnRanks(TrainOwn train) : train_(std::move(train)) {}

  Nanoseconds call(std::string_view, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs,
                   const Params& options) override {
    const Json asked = parse_json(options.text("case"));
    const OwnTraining training{asked, inputs, outputs};
    comm::run_local(asked.at("ranks").get<int>(), {.limit = kOwnPatience}, [&](comm::Communicator& ranks) {
      const device::OwnedStream compute = device::OwnedStream::queue(), communication = device::OwnedStream::queue();
      train_(training, ranks, compute, communication);
    });
    return Nanoseconds(0);
  }

 private:
  TrainOwn train_;
};

parallel::SyncOptions own_options(Strategy strategy, const Json& asked) {
  using Own = parallel::Strategy;
  parallel::SyncOptions options;
  switch (strategy) {
    case Strategy::naive:
      options.strategy = Own::naive;
      break;
    case Strategy::flat:  // both ways, a case the one and a case the other
      options.strategy = asked.at("parameters").size() % 2 == 0 ? Own::flat_view : Own::flat_copy;
      break;
    case Strategy::individual:
      options.strategy = Own::overlap;
      break;
    case Strategy::bucketed: {
      constexpr double kAll = 0x1p40;
      const Json limit = asked.value("bucket_mb", Json());
      options.strategy = Own::bucketed;
      options.bucket_mb = {limit.is_null() ? kAll : std::max(limit.get<double>(), 0x1p-20)};
    }
  }
  return options;
}

// Collectives as a rank queued them, from what its communicator has recorded.
class Events {
 public:
  Events(const comm::Communicator& ranks, std::span<float> rows) : ranks_(ranks), rows_(rows) { seen_ = recorded(); }

  // Notes what was queued since it was last asked.
  void note(int step, int ready, bool in_backward) {
    const std::vector<comm::FlightRecorder::Entry> entries = ranks_.recorder().entries();
    const std::size_t added = std::min(entries.size(), at(static_cast<std::int64_t>(recorded() - seen_)));
    for (auto one = entries.end() - static_cast<std::ptrdiff_t>(added); one != entries.end(); ++one) {
      if (one->signature.operation != comm::Operation::all_reduce || one->signature.kind.view() != "gradient") continue;
      if (++count_ >= data_parallel::kSentRows) continue;  // how many there are is still told
      const float row[data_parallel::kSentFields]{static_cast<float>(step),
                                                  0,  // an all-reduce
                                                  static_cast<float>(one->signature.count),
                                                  static_cast<float>(one->signature.bytes()),
                                                  static_cast<float>(ready),
                                                  in_backward ? 1.0F : 0.0F,
                                                  1,   // on a stream of its own
                                                  1};  // what waits is the stream
      std::ranges::copy(row, rows_.begin() + count_ * data_parallel::kSentFields);
    }
    seen_ = recorded();
    rows_[0] = static_cast<float>(count_);
  }

 private:
  std::uint64_t recorded() const { return ranks_.recorder().recorded(); }

  const comm::Communicator& ranks_;
  std::span<float> rows_;
  std::uint64_t seen_ = 0;
  std::int64_t count_ = 0;
};

// A rank's parameters, buffers and gradients while it trains; gradients lie in the order in which they become final.
class Replica {
 public:
  Replica(const OwnTraining& training, Strategy strategy, comm::Communicator& ranks, Stream compute,
          Stream communication)
      : training_(training),
        asked_(training.asked),
        ranks_(ranks),
        compute_(compute),
        communication_(communication),
        parameters_(parameters_of(asked_.at("parameters"))),
        plane_(started(training, ranks.rank())),
        events_(ranks, training.of_rank("events", ranks.rank())) {
    std::vector<parallel::Piece> pieces;
    std::int64_t end = 0;
    for (std::size_t i = parameters_.size(); i-- > 0;) {
      if (!parameters_[i].trains) continue;
      pieces.push_back({parameters_[i].name, end, parameters_[i].count});
      parameter_of_.push_back(static_cast<int>(i));
      end += parameters_[i].count;
    }
    arena_.resize(at(end));
    parallel::make_replicas(ranks, {plane_.data(), DType::f32, {static_cast<std::int64_t>(plane_.size())}}, {});
    std::ranges::copy(plane_, training.of_rank("state", ranks.rank()).begin());
    pieces_.emplace(std::move(pieces), DType::f32);
    sync_.emplace(ranks, *pieces_, TensorView{arena_.data(), DType::f32, {end}}, own_options(strategy, asked_),
                  communication);
  }

  ~Replica() {
    sync_.reset();  // where a step was left unfinished, ends the communication
    drain(compute_);
  }
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  void step(int step) {
    const int parts = asked_.at("backwards").get<int>();
    events_.note(-1, 0, false);
    for (int part = 0; part < parts; ++part) backward(step, part, part + 1 == parts);
    delay_if_late(asked_, communication_);
    sync_->finish(compute_);
    events_.note(step, pieces_->size(), false);
    update(step);
  }

 private:
  static std::vector<float> started(const OwnTraining& training, int rank) {
    const ConstTensorView start = training.input("start");
    const std::int64_t width = start.shape[1];
    const float* row = start.as<float>() + rank * width;
    return {row, row + width};
  }

  // Gradients of the parts of a step add up on each rank; what is sent goes under the last one's backward pass.
  void backward(int step, int part, bool last) {
    if (last) sync_->begin(compute_);
    for (int piece = 0; piece < pieces_->size(); ++piece) {
      const int uses = uses_of(asked_, step, parameter_of_[at(piece)]);
      if (last) delay_if_late(asked_, communication_);
      if (uses == 0) {
        if (last) sync_->unused(piece, compute_);
        continue;
      }
      device::enqueue(compute_, [this, step, part, piece, uses] {
        const OwnParameter& one = parameters_[at(parameter_of_[at(piece)])];
        const std::vector<float> made = gradient_of(training_, step, part, ranks_.rank(), one, uses, plane_);
        float* sum = arena_.data() + pieces_->first(piece);
        for (std::size_t i = 0; i < made.size(); ++i) {
          sum[i] = (part == 0 ? 0 : sum[i]) + made[i] / static_cast<float>(ranks_.size());
        }
      });
      if (!last) continue;
      sync_->grad_final(piece, compute_);
      events_.note(step, piece + 1, true);
    }
  }

  void update(int step) {
    device::enqueue(compute_, [this, step] {
      const auto rate = asked_.at("rate").get<float>();
      const std::int64_t total = parameters_.back().first + parameters_.back().count;
      const std::span<float> gradients = training_.of_rank("gradients", ranks_.rank()).subspan(at(step * total));
      for (int piece = 0; piece < pieces_->size(); ++piece) {
        const int parameter = parameter_of_[at(piece)];
        const OwnParameter& one = parameters_[at(parameter)];
        const float* from = arena_.data() + pieces_->first(piece);
        for (std::int64_t i = 0; i < one.count; ++i) {
          plane_[at(one.first + i)] -= rate * from[i];
          if (uses_of(asked_, step, parameter) > 0) gradients[at(one.first + i)] = from[i];
        }
      }
      std::copy_n(plane_.begin(), total, training_.of_rank("weights", ranks_.rank()).subspan(at(step * total)).begin());
    });
  }

  const OwnTraining& training_;
  const Json& asked_;
  comm::Communicator& ranks_;
  Stream compute_, communication_;
  std::vector<OwnParameter> parameters_;
  std::vector<float> plane_, arena_;
  std::vector<int> parameter_of_;  // by piece
  std::optional<parallel::GradientPieces> pieces_;
  std::optional<parallel::GradientSync> sync_;
  Events events_;
};

}  // namespace

ConstTensorView OwnTraining::input(std::string_view name) const {
  const auto found = std::ranges::find(inputs, name, &NamedInput::name);
  if (found == inputs.end()) throw Error(ErrorKind::internal, fmt::format("the law hands out no '{}'", name));
  return found->view;
}

std::span<float> OwnTraining::of_rank(std::string_view name, int rank) const {
  const auto found = std::ranges::find(outputs, name, &NamedOutput::name);
  if (found == outputs.end()) throw Error(ErrorKind::internal, fmt::format("the law wants no '{}'", name));
  const std::int64_t row = found->view.elements() / found->view.shape[0];
  return {found->view.as<float>() + rank * row, at(row)};
}

std::vector<OwnParameter> parameters_of(const Json& described) {
  std::vector<OwnParameter> made;
  std::int64_t first = 0;
  for (const Json& one : described) {
    std::int64_t count = 1;
    for (const Json& size : one.at("shape")) count *= size.get<std::int64_t>();
    made.push_back({one.at("name").get<std::string>(), first, count, one.at("trains").get<bool>()});
    first += count;
  }
  return made;
}

int uses_of(const Json& asked, int step, int parameter) {
  return static_cast<int>(std::ranges::count(asked.at("uses").at(at(step)), Json(parameter)));
}

std::vector<float> gradient_of(const OwnTraining& training, int step, int part, int rank, const OwnParameter& parameter,
                               int uses, std::span<const float> weights) {
  const ConstTensorView batch = training.input("batch");  // (steps, parts, ranks, 2 · elements)
  const std::int64_t width = batch.shape[3], total = width / 2;
  const float* row = batch.as<float>() + ((step * batch.shape[1] + part) * batch.shape[2] + rank) * width;
  const auto curve = training.asked.at("curve").get<float>();
  std::vector<float> made(at(parameter.count));
  for (std::int64_t i = 0; i < parameter.count; ++i) {
    const std::int64_t element = parameter.first + i;
    for (int use = 0; use < uses; ++use) made[at(i)] += row[use * total + element] + curve * weights[at(element)];
  }
  return made;
}

void delay_if_late(const Json& asked, Stream communication) {
  if (asked.at("late").get<bool>()) device::enqueue(communication, [] { std::this_thread::sleep_for(kOwnLate); });
}

void drain(Stream stream) noexcept {
  try {
    device::synchronize(stream);
  } catch (...) {  // earlier calls have reported the failure
  }
}

std::shared_ptr<CallChannel> own_ranks(TrainOwn train) { return std::make_shared<OwnRanks>(std::move(train)); }

TrainOwn train_replicated(Strategy strategy) {
  return [strategy](const OwnTraining& training, comm::Communicator& ranks, Stream compute, Stream communication) {
    Replica replica(training, strategy, ranks, compute, communication);
    const int steps = training.asked.at("steps").get<int>();
    for (int step = 0; step < steps; ++step) replica.step(step);
    device::synchronize(communication);
    device::synchronize(compute);
  };
}

}  // namespace syslab
