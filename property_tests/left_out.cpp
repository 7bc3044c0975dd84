#include "property_tests/left_out.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace syslab::property {

std::string above(std::string_view what, std::int64_t largest) { return fmt::format("{} > {}", what, largest); }

std::string other_than(std::string_view what, const std::vector<double>& all) {
  return fmt::format("{} other than {:.4g}", what, fmt::join(all, ", "));
}

std::string sizes_left_out(std::string_view what, const std::vector<std::int64_t>& sizes) {
  const auto gap =
      std::ranges::adjacent_find(sizes, [](std::int64_t one, std::int64_t next) { return next > one + 1; });
  const std::string between = gap == sizes.end() ? "" : fmt::format(" and some above {}", *gap);
  return above(what, sizes.back()) + between;
}

std::string all_left_out(const std::vector<DType>& tried, std::vector<std::string> parts) {
  std::vector<std::string> all;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    if (std::ranges::find(tried, dtype) == tried.end()) all.emplace_back(to_string(dtype));
  }
  all.insert(all.end(), parts.begin(), parts.end());
  return fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace syslab::property
