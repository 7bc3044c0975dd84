// Every rung of the ladder that runs on a GPU against the CPU's oracle, on the shapes where tiles end.
#include <fmt/format.h>

#include <cmath>

#include "device/fill_random.hpp"
#include "device/properties.hpp"
#include "ops/attention/autograd.hpp"
#include "ops/attention/operation.hpp"
#include "tests/ops/gpu_attention_fixture.hpp"

namespace syslab::attention {
namespace {

struct RungCase {
  const Rung* rung;
  DType dtype;
};

std::vector<RungCase> cuda_cases() {
  std::vector<RungCase> cases;
  for (const Rung& rung : ladder()) {
    if (rung.device != device::Kind::cuda || !rung.unavailable.empty()) continue;
    for (const DType dtype : rung.dtypes) cases.push_back({&rung, dtype});
  }
  return cases;
}

class EveryCudaRung : public device::GpuTest, public testing::WithParamInterface<RungCase> {
 protected:
  void SetUp() override {
    device::GpuTest::SetUp();
    if (testing::Test::IsSkipped()) return;
    const int sm = device::properties(device::place_of(stream)).sm;
    if (sm < rung_.minimum_sm || (rung_.maximum_sm != 0 && sm > rung_.maximum_sm))
      GTEST_SKIP() << rung_.name << " needs another GPU than one of " << sm / 10 << "." << sm % 10;
  }

  const Rung& rung_ = *GetParam().rung;
  DType dtype_ = GetParam().dtype;

  void expect_right(Problem problem, float input_scale = 1.0F, Layout layout = Layout::heads_outer) {
    problem.dtype = dtype_;
    problem.tf32 = rung_.tf32;
    if (rung_.supports(problem, Pass::forward)) return;
    SCOPED_TRACE(fmt::format("{} on {}, inputs × {}", rung_.name, to_string(problem), input_scale));
    Tensors tensors(problem, 1, input_scale, layout);
    run_forward_there(rung_, tensors, stream);
    if (dtype_ == DType::f64) return expect_as_the_cpus_reference(tensors);
    tensors.check_forward();
    if (rung_.supports(problem, Pass::backward)) return;
    tensors.store_exact_forward();
    run_backward_there(rung_, tensors, stream);
    tensors.check_backward();
  }

  static void expect_near(check::GuardedTensor& found, check::GuardedTensor& wanted) {
    const std::vector<double> a = to_doubles(found.view()), b = to_doubles(wanted.view());
    double largest = 0;
    for (const double value : b) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;  // infinities as well
      ASSERT_NEAR(a[i], b[i], 1e-11 * (1 + largest)) << found.spec().name << " " << i;
    }
  }
  // In fp64 the oracle itself rounds: the CPU's reference is the measure, to a few thousand units.
  void expect_as_the_cpus_reference(Tensors& tensors) {
    Tensors wanted(tensors.problem(), 1);
    wanted.run_forward(find_rung("reference"));
    expect_near(tensors.out(), wanted.out());
    expect_near(tensors.lse(), wanted.lse());
    wanted.run_backward(find_rung("reference"));
    run_backward_there(rung_, tensors, stream);
    expect_near(tensors.dq(), wanted.dq());
    expect_near(tensors.dk(), wanted.dk());
    expect_near(tensors.dv(), wanted.dv());
  }
};

TEST_P(EveryCudaRung, MeetsTheOracleUnderEveryMask) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    expect_right({.batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 96, .seq_k = 96, .head_dim = 32, .mask = mask});
    expect_right({.heads_q = 2, .heads_kv = 1, .seq_q = 130, .seq_k = 77, .head_dim = 64, .mask = mask});
    expect_right({.heads_q = 3, .heads_kv = 3, .seq_q = 65, .seq_k = 200, .head_dim = 128, .mask = mask});
  }
}

TEST_P(EveryCudaRung, MeetsTheOracleAtOddSizes) {
  for (const auto& [seq_q, seq_k] : {std::pair{1, 1}, {1, 7}, {3, 1}, {5, 130}, {129, 33}}) {
    for (const int head_dim : {8, 24, 72, 256}) {
      expect_right({.heads_q = 2, .heads_kv = 2, .seq_q = seq_q, .seq_k = seq_k, .head_dim = head_dim});
    }
  }
}

TEST_P(EveryCudaRung, TakesRowsThatLieApart) {
  if (dtype_ == DType::f64) return;
  const Problem problem{
      .batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 70, .seq_k = 70, .head_dim = 64, .mask = Mask::top_left};
  expect_right(problem, 1.0F, Layout::heads_inner);
}

TEST_P(EveryCudaRung, StaysFiniteWithLargeScores) {
  if (dtype_ == DType::f64) return;
  expect_right({.heads_q = 2, .heads_kv = 2, .seq_q = 80, .seq_k = 80, .head_dim = 64, .mask = Mask::top_left}, 8.0F);
}

TEST_P(EveryCudaRung, GivesTheSameBitsAgainIfItPromisesTo) {
  if (!rung_.deterministic) return;
  const Problem problem{.heads_q = 2, .heads_kv = 1, .seq_q = 100, .seq_k = 150, .head_dim = 64, .dtype = dtype_};
  if (rung_.supports(problem, Pass::forward)) return;
  const bool backward = !rung_.supports(problem, Pass::backward);
  Tensors one(problem, 4), two(problem, 4);
  for (Tensors* tensors : {&one, &two}) {
    run_forward_there(rung_, *tensors, stream);
    if (backward) run_backward_there(rung_, *tensors, stream);
  }
  const auto expect_same = [](check::GuardedTensor& a, check::GuardedTensor& b) {
    EXPECT_EQ(to_doubles(a.view()), to_doubles(b.view())) << a.spec().name;
  };
  expect_same(one.out(), two.out());
  if (!backward) return;
  expect_same(one.dq(), two.dq());
  expect_same(one.dk(), two.dk());
  expect_same(one.dv(), two.dv());
}

