#include "model/precision.hpp"

#include <array>

#include "core/error.hpp"
#include "core/text/named.hpp"

namespace syslab::model {
namespace {

constexpr auto kPrecisions = std::to_array<Named<Precision>>({{Precision::fp64, "fp64"},
                                                              {Precision::fp32, "fp32"},
                                                              {Precision::tf32, "tf32"},
                                                              {Precision::bf16_amp, "bf16_amp"},
                                                              {Precision::fp16_amp, "fp16_amp"},
                                                              {Precision::bf16_fused, "bf16_fused"}});
constexpr auto kVariants =
    std::to_array<Named<Variant>>({{Variant::eager, "eager"}, {Variant::fused, "fused"}, {Variant::graph, "graph"}});

}  // namespace

std::string_view to_string(Precision precision) { return name_in(kPrecisions, precision); }
Precision parse_precision(std::string_view text) { return find_named(kPrecisions, "precision", text).value; }
std::string_view to_string(Variant variant) { return name_in(kVariants, variant); }

DTypes dtypes_of(Precision precision, Variant variant) {
  const auto all = [](DType dtype) {
    return DTypes{.weights = dtype,
                  .product = dtype,
                  .residual = dtype,
                  .normalized = dtype,
                  .rotated = dtype,
                  .statistics = dtype};
  };
  const auto autocast = [variant](DType low) {
    DTypes made;
    made.weights_copy = made.product = low;
    made.normalized = made.rotated = variant == Variant::eager ? DType::f32 : low;
    return made;
  };
  switch (precision) {
    case Precision::fp64:
      return all(DType::f64);
    case Precision::fp32:
      return all(DType::f32);
    case Precision::tf32: {
      DTypes made = all(DType::f32);
      made.math = device::GemmMath::tf32;
      return made;
    }
    case Precision::bf16_amp:
      return autocast(DType::bf16);
    case Precision::fp16_amp:
      return autocast(DType::f16);
    case Precision::bf16_fused: {
      DTypes made = all(DType::bf16);
      made.weights = made.statistics = DType::f32;
      made.weights_copy = DType::bf16;
      return made;
    }
  }
  throw Error(ErrorKind::internal, "no such precision");
}

}  // namespace syslab::model
