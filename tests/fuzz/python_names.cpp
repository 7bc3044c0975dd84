// What a submission's Python file names: it is read in grade's own process, before anything of it runs.
#include "grade/python_names.hpp"

#include <cstdlib>

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syslab;
  constexpr std::size_t kMostOfAByte = 256;
  std::size_t bytes = 0;
  for (const grade::PythonName& one : grade::names_in(fuzz::text_of(data, size))) {
    if (one.line < 1) std::abort();
    bytes += one.name.size();
  }
  if (bytes > kMostOfAByte * (size + 1)) std::abort();
  return 0;
}
