// The oracle on a GPU: kernels that keep no scores in memory, like FlashAttention, in ordinary fp64 arithmetic:
//
//   columns   a block for each head of each tensor: largest norm of a row; Σ x² and max |x| of each column
//   rows      32 query rows a block, all their keys: L, ΣP², and the bounds that need only numbers of the row
//   sums      32 rows of one result a block, the reduction in steps of 32. A step computes a tile of factors (P or dS)
//             and of the squares of their errors, 2 × 2 a thread, then adds their products with 64 columns of the other
//             operand, 2 × 4 a thread: the sum, the squares of errors, the largest prefix, and for two of the results a
//             fourth. out: P·V    dq: dS·K    dv: Pᵀ·dO    dk: dSᵀ·Q     (head_dim > 64: a block makes 64 columns)
//   gradient  a warp a query row: D and the numbers that the backward bounds need
//
// Why not matrix products of a library: a bound needs the largest prefix of a sum, too. The sum of absolute values in
// its place is 80 times as large at 16,384 keys, which would let real faults pass in fp32. The prefix is kept as the
// upper word of a double, which sorts like an integer: two integer instructions, none of fp64.
//
// Napkin maths, instructions of fp64 a visible pair at D = 64: rows 64 + 30, out 64 + 30 + 3·64, dq 128 + 50 + 3·64, dv
// 64 + 30 + 2·64, dk 128 + 50 + 2·64; in all 380 forward, 1300 with backward. An H100 issues 64 a clock and SM, 14e12 a
// second: 16 heads of 16,384 tokens (4.3e9 pairs) take 0.11 s forward and 0.4 s in all, if nothing stalls. They take
// 0.25 s and 0.85 s; causal, half of it.
//
// What waits for what. The kernels of one call are ordinary launches in one stream, in the order columns, rows, sums of
// out, gradient, the other sums: each finds what those before it have stored. Memory comes from the stream's allocator,
// so it is reused only after these kernels. Barriers inside them: rows.cuh, sums.cuh.
#include <math_constants.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "device/buffer.hpp"
#include "device/cuda/cuda.cuh"
#include "device/memory.hpp"
#include "ops/attention/oracle/oracle_cuda.hpp"
#include "ops/attention/oracle/sums.cuh"

namespace syslab::attention {
namespace {

using namespace oracle;

__global__ void blank_kernel(double* value, double* tolerance, std::int64_t elements) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= elements) return;
  value[index] = CUDART_NAN;
  tolerance[index] = 0;
}

// One output as the kernels write it: values, then as many tolerances.
struct Output {
  std::shared_ptr<device::Buffer> memory;
  std::int64_t elements = 0;
  double fraction = 1;

  double* value() const { return memory->as<double>(); }
  double* tolerance() const { return value() + elements; }
};

std::vector<Expected> expected_of(std::span<const Output> outputs) {
  std::vector<Expected> expected;
  for (const Output& one : outputs) {
    expected.push_back({{}, {}, one.fraction, {one.value(), one.tolerance(), one.elements, one.memory}});
  }
  return expected;
}

// Launches the kernels of one call. Memory comes from the stream's allocator and goes back to it in stream order.
class Oracle {
 public:
  Oracle(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k, const ConstTensorView& v,
         const ConstTensorView& dout, device::Stream stream, double weights_unit)
      : problem_(problem),
        stream_(stream),
        current_(stream),
        given_{Sizes(problem), ErrorModel::of(problem.dtype, problem.tf32, weights_unit),
               Operand(q),     Operand(k),
               Operand(v),     Operand(dout)},
        k_stats_(columns(given_.k, problem.heads_kv)),
        v_stats_(columns(given_.v, problem.heads_kv)),
        rows_(array<QueryRow>(query_heads() * problem.seq_q)) {}

  // Query tiles, all or those listed.
  void choose(const std::vector<std::int64_t>* tiles) { queries_ = chosen(problem_.seq_q, problem_.heads_q, tiles); }
  void choose_keys(const std::vector<std::int64_t>* tiles) { keys_ = chosen(problem_.seq_k, problem_.heads_kv, tiles); }

