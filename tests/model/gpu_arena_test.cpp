// The arena in a GPU's memory holds what the CPU's does.
#include <gtest/gtest.h>

#include "device/memory_log.hpp"
#include "model/initialise.hpp"
#include "model/tensor.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "tests/model/weights_in_file.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::model {
namespace {

using GpuArena = device::GpuTest;

// Every plane of the arena, padding and all, bit by bit.
std::vector<std::byte> bytes_of(const ParameterArena& arena, Plane plane) {
  std::vector<std::byte> bytes(arena.bytes(plane));
  device::copy_now(bytes.data(), arena.whole(plane).data, bytes.size(), arena.stream());
  return bytes;
}

ModelConfig odd_model() {
  ModelConfig config{.vocab = 70'000, .context = 4, .d_model = 66, .d_ff = 5, .layers = 2, .heads = 3};
  return config;
}

TEST_F(GpuArena, BeginsWithTheBitsThatTheCpusBeginsWith) {
  for (const ArenaOptions& options : {ArenaOptions{.copy_dtype = DType::bf16}, ArenaOptions{.copy_dtype = DType::f16},
                                      ArenaOptions{.copy_dtype = DType::bf16, .split = true}}) {
    ParameterArena here(ParameterLayout(odd_model()), options, {});
    ParameterArena there(ParameterLayout(odd_model()), options, stream);
    initialise(here, 7);
    initialise(there, 7);
    for (int plane = 0; plane < kPlanes; ++plane) {
      if (here.bytes(static_cast<Plane>(plane)) == 0) continue;
      EXPECT_TRUE(bytes_of(here, static_cast<Plane>(plane)) == bytes_of(there, static_cast<Plane>(plane)))
          << to_string(static_cast<Plane>(plane));
    }
  }
}

TEST_F(GpuArena, WritesTheFileThatTheCpusWritesAndReadsIt) {
  const test::TemporaryFolder folder;
  ParameterArena here(ParameterLayout(odd_model()), {}, {});
  ParameterArena there(ParameterLayout(odd_model()), {.copy_dtype = DType::bf16}, stream);
  initialise(here, 7);
  initialise(there, 7);
  test::save_weights(here, folder / "here");
  test::save_weights(there, folder / "there");
  EXPECT_TRUE(test::bytes_of(folder / "here") == test::bytes_of(folder / "there"));
  ParameterArena back(ParameterLayout(odd_model()), {.copy_dtype = DType::bf16}, stream);
  test::load_weights(back, folder / "here");
  EXPECT_TRUE(bytes_of(back, Plane::weight) == bytes_of(there, Plane::weight));
  EXPECT_TRUE(bytes_of(back, Plane::copy) == bytes_of(there, Plane::copy));
}

TEST_F(GpuArena, InHalvesReadsAndWritesWhatAWholeOneDoes) {
  const test::TemporaryFolder folder;
  ParameterArena here(ParameterLayout(odd_model()), {}, {});
  ParameterArena there(ParameterLayout(odd_model()), {.copy_dtype = DType::bf16, .split = true}, stream);
  initialise(here, 7);
  test::save_weights(here, folder / "here");
  test::load_weights(there, folder / "here");
  test::save_weights(there, folder / "there");
  EXPECT_TRUE(test::bytes_of(folder / "here") == test::bytes_of(folder / "there"));
  const int norm = there.layout().layer(1).ln2;
  const std::vector<double> gain{0.1, -3, 1e-30};
  there.write(Plane::weight, norm, 5, ConstTensorView(gain.data(), DType::f64, {3}));
  EXPECT_EQ(values_of(there.weights(norm), stream), there.read(Plane::weight, norm));
}

TEST_F(GpuArena, IsAccountedOnItsDeviceAndComesBack) {
  device::MemoryLog& log = device::MemoryLog::of(kGpu);
  const std::int64_t before = log.live_bytes();
  {
    const ParameterArena arena(ParameterLayout(odd_model()), {.copy_dtype = DType::bf16}, stream);
    EXPECT_EQ(log.live_bytes() - before, static_cast<std::int64_t>(arena.bytes()));
  }
  EXPECT_EQ(log.live_bytes(), before);
}

}  // namespace
}  // namespace syslab::model
