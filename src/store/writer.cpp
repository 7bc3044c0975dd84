#include "store/writer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/process/process_stat.hpp"

namespace syslab::store {
namespace {

std::string first_line_of_file(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Nothing if there is no such process, or only a zombie.
std::optional<std::int64_t> start_ticks(std::int64_t pid) {
  const auto stat = process_stat(static_cast<pid_t>(pid));
  if (!stat || !stat->runs()) return std::nullopt;
  return static_cast<std::int64_t>(stat->start_ticks);
}

}  // namespace

const Writer& this_writer() {
  // Computed again after a fork, since the child is another process.
  thread_local Writer writer;
  if (writer.pid != ::getpid()) {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    std::error_code ignored;
    writer.host = host.data();
    writer.boot_id = first_line_of_file("/proc/sys/kernel/random/boot_id");
    writer.pid_namespace = std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
    writer.pid = ::getpid();
    writer.start_ticks = start_ticks(writer.pid).value_or(0);
  }
  return writer;
}

Json to_json(const Writer& writer) {
  return Json{{"host", writer.host},
              {"boot_id", writer.boot_id},
              {"pid_namespace", writer.pid_namespace},
              {"pid", writer.pid},
              {"start_ticks", writer.start_ticks}};
}

Writer writer_from_json(const Json& json) {
  Writer writer;
  if (!json.is_object()) return writer;
  const auto text = [&](const char* name) {
    return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : std::string();
  };
  const auto integer = [&](const char* name) {
    return json.contains(name) && json[name].is_number_integer() ? json[name].get<std::int64_t>() : 0;
  };
  writer.host = text("host");
  writer.boot_id = text("boot_id");
  writer.pid_namespace = text("pid_namespace");
  writer.pid = integer("pid");
  writer.start_ticks = integer("start_ticks");
  return writer;
}

Liveness liveness(const Writer& writer) {
  const Writer& here = this_writer();
  const bool visible = !writer.boot_id.empty() && writer.boot_id == here.boot_id && writer.pid > 0 &&
                       !writer.pid_namespace.empty() && writer.pid_namespace == here.pid_namespace;
  if (!visible) return Liveness::unknown;
  return start_ticks(writer.pid) == writer.start_ticks ? Liveness::alive : Liveness::dead;
}

bool is_gone(const Writer& writer, double silent_seconds) {
  switch (liveness(writer)) {
    case Liveness::alive:
      return false;
    case Liveness::dead:
      return true;
    case Liveness::unknown:
      break;
  }
  return silent_seconds > kSilenceSeconds;
}

std::string describe(const Writer& writer) {
  if (liveness(writer) != Liveness::unknown) return fmt::format("process {} on this machine", writer.pid);
  return fmt::format("process {} on '{}', last heard of within the last {:.0f} s", writer.pid, writer.host,
                     kSilenceSeconds);
}

}  // namespace syslab::store
