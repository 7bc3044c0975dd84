// Attention as matrix products: the whole S×S matrix of scores is written to memory, read, normalised, written and read
// again. Its products run at BLAS speed; its memory traffic, 4 passes over 4·S² bytes a head against 4·S·D of inputs,
// is what FlashAttention avoids.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "device/blas.hpp"
#include "device/buffer.hpp"
#include "device/parallel.hpp"
#include "ops/attention/naive/heads.hpp"
#include "ops/attention/rungs.hpp"

namespace syslab::attention {

namespace {

// Divides one thread's scratch memory into arrays of floats.
class Scratch {
 public:
  explicit Scratch(float* begin) : next_(begin) {}
  float* take(std::int64_t floats) { return std::exchange(next_, next_ + floats); }

 private:
  float* next_;
};

std::int64_t forward_floats(const Problem& p) { return p.seq_q * p.seq_k + 2 * (p.seq_q + p.seq_k) * p.head_dim; }

std::int64_t backward_floats(const Problem& p) {
  return 2 * p.seq_q * p.seq_k + (4 * p.seq_q + 4 * p.seq_k) * p.head_dim;
}

std::size_t bytes_for_threads(std::int64_t floats, std::int64_t most_threads, std::int64_t tasks) {
  return static_cast<std::size_t>(std::min(most_threads, tasks) * floats) * sizeof(float);
}

std::size_t naive_workspace_bytes(const Problem& p, Pass pass) {
  const int threads = threads_worth(p, pass);
  return pass == Pass::forward ? bytes_for_threads(forward_floats(p), threads, p.batch * p.heads_q)
                               : bytes_for_threads(backward_floats(p), threads, p.batch * p.heads_kv);
}

// The caller's workspace if it is large enough, otherwise memory of our own.
class ThreadScratch {
 public:
  ThreadScratch(ops::Workspace workspace, std::size_t bytes)
      : own_(workspace.bytes < bytes ? bytes : 0, "attention scores"),
        base_(own_.data() != nullptr ? own_.as<float>() : static_cast<float*>(workspace.data)) {}
  Scratch of(int thread, std::int64_t floats) const { return Scratch(base_ + thread * floats); }

