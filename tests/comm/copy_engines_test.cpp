// Collectives by copies from rank to rank, over the CPU's streams: what laws do not draw (property_tests/comm has the
// sums themselves, over all backends).
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "comm/copy_engines/copy_engines.hpp"
#include "comm/nccl/communicator.hpp"
#include "core/error.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"
#include "tests/comm/copy_engines_fixture.hpp"

namespace syslab::comm {
namespace {

TEST_F(CopyEnginesOfRanks, AreTheBackendThatARankTells) {
  const auto errors = run(
      2, {.limit = 10s}, [](Communicator& ranks, device::Stream) { EXPECT_EQ(ranks.backend(), "copy_engines"); },
      copying());
  EXPECT_EQ(errors, kTwoWell);
}

// Shards of many chunks, every kind of operation after every other and several in a group, and nobody waits in between.
void follow_each_other(Communicator& ranks, device::Stream stream) {
  constexpr std::int64_t kPart = 1111;
  const auto rank = static_cast<float>(ranks.rank()), size = static_cast<float>(ranks.size());
  const auto whole = static_cast<std::size_t>(ranks.size() * kPart);
  std::vector<float> sum(whole, 1), part(kPart), all(whole), piece(kPart), other(300, 2);
  for (int round = 0; round < 10; ++round) {
    ranks.all_reduce(floats(sum), Reduction::sum, {}, stream);
    device::enqueue(stream, [&] {
      for (std::size_t i = 0; i < kPart; ++i) part[i] = rank + static_cast<float>(i);
    });
    ranks.begin_group();
    ranks.all_gather(floats(part), floats(all), {}, stream);
    ranks.all_reduce(floats(other), Reduction::sum, {}, stream);
    ranks.end_group();
    ranks.reduce_scatter(floats(all), floats(piece), Reduction::sum, {}, stream);
    device::enqueue(stream, [&] {
      for (std::size_t i = 0; i < kPart; ++i) EXPECT_EQ(piece[i], size * (rank + static_cast<float>(i)));
      for (float& value : sum) value = value == size ? 1.0F : -1.0F;
      for (float& value : other) value = value == 2 * size ? 2.0F : -1.0F;
    });
  }
  device::synchronize(stream);
  EXPECT_EQ(sum, std::vector<float>(whole, 1));
  EXPECT_EQ(other, std::vector<float>(300, 2));
}

TEST_F(CopyEnginesOfRanks, OperationsFollowEachOtherWithoutAWait) {
  for (const int slots : {1, 2, 3, 8}) {
    SCOPED_TRACE(testing::Message() << slots << " slots");
    const auto errors =
        run(3, {.limit = 20s}, follow_each_other,
            copying({.slot_bytes = 1024U + static_cast<std::size_t>(slots), .slots = slots, .least_bytes = 0}));
    EXPECT_EQ(errors, (std::vector<std::string>{"", "", ""}));
  }
}

TEST_F(CopyEnginesOfRanks, LeaveSmallOperationsMaximaAndBroadcastsToTheLibrary) {
  const auto errors = run(
      2, {.limit = 10s},
      [](Communicator& ranks, device::Stream stream) {
        std::vector<float> few(100, 1), many(1000, static_cast<float>(ranks.rank()));
        ranks.all_reduce(floats(few), Reduction::sum, {}, stream);
        ranks.all_reduce(floats(many), Reduction::max, {}, stream);
        ranks.wait(ranks.broadcast(floats(many), 1, {}, stream));
        EXPECT_EQ(few, std::vector<float>(100, 2));
        EXPECT_EQ(many, std::vector<float>(1000, 1));
      },
      copying({.slot_bytes = 1024, .slots = 2, .least_bytes = 2000}));
  EXPECT_EQ(errors, kTwoWell);
}

// A rank that is released writes to the others once more: of a GPU, memory stays for who has it open; here its owner
// does.
constexpr auto kStays = 1s;

// The other rank never comes: who waits is released, and its streams are idle again before they go.
TEST_F(CopyEnginesOfRanks, ARankThatIsLeftAloneEndsAtTheLimit) {
  std::vector<float> values(1000, 1);  // longer than the communicator: released copies write to it still
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = run(
      2, {.limit = 2s},
      [&](Communicator& ranks, device::Stream stream) {
        if (ranks.rank() == 1) {
          std::this_thread::sleep_for(kStays);
          throw Error(ErrorKind::check, "rank 1 goes");
        }
        ranks.wait(ranks.all_reduce(floats(values), Reduction::sum, {}, stream));
      },
      copying());
  EXPECT_TRUE(has(errors[0], "rank 0 waited 2.0 s for its operation 1 in vain")) << errors[0];
  EXPECT_EQ(errors[1], "rank 1 goes");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

// Nor does who leaves without a wait take along what a copy may still write to.
TEST_F(CopyEnginesOfRanks, ARankThatLeavesWithoutAWaitEndsAtTheLimit) {
  std::vector<float> values(1000, 1);
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = run(
      2, {.limit = 2s},
      [&](Communicator& ranks, device::Stream stream) {
        if (ranks.rank() == 1) return std::this_thread::sleep_for(kStays);
        ranks.all_reduce(floats(values), Reduction::sum, {}, stream);
      },
      copying());
  EXPECT_EQ(errors, kTwoWell);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(CopyEnginesOfRanks, RefuseOptionsThatNoRankCouldUse) {
  const auto errors = run(
      2, {.limit = 20s}, [](Communicator&, device::Stream) {}, copying({.slot_bytes = 100, .slots = 0}));
  int told = 0;
  for (const std::string& error : errors) {  // a rank may hear of another's end before it has its own
    const bool tells = has(error, "with 0 slots of 100 bytes");
    EXPECT_TRUE(tells || has(error, "was ended by an error")) << error;
    told += tells ? 1 : 0;
  }
  EXPECT_GE(told, 1);
}

// All ranks say why: nobody leaves before the others have heard, and who hears that another left has its own reason.
TEST(CopyEngines, MemoryThatOneRankDoesNotReachIsUnsupportedOnAll) {
  int asked = 0;
  const CopyEngines::Exchange exchange = [&](std::string_view mine) {
    ++asked;
    if (asked == 3) throw Error(ErrorKind::comm, "rank 1 cannot join");
    return std::vector<std::string>{std::string(mine), asked == 1 ? std::string(mine) : "rank 1 does not reach rank 0"};
  };
  try {
    const CopyEngines engines(0, 2, {}, {.slot_bytes = 1024, .slots = 2}, exchange);
    ADD_FAILURE() << "made";
  } catch (const Unsupported& error) {
    EXPECT_STREQ(error.what(), "rank 1 does not reach rank 0");
  }
  EXPECT_EQ(asked, 3);
}

TEST(CopyEngineOptions, AreReadFromAText) {
  const CopyEngineOptions read = parse_copy_engine_options("slots=3,slot=4Mi");
  EXPECT_EQ(read.slots, 3);
  EXPECT_EQ(read.slot_bytes, std::size_t{4} << 20);
  EXPECT_EQ(read.least_bytes, CopyEngineOptions{}.least_bytes);
  EXPECT_EQ(parse_copy_engine_options("").slots, CopyEngineOptions{}.slots);
  for (const char* wrong : {"slots", "slots=x", "speed=1", "=3"}) {
    EXPECT_THROW(parse_copy_engine_options(wrong), Error) << wrong;
  }
}

TEST(PeerMemory, IsReachedInThisProcessAndRefusedElsewhere) {
  const device::PeerMemory memory(4096, "test", {});
  const device::PeerView view(memory.handle(), {});
  EXPECT_EQ(view.at(8), memory.at(8));
  EXPECT_EQ(*memory.mark(4092), 0U);
  EXPECT_THROW(device::PeerView("host:1:4096", {}), Unsupported);
  EXPECT_THROW(device::PeerView("gpu:00", {}), Error);
  EXPECT_THROW(device::PeerView("", {}), Error);
}

}  // namespace
}  // namespace syslab::comm
