#include "device/persisting_lines.hpp"

#include "device/launch.hpp"
#include "device/runtime.hpp"

namespace syslab::device {

void forget_persisting_lines(Place place) {
  if (place.kind == Kind::cpu) return;
  const CurrentDevice current(place);
  runtime::forget_persisting_lines();
}

}  // namespace syslab::device
