// Values are the reference rung's; the bound of an element is that of a sum of two products, with their sizes.
#include "ops/rope/oracle.hpp"

#include <cmath>

#include "ops/rope/rungs.hpp"
#include "ops/sum_of_products.hpp"

namespace syslab::rope {

Expected oracle(const Problem& p, Pass pass, const ConstTensorView& x, const ConstTensorView& cos,
                const ConstTensorView& sin) {
  const bool forward = pass == Pass::forward;
  Problem exact = p;
  exact.x_dtype = exact.y_dtype = DType::f64;
  const std::vector<double> xs = to_doubles(x), cs = to_doubles(cos), ss = to_doubles(sin);
  const Rung& reference = find_rung("reference");
  Expected found{std::vector<double>(xs.size()), std::vector<double>(xs.size())};
  const TensorView y(found.value.data(), DType::f64, x.shape);
  const Args args{ConstTensorView(xs.data(), DType::f64, x.shape), ConstTensorView(cs.data(), DType::f64, cos.shape),
                  ConstTensorView(ss.data(), DType::f64, sin.shape), y};
  (forward ? reference.forward : reference.backward)(exact, args, {}, {});

  const PairPlace in = place_of(forward ? Layout::interleaved : p.layout, p.head_dim),
                  out = place_of(forward ? p.layout : Layout::interleaved, p.head_dim);
  const DType stored = forward ? p.y_dtype : p.x_dtype;
  const std::int64_t pairs = p.head_dim / 2, heads = p.batch * p.heads * p.seq;
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t base = head * p.head_dim, table = head % p.seq * pairs;
    for (std::int64_t k = 0; k < pairs; ++k) {
      const double x1 = std::abs(xs[static_cast<std::size_t>(base + in.first(k))]),
                   x2 = std::abs(xs[static_cast<std::size_t>(base + in.first(k) + in.apart)]);
      const double c = std::abs(cs[static_cast<std::size_t>(table + k)]),
                   s = std::abs(ss[static_cast<std::size_t>(table + k)]);
      const auto bound = [&](std::int64_t at, double magnitude) {
        const auto i = static_cast<std::size_t>(base + at);
        found.tolerance[i] = ops::sum_of_products_bound(stored, 2, found.value[i], magnitude);
      };
      bound(out.first(k), c * x1 + s * x2);
      bound(out.first(k) + out.apart, s * x1 + c * x2);
    }
  }
  return found;
}

}  // namespace syslab::rope
