// The library's part of a range: nvtx.cu, or nothing in builds without CUDA.
#pragma once

namespace syslab::device {

void nvtx_push(const char* name) noexcept;
void nvtx_pop() noexcept;

}  // namespace syslab::device
