// The rungs `eager_cuda` on a GPU: captured in a graph, whose nodes are the kernels that were counted, replayed, and
// held against the oracles. The lists of operations themselves are proved on the CPU (framework_test.cpp).
#include <deque>
#include <functional>
#include <memory>

#include "device/cuda/graph.hpp"
#include "device/cuda/graph_memory.hpp"
#include "ops/adamw/eager.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "tests/ops/adamw_fixture.hpp"
#include "tests/ops/eager_fixture.hpp"

namespace syslab::framework {
namespace {

using ops::Tensor;

class GpuEager : public device::GpuTest {
 protected:
  // A view of the tensor's twin on the GPU, made at the first call, which waits. fetch() brings all twins back.
  TensorView there(Tensor& tensor) {
    for (Twin& twin : twins_) {
      if (twin.tensor == &tensor) return TensorView(twin.memory.data(), tensor.dtype, tensor.shape, tensor.strides);
    }
    twins_.push_back({&tensor, to_gpu(tensor.bytes)});
    return TensorView(twins_.back().memory.data(), tensor.dtype, tensor.shape, tensor.strides);
  }
  // The same of a view into a tensor.
  TensorView there(Tensor& tensor, const TensorView& part) {
    const auto offset = static_cast<std::byte*>(part.data) - tensor.bytes.data();
    return TensorView(static_cast<std::byte*>(there(tensor).data) + offset, part.dtype, part.shape, part.strides);
  }
  void fetch() {
    for (Twin& twin : twins_) twin.tensor->bytes = to_host<std::byte>(twin.memory);
    twins_.clear();
  }

  // Captures the work, with memory lent where it takes its own, and replays it once. Its kernels were counted.
  Launches run(const std::function<void()>& work) {
    const Launches before = launches();
    const device::Capture captured = device::capture(stream, work, std::make_shared<device::GraphMemory>(kGpu));
    const Launches found = launches() - before;
    EXPECT_TRUE(captured.graph) << captured.why;
    if (!captured.graph) return found;
    EXPECT_EQ(static_cast<std::int64_t>(captured.graph->nodes()), found.all);
    captured.graph->replay(stream);
    device::synchronize(stream);
    return found;
  }

  struct Twin {
    Tensor* tensor;
    device::Buffer memory;
  };
  std::deque<Twin> twins_;
};

TEST_F(GpuEager, RmsNormIsRightInAsManyKernelsAsAFramework) {
  const rms_norm::Rung& rung = rms_norm::find_rung("eager_cuda");
  for (const auto& [x, y] : {std::pair(DType::f32, DType::f32), std::pair(DType::f32, DType::bf16),
                             std::pair(DType::bf16, DType::bf16), std::pair(DType::f16, DType::f16)}) {
    for (const std::int64_t gap : {0, 3}) {
      for (const bool add : {false, true}) {
        rms_norm::Problem p = rms_norm::problem_of(x, 130, 768, add);
        p.y_dtype = y;
        rms_norm::Instance i(p, 1, gap);
        SCOPED_TRACE(rms_norm::to_string(p));
        const device::Buffer memory(rung.workspace_bytes(p, Pass::backward), "workspace", stream);
        const ops::Workspace workspace{memory.data(), memory.bytes()};
        const TensorView none;
        const rms_norm::ForwardArgs forward{
            there(i.x), add ? there(i.delta) : none, there(i.w), add ? there(i.h) : none, there(i.y), there(i.rstd)};
        const rms_norm::BackwardArgs backward{there(i.dy), there(i.kept()), there(i.w), there(i.rstd),
                                              there(i.dh), there(i.dx),     there(i.dw)};
        const Launches found = run([&] {
          rung.forward(p, forward, workspace, stream);
          rung.backward(p, backward, workspace, stream);
        });
        fetch();
        EXPECT_EQ(found.of_framework(),
                  rms_norm::eager_kernels(p, Pass::forward) + rms_norm::eager_kernels(p, Pass::backward, true));
        EXPECT_LE(worst(i), 1);
        EXPECT_TRUE(i.y.gaps_are_untouched() && i.dx.gaps_are_untouched());
      }
    }
  }
}

TEST_F(GpuEager, SwigluIsRightInAsManyKernelsAsAFramework) {
  const swiglu::Rung& rung = swiglu::find_rung("eager_cuda");
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t dim : {1000, 333}) {
      const swiglu::Problem p{.rows = 70, .dim = dim, .dtype = dtype};
      swiglu::Instance i(p);
      SCOPED_TRACE(swiglu::to_string(p));
      const device::Buffer memory(rung.workspace_bytes(p, Pass::backward), "workspace", stream);
      const ops::Workspace workspace{memory.data(), memory.bytes()};
      const TensorView gate = there(i.both, i.half(0)), up = there(i.both, i.half(1));
      const swiglu::ForwardArgs forward{gate, up, there(i.out)};
      const swiglu::BackwardArgs backward{gate, up, there(i.dout), there(i.dgate), there(i.dup), there(i.again)};
      const Launches found = run([&] {
        rung.forward(p, forward, workspace, stream);
        rung.backward(p, backward, workspace, stream);
      });
      fetch();
      EXPECT_EQ(found.of_framework(), swiglu::eager_kernels(Pass::forward) + swiglu::eager_kernels(Pass::backward));
      EXPECT_LE(worst(i), 1);
    }
  }
}

