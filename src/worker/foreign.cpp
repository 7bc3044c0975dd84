#include "worker/foreign.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/build_info.hpp"
#include "core/json_text.hpp"
#include "core/refusal.hpp"
#include "worker/call.hpp"
#include "worker/case_context.hpp"
#include "worker/fields.hpp"

namespace syslab::worker {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kDyingTime{2000};  // from the end of its pipe to its own end
constexpr std::int64_t kTickMs =
    250;  // a worker that dies while a child of it holds its pipe open is noticed at a tick

SpawnOptions spawn_options(const ForeignOptions& options, int shared_fd) {
  SpawnOptions spawn;
  spawn.argv = options.command;
  spawn.environment = options.environment;
  spawn.extra_fd = shared_fd;
  spawn.own_group = options.own_group;
  return spawn;
}

template <typename View>
SharedTensor describe(std::string_view name, const View& view) {
  return {std::string(name), view.dtype, view.shape, view.strides, 0};
}

// What the implementation raised, in the kind that decides the attempt's status.
[[noreturn]] void raise(const Failed& failed, std::string_view function) {
  std::string text = failed.message;
  if (!failed.traceback.empty()) text += "\n" + failed.traceback;
  if (failed.kind == "unsupported") throw Unsupported(failed.message);
  if (failed.kind == "oom") throw Error(ErrorKind::oom, text, std::string(function));
  if (failed.kind == "exception") throw Refusal(text, std::string(function));
  throw Error(ErrorKind::comm, fmt::format("the worker answered '{}': {}", failed.kind, text), std::string(function));
}

}  // namespace

ForeignWorker::ForeignWorker(ForeignOptions options)
    : options_(std::move(options)),
      process_(Process::spawn(spawn_options(options_, segment_.fd()))),
      reader_(process_.from_child()),
      errors_(process_.error_output()) {
  greet();
}

void ForeignWorker::greet() {
  Json hello{{"type", "hello"},
             {"protocol", kProtocolVersion},
             {"host", "syslab " + build_info().version},
             {"memory_fd", segment_.fd()},
             {"device", options_.device},
             {"memory_limit_bytes", options_.memory_limit_bytes}};
  if (options_.world_size > 1) hello.update({{"rank", options_.rank}, {"world_size", options_.world_size}});
  const Json reply = exchange(hello, options_.start_timeout, "starting");
  const Fields fields(reply, "the worker's greeting");
  if (fields.text("type") == "failed") raise(std::get<Failed>(call_reply_from_json(reply)), "hello");
  if (fields.text("type") != "hello") fields.fail("field 'type' must be \"hello\"");
  if (const std::int64_t version = fields.integer("protocol"); version != kProtocolVersion) {
    fields.fail(
        fmt::format("it speaks version {} of the worker protocol, this host version {}", version, kProtocolVersion));
  }
  name_ = fields.text("name");
  language_ = fields.text("language");
  declared_ = std::make_shared<const Json>(reply.value("domain", Json::object()));
  const Json serves = reply.value("serves", Json::array());
  if (std::find(serves.begin(), serves.end(), "call") == serves.end()) fields.fail("it does not serve calls");
}

