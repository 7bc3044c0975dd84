#include <cmath>
#include <vector>

#include "ops/rope/eager.hpp"

namespace syslab::rope {

void eager_allow(const Problem& p, Pass pass, const ConstTensorView& x, const ConstTensorView& cos,
                 const ConstTensorView& sin, Expected& expected) {
  if (pass == Pass::forward || size_of(p.x_dtype) != 2) return;
  const std::vector<double> dy = to_doubles(x), c = to_doubles(cos), s = to_doubles(sin);
  const double unit = unit_roundoff(p.x_dtype), tiny = smallest_normal(p.x_dtype) * unit;
  const std::int64_t pairs = p.head_dim / 2;
  for (std::int64_t row = 0; row < p.batch * p.heads * p.seq; ++row) {
    for (std::int64_t k = 0; k < pairs; ++k) {
      const bool interleaved = p.layout == Layout::interleaved;
      const auto first = static_cast<std::size_t>(row * p.head_dim + (interleaved ? 2 * k : k));
      const double one = dy[first], other = dy[first + static_cast<std::size_t>(interleaved ? 1 : pairs)];
      const auto at = static_cast<std::size_t>(row % p.seq * pairs + k);
      const auto place = static_cast<std::size_t>(row * p.head_dim + 2 * k);
      // Two products, each rounded, then the rounding of a sum that is off by them.
      const auto allowed = [&](double a, double b) {
        return unit * (1 + 2 * unit) * (std::abs(a) + std::abs(b)) + 2 * tiny;
      };
      expected.tolerance[place] += allowed(one * c[at], other * s[at]);
      expected.tolerance[place + 1] += allowed(one * s[at], other * c[at]);
    }
  }
}

}  // namespace syslab::rope
