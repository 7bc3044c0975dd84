// Around a kernel launch: the right GPU is current, and a launch that failed does not pass silently.
#pragma once

#include <string_view>

#include "device/device.hpp"

namespace syslab::device {

bool built_with_cuda();
// GPUs that this process can use: 0 without CUDA, driver or GPU. Opens the driver.
int gpu_count() noexcept;

// Right after a launch. Error(device) naming the kernel, what CUDA says and the remedy, when the launch or anything
// before it on this GPU failed.
void check_launch(std::string_view kernel);

// Makes a GPU current while it lives; for the CPU it does nothing. A launch needs the GPU of its stream to be current.
class CurrentDevice {
 public:
  explicit CurrentDevice(Place place);
  explicit CurrentDevice(Stream stream);
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

 private:
  int before_ = -1;  // -1: nothing to put back
};

}  // namespace syslab::device
