// flash_tiled against OpenBLAS's sgemm, taken turn about in one process, so that whatever else the machine does falls
// on both alike:
//
//   meson test --benchmark attention_bench      or      build/tests/bench/attention_bench
//
// Counters: GFLOP/s of each side (medians), and `ratio`, the median over turns of kernel rate / sgemm rate. Rates count
// forward_flops and backward_flops: 2 and 5 products over unmasked pairs, whatever a kernel recomputes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "core/random.hpp"
#include "device/blas.hpp"
#include "device/buffer.hpp"
#include "ops/attention/attention.hpp"

namespace syslab {
namespace {

using attention::Mask;
using attention::Problem;

double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// OpenBLAS's threads go on spinning after a call, for 2^28 cycles by default (100 ms): they must sleep before the other
// side's turn.
void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(150)); }

class Tensor {
 public:
  Tensor(const Shape& shape, DType dtype, std::uint64_t key)
      : buffer_(static_cast<std::size_t>(shape.elements()) * size_of(dtype), "bench tensor"),
        view_(buffer_.data(), dtype, shape) {
    fill(view_, RandomStream(key), Distribution::normal);
  }
  const TensorView& view() const { return view_; }

 private:
  device::Buffer buffer_;
  TensorView view_;
};

// One problem's tensors; O and L are those of a forward pass.
class Attention {
 public:
  Attention(const Problem& problem, std::string_view rung) : problem_(problem), rung_(attention::find_rung(rung)) {
    forward();
  }
  void forward() {
    rung_.forward(problem_, {q_.view(), k_.view(), v_.view(), out_.view(), lse_.view()}, {}, {});
    benchmark::ClobberMemory();
  }
  void backward() {
    rung_.backward(
        problem_,
        {q_.view(), k_.view(), v_.view(), out_.view(), lse_.view(), dout_.view(), dq_.view(), dk_.view(), dv_.view()},
        {}, {});
    benchmark::ClobberMemory();
  }
  void run(Pass pass) { pass == Pass::forward ? forward() : backward(); }
  double flops(Pass pass) const { return pass == Pass::forward ? forward_flops(problem_) : backward_flops(problem_); }

 private:
  Problem problem_;
  const attention::Rung& rung_;
  Shape query_{problem_.batch, problem_.heads_q, problem_.seq_q, problem_.head_dim};
  Shape key_{problem_.batch, problem_.heads_kv, problem_.seq_k, problem_.head_dim};
  Tensor q_{query_, problem_.dtype, 1}, k_{key_, problem_.dtype, 2}, v_{key_, problem_.dtype, 3},
      out_{query_, problem_.dtype, 4}, lse_{{problem_.batch, problem_.heads_q, problem_.seq_q}, DType::f32, 5},
      dout_{query_, problem_.dtype, 6}, dq_{query_, problem_.dtype, 7}, dk_{key_, problem_.dtype, 8},
      dv_{key_, problem_.dtype, 9};
};

// A square product, the fastest use of the arithmetic units that most users have at hand.
class Sgemm {
 public:
  void run() {
    device::sgemm(false, false, kSize, kSize, kSize, 1.0F, a_.view().as<float>(), kSize, b_.view().as<float>(), kSize,
                  0.0F, c_.view().as<float>(), kSize);
    benchmark::ClobberMemory();
  }
  static constexpr double flops() { return 2.0 * kSize * kSize * kSize; }

 private:
  static constexpr std::int64_t kSize = 2048;
  Tensor a_{{kSize, kSize}, DType::f32, 1}, b_{{kSize, kSize}, DType::f32, 2}, c_{{kSize, kSize}, DType::f32, 3};
};

// B·H = 8, D = 64: the problem that the bars are set on.
Problem standard(Mask mask, DType dtype = DType::f32) {
  return {.batch = 1,
          .heads_q = 8,
          .heads_kv = 8,
          .seq_q = 2048,
          .seq_k = 2048,
          .head_dim = 64,
          .mask = mask,
          .dtype = dtype};
}

void against_sgemm(benchmark::State& state, const char* rung, Pass pass, Mask mask, DType dtype) {
  Attention attention(standard(mask, dtype), rung);
  Sgemm sgemm;
  sgemm.run();
  attention.run(pass);
  std::vector<double> kernel_rates, sgemm_rates, ratios;
  for ([[maybe_unused]] auto _ : state) {
    settle();
    const double sgemm_rate = Sgemm::flops() / seconds_of([&] { sgemm.run(); });
    settle();
    const double seconds = seconds_of([&] { attention.run(pass); });
    state.SetIterationTime(seconds);
    sgemm_rates.push_back(sgemm_rate);
    kernel_rates.push_back(attention.flops(pass) / seconds);
    ratios.push_back(kernel_rates.back() / sgemm_rate);
  }
  state.counters["gflops"] = median(kernel_rates) * 1e-9;
  state.counters["sgemm_gflops"] = median(sgemm_rates) * 1e-9;
  state.counters["ratio"] = median(ratios);
  state.SetLabel(device::blas_name());
}

// Time with a causal mask over time without: half the pairs, so 0.5 plus what the diagonal tiles waste.
void causal_against_full(benchmark::State& state, Pass pass) {
  Attention full(standard(Mask::none), "flash_tiled"), causal(standard(Mask::top_left), "flash_tiled");
  full.run(pass);
  causal.run(pass);
  std::vector<double> ratios;
  for ([[maybe_unused]] auto _ : state) {
    const double whole = seconds_of([&] { full.run(pass); });
    const double half = seconds_of([&] { causal.run(pass); });
    state.SetIterationTime(half);
    ratios.push_back(half / whole);
  }
  state.counters["time_ratio"] = median(ratios);
}

constexpr int kTurns = 11;
#define TURNS Iterations(kTurns)->UseManualTime()->Unit(benchmark::kMillisecond)
BENCHMARK_CAPTURE(against_sgemm, flash_forward_fp32, "flash_tiled", Pass::forward, Mask::none, DType::f32)->TURNS;
BENCHMARK_CAPTURE(against_sgemm, flash_backward_fp32, "flash_tiled", Pass::backward, Mask::none, DType::f32)->TURNS;
BENCHMARK_CAPTURE(against_sgemm, flash_forward_causal_fp32, "flash_tiled", Pass::forward, Mask::top_left, DType::f32)
    ->TURNS;
BENCHMARK_CAPTURE(against_sgemm, flash_backward_causal_fp32, "flash_tiled", Pass::backward, Mask::top_left, DType::f32)
    ->TURNS;
BENCHMARK_CAPTURE(against_sgemm, flash_forward_bf16, "flash_tiled", Pass::forward, Mask::none, DType::bf16)->TURNS;
BENCHMARK_CAPTURE(against_sgemm, flash_forward_fp16, "flash_tiled", Pass::forward, Mask::none, DType::f16)->TURNS;
BENCHMARK_CAPTURE(against_sgemm, flash_backward_bf16, "flash_tiled", Pass::backward, Mask::none, DType::bf16)->TURNS;
BENCHMARK_CAPTURE(against_sgemm, naive_forward_fp32, "naive", Pass::forward, Mask::none, DType::f32)->TURNS;
BENCHMARK_CAPTURE(against_sgemm, naive_backward_fp32, "naive", Pass::backward, Mask::none, DType::f32)->TURNS;
BENCHMARK_CAPTURE(causal_against_full, forward, Pass::forward)->TURNS;
BENCHMARK_CAPTURE(causal_against_full, backward, Pass::backward)->TURNS;

}  // namespace
}  // namespace syslab

BENCHMARK_MAIN();
