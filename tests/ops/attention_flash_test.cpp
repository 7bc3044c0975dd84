// What is particular to flash_tiled: its instruction sets, its own exponential, its memory.
#include "ops/attention/tiled/flash_tiled.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "attention_fixture.hpp"
#include "core/process/own_memory.hpp"
#include "device/parallel.hpp"
#include "ops/attention/error_bound.hpp"

namespace syslab::attention {
namespace {

// The rung as it would be on a processor with this instruction set only, in a workspace full of NaN: what is not
// written before it is read shows.
Rung rung_of(const FlashKernels& kernels) {
  Rung rung = find_rung("flash_tiled");
  auto in_nan_workspace = [](std::size_t bytes, auto call) {
    const device::Buffer memory(bytes, "test workspace");
    std::memset(memory.data(), 0xff, bytes);
    call(ops::Workspace{memory.data(), bytes});
  };
  rung.forward = [&kernels, in_nan_workspace](const Problem& p, const ForwardArgs& args, ops::Workspace,
                                              device::Stream) {
    in_nan_workspace(flash_forward_workspace(kernels, p),
                     [&](ops::Workspace workspace) { flash_forward(kernels, p, args, workspace); });
  };
  rung.backward = [&kernels, in_nan_workspace](const Problem& p, const BackwardArgs& args, ops::Workspace,
                                               device::Stream) {
    in_nan_workspace(flash_backward_workspace(kernels, p),
                     [&](ops::Workspace workspace) { flash_backward(kernels, p, args, workspace); });
  };
  return rung;
}

class EveryInstructionSet : public testing::TestWithParam<const FlashKernels*> {
 protected:
  const FlashKernels& kernels_ = *GetParam();
};

TEST_P(EveryInstructionSet, IsRightAroundItsOwnTileEdges) {
  const Rung rung = rung_of(kernels_);
  const std::int64_t rows = kernels_.rows, lanes = kernels_.lanes, strip = kernels_.strip;
  std::uint64_t seed = 300;
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (const std::int64_t seq_q : {rows - 1, rows + 1, kTaskRows, kTaskRows + 1, kTile + 1}) {
      for (const std::int64_t seq_k : {lanes - 1, strip, strip + 1, kTaskRows + 1, kTile, 2 * kTile + 1}) {
        const Problem problem{
            .heads_q = 2, .heads_kv = 1, .seq_q = seq_q, .seq_k = seq_k, .head_dim = lanes + 1, .mask = mask};
        SCOPED_TRACE(to_string(problem));
        Tensors tensors(problem, ++seed);
        tensors.run_forward(rung);
        tensors.check_forward();
        tensors.run_backward(rung);
        tensors.check_backward();
      }
    }
  }
}

TEST_P(EveryInstructionSet, IsRightForEveryHeadDimAndDtype) {
  const Rung rung = rung_of(kernels_);
  for (const DType dtype : rung.dtypes) {
    for (const std::int64_t head_dim : {1, 3, 4, 5, 8, 15, 16, 17, 32, 33, 47, 64, 100, 128, 250, 256}) {
      const Problem problem{.seq_q = 50, .seq_k = 70, .head_dim = head_dim, .mask = Mask::bottom_right, .dtype = dtype};
      SCOPED_TRACE(to_string(problem));
      Tensors tensors(problem, static_cast<std::uint64_t>(head_dim));
      tensors.run_forward(rung);
      tensors.check_forward();
      tensors.run_backward(rung);
      tensors.check_backward();
    }
  }
}

TEST_P(EveryInstructionSet, ExponentialStaysWithinItsStatedError) {
  constexpr std::int64_t kCount = 1 << 20;
  std::vector<float> values(kCount), found;
  for (std::int64_t i = 0; i < kCount; ++i) {
    values[static_cast<std::size_t>(i)] = -126.0F + 253.9F * static_cast<float>(i) / kCount;
  }
  found = values;
  kernels_.exp2(found.data(), kCount);
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double exact = std::exp2(static_cast<double>(values[i]));
    worst = std::max(worst, std::abs(found[i] / exact - 1));
  }
  RecordProperty("worst_units", fmt::format("{:.3g}", worst * 0x1p24));
  EXPECT_LE(worst, kFunctionUlps * 0x1p-24);
  EXPECT_GE(worst, 1.0 * 0x1p-24) << "better than degree 5 can be: is this the function that kernels use?";
}

TEST_P(EveryInstructionSet, ExponentialIsExactWhereItMustBe) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(16, 0.0F);
  values[1] = -kInfinity;
  values[2] = -1e30F;
  values[3] = -127.0F;
  values[4] = 128.0F;
  values[5] = kInfinity;
  values[6] = 10.0F;
  values[7] = -126.0F;
  kernels_.exp2(values.data(), 16);
  EXPECT_EQ(values[0], 1.0F);
  EXPECT_EQ(values[1], 0.0F);
  EXPECT_EQ(values[2], 0.0F);
  EXPECT_EQ(values[3], 0.0F);
  EXPECT_EQ(values[4], kInfinity);
  EXPECT_EQ(values[5], kInfinity);
  EXPECT_EQ(values[6], 1024.0F);
  EXPECT_EQ(values[7], 0x1p-126F);
}

