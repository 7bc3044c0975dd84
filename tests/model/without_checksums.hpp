// The bytes of a safetensors file as another program, or an older syslab, would have written them: without checksums.
#pragma once

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

namespace syslab::test {

inline std::string without_checksums(const std::string& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  nlohmann::json header = nlohmann::json::parse(bytes.substr(sizeof length, length));
  for (const char* key : {"syslab.checksum.header", "syslab.checksum.tensors"}) header["__metadata__"].erase(key);
  const std::string data = bytes.substr(sizeof length + length), text = header.dump();
  length = text.size();
  std::string result(sizeof length, '\0');
  std::memcpy(result.data(), &length, sizeof length);
  return result + text + data;
}

}  // namespace syslab::test
