// `reference`: the formulas in double precision. The oracle of all other rungs.
#include <algorithm>
#include <vector>

#include "ops/rope/rungs.hpp"

namespace syslab::rope {
namespace {

template <typename View>
auto* head_of(const View& tensor, std::int64_t b, std::int64_t h, std::int64_t t) {
  return tensor.template as<double>() + b * tensor.stride(0) + h * tensor.stride(1) + t * tensor.stride(2);
}

// Rotates by the table's angle, or back by it; `from` and `to` are the layouts read and written.
void turn(const Problem& p, const Args& args, Layout from, Layout to, double sense) {
  const std::int64_t pairs = p.head_dim / 2;
  const PairPlace in = place_of(from, p.head_dim), out = place_of(to, p.head_dim);
  std::vector<double> turned(static_cast<std::size_t>(p.head_dim));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      for (std::int64_t t = 0; t < p.seq; ++t) {
        const double* x = head_of(args.x, b, h, t);
        const double* cos = args.cos.as<double>() + t * pairs;
        const double* sin = args.sin.as<double>() + t * pairs;
        for (std::int64_t k = 0; k < pairs; ++k) {
          const double x1 = x[in.first(k)], x2 = x[in.first(k) + in.apart], c = cos[k], s = sense * sin[k];
          turned[static_cast<std::size_t>(out.first(k))] = c * x1 - s * x2;
          turned[static_cast<std::size_t>(out.first(k) + out.apart)] = s * x1 + c * x2;
        }
        std::copy(turned.begin(), turned.end(), head_of(args.y, b, h, t));
      }
    }
  }
}

void reference_forward(const Problem& p, const Args& args, ops::Workspace, device::Stream) {
  turn(p, args, Layout::interleaved, p.layout, 1);
}

void reference_backward(const Problem& p, const Args& args, ops::Workspace, device::Stream) {
  turn(p, args, p.layout, Layout::interleaved, -1);
}

}  // namespace

Rung reference_rung() {
  auto rung = ops::reference<Rung>();
  rung.supports = supports_dtypes(rung);
  rung.forward = reference_forward;
  rung.backward = reference_backward;
  return rung;
}

}  // namespace syslab::rope
