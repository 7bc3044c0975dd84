#include "comm/rendezvous/tcp_server.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace syslab::comm {
namespace {

constexpr std::chrono::milliseconds kLatecomers{500};

RendezvousHello read_hello(PacketReader& packet) {
  RendezvousHello hello;
  hello.version = packet.number();
  hello.token = packet.text();
  if (hello.version != rendezvous_message::kVersion) return hello;  // the rest is in that version's format
  hello.size = static_cast<int>(packet.number());
  hello.rank = static_cast<int>(packet.number());
  hello.process.host = packet.text();
  hello.process.system = packet.text();
  hello.process.pid = static_cast<pid_t>(packet.number());
  hello.process.start = packet.number();
  hello.build = packet.text();
  return hello;
}

}  // namespace

Packet to_packet(const RendezvousHello& hello) {
  Packet packet;
  packet << rendezvous_message::hello << hello.version << hello.token << static_cast<std::uint64_t>(hello.size)
         << static_cast<std::uint64_t>(hello.rank) << hello.process.host << hello.process.system
         << static_cast<std::uint64_t>(hello.process.pid) << hello.process.start << hello.build;
  return packet;
}

TcpRendezvousServer::TcpRendezvousServer(FileDescriptor listener, const Key& key, RendezvousHello own)
    : own_(std::move(own)), server_(std::move(listener), key, *this) {}

bool TcpRendezvousServer::complete() const {
  return members_.size() == static_cast<std::size_t>(own_.size) &&
         std::all_of(members_.begin(), members_.end(), [](const auto& one) { return one.second.confirmed; });
}

std::map<int, TcpRendezvousServer::Member>::iterator TcpRendezvousServer::member(Peer peer) {
  return std::find_if(members_.begin(), members_.end(), [&](const auto& one) { return one.second.peer == peer; });
}

void TcpRendezvousServer::meet(Peer peer, PacketReader& packet) {
  const RendezvousHello hello = read_hello(packet);
  const auto turn_away = [&](std::uint64_t how, const std::string& reason) {
    server_.send(peer, Packet() << how << reason);
    server_.close(peer);
  };
  if (hello.token != own_.token) return turn_away(rendezvous_message::stranger, "another job's token");
  const auto there = members_.find(hello.rank);
  if (complete()) {
    return turn_away(
        rendezvous_message::stranger,
        fmt::format("a job of this token whose {} ranks are all there (rank 0 is {})", own_.size, own_.process.text()));
  }
  std::string reason = failure_;
  if (!reason.empty()) return turn_away(rendezvous_message::refused, reason);
  if (hello.version != rendezvous_message::kVersion) {
    reason = fmt::format(
        "rank 0 ({}) speaks version {} of the rendezvous and somebody else version {}: start all ranks from "
        "one build",
        own_.process.text(), own_.version, hello.version);
  } else if (hello.size != own_.size) {
    reason = fmt::format("world size {} on rank 0 ({}), but {} on rank {} ({})", own_.size, own_.process.text(),
                         hello.size, hello.rank, hello.process.text());
  } else if (hello.rank < 0 || hello.rank >= own_.size) {
    reason =
        fmt::format("rank {} ({}) of a world of {}: ranks count from 0", hello.rank, hello.process.text(), own_.size);
  } else if (hello.build != own_.build) {
    reason = fmt::format("build '{}' on rank 0 ({}), but '{}' on rank {} ({})", own_.build, own_.process.text(),
                         hello.build, hello.rank, hello.process.text());
  } else if (there != members_.end() && (there->second.confirmed || there->second.process.pid != hello.process.pid)) {
    reason =
        fmt::format("rank {} joined twice: {} and {}", hello.rank, there->second.process.text(), hello.process.text());
  }
  if (!reason.empty()) {
    turn_away(rendezvous_message::refused, reason);
    return fail(reason);
  }
  members_[hello.rank] = {peer, hello.process};
  server_.send(peer, Packet() << rendezvous_message::accepted);
}

void TcpRendezvousServer::on_message(Peer peer, std::string_view payload) {
  PacketReader packet(payload);
  const std::uint64_t what = packet.number();
  if (what == rendezvous_message::hello) return meet(peer, packet);
  const auto who = member(peer);
  if (who == members_.end()) throw Error(ErrorKind::comm, "a request of somebody who is no rank");
  switch (what) {
    case rendezvous_message::confirm:
      who->second.confirmed = true;
      return;
    case rendezvous_message::bye:
      who->second.left = true;
      return tell_whether_over();
    case rendezvous_message::fail:
      return fail(packet.text());
    case rendezvous_message::set: {
      const std::string key = packet.text();
      return keep(key, packet.text());
    }
    case rendezvous_message::remove:
      values_.erase(packet.text());
      return;
    default:
      break;
  }
  const std::uint64_t request = packet.number();
  const std::string key = packet.text();
  if (!failure_.empty()) return server_.send(peer, Packet() << rendezvous_message::failed << request << failure_);
  const auto found = values_.find(key);
  if (found != values_.end()) {
    server_.send(peer, Packet() << rendezvous_message::value << request << found->second);
  } else if (what == rendezvous_message::peek) {
    server_.send(peer, Packet() << rendezvous_message::absent << request << "");
  } else {
    waiters_[key].push_back({peer, request});
  }
}

void TcpRendezvousServer::keep(const std::string& key, std::string value) {
  const std::string& kept = values_[key] = std::move(value);
  for (const Waiter& waiter : waiters_[key]) {
    server_.send(waiter.peer, Packet() << rendezvous_message::value << waiter.request << kept);
  }
  waiters_.erase(key);
}

void TcpRendezvousServer::on_gone(Peer peer) {
  const auto who = member(peer);
  if (who == members_.end() || who->second.left) return;
  who->second.gone = true;
  if (!who->second.confirmed) {
    members_.erase(who);
    return;
  }
  fail(fmt::format("rank {} ({}) ended without leaving: it was killed or crashed", who->first,
                   who->second.process.text()));
}

void TcpRendezvousServer::fail(const std::string& reason) {
  if (!failure_.empty()) return tell_whether_over();
  failure_ = reason;
  for (const auto& [key, waiters] : waiters_) {
    for (const Waiter& waiter : waiters) {
      server_.send(waiter.peer, Packet() << rendezvous_message::failed << waiter.request << failure_);
    }
  }
  waiters_.clear();
  tell_whether_over();
}

void TcpRendezvousServer::tell_whether_over() {
  const bool all_left = complete() && std::all_of(members_.begin(), members_.end(),
                                                  [](const auto& one) { return one.second.left || one.second.gone; });
  {
    const std::lock_guard lock(mutex_);
    over_ = all_left;
    failed_ = !failure_.empty();
  }
  changed_.notify_all();
}

void TcpRendezvousServer::wait_until_left(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return over_ || failed_; });
  // Ranks that are still connecting or about to ask must learn why the job failed.
  if (failed_) changed_.wait_for(lock, kLatecomers, [&] { return over_; });
}

}  // namespace syslab::comm
