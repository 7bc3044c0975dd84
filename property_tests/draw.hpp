// What laws draw: sizes at tile edges, dtypes, layouts, seeds. Never floats: tensors follow from the seed, because
// RapidCheck shrinks shapes well and floats poorly.
//
// While shrinking, RapidCheck makes one value simpler and draws all later ones again from the same random numbers. So a
// value must depend as little as may be on those before it: a limit that widens must leave a small choice as it was.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/dtype.hpp"

namespace syslab {

void showValue(DType dtype, std::ostream& stream);  // RapidCheck finds it by the argument's namespace

}  // namespace syslab

namespace syslab::property {

// One of `values`, sorted from the simplest on, and mostly one that is also in `favoured`; one of the first `usable` if
// the choice lies beyond them. Shrinks towards the front.
template <typename T>
rc::Gen<T> one_of(std::vector<T> values, const std::vector<T>& favoured, std::size_t usable) {
  std::vector<std::size_t> preferred;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::find(favoured.begin(), favoured.end(), values[i]) != favoured.end()) preferred.push_back(i);
  }
  return [values = std::move(values), preferred = std::move(preferred), usable](const rc::Random& random, int) {
    if (usable == 0) throw rc::GenerationFailure("nothing to choose from");
    rc::Random source = random;
    const std::uint64_t coin = source.split().next(), number = source.split().next();
    const bool favour = !preferred.empty() && coin % 4 != 0;
    const std::size_t chosen = favour ? preferred[number % preferred.size()] : number % values.size();
    return rc::shrinkable::map(
        rc::shrinkable::shrinkRecur(chosen < usable ? chosen : chosen % usable,
                                    [](std::size_t at) { return rc::shrink::towards<std::size_t>(at, 0); }),
        [values](std::size_t at) { return values[at]; });
  };
}

// Draws now, inside a law's body, under this name.
template <typename T>
T draw(const char* name, std::vector<T> simplest_first, const std::vector<T>& favoured = {}) {
  const std::size_t all = simplest_first.size();
  return *one_of(std::move(simplest_first), favoured, all).as(name);
}

// A size of ascending `sizes` that is at most `limit`, or the smallest.
std::int64_t draw_size(const char* name, const std::vector<std::int64_t>& sizes, std::int64_t limit);
// Rows and columns of at most so many elements. One matrix in four has a row, one in eight a column of `longer`: the
// other side is short then.
enum class LongSide { none, columns, rows };
void showValue(LongSide side, std::ostream& stream);
struct Sides {
  std::int64_t rows, columns;
};
Sides draw_sides(const char* rows, const char* columns, const std::vector<std::int64_t>& sizes,
                 const std::vector<std::int64_t>& longer, std::int64_t most_elements);
// Beyond the sizes that most tries draw: what a tile, a block of threads or a buffer of fixed length may leave out.
const std::vector<std::int64_t>& long_sizes();
std::vector<std::int64_t> with_longer(std::vector<std::int64_t> sizes, const std::vector<std::int64_t>& longer);

std::int64_t draw_below(const char* name, std::int64_t end);  // uniform in [0, end), shrinks towards 0
std::uint64_t draw_seed();                                    // small, so that it is easy to type

// 1 … last, and the sizes around tile edges and the primes among them.
std::vector<std::int64_t> sizes_up_to(std::int64_t last);
const std::vector<std::int64_t>& edge_sizes();
std::vector<std::int64_t> at_most(std::vector<std::int64_t> values, std::int64_t limit);

}  // namespace syslab::property
