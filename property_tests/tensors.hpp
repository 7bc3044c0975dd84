// Tensors of a law: values known exactly as doubles, put into memory of a drawn layout between guards.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include "check/guard.hpp"
#include "core/random.hpp"
#include "core/tensor.hpp"

namespace syslab::property {

// How the elements lie in memory. `padded`: guards after every row, head and batch, by odd numbers of elements.
// `spaced`: by multiples of 16 elements, so that rows of such a length keep their alignment. `swapped`: the two middle
// dimensions of four change places, (batch, seq, heads, dim), as models keep them; of fewer dimensions, the first lies
// `padded`.
enum class Layout { contiguous, padded, swapped, spaced };
void showValue(Layout layout, std::ostream& stream);

Strides strides_of(const Shape& shape, Layout layout);
// As above, but the last dimension may be apart as well (lse).
Strides loose_strides_of(const Shape& shape, Layout layout);

// `count` values of the stream named `name`, each exactly representable in `dtype`.
std::vector<double> random_values(std::uint64_t seed, std::string_view name, std::int64_t count, DType dtype,
                                  float scale = 1.0F);
double rounded_to(DType dtype, double value);

// Row-major `values` into the view, rounded once.
void assign(const TensorView& view, std::span<const double> values);

check::GuardedTensor input(std::string_view name, DType dtype, const Shape& shape, const Strides& strides,
                           std::span<const double> values);
// Poisoned.
check::GuardedTensor output(std::string_view name, DType dtype, const Shape& shape, const Strides& strides);

}  // namespace syslab::property
