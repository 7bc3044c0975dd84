// The command line: arguments between zero bytes.
#include "cli/command_line.hpp"

#include "tests/fuzz/ascending_memory.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const syslab::fuzz::AscendingMemory memory;
  std::vector<std::string> arguments(1);
  for (const char letter : syslab::fuzz::text_of(data, size)) {
    if (letter == '\0') {
      arguments.emplace_back();
    } else {
      arguments.back() += letter;
    }
  }
  syslab::fuzz::read_or_refuse([&] { syslab::cli::parse_command_line(arguments); });
  return 0;
}
