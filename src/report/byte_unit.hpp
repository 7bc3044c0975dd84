// Bytes in a unit that fits them. A table declares MiB or GiB for the models that its question is about; of a toy,
// every cell would read 0.0002.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace syslab::report {

// Bytes of "B", "KiB", "MiB", "GiB" or "TiB"; nothing of another unit.
std::optional<double> bytes_in(std::string_view unit);

// The largest of those units in which `bytes` is 1 or more, or the smallest; none larger than `declared`, which is one
// of them.
std::string_view fitting_unit(double bytes, std::string_view declared);

// "3.015 MiB" of 0.002944 GiB: a value in `unit`, in the unit that fits it, with so many digits; bytes are whole.
std::string with_fitting_unit(double value, std::string_view unit, int digits);

}  // namespace syslab::report
