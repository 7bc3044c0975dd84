#include "worker/call.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "worker/fields.hpp"

namespace syslab::worker {
namespace {

Json to_json(const SharedTensor& tensor) {
  const int rank = tensor.shape.rank();
  return {{"name", tensor.name},
          {"dtype", to_string(tensor.dtype)},
          {"shape", tensor.shape.to_vector()},
          {"strides", std::vector<std::int64_t>(tensor.strides.begin(), tensor.strides.begin() + rank)},
          {"offset", tensor.offset}};
}

Json to_json(const std::vector<SharedTensor>& tensors) {
  Json list = Json::array();
  for (const SharedTensor& tensor : tensors) list.push_back(to_json(tensor));
  return list;
}

}  // namespace

Json to_json(const CallRequest& request) {
  return {{"type", "call"},
          {"function", request.function},
          {"options", request.options.to_json()},
          {"inputs", to_json(request.inputs)},
          {"outputs", to_json(request.outputs)},
          {"memory_bytes", request.memory_bytes}};
}

std::variant<Returned, Failed> call_reply_from_json(const Json& json) {
  const std::string type = Fields(json, "the reply to a call").text("type");
  const Fields fields(json, fmt::format("reply '{}'", type));
  if (type == "returned") {
    const std::int64_t elapsed = fields.integer("elapsed_ns");
    if (elapsed < 0) fields.fail(fmt::format("field 'elapsed_ns' must not be negative, found {}", elapsed));
    return Returned{Nanoseconds(elapsed)};
  }
  if (type == "failed") {
    return Failed{fields.text("kind"), fields.text("message"), fields.text_or("traceback", "")};
  }
  throw Error(ErrorKind::comm, fmt::format("a call is answered by 'returned' or 'failed', found '{}'", type));
}

}  // namespace syslab::worker
