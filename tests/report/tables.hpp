// Small tables made by hand.
#pragma once

#include <string>
#include <vector>

#include "report/table.hpp"

namespace syslab::report {

inline store::Cell null() { return {}; }
inline store::Cell cell(std::int64_t value) {
  store::Cell made;
  made.type = store::Cell::Type::integer;
  made.integer = value;
  return made;
}
inline store::Cell cell(int value) { return cell(static_cast<std::int64_t>(value)); }
inline store::Cell cell(double value) {
  store::Cell made;
  made.type = store::Cell::Type::real;
  made.real = value;
  return made;
}
inline store::Cell cell(const std::string& value) {
  store::Cell made;
  made.type = store::Cell::Type::text;
  made.text = value;
  return made;
}
inline store::Cell cell(const char* value) { return cell(std::string(value)); }

// Three implementations, one of which ran out of memory and one of which was wrong.
inline Table speeds() {
  Table table;
  table.source = parse_table("speeds", R"(-- title: Speeds
-- caption: Median of the samples with its 95 % interval.
-- experiment: toy
-- columns: seq|1|d|right; implementation|1|code|left; causal|1|flag|left; time|ms|ci(low, high)|right;
--   rate|TFLOP/s|.3g|right; protocol?|1|s|left; status|1|status|left
-- note: Rates count unmasked pairs only.
SELECT 1)");
  table.result.columns = {"seq",  "implementation", "causal",   "time",   "low",
                          "high", "rate",           "protocol", "status", "message"};
  table.result.rows = {
      {cell(128), cell("flash_tiled"), cell(1), cell(1.23456), cell(1.2301), cell(1.2390), cell(0.0123456),
       cell("quick"), cell("ok"), null()},
      {cell(128), cell("naive"), cell(0), null(), null(), null(), null(), cell("quick"), cell("oom"),
       cell("needs 242 GiB")},
      {cell(65536), cell("mine|x"), cell(1), null(), null(), null(), null(), cell("quick"), cell("check_failed"),
       cell("out[0, 1]: found *nan*")},
      {cell(65536), cell("slow"), cell(1), cell(1234.5), null(), null(), cell(1e-9), cell("quick"), cell("ok"), null()},
  };
  table.footnote = "CPU Some_Model (2 threads), no GPU · protocol quick · remade by `syslab run toy_one -a x='*'`";
  return table;
}

}  // namespace syslab::report
