// The C interface on a GPU's tensors: what it computes there, and what it says of labels that are not true.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "capi/syslab.h"
#include "device/cuda/graph.hpp"
#include "tests/capi/c_tensor.hpp"
#include "tests/device/gpu_fixture.hpp"

namespace syslab::capi {
namespace {

constexpr std::int64_t kBatch = 2, kSeq = 65, kDim = 16;

// One forward call's tensors, on the host and, copied, on the GPU.
class GpuCapi : public device::GpuTest {
 protected:
  struct There {
    device::Buffer memory;
    DLTensor tensor{};
  };

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    q.randomize(1), k.randomize(2), v.randomize(3);
    std::size_t at = 0;
    for (CTensor* here : {&q, &k, &v, &out, &lse}) {
      There& there = on_gpu[at++];
      there.memory = to_gpu(here->bytes());
      there.tensor = here->tensor;
      there.tensor.data = there.memory.data();
      there.tensor.device = {kDLCUDA, 0};
    }
  }

  int forward() { return forward(nullptr); }
  int forward(const syslab_attention_options* options) {
    return syslab_attention_forward(&on_gpu[0].tensor, &on_gpu[1].tensor, &on_gpu[2].tensor, &on_gpu[3].tensor,
                                    &on_gpu[4].tensor, options, stream.handle);
  }

  void expect_right() {
    ASSERT_EQ(syslab_attention_forward(q.get(), k.get(), v.get(), out.get(), lse.get(), nullptr, nullptr), SYSLAB_OK);
    const std::vector<double> wanted = out.values();
    device::copy_now(out.bytes().data(), on_gpu[3].memory.data(), out.bytes().size(), stream);
    const std::vector<double> found = out.values();
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-4) << i;
  }

  void expect_refusal(const std::string& said) {
    EXPECT_EQ(forward(), SYSLAB_ERROR_USAGE);
    EXPECT_NE(std::string(syslab_last_error()).find(said), std::string::npos) << syslab_last_error();
  }

  CTensor q{DType::f32, {kBatch, kSeq, kDim}}, k{DType::f32, {kBatch, kSeq, kDim}}, v{DType::f32, {kBatch, kSeq, kDim}},
      out{DType::f32, {kBatch, kSeq, kDim}}, lse{DType::f32, {kBatch, kSeq}};
  std::array<There, 5> on_gpu;
};

TEST_F(GpuCapi, ForwardThereIsForwardHere) {
  ASSERT_EQ(forward(), SYSLAB_OK) << syslab_last_error();
  device::synchronize(stream);
  expect_right();
}

TEST_F(GpuCapi, HostMemoryLabelledAsAGpusIsRefusedByName) {
  on_gpu[1].tensor.data = k.bytes().data();
  expect_refusal("k is labelled as memory of GPU 0 (DLPack type 2) and lies in memory of the CPU");
}

TEST_F(GpuCapi, AGpusMemoryLabelledAsTheHostsIsRefusedByName) {
  for (There& there : on_gpu) there.tensor.device = {kDLCPU, 0};
  expect_refusal("q is labelled as memory of the CPU (DLPack type 1) and lies in memory of GPU 0");
}

TEST_F(GpuCapi, AGpuThatIsNotThereIsRefused) {
  for (There& there : on_gpu) there.tensor.device = {kDLCUDA, 99};
  expect_refusal("the tensors lie on GPU 99");
}

TEST_F(GpuCapi, AWorkspaceOfTheHostIsRefused) {
  syslab_attention_options options{};
  options.struct_size = sizeof options;
  options.implementation = "naive_cuda";
  std::size_t bytes = 0;
  ASSERT_EQ(syslab_attention_workspace(&on_gpu[0].tensor, &on_gpu[1].tensor, &on_gpu[2].tensor, 0, &options, &bytes),
            SYSLAB_OK)
      << syslab_last_error();
  ASSERT_GT(bytes, 0U);
  const device::Buffer here(bytes, "workspace");
  options.workspace = here.data();
  options.workspace_bytes = bytes;
  EXPECT_EQ(forward(&options), SYSLAB_ERROR_USAGE);
  EXPECT_NE(std::string(syslab_last_error()).find("the workspace lies in memory of the CPU"), std::string::npos)
      << syslab_last_error();
}

// Asking where memory lies must not break a capture.
TEST_F(GpuCapi, ACallIsCapturedAndReplayed) {
  syslab_attention_options options{};
  options.struct_size = sizeof options;
  std::size_t bytes = 0;
  ASSERT_EQ(syslab_attention_workspace(&on_gpu[0].tensor, &on_gpu[1].tensor, &on_gpu[2].tensor, 0, &options, &bytes),
            SYSLAB_OK);
  const device::Buffer workspace(std::max<std::size_t>(bytes, 256), "workspace", stream);
  options.workspace = workspace.data();
  options.workspace_bytes = workspace.bytes();
  ASSERT_EQ(forward(&options), SYSLAB_OK) << syslab_last_error();  // loads modules
  device::fill_bytes(on_gpu[3].memory.data(), 0xff, on_gpu[3].memory.bytes(), stream);
  int status = -1;
  const device::Capture captured = device::capture(stream, [&] { status = forward(&options); });
  ASSERT_EQ(status, SYSLAB_OK) << syslab_last_error();
  ASSERT_TRUE(captured.graph) << captured.why;
  captured.graph->replay(stream);
  device::synchronize(stream);
  expect_right();
}

}  // namespace
}  // namespace syslab::capi
