#include "worker/judged/gpu_handover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "core/error.hpp"
#include "device/digest.hpp"
#include "device/memory.hpp"
#include "device/properties.hpp"
#include "worker/judged/comes_within.hpp"
#include "worker/judged/shared_segment.hpp"

namespace syslab::worker {
namespace {

constexpr std::uint32_t kStepsOfACall = 3;
constexpr int kNanByte = 0xff;           // NaN in every floating-point type
constexpr std::size_t kMostViews = 256;  // of their memory; closed when there are more
constexpr int kIdleTries = 8;
// Handing over takes longer where memory was touched. Beyond the last it has not been seen to grow.
constexpr std::size_t kTouched[] = {4U << 10, 1U << 20, 4U << 20, 16U << 20, 64U << 20};
constexpr std::chrono::milliseconds kLongestIdle{1};  // longer is no switch, but others' turns

bool has_gaps(const SharedTensor& output) {
  return extent_bytes(output) != static_cast<std::size_t>(output.shape.elements()) * size_of(output.dtype);
}

void store(std::uint32_t* word, std::uint32_t value) {
  std::atomic_ref<std::uint32_t>(*word).store(value, std::memory_order_release);
}

}  // namespace

GpuHandover::GpuHandover(std::byte* words, device::Place place)
    : words_(reinterpret_cast<std::uint32_t*>(words)),
      place_(place),
      stream_(place.kind == device::Kind::cpu ? device::OwnedStream::queue() : device::OwnedStream(place)),
      given_at_(place, device::Timing::yes),
      taken_at_(place, device::Timing::yes) {
  if (place.kind == device::Kind::cpu) return;
  page_.emplace(words);
  flush_ = device::Buffer(2 * device::properties(place_).cache_bytes, "flushes the cache", stream_.view());
  measure_handing_over();
  if (std::ranges::any_of(idle_, [](const Idle& one) { return std::max(one.hot, one.cold) > kLongestIdle; })) {
    throw Unsupported("the GPU does other work: how long it takes to switch to another process is not known");
  }
}

GpuHandover::~GpuHandover() { give_up(); }

void GpuHandover::room_for(std::size_t bytes) {
  if (bytes <= bytes_) return;
  device::synchronize(stream_);
  shared_.reset();
  shared_ = std::make_unique<device::PeerMemory>(bytes, "tensors of a judged process", place_);
  truth_ = device::Buffer(bytes, "inputs of a judged process", stream_.view());
  taken_ = device::Buffer(bytes, "outputs of a judged process", stream_.view());
  bytes_ = bytes;
}

void GpuHandover::begin(CallRequest& request, const std::byte* staging, std::size_t bytes) {
  room_for(bytes);
  touched_ = 0;
  for (const SharedTensor& one : request.inputs) {
    const std::size_t extent = extent_bytes(one);
    touched_ += extent;
    if (extent > 0) device::copy(truth_.as<std::byte>() + one.offset, staging + one.offset, extent, stream_);
  }
  device::fill_bytes(shared_->at(0), kNanByte, bytes, stream_);
  for (const SharedTensor& one : request.outputs) {
    if (!one.lent) touched_ += extent_bytes(one);
    for_each_part(one, has_gaps(one) && !one.lent, [&](std::size_t first, std::size_t count) {
      device::copy(shared_->at(first), staging + first, count, stream_);
    });
  }
  device::synchronize(stream_);
  step_ += kStepsOfACall;
  request.gpu_memory = shared_->handle();
  request.step = step_;
}

void GpuHandover::copy_in(std::span<const SharedTensor> inputs) {
  for (const SharedTensor& one : inputs) {
    const std::size_t extent = extent_bytes(one);
    if (extent > 0) device::copy(shared_->at(one.offset), truth_.as<std::byte>() + one.offset, extent, stream_);
  }
}

void GpuHandover::give_early(std::span<const SharedTensor> inputs) {
  copy_in(inputs);
  device::synchronize(stream_);
  store(step_word(), step_);
}

void GpuHandover::give(std::span<const SharedTensor> inputs) {
  copy_in(inputs);
  if (cold_) device::fill_bytes(flush_.data(), 0, flush_.bytes(), stream_);
  device::come_to_turn(stream_);
  given_at_.record(stream_);
  device::raise_mark(step_word(), step_ + 1, stream_);
}

void GpuHandover::locate(std::span<const SharedTensor> outputs, const std::vector<Queued::Place>& places) {
  if (places.size() != outputs.size()) {
    throw Error(ErrorKind::comm,
                fmt::format("the worker tells of {} outputs, expected {}", places.size(), outputs.size()));
  }
  if (views_.size() > kMostViews) views_.clear();
  from_.clear();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [handle, offset] = places[i];
    const std::size_t extent = extent_bytes(outputs[i]);
    if (handle.empty() || extent == 0) {
      from_.push_back(shared_->at(outputs[i].offset));
      continue;
    }
    auto found = views_.find(handle);
    if (found == views_.end()) found = views_.emplace(handle, device::PeerView(handle, place_)).first;
    const std::size_t there = found->second.gpu_bytes();
    if (offset > there || extent > there - offset) {
      throw Error(ErrorKind::comm, fmt::format("output '{}' ends behind the worker's memory", outputs[i].name));
    }
    from_.push_back(found->second.at(offset));
  }
}

