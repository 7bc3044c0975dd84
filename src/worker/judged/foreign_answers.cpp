// What a worker is sent and answers, and how it ended where it does not.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "core/text/json_text.hpp"
#include "worker/judged/foreign.hpp"
#include "worker/judged/function_ended.hpp"
#include "worker/judged/guard_pages.hpp"

namespace syslab::worker {
namespace {

constexpr std::chrono::milliseconds kDyingTime{2000};  // from the end of its pipe to its own end
constexpr std::int64_t kTickMs = 250;  // noticed at a tick if a child of a dead worker holds its pipe open

FindingKind kind_of(const std::optional<ExitStatus>& status) {
  if (status && status->signalled && (status->code == SIGKILL || status->code == SIGTERM)) return FindingKind::killed;
  if (!status || status->signalled) return FindingKind::crash;
  return status->code == kReadPastTheEnd    ? FindingKind::read_outside
         : status->code == kWrotePastTheEnd ? FindingKind::write_outside
                                            : FindingKind::crash;
}

}  // namespace

// Before its greeting a worker also ends by itself: its interpreter is missing, say, or the machine's memory is full,
// which ends it by SIGKILL. What is loaded then is to blame where a signal of its own ended it, or an exit of its own
// after the worker said that it loads.
FindingKind ForeignWorker::kind_of_end(const std::optional<ExitStatus>& status) const {
  if (!name_.empty()) return kind_of(status);
  const bool by_itself = options_.judged && status && (status->signalled ? status->code != SIGKILL : loading_);
  return by_itself ? FindingKind::crash : FindingKind::unanswered;
}

ForeignWorker::Doing ForeignWorker::starting() { return {"starting"}; }

ForeignWorker::Doing ForeignWorker::running(const CallRequest& request) {
  return {"running " + request.function, request.is_of_function()};
}

// The file: of a Python class as it was told, of a library the command's last argument but the device.
std::string ForeignWorker::loaded() const {
  if (!options_.implementation.empty()) return options_.implementation;
  for (const std::string& one : options_.command) {
    if (one.starts_with('=')) return one.substr(1);
  }
  return options_.command.front();
}

void ForeignWorker::fail_dead(const Doing& doing) {
  const auto deadline = Clock::now() + kDyingTime;
  std::optional<ExitStatus> status;
  while (!(status = process_.poll()) && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!status) process_.kill_group(SIGKILL);
  while (errors_.drain() && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::string name = name_.empty() ? options_.command.front() : name_;
  const std::string how = status ? status->describe() : "it closed its pipe and did not end";
  std::string text =
      doing.in_function ? fmt::format("the process of '{}' ended in a call ({})", name, how)
      : loading_
          ? fmt::format("loading '{}' ended its process ({}); expected a file that loads without that", loaded(), how)
          : fmt::format("the worker '{}' ended while {} ({})", name, doing.words, how);
  if (reader_.pending_bytes() != 0) text += fmt::format(", {} bytes into a message", reader_.pending_bytes());
  if (const std::string lines = errors_.last_lines(12); !lines.empty()) text += "; its last lines:\n" + lines;
  broken_ = text;
  if (doing.in_function) throw FunctionEnded(text);
  throw FoundFault(ErrorKind::comm, kind_of_end(status), text);
}

void ForeignWorker::send(const Json& message, const Doing& doing) {
  if (!broken_.empty()) throw Error(ErrorKind::comm, broken_);
  try {
    write_frame(process_.to_child(), message);
  } catch (const Error&) {
    fail_dead(doing);
  }
}

// `timeout` is what the deadline was made of, for the message.
Json ForeignWorker::receive(Clock::time_point deadline, std::chrono::milliseconds timeout, const Doing& doing) {
  bool errors_open = true;
  bool has_more = reader_.pending_bytes() != 0;  // that came with the last answer, of which poll() knows nothing
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      broken_ = fmt::format("the worker '{}' was still {} after {} s and was stopped",
                            name_.empty() ? options_.command.front() : name_, doing.words,
                            std::chrono::duration<double>(timeout).count());
      process_.kill_group(SIGKILL);
      throw FoundFault(ErrorKind::comm, name_.empty() ? FindingKind::unanswered : FindingKind::hang, broken_);
    }
    const bool ended = process_.poll().has_value();  // before reading the pipe: its answer comes before its end
    std::array<struct pollfd, 2> wait{{{process_.from_child(), POLLIN, 0}, {process_.error_output(), POLLIN, 0}}};
    const int longest = ended || has_more ? 0 : static_cast<int>(std::min(left, kTickMs));
    const int ready = ::poll(wait.data(), errors_open ? 2 : 1, longest);
    if (ready < 0 && errno != EINTR) throw_errno(ErrorKind::comm, "wait for a worker", errno, "poll");
    if (ready < 0) continue;
    if (errors_open && wait[1].revents != 0) errors_open = errors_.drain();
    if (wait[0].revents == 0 && !std::exchange(has_more, false)) {
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
    } catch (const Error& error) {  // the rest of this pipe cannot be trusted
      if (broken_.empty()) broken_ = error.what();
      process_.kill_group(SIGKILL);
      throw;
    }
  }
}

bool ForeignWorker::answers_within(std::chrono::milliseconds limit) {
  if (reader_.pending_bytes() != 0) return true;
  struct pollfd wait {
    process_.from_child(), POLLIN, 0
  };
  return ::poll(&wait, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace syslab::worker