TEST_F(GpuEager, RopeIsRightInAsManyKernelsAsAFramework) {
  const rope::Rung& rung = rope::find_rung("eager_cuda");
  for (const rope::Layout layout : {rope::Layout::interleaved, rope::Layout::halves}) {
    for (const auto& [x, y] : {std::pair(DType::f32, DType::f32), std::pair(DType::bf16, DType::f32),
                               std::pair(DType::bf16, DType::bf16), std::pair(DType::f16, DType::f16)}) {
      const rope::Problem p{
          .batch = 2, .heads = 6, .seq = 33, .head_dim = 64, .layout = layout, .x_dtype = x, .y_dtype = y};
      rope::Instance i(p, rope::fused_strides(p));
      SCOPED_TRACE(rope::to_string(p));
      const device::Buffer memory(rung.workspace_bytes(p, Pass::backward), "workspace", stream);
      const ops::Workspace workspace{memory.data(), memory.bytes()};
      const rope::Args forward{there(i.x), there(i.cos), there(i.sin), there(i.y)},
          backward{there(i.dy), there(i.cos), there(i.sin), there(i.dx)};
      const Launches found = run([&] {
        rung.forward(p, forward, workspace, stream);
        rung.backward(p, backward, workspace, stream);
      });
      fetch();
      EXPECT_EQ(found,
                (Launches{.all = rope::eager_kernels(p, Pass::forward) + rope::eager_kernels(p, Pass::backward)}));
      EXPECT_LE(worst(i), 1);
      EXPECT_TRUE(i.y.gaps_are_untouched() && i.dx.gaps_are_untouched());
    }
  }
}

TEST_F(GpuEager, CrossEntropyIsRightInAsManyKernelsAsAFramework) {
  const cross_entropy::Rung& rung = cross_entropy::find_rung("eager_cuda");
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t classes : {10000, 101}) {
      const cross_entropy::Problem p{.rows = 24, .classes = classes, .dtype = dtype};
      cross_entropy::Instance i(p);
      SCOPED_TRACE(to_string(p));
      const device::Buffer memory(rung.workspace_bytes(p, Pass::both), "workspace", stream);
      const ops::Workspace workspace{memory.data(), memory.bytes()};
      const device::Buffer targets = to_gpu(i.targets);
      const cross_entropy::ForwardBackwardArgs args{
          there(i.logits), targets.as<std::int64_t>(), there(i.scale), there(i.row_loss), there(i.lse), there(i.loss),
          there(i.dlogits)};
      const Launches found = run([&] { rung.forward_backward(p, args, workspace, stream); });
      const Launches backward = run([&] {
        rung.backward(p, {args.logits, args.targets, args.lse, args.scale, args.dlogits}, workspace, stream);
      });
      fetch();
      EXPECT_EQ(found.of_framework(), cross_entropy::eager_kernels(p, Pass::both));
      EXPECT_EQ(backward.of_framework(), cross_entropy::eager_kernels(p, Pass::backward));
      EXPECT_LE(worst(i), 1);
    }
  }
}

TEST_F(GpuEager, AdamwIsRightInAsManyKernelsAsAFramework) {
  const adamw::Rung& rung = adamw::find_rung("eager_cuda");
  for (const std::int64_t elements : {std::int64_t{1003}, adamw::kEagerPiece + 77}) {
    const adamw::Problem p{.elements = elements, .copy_dtype = DType::bf16};
    adamw::Instance i(p, adamw::variants()[elements % 4]);
    const adamw::Oracle exact = i.expected();
    const device::Buffer scalars = to_gpu(std::vector<adamw::Scalars>{i.scalars}),
                         clip = to_gpu(std::vector<float>{i.clip}), count = to_gpu(std::vector<std::int64_t>{0});
    const adamw::Args args{there(i.p),       there(i.m),
                           there(i.v),       there(i.g),
                           there(i.copy),    scalars.as<adamw::Scalars>(),
                           clip.as<float>(), count.as<std::int64_t>()};
    const Launches found = run([&] { rung.step(p, args, stream); });
    fetch();
    EXPECT_EQ(found.of_framework(), adamw::eager_kernels(p));
    EXPECT_LE(i.worst(exact), 1);
  }
}

}  // namespace
}  // namespace syslab::framework