INSTANTIATE_TEST_SUITE_P(Flash, EveryInstructionSet, testing::ValuesIn(flash_kernels().begin(), flash_kernels().end()),
                         [](const auto& info) { return std::string(info.param->name); });

std::string bits_of(const TensorView& view) {
  const std::vector<double> values = to_doubles(view);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

TEST(FlashForward, CausalRowsIgnoreLaterKeys) {
  const Problem problem{.seq_q = 200, .seq_k = 200, .head_dim = 16, .mask = Mask::top_left};
  Tensors before(problem, 9), after(problem, 9);
  auto* k = after.k().view().as<float>();
  auto* v = after.v().view().as<float>();
  constexpr std::int64_t kChanged = 150;
  for (std::int64_t i = kChanged * 16; i < 200 * 16; ++i) k[i] = v[i] = 1e30F;
  before.run_forward(find_rung("flash_tiled"));
  after.run_forward(find_rung("flash_tiled"));
  const std::string first = bits_of(before.out().view()), second = bits_of(after.out().view());
  constexpr std::size_t kSame = kChanged * 16 * sizeof(double);
  EXPECT_EQ(first.substr(0, kSame), second.substr(0, kSame));
  EXPECT_NE(first.substr(kSame), second.substr(kSame));
}

TEST(FlashForward, PassesANanOnToTheRowsThatReadIt) {
  const Problem problem{.seq_q = 40, .seq_k = 40, .head_dim = 8, .mask = Mask::top_left};
  Tensors tensors(problem, 4);
  tensors.v().view().as<float>()[20 * 8] = std::numeric_limits<float>::quiet_NaN();
  tensors.run_forward(find_rung("flash_tiled"));
  const auto out = to_doubles(tensors.out().view());
  // Rows of the same panel multiply it by a weight of 0, which a NaN survives; earlier panels never meet it.
  for (std::size_t row = 20; row < 40; ++row) EXPECT_TRUE(std::isnan(out[row * 8])) << row;
  for (std::size_t row = 0; row < 20 - kMaxRows; ++row) EXPECT_FALSE(std::isnan(out[row * 8])) << row;
}

// --- memory ---------------------------------------------------------------------------------------------------------

constexpr Problem long_problem(std::int64_t seq) {
  return {.seq_q = seq, .seq_k = seq, .head_dim = 16, .mask = Mask::top_left};
}

TEST(FlashMemory, WorkspaceGrowsWithTheSequenceNotItsSquare) {
  const Rung& rung = find_rung("flash_tiled");
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const auto bytes = [&](std::int64_t seq) {
      return static_cast<double>(rung.workspace_bytes(long_problem(seq), pass));
    };
    EXPECT_LE(bytes(65536) / bytes(32768), 2.05);
    // At most 4 packed copies of what Q, K, V and dO hold, and two floats a row.
    EXPECT_LE(bytes(65536), 1.1 * 65536 * (4 * 16 + 2) * 4 + 4e6);
  }
}

TEST(FlashMemory, TakesWhatItSaysAndGivesItBack) {
  const Rung& rung = find_rung("flash_tiled");
  const Problem problem = long_problem(500);
  Tensors tensors(problem, 8);
  auto& log = device::MemoryLog::global();
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const std::int64_t before = log.live_bytes();
    log.reset_peak();
    pass == Pass::forward ? tensors.run_forward(rung) : tensors.run_backward(rung);
    EXPECT_EQ(log.live_bytes(), before);
    EXPECT_EQ(log.peak_bytes() - before, static_cast<std::int64_t>(rung.workspace_bytes(problem, pass)));
  }
}

TEST(FlashMemory, ResidentPeakStaysFarBelowTheMatrixOfScores) {
  constexpr std::int64_t kSeq = 8192;
  Tensors tensors(long_problem(kSeq), 8);
  // Where a kernel does not put the peak back, it is an earlier test's: this one must not raise it by more all the
  // same.
  reset_memory_peak();
  const auto bytes_of = [](const char* field) { return static_cast<std::int64_t>(own_memory(field).value_or(0)); };
  const std::int64_t peak_before = bytes_of("VmHWM"), resident = bytes_of("VmRSS");
  ASSERT_GT(resident, 0) << "no /proc/self/status";
  tensors.run_forward(find_rung("flash_tiled"));
  tensors.run_backward(find_rung("flash_tiled"));
  const std::int64_t peak = bytes_of("VmHWM");
  RecordProperty("grown_bytes", std::to_string(peak - peak_before));
  constexpr std::int64_t kScores = kSeq * kSeq * 4;
  EXPECT_LT(peak, std::max(peak_before, resident + kScores / 16));
}

}  // namespace
}  // namespace syslab::attention
