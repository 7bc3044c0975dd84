// naive_cuda as the yardstick of kernels in half precision: it is given what they are given, and reads it.
#include <fmt/format.h>

#include <cmath>

#include "device/fill_random.hpp"
#include "ops/attention/operation.hpp"
#include "tests/ops/gpu_attention_fixture.hpp"

namespace syslab::attention {
namespace {

class NaiveCuda : public device::GpuTest {};

// O and L that no forward pass has made: the gradients are those of P = exp(S − L) and δ = Σ O·dO all the same.
TEST_F(NaiveCuda, BackwardTakesOAndLAsTheyAreGiven) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Problem problem{.batch = 2,
                          .heads_q = 4,
                          .heads_kv = 2,
                          .seq_q = 70,
                          .seq_k = 90,
                          .head_dim = 32,
                          .mask = Mask::bottom_right,
                          .dtype = dtype};
    SCOPED_TRACE(to_string(problem));
    Tensors tensors(problem, 31), wanted(problem, 31);
    for (Tensors* each : {&tensors, &wanted}) {
      each->store_exact_forward();
      std::vector<double> out = to_doubles(each->out().view()), lse = to_doubles(each->lse().view());
      for (double& value : out) value = 1.5 * value + 0.25;
      for (double& value : lse) value += 0.5;
      Tensors::store(each->out().view(), out);
      Tensors::store(each->lse().view(), lse);
    }
    run_backward_there(find_rung("naive_cuda"), tensors, stream);
    wanted.run_backward(find_rung("naive"));
    const double unit = dtype == DType::f32 ? 1e-6 : dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
    const auto expect_near = [&](check::GuardedTensor& found, check::GuardedTensor& expected) {
      const std::vector<double> a = to_doubles(found.view()), b = to_doubles(expected.view());
      double largest = 0;
      for (const double value : b) largest = std::max(largest, std::abs(value));
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_NEAR(a[i], b[i], 8 * unit * largest) << found.spec().name << " " << i;
      }
      EXPECT_EQ(found.violation(), std::nullopt);
    };
    expect_near(tensors.dq(), wanted.dq());
    expect_near(tensors.dk(), wanted.dk());
    expect_near(tensors.dv(), wanted.dv());
  }
}

class Yardstick : public device::GpuTest {
 protected:
  // Largest error of each output.
  static std::vector<double> errors(const Outputs& outputs, const std::vector<Expected>& expected,
                                    device::Stream stream) {
    std::vector<double> worst;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto count = static_cast<std::size_t>(outputs[i].elements());
      std::vector<double> wanted(count);
      std::vector<std::byte> found(count * size_of(outputs[i].dtype));
      device::copy_now(wanted.data(), expected[i].there.value, count * sizeof(double), stream);
      device::copy_now(found.data(), outputs[i].data, found.size(), stream);
      const std::vector<double> values = to_doubles(ConstTensorView(found.data(), outputs[i].dtype, outputs[i].shape));
      double largest = 0;
      for (std::size_t n = 0; n < count; ++n) {
        if (!std::isnan(wanted[n])) largest = std::max(largest, std::abs(values[n] - wanted[n]));
      }
      worst.push_back(largest);
    }
    return worst;
  }
};

// What the lab asks of every case in half precision, where it is hardest: causal rows that see few keys have weights
// that are large, and δ from a rounded O errs as much as these allow. A yardstick with a δ of its own is exact where a
// row sees one key. Of seeds 1 to 500 these are some of the twelve with which it errs less than half as much as kernels
// that take O as it is, in dQ or in dK.
TEST_F(Yardstick, OfLongCausalHeadsIsGivenWhatTheyAre) {
  for (const char* name : {"flash_mma", "flash_mma_deterministic"}) {
    for (const std::uint64_t seed : {139, 367, 371, 417, 490}) {
      const Problem problem{.seq_q = 8192, .seq_k = 8192, .head_dim = 32, .mask = Mask::top_left, .dtype = DType::bf16};
      SCOPED_TRACE(fmt::format("{}, seed {}", name, seed));
      const Operation operation = attention::operation(problem, Pass::backward, find_rung(name), seed);
      ASSERT_TRUE(operation.naive && operation.expect_there);
      std::vector<device::Buffer> memory;
      const auto make = [&](const TensorSpec& spec, std::uint64_t key) {
        memory.emplace_back(spec.bytes(), spec.name, stream);
        const TensorView view(memory.back().data(), spec.dtype, spec.shape);
        device::fill_random(view, RandomStream(seed * 100 + key), Distribution::normal, 1.0F, 0, stream);
        return view;
      };
      std::vector<TensorView> inputs, outputs;
      for (const TensorSpec& spec : operation.inputs) inputs.push_back(make(spec, inputs.size()));
      for (const TensorSpec& spec : operation.outputs) outputs.push_back(make(spec, 77));
      operation.prepare(inputs, stream);
      const Inputs read(inputs.begin(), inputs.end());
      const std::vector<Expected> expected = operation.expect_there(read, stream);
      operation.call(read, outputs, stream);
      const std::vector<double> ours = errors(outputs, expected, stream);
      operation.naive(read, outputs, stream);
      const std::vector<double> naive = errors(outputs, expected, stream);
      for (std::size_t i = 0; i < ours.size(); ++i) {
        EXPECT_LE(ours[i], 2 * naive[i]) << operation.outputs[i].name;
        RecordProperty(fmt::format("{}_{}_{}", name, seed, operation.outputs[i].name),
                       fmt::format("{:.3g} of {:.3g}", ours[i], naive[i]));
      }
    }
  }
}

}  // namespace
}  // namespace syslab::attention
