#include "tests/laws/attention_kept_weights.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/attention/naive/heads.hpp"
#include "ops/storage.hpp"

namespace syslab::attention {
namespace {

using Floats = std::vector<float>;

Floats floats(std::int64_t count) { return Floats(static_cast<std::size_t>(count)); }

float dot(const float* a, const float* b, std::int64_t length) {
  float sum = 0;
  for (std::int64_t d = 0; d < length; ++d) sum += a[d] * b[d];
  return sum;
}

void add(float factor, const float* from, std::int64_t length, float* to) {
  for (std::int64_t d = 0; d < length; ++d) to[d] += factor * from[d];
}

float as_kept(DType dtype, float value) {
  return ops::with_storage(dtype, [&]<typename T>() { return to_float(from_float<T>(value)); });
}

// The weights of one row over the keys that it sees, as they are kept.
Floats kept_row(const Problem& p, const float* q, const Floats& k, std::int64_t visible) {
  const float scale = p.effective_scale();
  Floats row = floats(visible);
  for (std::int64_t j = 0; j < visible; ++j) {
    row[static_cast<std::size_t>(j)] = scale * dot(q, k.data() + j * p.head_dim, p.head_dim);
  }
  const float largest = *std::max_element(row.begin(), row.end());
  float sum = 0;
  for (float& x : row) sum += x = std::exp(x - largest);
  for (float& x : row) x = as_kept(p.dtype, x * (1 / sum));
  return row;
}

void backward(const Problem& p, const BackwardArgs& args, ops::Workspace, device::Stream) {
  const std::int64_t queries = p.seq_q * p.head_dim, keys = p.seq_k * p.head_dim, per_group = p.heads_q / p.heads_kv;
  Floats q = floats(queries), dout = floats(queries), k = floats(keys), v = floats(keys);
  for (std::int64_t group = 0; group < p.batch * p.heads_kv; ++group) {
    const std::int64_t batch = group / p.heads_kv, head_kv = group % p.heads_kv;
    load_floats(args.k, batch, head_kv, k.data());
    load_floats(args.v, batch, head_kv, v.data());
    Floats dk = floats(keys), dv = floats(keys);
    for (std::int64_t head = head_kv * per_group; head < (head_kv + 1) * per_group; ++head) {
      load_floats(args.q, batch, head, q.data());
      load_floats(args.dout, batch, head, dout.data());
      Floats dq = floats(queries);
      for (std::int64_t i = 0; i < p.seq_q; ++i) {
        const std::int64_t visible = p.visible_keys(i);
        if (visible == 0) continue;
        const float *q_row = q.data() + i * p.head_dim, *dout_row = dout.data() + i * p.head_dim;
        const Floats weights = kept_row(p, q_row, k, visible);
        Floats dp = floats(visible);
        for (std::int64_t j = 0; j < visible; ++j) {
          dp[static_cast<std::size_t>(j)] = dot(dout_row, v.data() + j * p.head_dim, p.head_dim);
        }
        const float delta = dot(weights.data(), dp.data(), visible);
        for (std::int64_t j = 0; j < visible; ++j) {
          const float weight = weights[static_cast<std::size_t>(j)];
          const float ds = as_kept(p.dtype, weight * (dp[static_cast<std::size_t>(j)] - delta));
          add(weight, dout_row, p.head_dim, dv.data() + j * p.head_dim);
          add(ds, k.data() + j * p.head_dim, p.head_dim, dq.data() + i * p.head_dim);
          add(ds, q_row, p.head_dim, dk.data() + j * p.head_dim);
        }
      }
      for (float& x : dq) x *= p.effective_scale();
      store_floats(dq.data(), args.dq, batch, head);
    }
    for (float& x : dk) x *= p.effective_scale();
    store_floats(dk.data(), args.dk, batch, head_kv);
    store_floats(dv.data(), args.dv, batch, head_kv);
  }
}

}  // namespace

Rung kept_weights_rung() {
  Rung rung = find_rung("naive");
  rung.name = "kept_weights";
  rung.teaches = "what the autograd function naive_cuda computes";
  rung.workspace_bytes = [forward = rung.workspace_bytes](const Problem& p, Pass pass) -> std::size_t {
    return pass == Pass::forward ? forward(p, pass) : 0;
  };
  rung.backward = backward;
  return rung;
}

}  // namespace syslab::attention
