#include "cli/verbs/seed.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/text/text.hpp"

namespace syslab::cli {
namespace {

constexpr std::string_view kSeed = "--seed", kSeedJoined = "--seed=";

std::string first_line_of(int input) {
  std::array<char, 64> text{};  // a seed has 20 digits at most
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(input, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
    if (std::find(text.begin(), text.begin() + size, '\n') != text.begin() + size) break;
  }
  const std::string_view read(text.data(), size);
  const std::string line(trim(std::string(read.substr(0, read.find('\n')))));
  if (line.empty() || line == "-") {
    throw Error(ErrorKind::usage,
                "--seed - takes the seed from standard input, where no line with a number is to be read");
  }
  return line;
}

}  // namespace

void cover_seed(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with(kSeedJoined)) {
      std::fill(argv[i] + kSeedJoined.size(), argv[i] + word.size(), '*');
    } else if (word == kSeed && i + 1 < argc) {
      std::fill_n(argv[i + 1], std::string_view(argv[i + 1]).size(), '*');
    }
  }
}

void take_seed(std::vector<std::string>& arguments, int input) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == std::string(kSeedJoined) + "-") {
      arguments[i] = std::string(kSeedJoined) + first_line_of(input);
    } else if (arguments[i] == kSeed && i + 1 < arguments.size() && arguments[i + 1] == "-") {
      arguments[++i] = first_line_of(input);
    }
  }
}

}  // namespace syslab::cli
