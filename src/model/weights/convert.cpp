#include "model/weights/convert.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/error.hpp"
#include "device/parallel.hpp"

namespace syslab::model {
namespace {

template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_same_v<To, double>) {
    return to_double(value);
  } else if constexpr (std::is_same_v<From, double>) {
    return from_float<To>(static_cast<float>(value));
  } else {
    return from_float<To>(to_float(value));
  }
}

// Calls `body` with a null pointer to the type that `dtype` names.
template <typename Body>
void with_type(DType dtype, Body body) {
  switch (dtype) {
    case DType::f64:
      return body(static_cast<double*>(nullptr));
    case DType::f32:
      return body(static_cast<float*>(nullptr));
    case DType::f16:
      return body(static_cast<f16*>(nullptr));
    case DType::bf16:
      return body(static_cast<bf16*>(nullptr));
  }
}

constexpr std::int64_t kPiece = std::int64_t{1} << 16;  // elements of a thread; a smaller tensor stays on this one

}  // namespace

void convert(const ConstTensorView& from, const TensorView& to) {
  const std::int64_t elements = from.elements();
  if (to.elements() != elements) throw Error(ErrorKind::internal, "conversion between tensors of different sizes");
  if (elements == 0) return;
  if (from.dtype == to.dtype) {
    std::memcpy(to.data, from.data, static_cast<std::size_t>(elements) * size_of(to.dtype));
    return;
  }
  with_type(from.dtype, [&]<typename From>(From*) {
    with_type(to.dtype, [&]<typename To>(To*) {
      const auto* source = from.as<From>();
      auto* target = to.as<To>();
      device::parallel_for((elements + kPiece - 1) / kPiece, [&](std::int64_t piece, int) {
        const std::int64_t end = std::min(elements, (piece + 1) * kPiece);
        for (std::int64_t i = piece * kPiece; i < end; ++i) target[i] = converted<To>(source[i]);
      });
    });
  });
}

}  // namespace syslab::model
