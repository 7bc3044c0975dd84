#include <cstring>

#include "core/error.hpp"
#include "device/allocator.hpp"
#include "device/cuda/persisting_lines.hpp"
#include "device/fenced_memory.hpp"
#include "device/fill_random.hpp"
#include "device/pattern.hpp"
#include "device/properties.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "tests/device/gpu_work.hpp"

namespace syslab::device {
namespace {

constexpr std::size_t kMi = std::size_t{1} << 20;

class GpuMemory : public GpuTest {};
class GpuPattern : public GpuTest {};
class GpuRandom : public GpuTest {};

TEST_F(GpuMemory, PropertiesDescribeTheDevice) {
  const DeviceProperties found = properties(kGpu);
  EXPECT_FALSE(found.name.empty());
  EXPECT_GE(found.sm, 70);
  EXPECT_GT(found.multiprocessors, 0);
  EXPECT_GE(found.cache_bytes, kMi);
  EXPECT_GE(found.shared_bytes_per_block, 48U << 10);
  EXPECT_EQ(found.uuid.size(), 40U);
  const MemoryUse use = memory_use(kGpu);
  EXPECT_LE(use.free, use.total);
  EXPECT_NEAR(static_cast<double>(use.total), static_cast<double>(found.memory_bytes), 1e9);
}

TEST_F(GpuMemory, FencedPiecesAreThereToTheirEndsAndNothingIsBehindThem) {
  FencedMemory pieces(kGpu, 3, 1000);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(pieces.count(), 3);
    ASSERT_GE(pieces.piece(), 1000U);
    for (int i = 0; i < 3; ++i) {
      fill_bytes(pieces.begin_of(i), i + 1, pieces.piece(), stream);
      std::byte last{};
      copy_now(&last, pieces.end_of(i) - 1, 1, stream);
      EXPECT_EQ(last, std::byte(i + 1));
      EXPECT_EQ(pointer_info(pieces.end_of(i) - 1).place, kGpu);
      EXPECT_NE(pointer_info(pieces.end_of(i)).place, kGpu);
    }
    pieces = {};
    pieces = FencedMemory(kGpu, 3, 1000);
  }
}

TEST_F(GpuMemory, LinesOfTheCacheAreForgottenWithoutAnError) { EXPECT_NO_THROW(forget_persisting_lines(kGpu)); }

TEST_F(GpuMemory, PointersTellWhoseTheyAre) {
  const Buffer there(100, "x", stream);
  const Buffer pinned = Buffer::pinned(100, "x", kGpu);
  const Buffer host(100, "x");
  EXPECT_EQ(there.place(), kGpu);
  EXPECT_EQ(pointer_info(there.as<std::byte>() + 50).place, kGpu);
  EXPECT_EQ(pointer_info(pinned.data()).place.kind, Kind::cpu);
  EXPECT_TRUE(pointer_info(pinned.data()).pinned);
  EXPECT_EQ(pointer_info(host.data()).place.kind, Kind::cpu);
  EXPECT_FALSE(pointer_info(host.data()).pinned);
}

TEST_F(GpuMemory, CopiesGoThereAndBackAndAcross) {
  std::vector<std::uint32_t> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i * i);
  const Buffer first = to_gpu(values);
  const Buffer second(first.bytes(), "x", stream);
  copy(second.data(), first.data(), first.bytes(), stream);
  EXPECT_EQ(to_host<std::uint32_t>(second), values);
}

// What the account says is what the driver has given: nothing is hidden in between.
TEST_F(GpuMemory, TheAccountAgreesWithTheDriver) {
  CachingAllocator& allocator = allocator_of(kGpu);
  allocator.release_cached();
  const MemoryUse before = memory_use(kGpu);
  const std::uint64_t reserved = allocator.use().reserved;
  std::vector<Buffer> held;
  for (const std::size_t bytes : {300 * kMi, 40 * kMi, 3 * kMi, std::size_t{1000}})
    held.emplace_back(bytes, "x", stream);
  const std::uint64_t taken = before.free - memory_use(kGpu).free;
  const std::uint64_t accounted = allocator.use().reserved - reserved;
  EXPECT_GE(accounted, 343 * kMi);
  EXPECT_NEAR(static_cast<double>(taken), static_cast<double>(accounted), 4.0 * kMi);
  held.clear();
  EXPECT_EQ(memory_use(kGpu).free, before.free - taken) << "given back before it was asked for";
  allocator.release_cached();
  EXPECT_NEAR(static_cast<double>(memory_use(kGpu).free), static_cast<double>(before.free), 4.0 * kMi);
}

TEST_F(GpuMemory, AskingForMoreThanThereIsTellsTheNumbersAndLeavesTheGpuUsable) {
  const std::uint64_t total = memory_use(kGpu).total;
  try {
    const Buffer buffer(2 * total, "scores", stream);
    FAIL() << "twice the memory of the GPU was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::oom);
    const std::string text = error.what();
    EXPECT_NE(text.find(std::to_string(2 * total)), std::string::npos) << text;
    EXPECT_NE(text.find(std::to_string(total)), std::string::npos) << text;
    EXPECT_NE(text.find("'scores'"), std::string::npos) << text;
  }
  check_launch("nothing");
  EXPECT_EQ(to_host<int>(to_gpu(std::vector<int>{7}))[0], 7);
}

