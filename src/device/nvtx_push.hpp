// The library's part of a range: nvtx.cu, or nothing where the build has no CUDA.
#pragma once

namespace syslab::device {

void nvtx_push(const char* name) noexcept;
void nvtx_pop() noexcept;

}  // namespace syslab::device
