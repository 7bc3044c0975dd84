#include "worker/judged/served_gpu.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/tensor.hpp"
#include "device/cuda/gpu_probe.hpp"
#include "device/cuda/graph.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/other_context.hpp"
#include "device/cuda/persisting_lines.hpp"
#include "device/memory.hpp"
#include "worker/judged/shared_segment.hpp"

namespace syslab::worker {
namespace {

constexpr std::size_t kStep = 0, kDone = 16;  // words of 32 bits (docs/worker-wire.md)
constexpr int kUnreadByte = 0xff;             // NaN in every floating-point type
constexpr int kCallsToLookAt = 4;

device::Place demanded(device::Place place) {
  if (place.kind == device::Kind::cuda && device::gpu_count() <= place.index) {
    throw Unsupported("needs a GPU: " + device::probe_gpus().why_none);
  }
  return place;
}

std::int64_t nans_of(const SharedTensor& output, const std::byte* memory) {
  const std::vector<double> values =
      to_doubles(ConstTensorView(memory + output.offset, output.dtype, output.shape, output.strides));
  return std::ranges::count_if(values, [](double value) { return std::isnan(value); });
}

}  // namespace

ServedGpu::ServedGpu(device::Place place, std::size_t most_fenced)
    : place_(demanded(place)),
      device_(place_),
      begin_(place_, device::Timing::yes),
      end_(place_, device::Timing::yes),
      most_fenced_(most_fenced) {
  device::come_to_turn(stream());  // a first time waits for the stream
  device::synchronize(stream());
}

void ServedGpu::share(std::byte* words) {
  if (place_.kind == device::Kind::cuda) page_ = std::make_unique<device::MappedPage>(words);
  words_ = reinterpret_cast<std::uint32_t*>(words);
}

std::byte* ServedGpu::memory(const std::string& handle) {
  if (handle != handle_) {
    view_.reset();
    view_ = std::make_unique<device::PeerView>(handle, place_);
    handle_ = handle;
  }
  return view_->at(0);
}

Nanoseconds ServedGpu::run_shared(std::uint32_t step, const std::function<void()>& body,
                                  const std::function<void()>& queued) {
  device::forget_persisting_lines(place_);
  device::await_mark(word(kStep), step + 1, stream());
  device::come_to_turn(stream());
  begin_.record(stream());
  body();
  end_.record(stream());
  device::raise_mark(word(kDone), step + 1, stream());
  queued();
  device::synchronize(stream());
  const Nanoseconds elapsed = device::elapsed(begin_, end_);
  device_.look_for_stragglers(elapsed);
  wait(step + 2);
  return elapsed;
}

// By the host, not by the stream.
void ServedGpu::wait(std::uint32_t step) const {
  constexpr std::chrono::microseconds kSpin{2000}, kNap{20};
  const auto spin_until = std::chrono::steady_clock::now() + kSpin;
  const std::atomic_ref seen(*word(kStep));
  while (static_cast<std::int32_t>(seen.load(std::memory_order_acquire) - step) < 0) {
    if (std::chrono::steady_clock::now() > spin_until) std::this_thread::sleep_for(kNap);
  }
}

// Puts the tensors of there_ into pieces of memory that end where they do; false where there is no such memory.
bool ServedGpu::fence(const CallRequest& request) {
  if (!request.guarded || !may_fence_) return false;
  there_ = request;
  std::vector<SharedTensor*> tensors;
  for (SharedTensor& one : there_.inputs) tensors.push_back(&one);
  for (SharedTensor& one : there_.outputs) tensors.push_back(&one);
  const auto rounded = [](const SharedTensor& one) { return guard_page_of(one) - one.offset; };
  std::size_t most = 0;
  for (const SharedTensor* one : tensors) most = std::max(most, kGuardBytes + rounded(*one));
  if (most * tensors.size() > most_fenced_) return false;
  const auto count = static_cast<int>(tensors.size());
  try {
    if (fenced_.count() < count || fenced_.piece() < most) {
      fenced_ = {};
      fenced_ = device::FencedMemory(place_, count, most);
    }
  } catch (const Unsupported&) {
    return may_fence_ = false;
  } catch (const Error& error) {  // what else is wrong with the GPU shows in the call itself
    if (error.kind() != ErrorKind::oom) may_fence_ = false;
    return false;
  }
  base_ = fenced_.data();
  for (int i = 0; i < count; ++i) {
    SharedTensor& one = *tensors[static_cast<std::size_t>(i)];
    device::fill_bytes(fenced_.begin_of(i), kUnreadByte, fenced_.piece(), stream());
    one.offset = static_cast<std::size_t>(fenced_.end_of(i) - base_) - rounded(one);
  }
  return true;
}

// Calls part(offset of the host's, offset in there_, bytes): what lies behind a fence is left out.
template <typename Part>
void ServedGpu::for_each_output_part(const CallRequest& request, const Part& part) const {
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const SharedTensor &one = request.outputs[i], &other = there_.outputs[i];
    const std::size_t end = is_fenced() ? guard_page_of(one) : request.memory_bytes;
    for_each_part(one, !one.lent, [&](std::size_t first, std::size_t bytes) {
      if (first < end) part(first, first - one.offset + other.offset, std::min(bytes, end - first));
    });
  }
}

