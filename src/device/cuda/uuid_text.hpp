// A GPU's UUID as NVML and nvidia-smi print it.
#pragma once

#include <cstdio>
#include <string>

namespace syslab::device {

inline std::string uuid_text(const char (&bytes)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

}  // namespace syslab::device