INSTANTIATE_TEST_SUITE_P(Ladder, EveryCudaRung, testing::ValuesIn(cuda_cases()), [](const auto& info) {
  return fmt::format("{}_{}", info.param.rung->name, to_string(info.param.dtype));
});

class CudaAutograd : public device::GpuTest {};

// What a framework's autograd does: the backward pass reads what the forward pass left.
TEST_F(CudaAutograd, BackwardReadsWhatForwardKept) {
  for (const char* name : {"naive_cuda", "naive_cuda_literal"}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const AutogradRung& rung = find_autograd_rung(name);
      const Problem p{.batch = 2,
                      .heads_q = 4,
                      .heads_kv = 2,
                      .seq_q = 50,
                      .seq_k = 60,
                      .head_dim = 64,
                      .mask = Mask::bottom_right,
                      .dtype = dtype};
      Tensors tensors(p, 9);
      const BackwardArgs host = tensors.backward();
      const Mirror q(host.q, stream), k(host.k, stream), v(host.v, stream), out(tensors.forward().out, stream),
          lse(tensors.forward().lse, stream), dout(host.dout, stream), dq(host.dq, stream), dk(host.dk, stream),
          dv(host.dv, stream);
      const device::Buffer saved(rung.saved_bytes(p), "saved", stream),
          workspace(std::max(rung.workspace_bytes(p, Pass::forward), rung.workspace_bytes(p, Pass::backward)),
                    "workspace", stream);
      const ops::Workspace kept{saved.data(), saved.bytes()}, scratch{workspace.data(), workspace.bytes()};
      rung.forward(p, {q.view(), k.view(), v.view(), out.view(), lse.view()}, kept, scratch, stream);
      rung.backward(
          p, {q.view(), k.view(), v.view(), out.view(), lse.view(), dout.view(), dq.view(), dk.view(), dv.view()}, kept,
          scratch, stream);
      out.fetch(tensors.forward().out);
      lse.fetch(tensors.forward().lse);
      dq.fetch(host.dq);
      dk.fetch(host.dk);
      dv.fetch(host.dv);
      SCOPED_TRACE(name);
      tensors.check_forward();
      tensors.check_backward();
    }
  }
}

// The journey of a case, without the lab: inputs are made where they are, prepared, called on and compared.
TEST_F(CudaAutograd, OperationsAreJudgedWhereTheirTensorsAre) {
  for (const char* name : {"naive_cuda", "naive_cuda_literal"}) {
    for (const Pass phase : {Pass::forward, Pass::backward, Pass::both}) {
      SCOPED_TRACE(fmt::format("{} {}", name, to_string(phase)));
      const Problem p{.batch = 2,
                      .heads_q = 4,
                      .heads_kv = 2,
                      .seq_q = 90,
                      .seq_k = 90,
                      .head_dim = 32,
                      .mask = Mask::top_left,
                      .dtype = DType::bf16};
      const Operation operation = attention::operation(p, phase, find_autograd_rung(name), 3);
      ASSERT_TRUE(operation.expect_there);
      std::vector<device::Buffer> memory;
      const auto make = [&](const TensorSpec& spec, std::uint64_t seed) {
        memory.emplace_back(spec.bytes(), spec.name, stream);
        const TensorView view(memory.back().data(), spec.dtype, spec.shape);
        device::fill_random(view, RandomStream(seed), Distribution::normal, 1.0F, 0, stream);
        return view;
      };
      std::vector<TensorView> inputs, outputs;
      for (const TensorSpec& spec : operation.inputs) inputs.push_back(make(spec, inputs.size() + 1));
      for (const TensorSpec& spec : operation.outputs) outputs.push_back(make(spec, 77));
      if (operation.prepare) operation.prepare(inputs, stream);
      const Inputs read(inputs.begin(), inputs.end());
      operation.call(read, outputs, stream);
      const std::vector<Expected> expected = operation.expect_there(read, stream);
      ASSERT_EQ(expected.size(), outputs.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const Expected& one = expected[i];
        EXPECT_EQ(one.there.tolerances, outputs[i].elements());
        const check::Comparison found = check::compare_there(outputs[i], one.there, stream);
        EXPECT_TRUE(found.passed) << found.describe(operation.outputs[i].name);
        EXPECT_EQ(found.compared, outputs[i].elements());
      }
    }
  }
}

TEST(CudaAutogradMemory, CountsWhatTheHandOutCounts) {
  const Problem p{.batch = 8, .seq_q = 16384, .seq_k = 16384, .head_dim = 64};
  const double gib = 0x1p30, rows = 8 * 16384 * 4;
  EXPECT_EQ(static_cast<double>(find_autograd_rung("naive_cuda_literal").saved_bytes(p)), 16 * gib + rows);
  EXPECT_EQ(static_cast<double>(find_autograd_rung("naive_cuda").saved_bytes(p)), 8 * gib);
  EXPECT_EQ(static_cast<double>(find_autograd_rung("naive_cuda_literal").workspace_bytes(p, Pass::backward)),
            32 * gib + rows);
}

}  // namespace
}  // namespace syslab::attention