void ForeignWorker::fail_dead(std::string_view doing) {
  const auto deadline = Clock::now() + kDyingTime;
  std::optional<ExitStatus> status;
  while (!(status = process_.poll()) && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!status) process_.kill_group(SIGKILL);
  while (errors_.drain() && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::string text =
      fmt::format("the worker '{}' ended while {} ({})", name_.empty() ? options_.command.front() : name_, doing,
                  status ? status->describe() : "it closed its pipe and did not end");
  if (reader_.pending_bytes() != 0) text += fmt::format(", {} bytes into a message", reader_.pending_bytes());
  if (const std::string lines = errors_.last_lines(12); !lines.empty()) text += "; its last lines:\n" + lines;
  broken_ = text;
  throw Error(ErrorKind::comm, text);
}

Json ForeignWorker::exchange(const Json& message, std::chrono::milliseconds timeout, std::string_view doing) {
  if (!broken_.empty()) throw Error(ErrorKind::comm, broken_);
  try {
    write_frame(process_.to_child(), message);
  } catch (const Error&) {
    fail_dead(doing);
  }
  const auto deadline = Clock::now() + timeout;
  bool errors_open = true;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      broken_ = fmt::format("the worker '{}' was still {} after {} s and was stopped",
                            name_.empty() ? options_.command.front() : name_, doing,
                            std::chrono::duration<double>(timeout).count());
      process_.kill_group(SIGKILL);
      throw Error(ErrorKind::comm, broken_);
    }
    const bool ended = process_.poll().has_value();  // before looking at the pipe: its answer comes before its end
    std::array<struct pollfd, 2> wait{{{process_.from_child(), POLLIN, 0}, {process_.error_output(), POLLIN, 0}}};
    const int ready = ::poll(wait.data(), errors_open ? 2 : 1, ended ? 0 : static_cast<int>(std::min(left, kTickMs)));
    if (ready < 0 && errno != EINTR) throw_errno(ErrorKind::comm, "wait for a worker", errno, "poll");
    if (ready < 0) continue;
    if (errors_open && wait[1].revents != 0) errors_open = errors_.drain();
    if (wait[0].revents == 0) {
      if (ended) fail_dead(doing);
      continue;
    }
    try {
      const FrameReader::Result result = reader_.read(std::chrono::milliseconds(0));
      if (result.state == FrameReader::State::end) fail_dead(doing);
      if (result.state == FrameReader::State::timeout) continue;
      Json reply = json_or_discarded(result.text);
      if (reply.is_discarded()) throw Error(ErrorKind::comm, "the worker's answer is no JSON");
      return reply;
    } catch (const Error& error) {  // what follows on this pipe cannot be trusted
      if (broken_.empty()) broken_ = error.what();
      process_.kill_group(SIGKILL);
      throw;
    }
  }
}

Nanoseconds ForeignWorker::call(std::string_view function, std::span<const NamedInput> inputs,
                                std::span<const NamedOutput> outputs, const Params& options) {
  CallRequest request;
  request.function = function;
  request.options = options;
  for (const NamedInput& input : inputs) request.inputs.push_back(describe(input.name, input.view));
  for (const NamedOutput& output : outputs) request.outputs.push_back(describe(output.name, output.view));
  segment_.arrange(request.inputs, request.outputs);
  request.memory_bytes = segment_.bytes();
  for (std::size_t i = 0; i < inputs.size(); ++i) segment_.copy_in(request.inputs[i], inputs[i].view.data);
  for (std::size_t i = 0; i < outputs.size(); ++i) segment_.copy_in(request.outputs[i], outputs[i].view.data);

  const auto begin = Clock::now();
  const Json reply = exchange(to_json(request), options_.call_timeout, fmt::format("running {}", function));
  const Nanoseconds round_trip = Clock::now() - begin;

  const std::variant<Returned, Failed> result = call_reply_from_json(reply);
  if (const auto* failed = std::get_if<Failed>(&result)) raise(*failed, function);
  const Nanoseconds elapsed = std::get<Returned>(result).elapsed;
  if (elapsed > round_trip) {
    throw Error(ErrorKind::check,
                fmt::format("the worker '{}' reports {} ns for {}, but the whole call took {} ns: its clock is not the "
                            "monotonic one, or counts another unit",
                            name_, elapsed.count(), function, round_trip.count()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) segment_.copy_out(request.outputs[i], outputs[i].view.data);
  if (const auto violation = segment_.violation(request.outputs)) {
    throw Error(ErrorKind::check, fmt::format("{}: {}", function, *violation));
  }
  return elapsed;
}

}  // namespace syslab::worker
