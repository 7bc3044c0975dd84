// The comments that open a .sql file of a report. They are ours, so that bad ones are internal errors.
#include "report/sql_header.hpp"

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syslab;
  const std::string text(fuzz::text_of(data, size));
  // In a folder of which no experiment has this file: a header that says "like" is refused there.
  fuzz::read_or_refuse([&] { report::read_sql_file("the file", "tables", text); }, true);
  fuzz::read_or_refuse([&] { report::parts_filled(text); }, true);
  return 0;
}
