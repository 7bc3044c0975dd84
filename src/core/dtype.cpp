#include "core/dtype.hpp"

namespace syslab {

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "fp64";
    case DType::f32:
      return "fp32";
    case DType::f16:
      return "fp16";
    case DType::bf16:
      return "bf16";
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if (text == to_string(dtype)) return dtype;
  }
  return std::nullopt;
}

}  // namespace syslab
