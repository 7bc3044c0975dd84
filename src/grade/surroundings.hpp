// What a check may come to beside the submission itself: what the interpreter has installed, and the GPUs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/device_kind.hpp"
#include "core/lack.hpp"

namespace syslab::grade {

// The interpreter's version, each package that it finds with its version, and the GPUs that are to be seen, as one
// digest: another one may make another grade of the same files.
std::string digest_of_surroundings();

// Error(usage) where that interpreter has no torch: every submission would lack it, and earn nothing for that.
void require_torch();

// What torch lacks where FSDP is asked in fp16 on that device; nothing: it computes so, or it is a GPU's.
std::optional<Lack> lack_in_half(DeviceKind device);

// Of all files of a submission's own copy, with their names: what it reads need not be source code.
std::string digest_of_files(const std::filesystem::path& folder);

}  // namespace syslab::grade
