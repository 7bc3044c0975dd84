// The checksums of a safetensors file, in two entries of its __metadata__:
//
//   "syslab.checksum.header"    of the length and the header, with zeros in this place
//   "syslab.checksum.tensors"   of the data of each tensor, in the order of the data, one behind the other
//
// Their width is known before the data, so the header is written first with zeros in their places. Two entries, so that
// a file whose one entry is damaged is not taken for one without checksums.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/weights/safetensors.hpp"

namespace syslab::model {

bool is_checksum_key(std::string_view key);
// The two entries, with zeros.
FileMetadata empty_checksums(std::size_t tensors);
// Into a header that was made with empty_checksums().
void fill_checksums(std::string& header, std::span<const std::string> of_tensors);

struct HeaderChecksums {
  std::string expected, found;          // of the header
  std::vector<std::string> of_tensors;  // meaningful if the header is whole
  bool header_is_whole() const { return expected == found; }
};
// Nothing in a file without checksums. Looks at the text alone, which may be damaged in any way.
std::optional<HeaderChecksums> checksums_in(std::string_view header);

}  // namespace syslab::model
