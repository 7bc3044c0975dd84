// For kernel launches: makes the right GPU current and reports failed launches.
#pragma once

#include <string_view>

#include "device/device.hpp"

namespace syslab::device {

bool built_with_cuda();
// GPUs that this process can use: 0 without CUDA, driver or GPU. Opens the driver.
int gpu_count() noexcept;

// Call right after a launch. Error(device) with the kernel, CUDA's message and the remedy if the launch or anything
// before it on this GPU failed.
void check_launch(std::string_view kernel);

// Makes a GPU current during its lifetime; does nothing for the CPU. A launch needs the GPU of its stream to be
// current.
class CurrentDevice {
 public:
  explicit CurrentDevice(Place place);
  explicit CurrentDevice(Stream stream);
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

 private:
  int before_ = -1;  // -1: nothing to restore
};

}  // namespace syslab::device