std::byte* ServedGpu::copied(const CallRequest& request, const std::byte* memory) {
  std::size_t inputs_end = 0;
  for (const SharedTensor& one : request.inputs) inputs_end = std::max(inputs_end, one.offset + extent_bytes(one));
  if (!fence(request)) {
    if (copy_.bytes() < request.memory_bytes) {
      copy_ = {};
      copy_ = device::Buffer(request.memory_bytes, "tensors of a call", stream());
    }
    base_ = copy_.as<std::byte>();
    there_ = request;
    device::fill_bytes(base_, kUnreadByte, request.memory_bytes, stream());
  }
  if (truth_.bytes() < inputs_end) truth_ = device::Buffer(inputs_end, "inputs of a call", stream());
  for (const SharedTensor& one : request.inputs) {
    const std::size_t bytes = extent_bytes(one);
    if (bytes > 0) device::copy(truth_.as<std::byte>() + one.offset, memory + one.offset, bytes, stream());
  }
  for_each_output_part(request, [&](std::size_t here, std::size_t there, std::size_t bytes) {
    device::copy(base_ + there, memory + here, bytes, stream());
  });
  device::synchronize(stream());
  return base_;
}

void ServedGpu::give(const CallRequest& request) {
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const std::size_t bytes = extent_bytes(request.inputs[i]);
    if (bytes == 0) continue;
    device::copy(base_ + there_.inputs[i].offset, truth_.as<std::byte>() + request.inputs[i].offset, bytes, stream());
  }
}

void ServedGpu::copy_back(const CallRequest& request, std::byte* memory) {
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const std::size_t bytes = extent_bytes(request.inputs[i]);
    if (bytes == 0) continue;
    device::copy(memory + request.inputs[i].offset, base_ + there_.inputs[i].offset, bytes, stream());
  }
  for_each_output_part(request, [&](std::size_t here, std::size_t there, std::size_t bytes) {
    device::copy(memory + here, base_ + there, bytes, stream());
  });
  device::synchronize(stream());
}

Returned ServedGpu::run(const CallRequest& request, const std::function<void()>& body, std::byte* memory) {
  Returned returned;
  const auto has_elements = [](const SharedTensor& one) { return one.shape.elements() > 0; };
  if (std::ranges::any_of(request.outputs, has_elements)) {
    device::forget_persisting_lines(place_);
    device_.queue_window([&] { give(request); }, body);
    const measure::Window window = device_.collect().front();
    returned = {.elapsed = window.elapsed, .clock_hz = window.clock_hz, .flags = window.flags};
    copy_back(request, memory);
  } else {  // it may have nothing to queue
    run_untimed(request, body, memory);
  }
  look_for_early_reads(request, body, memory);
  return returned;
}

void ServedGpu::run_untimed(const CallRequest& request, const std::function<void()>& body, std::byte* memory) {
  give(request);
  body();
  device_.synchronize();
  copy_back(request, memory);
}

// NaN that goes away when the inputs are there before the call begins comes from reading them too early. Only a hint
// for whoever did not mean to: a wrong answer is found without it.
void ServedGpu::look_for_early_reads(const CallRequest& request, const std::function<void()>& body, std::byte* memory) {
  if (looked_at_ == kCallsToLookAt || place_.kind != device::Kind::cuda) return;
  ++looked_at_;
  const auto nans = [&] {
    std::int64_t count = 0;
    for (const SharedTensor& one : request.outputs) count += one.lent ? 0 : nans_of(one, memory);
    return count;
  };
  const std::int64_t before = nans();
  if (before == 0) return;
  give(request);
  device_.synchronize();
  body();
  device_.synchronize();
  copy_back(request, memory);
  if (nans() >= before) return;
  throw Error(ErrorKind::check,
              "the call read its inputs before the stream given had written them: it works on a stream of its own that "
              "does not wait for that one; queue the work there, or let its stream wait first");
}

std::function<void()> ServedGpu::captured(const std::function<void()>& body) const {
  device::Capture made = device::capture(stream(), body);
  if (!made.graph) {
    throw Unsupported("its calls cannot be captured as a graph: " + made.why + "; use --protocol kernel");
  }
  const auto graph = std::make_shared<device::Graph>(std::move(*made.graph));
  return [graph, stream = stream()] { graph->replay(stream); };
}

}  // namespace syslab::worker
