// The exact loss and gradient (in double precision; extended precision for fp64) and the error that a correct kernel
// may make.
//
// With u the unit roundoff of the carrier (fp32; twice that of fp64 for fp64, since the oracle rounds as well), ε = 4u
// for an exponential, t = z − largest and S = Σ eᵗ ≥ 1:
//
//   S       each term errs by 3u|t| (difference, product with log₂e, that constant) + ε, the sum by γ(classes); if the
//           largest element is found on the way, the sum is rescaled, by one more exponential each time
//   lse     the relative error of S, a logarithm of 2u|log S|, one rounding of lse
//   loss    the same with one rounding of z_target − largest and one of the difference
//   mean    the mean of the rows' bounds, a sum carried in fp32, one rounding
//   dz      p·(3u|z − lse| + ε, and lse's bound where it was not given), one rounding each of the difference with 1, of
//           scale/rows, of the product, and of the store
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "contract/expected.hpp"
#include "ops/cross_entropy/cross_entropy.hpp"

namespace syslab::cross_entropy {

// The rows with computed gradients: one of every `every` neighbours, drawn from the seed; 1: all.
struct Rows {
  std::int64_t every = 1;
  std::uint64_t seed = 0;

  std::vector<std::int64_t> of(std::int64_t rows) const;
};

struct Oracle {
  Expected row_loss, lse, loss, dlogits;
};

// Tensors and targets are in host memory. Rows with a NaN loss (cross_entropy.hpp) are not checked: their expected
// values and that of the mean are NaN. Losses and their mean cover all rows; gradients not computed have value NaN, and
// the fraction gives the share to compare.
Oracle oracle(const Problem& problem, const ConstTensorView& logits, std::span<const std::int64_t> targets,
              double scale = 1, const Rows& with_gradient = {});
// The gradient of a given lse, which may be rounded.
Expected gradient_oracle(const Problem& problem, const ConstTensorView& logits, std::span<const std::int64_t> targets,
                         const ConstTensorView& lse, double scale = 1, const Rows& computed = {});

}  // namespace syslab::cross_entropy
