#include "worker/judged/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "core/text/printable.hpp"
#include "worker/wire/fields.hpp"

namespace syslab::worker {
namespace {

// In the order of FailedKind.
constexpr std::array<std::string_view, 6> kFailedKinds{"exception", "unsupported", "oom",
                                                       "check",     "device",      "protocol"};

Json to_json(const SharedTensor& tensor) {
  const int rank = tensor.shape.rank();
  Json json{{"name", tensor.name},
            {"dtype", to_string(tensor.dtype)},
            {"shape", tensor.shape.to_vector()},
            {"strides", std::vector<std::int64_t>(tensor.strides.begin(), tensor.strides.begin() + rank)},
            {"offset", tensor.offset}};
  if (tensor.lent) json["lent"] = true;
  return json;
}

Json to_json(const std::vector<SharedTensor>& tensors) {
  Json list = Json::array();
  for (const SharedTensor& tensor : tensors) list.push_back(to_json(tensor));
  return list;
}

SharedTensor tensor_from_json(const Json& json) {
  const Fields fields(json, "a tensor of a call");
  SharedTensor tensor;
  tensor.name = fields.text("name");
  const std::string dtype = fields.text("dtype");
  const std::optional<DType> known = parse_dtype(dtype);
  if (!known) fields.fail(fmt::format("there is no dtype '{}'", dtype));
  tensor.dtype = *known;
  const std::vector<std::int64_t> shape = fields.integers_or_none("shape"),
                                  strides = fields.integers_or_none("strides");
  if (shape.size() != strides.size() || shape.size() > static_cast<std::size_t>(kMaxRank)) {
    fields.fail(fmt::format("{} sizes and {} strides; they must be as many, at most {}", shape.size(), strides.size(),
                            kMaxRank));
  }
  tensor.shape = Shape(shape);
  std::copy(strides.begin(), strides.end(), tensor.strides.begin());
  tensor.offset = static_cast<std::uint64_t>(fields.integer("offset"));
  tensor.lent = json.value("lent", false);
  return tensor;
}

// Names come of whatever was loaded there: they are cut, and cannot move a cursor.
std::optional<KernelsOfCall> kernels_from_json(const Json& reply) {
  constexpr std::size_t kMostKernels = 200, kLongestName = 300;
  constexpr std::int64_t kMostLaunches = 1'000'000'000;
  if (!reply.contains("kernels")) return std::nullopt;
  const Fields fields(reply, "reply 'returned'");
  if (!reply["kernels"].is_array()) fields.fail("field 'kernels' must be a list of names and launches");
  KernelsOfCall told{.why = cut_to(printable(fields.text_or("no_kernels", "")), kLongestName)};
  for (const Json& each : reply["kernels"]) {
    const Fields kernel(each, "a kernel of a call");
    if (told.kernels.size() == kMostKernels) break;
    told.kernels.push_back({cut_to(printable(kernel.text("name")), kLongestName),
                            std::clamp<std::int64_t>(kernel.integer("launches"), 0, kMostLaunches)});
  }
  return told;
}

std::vector<SharedTensor> tensors_from_json(const Json& list) {
  std::vector<SharedTensor> tensors;
  for (const Json& each : list) tensors.push_back(tensor_from_json(each));
  return tensors;
}

}  // namespace

Json to_json(const CallRequest& request) {
  Json json{{"type", "call"},
            {"function", request.function},
            {"options", request.options.to_json()},
            {"inputs", to_json(request.inputs)},
            {"outputs", to_json(request.outputs)},
            {"memory_bytes", request.memory_bytes}};
  if (request.release) json["release"] = true;
  if (request.guarded) json["guarded"] = true;
  if (request.graph) json["graph"] = true;
  if (request.kernels) json["kernels"] = true;
  if (request.empty != EmptyCall::none) {
    json["empty"] = request.empty == EmptyCall::with_results ? "with_results" : "plain";
  }
  if (!request.gpu_memory.empty()) json.update({{"gpu_memory", request.gpu_memory}, {"step", request.step}});
  return json;
}

CallRequest call_request_from_json(const Json& json) {
  const Fields fields(json, "message 'call'");
  CallRequest request;
  request.function = fields.text("function");
  request.options = Params::from_json(fields.object("options"));
  request.inputs = tensors_from_json(json.value("inputs", Json::array()));
  request.outputs = tensors_from_json(json.value("outputs", Json::array()));
  request.memory_bytes = static_cast<std::uint64_t>(fields.integer("memory_bytes"));
  request.release = json.value("release", false);
  request.guarded = json.value("guarded", false);
  request.graph = json.value("graph", false);
  request.kernels = json.value("kernels", false);
  if (const std::string empty = json.value("empty", ""); !empty.empty()) {
    if (empty != "plain" && empty != "with_results") fields.fail("field 'empty' must be \"plain\" or \"with_results\"");
    request.empty = empty == "plain" ? EmptyCall::plain : EmptyCall::with_results;
  }
  request.gpu_memory = json.value("gpu_memory", "");
  request.step = json.value("step", std::uint32_t{0});
  return request;
}

void KernelsOfCall::add(const KernelsOfCall& more) {
  for (const Kernel& one : more.kernels) {
    const auto known = std::ranges::find(kernels, one.name, &Kernel::name);
    if (known == kernels.end()) {
      kernels.push_back(one);
    } else {
      known->launches += one.launches;
    }
  }
  if (why.empty()) why = more.why;
}

Json to_json(const KernelsOfCall& told) {
  Json list = Json::array();
  for (const KernelsOfCall::Kernel& one : told.kernels)
    list.push_back({{"name", one.name}, {"launches", one.launches}});
  return list;
}

std::string_view to_string(FailedKind kind) { return kFailedKinds.at(static_cast<std::size_t>(kind)); }

std::variant<Returned, Failed, Prepared, Queued> call_reply_from_json(const Json& json) {
  const std::string type = Fields(json, "the reply to a call").text("type");
  const Fields fields(json, fmt::format("reply '{}'", type));
  if (type == "returned") {
    const std::int64_t elapsed = fields.integer("elapsed_ns");
    if (elapsed < 0) fields.fail(fmt::format("field 'elapsed_ns' must not be negative, found {}", elapsed));
    Returned returned{.elapsed = Nanoseconds(elapsed), .flags = fields.integer_or("flags", 0)};
    returned.clock_hz = fields.optional_number("clock_hz");
    constexpr double kFastest = 1e11;
    if (returned.clock_hz && !(*returned.clock_hz > 0 && *returned.clock_hz <= kFastest)) {
      fields.fail(fmt::format("field 'clock_hz' is no clock rate: {}", *returned.clock_hz));
    }
    returned.kernels = kernels_from_json(json);
    return returned;
  }
  if (type == "failed") {
    const auto kind = std::ranges::find(kFailedKinds, fields.one_of("kind", kFailedKinds)) - kFailedKinds.begin();
    Failed failed{static_cast<FailedKind>(kind), fields.text("message"), fields.text_or("traceback", "")};
    if (failed.kind == FailedKind::check) failed.finding = FindingKind::wrong_value;
    failed.finding = finding_kind_of(fields.text_or("finding", "")).value_or(failed.finding);
    if (failed.kind == FailedKind::exception) failed.lacks = claim_of(json.value("lacks", Json()));
    return failed;
  }
  if (type == "ready") {
    Prepared prepared;
    for (const Json& name : json.value("early", Json::array())) {
      if (!name.is_string()) fields.fail("field 'early' must be a list of names");
      prepared.early.push_back(name.get<std::string>());
    }
    return prepared;
  }
  if (type == "queued") {
    Queued queued;
    for (const Json& each : json.value("outputs", Json::array())) {
      if (each.is_null()) {
        queued.outputs.emplace_back();
        continue;
      }
      const Fields place(each, "the place of an output");
      queued.outputs.push_back({place.text("handle"), static_cast<std::uint64_t>(place.integer("offset"))});
    }
    return queued;
  }
  throw Error(ErrorKind::comm, fmt::format("a call is answered by 'returned' or 'failed', found '{}'", type));
}

}  // namespace syslab::worker