  void rows(const Output& lse) {
    launch(rows_kernel, sizeof(RowsShared), dim3(blocks(queries_)), "attention oracle: rows", given_, queries_.chosen,
           k_stats_.as<const HeadStats>(), rows_.as<QueryRow>(), lse.value(), lse.tolerance());
  }
  void gradient(const Output& out) {
    launch(gradient_kernel, 0, dim3(blocks(queries_)), "attention oracle: gradient", given_, queries_.chosen,
           v_stats_.as<const HeadStats>(), out.value(), out.tolerance(), rows_.as<QueryRow>());
  }
  template <Result kResult>
  void sums(const Output& to, const char* name) {
    const Tiles& tiles = of_queries(kResult) ? queries_ : keys_;
    const auto columns = static_cast<unsigned>((problem_.head_dim + kDepth - 1) / kDepth);
    launch(sums_kernel<kResult>, sizeof(SumsShared<kResult>), dim3(blocks(tiles), columns), name,
           SumsArguments{given_, tiles.chosen, k_stats_.as<const HeadStats>(), v_stats_.as<const HeadStats>(),
                         rows_.as<const QueryRow>(), to.value(), to.tolerance()});
  }

  // Memory for one output, filled with blanks if only a part is computed.
  Output output(std::int64_t elements, double fraction) {
    Output made{std::make_shared<device::Buffer>(array<double>(2 * elements)), elements, fraction};
    if (fraction < 1) {
      launch(blank_kernel, 0, dim3(static_cast<unsigned>((elements + kThreads - 1) / kThreads)),
             "attention oracle: blank", made.value(), made.tolerance(), elements);
    }
    return made;
  }

  std::int64_t query_heads() const { return problem_.batch * problem_.heads_q; }
  std::int64_t key_heads() const { return problem_.batch * problem_.heads_kv; }

 private:
  struct Tiles {
    Chosen chosen;
    std::int64_t count = 0;
    device::Buffer list;
  };

  static unsigned blocks(const Tiles& tiles) { return static_cast<unsigned>(tiles.count); }

  template <typename T>
  device::Buffer array(std::int64_t count) {
    return {static_cast<std::size_t>(count) * sizeof(T), "attention oracle", stream_};
  }

  template <typename... Parameters, typename... Arguments>
  void launch(void (*kernel)(Parameters...), std::size_t shared_bytes, dim3 grid, const char* name,
              Arguments&&... arguments) {
    constexpr std::size_t kWithoutAsking = 48 << 10;
    if (shared_bytes > kWithoutAsking) {
      device::check(
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
          "allow the attention oracle its shared memory", "cudaFuncSetAttribute");
    }
    kernel<<<grid, kThreads, shared_bytes, device::cuda_stream(stream_)>>>(std::forward<Arguments>(arguments)...);
    device::check_launch(name);
  }

  device::Buffer columns(const Operand& from, std::int64_t heads) {
    device::Buffer stats = array<HeadStats>(problem_.batch * heads);
    launch(columns_kernel, 0, dim3(static_cast<unsigned>(problem_.batch * heads)), "attention oracle: columns", from,
           heads, stats.as<HeadStats>());
    return stats;
  }

  Tiles chosen(std::int64_t rows, std::int64_t heads, const std::vector<std::int64_t>* tiles) {
    Tiles result;
    result.chosen = {nullptr, (rows + kOwned - 1) / kOwned, heads};
    result.count = problem_.batch * heads * result.chosen.of_a_head;
    if (tiles == nullptr) return result;
    result.count = static_cast<std::int64_t>(tiles->size());
    result.list = array<std::int64_t>(result.count);
    device::copy_now(result.list.data(), tiles->data(), result.list.bytes(), stream_);
    result.chosen.list = result.list.as<const std::int64_t>();
    return result;
  }

  const Problem& problem_;
  device::Stream stream_;
  device::CurrentDevice current_;
  Given given_;
  device::Buffer k_stats_, v_stats_, rows_;
  Tiles queries_, keys_;
};

// `wanted` of `total` indices, one from each of as many equal strata, the first and the last among them.
std::vector<std::int64_t> spread(std::int64_t total, std::int64_t wanted, std::uint64_t seed) {
  std::vector<std::int64_t> chosen;
  const RandomStream random(seed);
  for (std::int64_t n = 0; n < wanted; ++n) {
    const std::int64_t begin = n * total / wanted, end = (n + 1) * total / wanted;
    const auto jitter =
        static_cast<std::int64_t>(random.bits(static_cast<std::uint64_t>(n)) % static_cast<std::uint64_t>(end - begin));
    chosen.push_back(n == 0 ? 0 : n == wanted - 1 ? total - 1 : begin + jitter);
  }
  return chosen;
}

