// A log of another program for `import`.
#include "cli/import_log.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace syslab;

const registry::Registry& one_experiment() {
  static const registry::Registry registry = [] {
    registry::Registry made;
    made.add(registry::experiment("e")
                 .title("One")
                 .question("What?")
                 .runs([](worker::CaseContext&) {})
                 .axis("rows", {std::int64_t{1}, std::int64_t{2}}, "rows")
                 .metric("time", "s", "time of a call"));
    made.seal();
    return made;
  }();
  return registry;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::read_or_refuse([&] { cli::read_log(one_experiment(), fuzz::text_of(data, size), "the log"); });
  return 0;
}
