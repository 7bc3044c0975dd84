// What is particular to flash_mma's backward passes; that they are right at all stands in gpu_attention_rungs_test.cpp.
#include <fmt/format.h>

#include "device/cuda/graph.hpp"
#include "device/properties.hpp"
#include "ops/attention/mma/backward.hpp"
#include "ops/attention/mma/backward_plan.hpp"
#include "tests/ops/gpu_attention_fixture.hpp"

namespace syslab::attention {
namespace {

class FlashMmaBackward : public device::GpuTest {
 protected:
  void expect_right(const Rung& rung, const Problem& problem) {
    SCOPED_TRACE(fmt::format("{} on {}", rung.name, to_string(problem)));
    Tensors tensors(problem, 3);
    tensors.store_exact_forward();
    run_backward_there(rung, tensors, stream);
    tensors.check_backward();
  }
};

const std::vector<std::string_view> kRungs{"flash_mma", "flash_mma_deterministic"};

TEST_F(FlashMmaBackward, PartsOfATileAddUp) {
  for (const std::string_view name : kRungs) {
    for (const std::int64_t head_dim : {32, 64, 128, 256}) {
      const Problem problem{.heads_q = 2,
                            .heads_kv = 1,
                            .seq_q = 700,
                            .seq_k = 640,
                            .head_dim = head_dim,
                            .mask = Mask::top_left,
                            .dtype = DType::bf16};
      const device::DeviceProperties gpu = device::properties(device::place_of(stream));
      const BackwardPlan plan = plan_backward(problem, find_rung(name).deterministic, gpu.multiprocessors,
                                              static_cast<int>(gpu.shared_bytes_per_block));
      ASSERT_GT(plan.keys.parts, 1) << "nothing to add up: choose a problem that is cut";
      expect_right(find_rung(name), problem);
    }
  }
}

TEST_F(FlashMmaBackward, PartsAreAddedUpInTheSameOrderEveryTime) {
  const Rung& rung = find_rung("flash_mma_deterministic");
  const Problem problem{.seq_q = 1500, .seq_k = 1500, .head_dim = 64, .mask = Mask::top_left, .dtype = DType::f16};
  Tensors tensors(problem, 7);
  tensors.store_exact_forward();
  run_backward_there(rung, tensors, stream);
  const std::vector<double> dq = to_doubles(tensors.dq().view()), dk = to_doubles(tensors.dk().view()),
                            dv = to_doubles(tensors.dv().view());
  for (int again = 0; again < 20; ++again) {
    run_backward_there(rung, tensors, stream);
    EXPECT_EQ(to_doubles(tensors.dq().view()), dq);
    EXPECT_EQ(to_doubles(tensors.dk().view()), dk);
    EXPECT_EQ(to_doubles(tensors.dv().view()), dv);
  }
}

TEST_F(FlashMmaBackward, RowsThatSeeNothingGiveNothing) {
  for (const std::string_view name : kRungs) {  // the first 90 queries see no key
    expect_right(find_rung(name),
                 {.seq_q = 130, .seq_k = 40, .head_dim = 64, .mask = Mask::bottom_right, .dtype = DType::bf16});
  }
}

TEST_F(FlashMmaBackward, SaysWhichTensorIsMisaligned) {
  const Problem problem{.seq_q = 64, .seq_k = 64, .head_dim = 64, .dtype = DType::bf16};
  Tensors tensors(problem, 1);
  const BackwardArgs host = tensors.backward();
  const Mirror mirror(host.q, stream);
  BackwardArgs there = host;  // refused before anything is read
  for (ConstTensorView* view : {&there.q, &there.k, &there.v, &there.out, &there.dout}) *view = mirror.view();
  for (TensorView* view : {&there.dq, &there.dk, &there.dv}) *view = mirror.view();
  there.dv.data = static_cast<std::byte*>(there.dv.data) + 2;
  try {
    flash_mma_backward(problem, there, {}, stream);
    FAIL() << "a misaligned dv was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("dv begins at address"), std::string::npos) << error.what();
  }
}

// One head, so that gradients are made in parts, which lie in the workspace.
const Problem kCut{.seq_q = 900, .seq_k = 900, .head_dim = 64, .mask = Mask::top_left, .dtype = DType::bf16};

TEST_F(FlashMmaBackward, TakesItsOwnMemoryWhenTheWorkspaceIsTooSmall) {
  for (const std::string_view name : kRungs) {
    SCOPED_TRACE(name);
    const Rung& rung = find_rung(name);
    const std::vector<char> pattern(rung.workspace_bytes(kCut, Pass::backward) / 2, 'x');
    const device::Buffer small = to_gpu(pattern);
    Tensors tensors(kCut, 11);
    tensors.store_exact_forward();
    BackwardThere(tensors, stream).run(rung, {small.data(), small.bytes()});
    tensors.check_backward();
    EXPECT_EQ(to_host<char>(small), pattern);
  }
}

TEST_F(FlashMmaBackward, IsRightOnALentWorkspaceAtAnOddAddressAndStaysInIt) {
  for (const std::string_view name : kRungs) {
    SCOPED_TRACE(name);
    const Rung& rung = find_rung(name);
    constexpr std::size_t kBefore = 4, kBehind = 64;
    const std::size_t bytes = rung.workspace_bytes(kCut, Pass::backward);
    const device::Buffer lent = to_gpu(std::vector<char>(kBefore + bytes + kBehind, 'x'));
    Tensors tensors(kCut, 12);
    tensors.store_exact_forward();
    BackwardThere(tensors, stream).run(rung, {lent.as<char>() + kBefore, bytes});
    tensors.check_backward();
    const std::vector<char> after = to_host<char>(lent);
    EXPECT_EQ(std::string(after.begin(), after.begin() + kBefore), std::string(kBefore, 'x'));
    EXPECT_EQ(std::string(after.end() - kBehind, after.end()), std::string(kBehind, 'x'));
    EXPECT_NE(std::string(after.begin() + kBefore, after.end() - kBehind), std::string(bytes, 'x')) << "was not used";
  }
}

TEST_F(FlashMmaBackward, CanBeRecordedInAGraph) {
  for (const std::string_view name : kRungs) {
    SCOPED_TRACE(name);
    const Rung& rung = find_rung(name);
    Tensors tensors(kCut, 13);
    tensors.store_exact_forward();
    BackwardThere there(tensors, stream);
    const device::Buffer lent(rung.workspace_bytes(kCut, Pass::backward), "test", stream);
    const auto call = [&] { rung.backward(kCut, there.args(), {lent.data(), lent.bytes()}, stream); };
    const auto captured = device::capture(stream, call);  // also as the first call of all
    ASSERT_TRUE(captured.graph) << captured.why;
    for (int replay = 0; replay < 5; ++replay) captured.graph->replay(stream);  // dQ's sums begin at zero every time
    there.bring_back();
    tensors.check_backward();
    const auto without = device::capture(stream, [&] { rung.backward(kCut, there.args(), {}, stream); });
    EXPECT_FALSE(without.graph) << "memory of one call in a graph of many";
  }
}

}  // namespace
}  // namespace syslab::attention
