#include "comm/rendezvous/launch_secret.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/error.hpp"
#include "core/files/secret.hpp"

namespace syslab::comm {

Key launch_secret(const Variables& variables) {
  const auto said = variables.find(kLaunchSecret);
  if (said == variables.end() || said->second.empty()) return secret("launch");
  const std::string& digits = said->second;
  Key key{};
  bool good = digits.size() == 2 * key.size();
  for (std::size_t i = 0; good && i < key.size(); ++i) {
    const char* const at = digits.data() + 2 * i;
    good = std::from_chars(at, at + 2, key[i], 16).ptr == at + 2;
  }
  // What it says is a secret, and is not shown.
  if (!good) {
    throw Error(ErrorKind::usage, fmt::format("{} has {} characters and is not {} hexadecimal digits: {}",
                                              kLaunchSecret, digits.size(), 2 * key.size(), launch_secret_remedy()));
  }
  return key;
}

std::string launch_secret_remedy() {
  return fmt::format(
      "where hosts share no home folder, give all processes of the launch one secret: "
      "export {}=$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n')",
      kLaunchSecret);
}

}  // namespace syslab::comm
