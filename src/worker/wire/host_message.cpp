#include "worker/wire/host_message.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "worker/wire/fields.hpp"

namespace syslab::worker {

std::optional<HostMessage> next_host_message(FrameReader& reader) {
  const FrameReader::Result result = reader.read(std::nullopt);
  if (result.state != FrameReader::State::frame) return std::nullopt;
  const auto json = std::make_shared<const Json>(json_or_discarded(result.text));
  if (json->is_discarded()) throw Error(ErrorKind::comm, "a frame of the host is no JSON");
  std::string type = Fields(*json, "a message of the host").text("type");
  if (type == "bye") return std::nullopt;
  return HostMessage{std::move(type), json};
}

}  // namespace syslab::worker