TEST_F(GpuMemory, ABlockOfAnotherStreamWaitsUntilThatStreamIsDone) {
  const OwnedStream other(kGpu);
  Buffer block(64 * kMi, "x", stream);
  void* data = block.data();
  block.used_on(other);
  spin(50'000'000, other);
  block = Buffer();
  Buffer next(64 * kMi, "x", stream);
  EXPECT_NE(next.data(), data);
  synchronize(other);
  const Buffer third(64 * kMi, "x", stream);
  EXPECT_EQ(third.data(), data);
}

TEST_F(GpuPattern, DifferencesAreCountedAndPlacedOnTheGpu) {
  for (const std::size_t width : {1U, 2U, 4U, 8U}) {
    SCOPED_TRACE(width);
    constexpr std::int64_t kCount = 3'000'001;
    constexpr Pattern pattern{.base = 0xffff'ffff'ffff'ff80, .payload = 0x3f};
    const Buffer there(static_cast<std::size_t>(kCount) * width, "x", stream);
    fill_pattern(there.data(), pattern, width, -5, kCount, stream);
    std::vector<std::byte> same(there.bytes());
    fill_pattern(same.data(), pattern, width, -5, kCount, {});
    EXPECT_EQ(to_host<std::byte>(there), same);
    EXPECT_EQ(count_differences(there.data(), pattern, width, -5, kCount, stream).words, 0);
    fill_bytes(there.as<std::byte>() + 13 * width, 1, width, stream);
    fill_bytes(there.as<std::byte>() + 2'999'000 * width, 1, width, stream);
    const Differences found = count_differences(there.data(), pattern, width, -5, kCount, stream);
    EXPECT_EQ(found.words, 2);
    EXPECT_EQ(found.first, 13);
    EXPECT_EQ(found.last, 2'999'000);
  }
}

TEST_F(GpuPattern, NansAreCountedOnTheGpu) {
  const std::vector<std::uint16_t> half = {0x7c00, 0x7c01, 0xfe00, 0xfbff, 0x7f81};
  EXPECT_EQ(count_nans(to_gpu(half).data(), DType::f16, 5, stream), 3);
  EXPECT_EQ(count_nans(to_gpu(half).data(), DType::bf16, 5, stream), 1);
  const std::vector<std::uint64_t> wide = {0x7ff0'0000'0000'0000, 0xfff0'0000'0000'0001};
  EXPECT_EQ(count_nans(to_gpu(wide).data(), DType::f64, 2, stream), 1);
}

// The promise of core/random.hpp: the same bits on the host and on the GPU.
TEST_F(GpuRandom, InputsAreBitEqualToTheHosts) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const Distribution distribution :
         {Distribution::normal, Distribution::uniform, Distribution::zeros, Distribution::ramp}) {
      for (const float scale : {1.0F, 0.125F, 0.0883883F, 3e-7F, 1e5F, 1e-40F}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " distribution " + std::to_string(static_cast<int>(distribution)) +
                     " scale " + std::to_string(scale));
        constexpr std::int64_t kCount = 100'003;
        const std::uint64_t first = scale == 1.0F ? (std::uint64_t{1} << 33) - 50'000 : 3;
        const std::size_t bytes = static_cast<std::size_t>(kCount) * size_of(dtype);
        const Buffer there(bytes, "x", stream);
        const RandomStream random = RandomStream::derive(1, "e", "c", "s");
        fill_random({there.data(), dtype, {kCount}}, random, distribution, scale, first, stream);
        std::vector<std::byte> here(bytes);
        fill({here.data(), dtype, {kCount}}, random, distribution, scale, first);
        const std::vector<std::byte> back = to_host<std::byte>(there);
        std::size_t differing = 0;
        for (std::size_t i = 0; i < bytes; ++i) differing += here[i] != back[i] ? 1 : 0;
        EXPECT_EQ(differing, 0U);
      }
    }
  }
}

TEST_F(GpuRandom, StridedTensorsAreFilledAndTheirGapsAreNot) {
  const Shape shape{3, 5, 7};
  const Strides strides{100, 10, 1, 0};
  const Buffer there(300 * sizeof(float), "x", stream);
  fill_bytes(there.data(), 0x11, there.bytes(), stream);
  fill_random({there.data(), DType::f32, shape, strides}, RandomStream(9), Distribution::normal, 1, 2, stream);
  std::vector<float> here(300);
  std::memset(here.data(), 0x11, 300 * sizeof(float));
  fill({here.data(), DType::f32, shape, strides}, RandomStream(9), Distribution::normal, 1, 2);
  EXPECT_EQ(to_host<float>(there), here);
}

}  // namespace
}  // namespace syslab::device
