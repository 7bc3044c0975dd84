#include "model/weights/safetensors_checksums.hpp"

#include <algorithm>
#include <cstdint>

#include "core/error.hpp"
#include "core/files/checksum.hpp"

namespace syslab::model {
namespace {

constexpr std::string_view kOfHeader = "syslab.checksum.header", kOfTensors = "syslab.checksum.tensors";

std::string zeros(std::size_t checksums) { return std::string(checksums * Checksum::kHexDigits, '0'); }

// Where the value of this entry begins. In JSON a text holds no bare quotation mark, so nothing else looks like it.
std::size_t place_of(std::string_view header, std::string_view key) {
  const std::string entry = '"' + std::string(key) + R"(":")";
  const std::size_t found = header.find(entry);
  return found == std::string_view::npos ? found : found + entry.size();
}

std::string checksum_of_header(std::string header, std::size_t place) {
  header.replace(place, Checksum::kHexDigits, zeros(1));
  const std::uint64_t length = header.size();
  Checksum checksum;
  checksum.update(std::as_bytes(std::span(&length, 1)));
  checksum.update(std::as_bytes(std::span(header)));
  return checksum.hex();
}

}  // namespace

bool is_checksum_key(std::string_view key) { return key == kOfHeader || key == kOfTensors; }

FileMetadata empty_checksums(std::size_t tensors) {
  return {{std::string(kOfHeader), zeros(1)}, {std::string(kOfTensors), zeros(tensors)}};
}

void fill_checksums(std::string& header, std::span<const std::string> of_tensors) {
  std::size_t place = place_of(header, kOfTensors);
  for (const std::string& checksum : of_tensors) {
    header.replace(place, checksum.size(), checksum);
    place += checksum.size();
  }
  place = place_of(header, kOfHeader);
  header.replace(place, Checksum::kHexDigits, checksum_of_header(header, place));
}

std::optional<HeaderChecksums> checksums_in(std::string_view header) {
  const std::size_t of_header = place_of(header, kOfHeader);
  std::size_t of_tensors = place_of(header, kOfTensors);
  if (of_header == header.npos && of_tensors == header.npos) return std::nullopt;
  HeaderChecksums checksums{.expected = "none", .found = "not computed", .of_tensors = {}};
  if (of_header == header.npos || header.size() - of_header < Checksum::kHexDigits) return checksums;
  checksums.expected = header.substr(of_header, Checksum::kHexDigits);
  checksums.found = checksum_of_header(std::string(header), of_header);
  const std::size_t end = std::min(header.find('"', std::min(of_tensors, header.size())), header.size());
  for (; of_tensors < end && end - of_tensors >= Checksum::kHexDigits; of_tensors += Checksum::kHexDigits) {
    checksums.of_tensors.emplace_back(header.substr(of_tensors, Checksum::kHexDigits));
  }
  return checksums;
}

}  // namespace syslab::model
