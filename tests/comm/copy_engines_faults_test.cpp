// Copies from rank to rank with ranks that are late, and with waits that are left out: what races on purpose.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <thread>

#include "device/queue.hpp"
#include "device/stream.hpp"
#include "tests/comm/copy_engines_fixture.hpp"

namespace syslab::comm {
namespace {

// The slots are a rank's own pace: the others wait for one that is late, with what it reads and with what it writes.
// `memory` outlives the communicator: without a wait, copies may be under way when this returns. Returns what is wrong,
// counted in elements.
constexpr std::size_t kPart = 2500;
struct Memory {
  std::vector<float> values = std::vector<float>(2 * kPart), all = std::vector<float>(2 * kPart);
};
std::int64_t with_late_ranks(Communicator& ranks, device::Stream stream, std::array<Memory, 2>& memory) {
  const int rank = ranks.rank();
  auto& [values, all] = memory[static_cast<std::size_t>(rank)];
  std::int64_t wrong = 0;
  const auto fill = [&, values = &values, all = &all](int late) {
    device::enqueue(stream, [=] {
      if (rank == late) std::this_thread::sleep_for(30ms);
      std::iota(values->begin(), values->end(), static_cast<float>(rank));
      std::ranges::fill(*all, -1.0F);
    });
  };
  const TensorView mine{values.data(), DType::f32, {kPart}};
  for (int round = 0; round < 4; ++round) {
    fill(round % 2);
    ranks.all_reduce(floats(values), Reduction::sum, {}, stream);
    device::enqueue(stream, [&values = values, &wrong] {
      for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] != 2 * static_cast<float>(i) + 1 ? 1 : 0;
    });
    fill(round % 2);
    ranks.all_gather(mine, floats(all), {}, stream);
    device::enqueue(stream, [&all = all, &wrong] {
      for (std::size_t i = 0; i < kPart; ++i) wrong += all[i] != static_cast<float>(i) ? 1 : 0;
      for (std::size_t i = 0; i < kPart; ++i) wrong += all[kPart + i] != static_cast<float>(i + 1) ? 1 : 0;
    });
  }
  device::synchronize(stream);
  return wrong;
}

TEST_F(CopyEnginesOfRanks, WaitForALateRank) {
  std::array<Memory, 2> memory;
  const auto errors = run(
      2, {.limit = 20s},
      [&](Communicator& ranks, device::Stream stream) { EXPECT_EQ(with_late_ranks(ranks, stream, memory), 0); },
      copying());
  EXPECT_EQ(errors, kTwoWell);
}

// Each wait is there for a reason.
TEST_F(CopyEnginesOfRanks, AnyWaitThatIsLeftOutIsFound) {
  for (const CopyWait left_out : {CopyWait::begun, CopyWait::summed, CopyWait::sent, CopyWait::ready, CopyWait::taken,
                                  CopyWait::given, CopyWait::ended}) {
    std::atomic<std::int64_t> wrong = 0;
    std::array<Memory, 2> memory;
    const auto errors = run(
        2, {.limit = 20s},
        [&](Communicator& ranks, device::Stream stream) { wrong += with_late_ranks(ranks, stream, memory); },
        copying({.slot_bytes = 1024, .slots = 2, .least_bytes = 0, .left_out = left_out}));
    EXPECT_EQ(errors, kTwoWell);
    EXPECT_GT(wrong, 0) << "wait " << static_cast<int>(left_out);
  }
}

}  // namespace
}  // namespace syslab::comm