void GpuHandover::take(std::span<const SharedTensor> outputs) {
  device::await_mark(done_word(), step_ + 1, stream_);
  device::come_to_turn(stream_);
  taken_at_.record(stream_);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const SharedTensor& one = outputs[i];
    const std::size_t extent = extent_bytes(one);
    if (from_[i] == shared_->at(one.offset)) {
      for_each_part(one, !one.lent, [&](std::size_t first, std::size_t count) {
        device::copy(taken_.as<std::byte>() + first, shared_->at(first), count, stream_);
      });
    } else if (extent > 0) {
      device::copy(taken_.as<std::byte>() + one.offset, from_[i], extent, stream_);
    }
  }
  device::raise_mark(step_word(), step_ + 2, stream_);
}

bool GpuHandover::taken_within(std::chrono::milliseconds limit) const {
  return comes_within(limit, [this] { return taken_at_.done(); });
}

Nanoseconds GpuHandover::between() const {
  taken_at_.synchronize();
  return device::elapsed(given_at_, taken_at_);
}

Nanoseconds GpuHandover::finish(Nanoseconds& whole) {
  whole = between();
  Nanoseconds idle{};
  for (const Idle& one : idle_) {
    if (one.touched <= std::max(touched_, idle_.front().touched)) idle = cold_ ? one.cold : one.hot;
  }
  return std::max(Nanoseconds{}, whole - idle);
}

// The shortest of several: whatever disturbs a handover makes it longer. The first may load kernels.
void GpuHandover::measure_handing_over() {
  const std::size_t most = *std::ranges::max_element(kTouched);
  device::OtherContext other(place_, most);
  // If something is thrown: the other context's stream must not wait for ever when it is destroyed, which is after
  // this.
  const struct Freed {
    GpuHandover& mine;
    ~Freed() {
      store(mine.step_word(), mine.step_ + 2);
      store(mine.done_word(), mine.step_ + 1);
    }
  } freed{*this};
  device::come_to_turn(stream_);
  device::synchronize(stream_);
  room_for(most);
  for (const std::size_t touched : kTouched) {
    const auto elements = static_cast<std::int64_t>(touched / sizeof(float));
    const std::vector<SharedTensor> all{{"all", DType::f32, {elements}, {1}, 0}};
    Idle idle{.touched = touched};
    for (const bool cold : {false, true}) {
      Nanoseconds& shortest = cold ? idle.cold : idle.hot;
      cold_ = cold;
      for (int i = 0; i < kIdleTries; ++i) {
        step_ += kStepsOfACall;
        other.answer(step_word(), done_word(), step_ + 1, touched);
        give(all);
        take({});
        shortest = std::min(shortest, between() - other.took());
      }
    }
    idle_.push_back(idle);
  }
  cold_ = false;
}

void GpuHandover::fetch(std::span<const SharedTensor> outputs, std::byte* staging) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const SharedTensor& one = outputs[i];
    const auto fetch_part = [&](std::size_t first, std::size_t count) {
      device::copy(staging + first, taken_.as<std::byte>() + first, count, stream_);
    };
    if (from_[i] == shared_->at(one.offset)) {
      for_each_part(one, !one.lent, fetch_part);
    } else if (extent_bytes(one) > 0) {
      fetch_part(one.offset, extent_bytes(one));
    }
  }
  device::synchronize(stream_);
}

std::optional<std::string> GpuHandover::changed(std::span<const SharedTensor> inputs) const {
  for (const SharedTensor& one : inputs) {
    const std::size_t extent = extent_bytes(one);
    if (device::digest(shared_->at(one.offset), extent, stream_) !=
        device::digest(truth_.as<std::byte>() + one.offset, extent, stream_)) {
      return one.name;
    }
  }
  return std::nullopt;
}

bool GpuHandover::give_up(std::chrono::milliseconds limit) noexcept {
  try {
    const bool over = comes_within(limit, [this] {
      store(done_word(), step_ + 1);
      store(step_word(), step_ + 2);
      return device::is_idle(stream_);
    });
    if (over) device::synchronize(stream_);
    return over;
  } catch (const std::exception&) {  // a GPU that is lost waits for nothing
    return true;
  }
}

}  // namespace syslab::worker