 private:
  device::Buffer own_;
  float* base_;
};

// Row-wise softmax in place over the keys each row sees; the rest become 0. Writes the log-sum-exp of each row.
template <typename StoreLse>
void softmax_rows(const Problem& p, float* scores, StoreLse store_lse) {
  for (std::int64_t i = 0; i < p.seq_q; ++i) {
    float* row = scores + i * p.seq_k;
    const std::int64_t visible = p.visible_keys(i);
    std::fill(row + visible, row + p.seq_k, 0.0F);
    if (visible == 0) {
      store_lse(i, -std::numeric_limits<float>::infinity());
      continue;
    }
    const float largest = *std::max_element(row, row + visible);
    float sum = 0;
    for (std::int64_t j = 0; j < visible; ++j) sum += row[j] = std::exp(row[j] - largest);
    const float inverse = 1.0F / sum;
    for (std::int64_t j = 0; j < visible; ++j) row[j] *= inverse;
    store_lse(i, largest + std::log(sum));
  }
}

void naive_forward(const Problem& p, const ForwardArgs& args, ops::Workspace workspace, device::Stream) {
  const std::int64_t floats = forward_floats(p), sq = p.seq_q, sk = p.seq_k, d = p.head_dim;
  const ThreadScratch threads(workspace, naive_workspace_bytes(p, Pass::forward));
  // Heads run in parallel, each with a single-threaded product. A single head gets the multithreaded one, if it is
  // large.
  const auto one_head = [&](std::int64_t index, int thread) {
    const std::int64_t b = index / p.heads_q, h = index % p.heads_q, group = h / (p.heads_q / p.heads_kv);
    Scratch scratch = threads.of(thread, floats);
    float *scores = scratch.take(sq * sk), *q = scratch.take(sq * d), *k = scratch.take(sk * d),
          *v = scratch.take(sk * d), *out = scratch.take(sq * d);
    load_floats(args.q, b, h, q);
    load_floats(args.k, b, group, k);
    load_floats(args.v, b, group, v);
    device::sgemm(false, true, sq, sk, d, p.effective_scale(), q, d, k, d, 0.0F, scores, sk);
    softmax_rows(p, scores, [&](std::int64_t i, float value) { element_of<float>(args.lse, b, h, i) = value; });
    device::sgemm(false, false, sq, d, sk, 1.0F, scores, sk, v, d, 0.0F, out, d);
    store_floats(out, args.out, b, h);
  };
  device::parallel_for(p.batch * p.heads_q, one_head, threads_worth(p, Pass::forward));
}

void naive_backward(const Problem& p, const BackwardArgs& args, ops::Workspace workspace, device::Stream) {
  const std::int64_t floats = backward_floats(p), sq = p.seq_q, sk = p.seq_k, d = p.head_dim;
  const std::int64_t per_group = p.heads_q / p.heads_kv;
  const float scale = p.effective_scale();
  const ThreadScratch threads(workspace, naive_workspace_bytes(p, Pass::backward));
  const auto one_group = [&](std::int64_t index, int thread) {
    const std::int64_t b = index / p.heads_kv, group = index % p.heads_kv;
    Scratch scratch = threads.of(thread, floats);
    float *probability = scratch.take(sq * sk), *ds = scratch.take(sq * sk), *k = scratch.take(sk * d),
          *v = scratch.take(sk * d), *dk = scratch.take(sk * d), *dv = scratch.take(sk * d), *q = scratch.take(sq * d),
          *out = scratch.take(sq * d), *dout = scratch.take(sq * d), *dq = scratch.take(sq * d);
    load_floats(args.k, b, group, k);
    load_floats(args.v, b, group, v);
    for (std::int64_t h = group * per_group; h < (group + 1) * per_group; ++h) {
      const float accumulate = h == group * per_group ? 0.0F : 1.0F;  // dK and dV sum over the group's query heads
      load_floats(args.q, b, h, q);
      load_floats(args.out, b, h, out);
      load_floats(args.dout, b, h, dout);
      device::sgemm(false, true, sq, sk, d, scale, q, d, k, d, 0.0F, probability, sk);
      device::sgemm(false, true, sq, sk, d, 1.0F, dout, d, v, d, 0.0F, ds, sk);
      for (std::int64_t i = 0; i < sq; ++i) {
        float row_dot = 0;
        for (std::int64_t c = 0; c < d; ++c) row_dot += out[i * d + c] * dout[i * d + c];
        const float lse = element_of<float>(args.lse, b, h, i);
        float *p_row = probability + i * sk, *ds_row = ds + i * sk;
        const std::int64_t visible = p.visible_keys(i);
        for (std::int64_t j = 0; j < visible; ++j) {
          p_row[j] = std::exp(p_row[j] - lse);
          ds_row[j] = p_row[j] * (ds_row[j] - row_dot);
        }
        std::fill(p_row + visible, p_row + sk, 0.0F);
        std::fill(ds_row + visible, ds_row + sk, 0.0F);
      }
      device::sgemm(true, false, sk, d, sq, 1.0F, probability, sk, dout, d, accumulate, dv, d);
      device::sgemm(false, false, sq, d, sk, scale, ds, sk, k, d, 0.0F, dq, d);
      device::sgemm(true, false, sk, d, sq, scale, ds, sk, q, d, accumulate, dk, d);
      store_floats(dq, args.dq, b, h);
    }
    store_floats(dk, args.dk, b, group);
    store_floats(dv, args.dv, b, group);
  };
  device::parallel_for(p.batch * p.heads_kv, one_group, threads_worth(p, Pass::backward));
}

}  // namespace

Rung naive_rung() {
  Rung rung;
  rung.name = "naive";
  rung.role = Role::naive;
  rung.teaches = "attention as BLAS calls: fast products, but S×S scores go through memory four times";
  rung.dtypes = {DType::f32, DType::bf16, DType::f16};
  rung.supports = [dtypes = rung.dtypes](const Problem& problem, Pass) { return refuse_dtype(dtypes, problem); };
  rung.workspace_bytes = naive_workspace_bytes;
  rung.forward = naive_forward;
  rung.backward = naive_backward;
  return rung;
}

}  // namespace syslab::attention
