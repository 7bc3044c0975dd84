// `naive`: a part of a row at a time in fp32, rows on threads. The exponential is our own, so that loops vectorise.
#include <cmath>

#include "ops/exp_of_negative.hpp"
#include "ops/host_rows.hpp"
#include "ops/swiglu/rungs.hpp"

namespace syslab::swiglu {
namespace {

using ops::read_floats;
using ops::Stretch;
using ops::write_floats;

struct Sigmoid {
  float at, beside;  // σ(t), 1 − σ(t)
};

inline Sigmoid sigmoid(float t) {
  const float e = ops::exp_of_negative(-std::abs(t)), larger = 1 / (1 + e), smaller = e * larger;
  return t >= 0 ? Sigmoid{larger, smaller} : Sigmoid{smaller, larger};
}

void gate_stretch(const float* gate, const float* up, std::int64_t count, Stretch& out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[static_cast<std::size_t>(i)] = gate[i] * sigmoid(gate[i]).at * up[i];
  }
}

void gradients_of_stretch(const float* gate, const float* up, const float* dout, std::int64_t count, Stretch& dgate,
                          Stretch& dup) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float t = gate[i];
    const Sigmoid sigma = sigmoid(t);
    dgate[static_cast<std::size_t>(i)] = dout[i] * up[i] * (sigma.at * (1 + t * sigma.beside));
    dup[static_cast<std::size_t>(i)] = dout[i] * (t * sigma.at);
  }
}

template <typename Body>
void for_each_row(const Problem& p, const Body& body) {
  const ops::RowChunks chunks = ops::chunks_of(p.rows, p.dim);
  ops::for_each_chunk(chunks, p.dim, [&](std::int64_t chunk) {
    for (std::int64_t row = chunks.first(chunk); row < chunks.end(chunk); ++row) body(row);
  });
}

void naive_forward(const Problem& p, const ForwardArgs& args, ops::Workspace, device::Stream) {
  for_each_row(p, [&](std::int64_t row) {
    ops::for_each_stretch(p.dim, [&](std::int64_t from, std::int64_t count) {
      Stretch a, b, out;
      const float* gate = read_floats(args.gate, row, from, count, a);
      const float* up = read_floats(args.up, row, from, count, b);
      gate_stretch(gate, up, count, out);
      write_floats(args.out, row, from, count, out.data());
    });
  });
}

void naive_backward(const Problem& p, const BackwardArgs& args, ops::Workspace, device::Stream) {
  for_each_row(p, [&](std::int64_t row) {
    ops::for_each_stretch(p.dim, [&](std::int64_t from, std::int64_t count) {
      Stretch a, b, c, out, dgate, dup;
      const float* gate = read_floats(args.gate, row, from, count, a);
      const float* up = read_floats(args.up, row, from, count, b);
      const float* dout = read_floats(args.dout, row, from, count, c);
      gradients_of_stretch(gate, up, dout, count, dgate, dup);
      const bool recompute = args.out.data != nullptr;
      if (recompute) gate_stretch(gate, up, count, out);
      write_floats(args.dgate, row, from, count, dgate.data());
      write_floats(args.dup, row, from, count, dup.data());
      if (recompute) write_floats(args.out, row, from, count, out.data());
    });
  });
}

}  // namespace

Rung naive_rung() {
  Rung rung;
  rung.name = "naive";
  rung.role = Role::naive;
  rung.teaches = "an element at a time in fp32, one exponential each, of a number that is never positive";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.supports = supports_dtypes(rung);
  rung.forward = naive_forward;
  rung.backward = naive_backward;
  return rung;
}

}  // namespace syslab::swiglu
