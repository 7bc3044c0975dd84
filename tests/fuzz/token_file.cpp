// A corpus for text=: the first byte chooses the extension, which chooses the format.
#include "train/token_file.hpp"

#include <array>

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syslab;
  if (size == 0) return 0;
  constexpr std::array<const char*, 4> kExtensions{".txt", ".bin", ".i32", ".npy"};
  const fuzz::InputFile file(data + 1, size - 1, kExtensions[data[0] % kExtensions.size()]);
  fuzz::read_or_refuse([&] {
    const train::TokenFile tokens(file.path());
    tokens.fingerprint();
    tokens.check(50'000);
  });
  return 0;
}