std::int64_t affordable(double budget, double cost, std::int64_t least, std::int64_t total) {
  const double many = std::clamp(budget / cost, 0.0, static_cast<double>(total));
  return std::max(static_cast<std::int64_t>(many), std::min(least, total));
}

// Tiles of the rows of the chosen heads, which each have `of_a_head`.
std::vector<std::int64_t> tiles_of(const std::vector<std::int64_t>& groups, std::int64_t of_a_group) {
  std::vector<std::int64_t> tiles;
  for (const std::int64_t group : groups) {
    for (std::int64_t tile = 0; tile < of_a_group; ++tile) tiles.push_back(group * of_a_group + tile);
  }
  return tiles;
}

std::int64_t tiles_of_rows(std::int64_t rows) { return (rows + kOwned - 1) / kOwned; }

double pairs_of_a_head(const Problem& p) { return std::max(1.0, static_cast<double>(p.visible_pairs())); }

}  // namespace

std::vector<Expected> forward_expected_cuda(const Problem& p, const ConstTensorView& q, const ConstTensorView& k,
                                            const ConstTensorView& v, device::Stream stream, const Part& part) {
  validate(p);
  Oracle oracle(p, q, k, v, q, stream, part.weights_unit);
  const std::int64_t of_a_head = tiles_of_rows(p.seq_q), total = oracle.query_heads() * of_a_head;
  const double cost = pairs_of_a_head(p) * static_cast<double>(p.head_dim) / static_cast<double>(of_a_head);
  const std::int64_t wanted = affordable(part.budget, cost, 2, total);
  const std::vector<std::int64_t> tiles =
      wanted < total ? spread(total, wanted, part.seed) : std::vector<std::int64_t>();
  double fraction = 1;
  if (wanted < total) {
    std::int64_t rows = 0;
    for (const std::int64_t tile : tiles) rows += std::min<std::int64_t>(kOwned, p.seq_q - tile % of_a_head * kOwned);
    fraction = static_cast<double>(rows) / static_cast<double>(oracle.query_heads() * p.seq_q);
  }
  oracle.choose(wanted < total ? &tiles : nullptr);
  const std::array outputs{oracle.output(oracle.query_heads() * p.seq_q * p.head_dim, fraction),
                           oracle.output(oracle.query_heads() * p.seq_q, fraction)};
  oracle.rows(outputs[1]);
  oracle.sums<Result::out>(outputs[0], "attention oracle: out");
  return expected_of(outputs);
}

std::vector<Expected> backward_expected_cuda(const Problem& p, const ConstTensorView& q, const ConstTensorView& k,
                                             const ConstTensorView& v, const ConstTensorView& dout,
                                             device::Stream stream, const Part& part) {
  validate(p);
  Oracle oracle(p, q, k, v, dout, stream, part.weights_unit);
  const std::int64_t per_group = p.heads_q / p.heads_kv, total = oracle.key_heads();
  const double cost = pairs_of_a_head(p) * static_cast<double>(p.head_dim) * static_cast<double>(per_group);
  const std::int64_t wanted = affordable(part.budget, cost, 1, total);
  const double fraction = static_cast<double>(wanted) / static_cast<double>(total);
  if (wanted < total) {
    const std::vector<std::int64_t> groups = spread(total, wanted, part.seed);
    const std::vector<std::int64_t> queries = tiles_of(groups, per_group * tiles_of_rows(p.seq_q)),
                                    keys = tiles_of(groups, tiles_of_rows(p.seq_k));
    oracle.choose(&queries);
    oracle.choose_keys(&keys);
  } else {
    oracle.choose(nullptr);
    oracle.choose_keys(nullptr);
  }
  const std::int64_t rows = oracle.query_heads() * p.seq_q, keys = oracle.key_heads() * p.seq_k;
  const std::array outputs{oracle.output(rows * p.head_dim, fraction), oracle.output(keys * p.head_dim, fraction),
                           oracle.output(keys * p.head_dim, fraction)};
  {
    const Output out = oracle.output(rows * p.head_dim, 1), lse = oracle.output(rows, 1);
    oracle.rows(lse);
    oracle.sums<Result::out>(out, "attention oracle: out");
    oracle.gradient(out);
  }
  oracle.sums<Result::dq>(outputs[0], "attention oracle: dq");
  oracle.sums<Result::dk>(outputs[1], "attention oracle: dk");
  oracle.sums<Result::dv>(outputs[2], "attention oracle: dv");
  return expected_of(outputs);
}

}  // namespace syslab::attention
