// How a failed CUDA call becomes an Error: what was asked, the error's name and text, and the remedy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syslab::device {

// What to do about a CUDA error, by its name ("cudaErrorNoKernelImageForDevice"). Never empty.
std::string_view remedy_for(std::string_view error_name);

// `asked` reads "copy 4096 B to the GPU". Running out of memory is ErrorKind::oom, everything else ErrorKind::device.
[[noreturn]] void throw_cuda_error(std::string_view asked, std::string_view call, const char* error_name,
                                   const char* error_text);
// ErrorKind::oom with the bytes asked for and the GPU's free and total bytes.
[[noreturn]] void throw_out_of_memory(std::uint64_t bytes, std::string_view tag, std::string_view where,
                                      std::uint64_t free, std::uint64_t total, std::string_view call);
// ErrorKind::device: "this build has no CUDA: cannot …".
[[noreturn]] void throw_no_cuda(std::string_view asked);

}  // namespace syslab::device
