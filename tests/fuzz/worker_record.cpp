// What a worker says on its pipe, and what is asked of it.
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "worker/wire/wire.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syslab;
  Json json;
  try {
    json = parse_json(fuzz::text_of(data, size));
  } catch (const Json::exception&) {
    return 0;
  } catch (const Error&) {
    return 0;
  }
  fuzz::read_or_refuse([&] { json_text(to_json(worker::record_from_json(json))); });
  fuzz::read_or_refuse([&] { json_text(to_json(worker::case_request_from_json(json))); });
  fuzz::read_or_refuse([&] { worker::ready_from_json(json); });
  fuzz::read_or_refuse([&] { worker::burst_from_json(json); });
  return 0;
}
