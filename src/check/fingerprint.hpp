// Whether bytes have changed, at memory speed, so that it can follow every refresh of inputs. Not for identities.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"

namespace syslab::check {

// Writes the checksum of `bytes` at `data` to *sum in the order of the stream; both lie in its device's memory, aligned
// to 8. Checksums of different devices do not compare.
void fingerprint(const void* data, std::size_t bytes, std::uint64_t* sum, device::Stream stream);

}  // namespace syslab::check
