// The TCP rendezvous as a rank sees it. Rank 0 hosts the server and talks to it like all others.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <mutex>

#include "comm/rendezvous/launch_secret.hpp"
#include "comm/rendezvous/tcp_search.hpp"
#include "comm/rendezvous/tcp_server.hpp"
#include "core/rank_error.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

struct StoreAddress {
  std::string host;
  int port = 0;
  std::string token;
};

StoreAddress read_address(const std::string& text) {
  const std::string rest = text.substr(std::string_view("tcp://").size());
  const std::size_t slash = rest.find('/');
  const std::string where = rest.substr(0, slash);
  const std::size_t colon = where.rfind(':');
  StoreAddress address;
  if (slash != std::string::npos) address.token = rest.substr(slash + 1);
  if (colon != std::string::npos) {
    address.host = where.substr(0, colon);
    if (address.host.starts_with('[') && address.host.ends_with(']')) {
      address.host = address.host.substr(1, address.host.size() - 2);
    }
    const char* end = where.data() + where.size();
    if (std::from_chars(where.data() + colon + 1, end, address.port).ptr != end) address.port = 0;
  }
  if (address.host.empty() || address.port < 1 || address.port > 65535) {
    throw Error(ErrorKind::usage,
                fmt::format("rendezvous '{}': expected tcp://HOST:PORT/TOKEN with a port from 1 to 65535", text));
  }
  return address;
}

int last_port(const StoreAddress& address) { return std::min(address.port + kPorts - 1, 65535); }

std::string ports(const StoreAddress& address) {
  return fmt::format("ports {}–{} of {}", address.port, last_port(address), address.host);
}

class TcpRendezvous final : public Rendezvous {
 public:
  explicit TcpRendezvous(const RendezvousOptions& given)
      : Rendezvous(given),
        address_(read_address(given.address)),
        secret_(given.secret ? *given.secret : launch_secret(process_variables())) {
    RendezvousHello hello;
    hello.token = address_.token;
    hello.size = size();
    hello.rank = rank();
    hello.process = this_process();
    hello.build = options().build;
    if (rank() == 0) {
      serve(hello);
    } else {
      look_for_server(hello);
    }
  }

  ~TcpRendezvous() override {
    // Left by an exception, this rank will not come to what the others wait for.
    if (std::uncaught_exceptions() > exceptions_) fail(fmt::format("rank {} was ended by an error", rank()));
    client_.send(Packet() << rendezvous_message::bye, Clock::now() + 200ms);
    if (server_ != nullptr) server_->wait_until_left(Clock::now() + options().limit);
  }

  void set(std::string_view key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    if (!client_.send(Packet() << rendezvous_message::set << key << value, Clock::now() + options().limit)) lost();
  }

  std::optional<std::string> find(std::string_view key, milliseconds limit) override {
    const std::lock_guard lock(mutex_);
    if (limit > 0ms) {
      auto found = answer(rendezvous_message::find, key, Clock::now() + limit);
      if (found) return found;
    }
    // Whatever the limit, the server is given the time to say that it has nothing.
    const Deadline patience = Clock::now() + std::max<milliseconds>(options().limit, 2s);
    return answer(rendezvous_message::peek, key, patience);
  }

  void remove(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    if (!client_.send(Packet() << rendezvous_message::remove << key, Clock::now() + options().limit)) lost();
  }

  void fail(std::string_view reason) noexcept override {
    try {
      const std::lock_guard lock(mutex_);
      client_.send(Packet() << rendezvous_message::fail << reason, Clock::now() + 200ms);
    } catch (...) {  // whoever fails has its own error to tell; the others have their limits
    }
  }

  std::string host() const override { return address_.host; }
  Key key() const override { return derived(secret_, "job " + address_.token); }
  std::filesystem::path directory() const override { return {}; }

 private:
  [[noreturn]] void lost() const {
    throw RankError(Fault::peer, fmt::format("rank {}: rank 0, which keeps the rendezvous, has ended", rank()));
  }

  // Nothing at the deadline, or when the server says that there is nothing.
  std::optional<std::string> answer(std::uint64_t what, std::string_view key, Deadline deadline) {
    const std::uint64_t request = ++requests_;
    if (!client_.send(Packet() << what << request << key, deadline)) lost();
    while (true) {
      const MessageClient::Message message = client_.receive(deadline);
      if (message.state == Received::end) lost();
      if (message.state == Received::nothing) return std::nullopt;
      PacketReader reader(message.payload);
      const std::uint64_t kind = reader.number();
      // An answer to an earlier call that has stopped waiting.
      if (reader.number() != request) continue;
      std::string text = reader.text();
      if (kind == rendezvous_message::failed) throw RankError(Fault::peer, text);
      if (kind == rendezvous_message::value) return text;
      return std::nullopt;
    }
  }

  void serve(const RendezvousHello& hello) {
    FileDescriptor listener;
    int port = address_.port;
    for (; port <= last_port(address_); ++port) {
      listener = listen_tcp(address_.host, port);
      if (listener) break;
    }
    if (!listener) {
      throw Error(ErrorKind::comm,
                  fmt::format("rank 0 can listen on none of the {}: all are in use; name another port in "
                              "the rendezvous '{}'",
                              ports(address_), options().address));
    }
    server_ = std::make_unique<TcpRendezvousServer>(std::move(listener), rendezvous_key(), hello);
    // The address is rank 0's name as other hosts know it; rank 0's own host may not resolve it.
    TcpSearch search({address_.host, "127.0.0.1"}, port, port, rendezvous_key(), hello);
    if (client_ = search.find(Clock::now() + std::max<milliseconds>(options().limit, 2s)); client_) return;
    throw Error(ErrorKind::comm,
                fmt::format("rank 0 cannot reach its own rendezvous at {} port {}", address_.host, port));
  }

  void look_for_server(const RendezvousHello& hello) {
    const Deadline deadline = Clock::now() + options().limit;
    TcpSearch search({address_.host}, address_.port, last_port(address_), rendezvous_key(), hello);
    if (client_ = search.find(std::min(deadline, Clock::now() + options().notice)); client_) return;
    if (Clock::now() < deadline) {
      say(fmt::format("'rendezvous' still finds no rank 0 of this job on {}{}", ports(address_), search.met()));
      if (client_ = search.find(deadline); client_) return;
    }
    throw RankError(
        Fault::late,
        fmt::format("rank {} found no rank 0 of this job (token '{}') on {} within {:.1f} s{}: it did not start, or "
                    "listens elsewhere{}",
                    rank(), address_.token, ports(address_), std::chrono::duration<double>(options().limit).count(),
                    search.met(), search.met_impostor() ? "; " + launch_secret_remedy() : ""));
  }

  std::string hint() const override {
    if (server_ == nullptr || server_->unproven() == 0) return {};
    return "; somebody came who speaks as a rank does and did not prove to know the secret of this launch; " +
           launch_secret_remedy();
  }

  const StoreAddress address_;
  // Not derived from the job's token: a rank with another job's token can then be told so.
  Key rendezvous_key() const { return derived(secret_, "rendezvous"); }

  const Key secret_;
  const int exceptions_ = std::uncaught_exceptions();
  std::unique_ptr<TcpRendezvousServer> server_;
  std::mutex mutex_;
  MessageClient client_;
  std::uint64_t requests_ = 0;
};

}  // namespace

std::unique_ptr<Rendezvous> open_tcp_rendezvous(const RendezvousOptions& options) {
  return std::make_unique<TcpRendezvous>(options);
}

}  // namespace syslab::comm
