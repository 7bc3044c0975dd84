// What queues work on streams of the CPU and has memory that this work uses ends after it, on every path: whoever holds
// such an object may be left by an exception while its work is under way.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "certify/fsdp_certificate.hpp"
#include "device/memory_log.hpp"
#include "parallel/ddp/wire_buffer.hpp"
#include "parallel/grouped_adamw.hpp"
#include "parallel/ring_all_reduce.hpp"
#include "parallel/shard_norm.hpp"
#include "parallel/zero/sync.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "tests/parallel/sharded_fixture.hpp"
#include "tests/planning/pieces_fixture.hpp"
#include "trials/measured_collective.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::pieces_of_sizes;

struct Holder {
  std::string name;
  bool on_compute = false, on_communication = false;  // where its work is
  std::function<std::shared_ptr<void>(comm::Communicator& ranks, Stream compute, Stream communication)> make;
};

std::vector<float>& numbers() {
  static std::vector<float> kept(300);
  return kept;
}
TensorView view() { return {numbers().data(), DType::f32, {300}}; }

std::vector<Holder> holders() {
  return {
      {"ZeroSync", true, true,
       [](comm::Communicator& ranks, Stream compute, Stream communication) {
         auto made = std::make_shared<ZeroSync>(ranks, pieces_of_sizes({100, 200}), view(), TensorView{},
                                                ZeroOptions{.sharding = Sharding::zero2}, communication);
         made->begin(compute);
         return made;
       }},
      {"Fsdp", true, true,
       [](comm::Communicator& ranks, Stream compute, Stream communication) {
         FsdpCertificateCase asked;
         asked.asked.model = {.layers = {{4, 5, true}, {5, 3, false}}};
         return std::make_shared<Fsdp>(ranks, parts_of(asked), FsdpOptions{}, compute, communication);
       }},
      {"ShardNorm", true, true,
       [](comm::Communicator& ranks, Stream compute, Stream communication) {
         return std::make_shared<ShardNorm>(ranks, global_norm::find_rung("naive"),
                                            std::vector<ConstTensorView>{view()}, DType::f32, compute, communication);
       }},
      {"WireBuffer", false, true,
       [](comm::Communicator&, Stream, Stream communication) {
         struct Wire {
           explicit Wire(Stream stream) : buffer(pieces, view(), DType::bf16, WireBuffer::Layout::dense, stream) {}
           GradientPieces pieces = pieces_of_sizes({100, 200});
           WireBuffer buffer;
         };
         return std::make_shared<Wire>(communication);
       }},
      {"OwnedUpdate", true, false,
       [](comm::Communicator&, Stream compute, Stream) {
         return std::make_shared<OwnedUpdate>(std::vector<OwnedStretch>{{view(), view()}}, adamw::find_rung("naive"),
                                              compute);
       }},
      {"GroupedAdamW", true, false,
       [](comm::Communicator&, Stream compute, Stream) {
         auto made = std::make_shared<GroupedAdamW>(adamw::find_rung("naive"), compute);
         made->add_group(std::vector<OptimizedParameter>{{"w", view(), view()}}, {});
         return made;
       }},
      {"DataParallelStep, updated in turn", false, true,
       [](comm::Communicator& ranks, Stream, Stream communication) {
         return std::make_shared<test::ShardedRig>(ranks, Sharding::zero1, DataParallelOptions{}, test::kRows,
                                                   communication, 2, true);
       }},
      {"RingAllReduce", true, false,
       [](comm::Communicator& ranks, Stream compute, Stream) {
         return std::make_shared<RingAllReduce>(ranks, Ring::parts, 300, DType::f32, compute);
       }},
      {"MeasuredCollective", true, false,
       [](comm::Communicator& ranks, Stream compute, Stream) {
         return std::make_shared<MeasuredCollective>(ranks, comm::Operation::all_gather, 1200, compute);
       }},
  };
}

// A rank alone: its work is copies and casts, which need as much memory as that of many.
TEST(Lifetimes, MemoryStaysUntilTheLastWorkInItsQueuesHasEnded) {
  const auto alone = comm::make_local(1);
  const device::MemoryLog& log = device::MemoryLog::global();
  for (const Holder& holder : holders()) {
    const device::OwnedStream compute = device::OwnedStream::queue(), communication = device::OwnedStream::queue();
    const std::int64_t without = log.live_bytes();
    std::shared_ptr<void> held = holder.make(*alone[0], compute, communication);
    device::synchronize(device::Place{});
    const std::int64_t with = log.live_bytes();
    ASSERT_GT(with, without) << holder.name << " has no memory to keep";
    std::atomic<std::int64_t> seen_by_compute = 0, seen_by_communication = 0;
    for (auto [stream, seen] :
         {std::pair(compute.view(), &seen_by_compute), std::pair(communication.view(), &seen_by_communication)}) {
      test::sleep_in(stream, std::chrono::milliseconds(50));
      device::enqueue(stream, [&log, seen = seen] { *seen = log.live_bytes(); });
    }
    held.reset();
    device::synchronize(device::Place{});
    EXPECT_TRUE(!holder.on_compute || seen_by_compute == with) << holder.name;
    EXPECT_TRUE(!holder.on_communication || seen_by_communication == with) << holder.name;
  }
}

}  // namespace
}  // namespace syslab::parallel
