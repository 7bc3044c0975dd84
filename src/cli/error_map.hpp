// Where a counterexample is wrong, as a picture: each cell the largest error over its bound in a part of the tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syslab::cli {

struct ErrorMap {
  std::string tensor;
  std::int64_t rows = 0, columns = 0;      // of the tensor, whose batches and heads lie over each other
  std::vector<std::vector<double>> cells;  // at most as many; above 1 is wrong
};

// From the artifact that a law leaves. Error(store) if it is none.
ErrorMap parse_error_map(const std::string& json);

// A whole SVG file; `of` names the law and the implementation.
std::string svg_of(const ErrorMap& map, const std::string& of);
// At most 16 lines of 64 characters, and one that explains them.
std::string text_of(const ErrorMap& map);

}  // namespace syslab::cli
