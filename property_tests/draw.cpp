#include "property_tests/draw.hpp"

#include <numeric>
#include <ostream>

namespace syslab {

void showValue(DType dtype, std::ostream& stream) { stream << to_string(dtype); }

}  // namespace syslab

namespace syslab::property {

std::int64_t draw_size(const char* name, const std::vector<std::int64_t>& sizes, std::int64_t limit) {
  const auto end = std::upper_bound(sizes.begin(), sizes.end(), limit);
  const auto usable = static_cast<std::size_t>(std::max<std::ptrdiff_t>(end - sizes.begin(), 1));
  return *one_of(sizes, edge_sizes(), sizes.empty() ? 0 : usable).as(name);
}

void showValue(LongSide side, std::ostream& stream) {
  constexpr const char* kNames[] = {"none", "columns", "rows"};
  stream << kNames[static_cast<std::size_t>(side)];
}

Sides draw_sides(const char* rows, const char* columns, const std::vector<std::int64_t>& sizes,
                 const std::vector<std::int64_t>& longer, std::int64_t most_elements) {
  constexpr LongSide kNone = LongSide::none, kColumns = LongSide::columns, kRows = LongSide::rows;
  const std::vector<LongSide> all{kNone, kColumns, kNone, kNone, kColumns, kNone, kNone, kRows};
  const LongSide side = longer.empty() ? kNone : draw("long_side", all);
  const std::int64_t most_rows = side == kColumns ? most_elements / longer.front() : most_elements;
  const std::int64_t drawn = draw_size(rows, side == kRows ? longer : sizes, most_rows);
  return {drawn, draw_size(columns, side == kColumns ? longer : sizes, most_elements / drawn)};
}

const std::vector<std::int64_t>& long_sizes() {
  static const std::vector<std::int64_t> sizes{1024, 1025, 1536, 2048, 3001, 4096};
  return sizes;
}

std::vector<std::int64_t> with_longer(std::vector<std::int64_t> sizes, const std::vector<std::int64_t>& longer) {
  sizes.insert(sizes.end(), longer.begin(), longer.end());
  return sizes;
}

std::int64_t draw_below(const char* name, std::int64_t end) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(std::max<std::int64_t>(end, 1)));
  std::iota(values.begin(), values.end(), 0);
  return draw(name, std::move(values));
}

std::uint64_t draw_seed() { return static_cast<std::uint64_t>(draw_below("seed", 1000)); }

std::vector<std::int64_t> sizes_up_to(std::int64_t last) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(last));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

const std::vector<std::int64_t>& edge_sizes() {
  static const std::vector<std::int64_t> sizes{1,  2,   3,   5,   7,   8,   13,  15,  16,   17,   23,
                                               31, 32,  33,  47,  48,  61,  63,  64,  65,   80,   96,
                                               97, 127, 128, 129, 191, 255, 256, 257, 1024, 1025, 4096};
  return sizes;
}

std::vector<std::int64_t> at_most(std::vector<std::int64_t> values, std::int64_t limit) {
  std::vector<std::int64_t> kept;
  for (const std::int64_t value : values) {
    if (value <= limit) kept.push_back(value);
  }
  return kept;
}

}  // namespace syslab::property
