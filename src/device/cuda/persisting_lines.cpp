#include "device/cuda/persisting_lines.hpp"

#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"

namespace syslab::device {

void forget_persisting_lines(Place place) {
  if (place.kind == Kind::cpu) return;
  const CurrentDevice current(place);
  runtime::forget_persisting_lines();
}

}  // namespace syslab::device
