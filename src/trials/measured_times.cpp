#include "trials/measured_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"
#include "core/text/text.hpp"
#include "device/event.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "parallel/model_pieces.hpp"
#include "planning/planner.hpp"
#include "train/batches.hpp"
#include "train/step.hpp"

namespace syslab::parallel {
namespace {

using device::Event;
using device::Timing;

// Element by element the largest of all ranks. Doubles travel as text to the bit.
std::vector<Seconds> latest(comm::Communicator& ranks, std::span<const Seconds> own) {
  std::string text;
  for (const Seconds& time : own) text += fmt::format("{}{:a}", text.empty() ? "" : " ", time.count());
  std::vector<Seconds> made(own.begin(), own.end());
  for (const std::string& other : ranks.exchange(text)) {
    const std::vector<std::string> words = split(other, ' ');
    if (words.size() != made.size()) {
      throw Error(ErrorKind::usage, fmt::format("ranks measured {} and {} times: they do not run the same model",
                                                made.size(), words.size()));
    }
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] = std::max(made[i], Seconds(std::strtod(words[i].c_str(), nullptr)));
    }
  }
  return made;
}

Seconds median(std::vector<Seconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace

std::vector<std::int64_t> curve_sizes(std::int64_t bytes) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1024; size < bytes; size *= 4) sizes.push_back(size);
  sizes.push_back(std::max<std::int64_t>(bytes, 8));
  return sizes;
}

TransferCurve measure_curve(comm::Communicator& ranks, DType dtype, std::span<const std::int64_t> sizes,
                            device::Stream communication, const CurveOptions& options) {
  if (sizes.empty() || options.calls < 1 || options.rounds < 1) {
    throw Error(ErrorKind::usage, "a curve is measured at one size at least, by one call in one round");
  }
  const auto bytes = static_cast<std::size_t>(*std::ranges::max_element(sizes));
  const device::Buffer buffer(bytes, "curve", communication, device::MemoryCategory::workspace);
  const device::AwaitsQueues awaits(communication);  // if a call throws, earlier ones still use the buffer
  device::fill_bytes(buffer.data(), 0, bytes, communication);
  Event begin(device::place_of(communication), Timing::yes), end(device::place_of(communication), Timing::yes);
  std::vector<Seconds> own;
  for (const std::int64_t size : sizes) {
    const TensorView view(buffer.data(), dtype,
                          {std::max<std::int64_t>(size / static_cast<std::int64_t>(size_of(dtype)), 1)});
    std::vector<Seconds> rounds;
    for (int round = 0; round <= options.rounds; ++round) {
      begin.record(communication);
      for (int call = 0; call < options.calls; ++call) {
        static_cast<void>(ranks.all_reduce(view, comm::Reduction::sum, {"benchmark", "curve"}, communication));
      }
      end.record(communication);
      device::synchronize(communication);
      const Seconds each = Seconds(elapsed(begin, end)) / options.calls;
      if (round > 0) rounds.push_back(each);  // after the first, buffers and connections stay as they are
    }
    own.push_back(std::max(median(std::move(rounds)), Seconds(1e-9)));
  }
  const std::vector<Seconds> times = latest(ranks, own);
  std::vector<TransferPoint> points;
  for (std::size_t i = 0; i < times.size(); ++i) points.push_back({sizes[i], times[i]});
  return TransferCurve(std::move(points));
}

std::vector<Seconds> measure_ready(model::Transformer& model, std::int64_t batch, std::int64_t seq, int steps) {
  const std::vector<int> piece_of = piece_of_parameter(model.parameters().layout());
  const device::Place place = device::place_of(model.stream());
  Event begin(place, Timing::yes);
  std::vector<Event> final;
  for (std::size_t i = 0; i < piece_of.size(); ++i) final.emplace_back(place, Timing::yes);

  train::TrainingStep step(
      model,
      {.grad_final =
           [&](int parameter, device::Stream stream) {
             final[static_cast<std::size_t>(piece_of[static_cast<std::size_t>(parameter)])].record(stream);
           }},
      batch, seq);
  const train::RandomBatches source({.rows = batch, .context = seq, .vocab = model.config().vocab});
  train::Batch drawn;
  std::vector<std::vector<Seconds>> measured;
  for (int number = 0; number <= steps; ++number) {
    source.draw(static_cast<std::uint64_t>(number), drawn);
    step.load(0, drawn.x, drawn.y);
    step.begin(0);
    step.forward(0);
    begin.record(model.stream());
    step.backward(0);
    device::synchronize(model.stream());
    std::vector<Seconds> times;
    for (const Event& event : final) times.emplace_back(elapsed(begin, event));
    if (number > 0) measured.push_back(std::move(times));
  }
  return ready_quantile(measured);
}

std::vector<Seconds> agree_on_ready(comm::Communicator& ranks, std::span<const Seconds> ready) {
  return latest(ranks, ready);
}

}  // namespace syslab::parallel
