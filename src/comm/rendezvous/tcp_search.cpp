#include "comm/rendezvous/tcp_search.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/rank_error.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kStep = 20ms;
constexpr Clock::duration kRest = 50ms;     // between two tries at one port
constexpr Clock::duration kPatience = 10s;  // with a server that proves nothing; others are tried at the same time
constexpr Clock::duration kAnswer = 2s;     // to a question, from a server that has proven itself

}  // namespace

TcpSearch::TcpSearch(const std::vector<std::string>& hosts, int first_port, int last_port, const Key& key,
                     RendezvousHello hello)
    : key_(key), hello_(std::move(hello)) {
  std::string why;
  std::vector<TcpAddress> addresses;
  for (const std::string& host : hosts) {
    const std::vector<TcpAddress> found = TcpAddress::look_up(host, why);
    addresses.insert(addresses.end(), found.begin(), found.end());
  }
  if (addresses.empty()) throw Error(ErrorKind::comm, "cannot reach rank 0: " + why, "getaddrinfo");
  for (int port = first_port; port <= last_port; ++port) {
    for (const TcpAddress& address : addresses) {
      knocks_.push_back({.address = address, .port = port, .handshake = Handshake(Handshake::Side::connecting, key_)});
    }
  }
}

void TcpSearch::enter(Knock& knock, Stage stage) {
  knock.stage = stage;
  knock.until = Clock::now() + (stage == Stage::resting ? kRest : stage == Stage::asked ? kAnswer : kPatience);
}

void TcpSearch::rest(Knock& knock, std::string_view seen) {
  knock.seen = seen;
  knock.socket.reset();
  knock.client = {};
  enter(knock, Stage::resting);
}

bool TcpSearch::hear_answer(Knock& knock) {
  const MessageClient::Message message = knock.client.receive(Clock::now());
  if (message.state == Received::nothing) return false;
  if (message.state == Received::end) {
    rest(knock, kHangsUp);
    return false;
  }
  PacketReader reader(message.payload);
  const std::uint64_t kind = reader.number();
  if (kind == rendezvous_message::refused) {
    throw RankError(Fault::mismatch, fmt::format("refused by rank 0: {}", reader.text()));
  }
  if (kind == rendezvous_message::accepted &&
      knock.client.send(Packet() << rendezvous_message::confirm, Clock::now() + kAnswer)) {
    return true;
  }
  rest(knock, kind == rendezvous_message::stranger ? reader.text() : std::string(kHangsUp));
  return false;
}

bool TcpSearch::go_on(Knock& knock) {
  if (knock.stage != Stage::resting && Clock::now() >= knock.until) {
    rest(knock, describe(Handshake::State::incomplete));
    return false;
  }
  if (knock.stage == Stage::resting) {
    if (Clock::now() < knock.until) return false;
    knock.socket = knock.address.begin_connecting(knock.port);
    if (!knock.socket) {
      rest(knock, "");
      return false;
    }
    enter(knock, Stage::connecting);
  }
  if (knock.stage == Stage::connecting) {
    pollfd ready{knock.socket.get(), POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0) return false;
    if (end_connecting(knock.socket.get()) != 0) {
      rest(knock, "");  // nobody listens
      return false;
    }
    knock.handshake = Handshake(Handshake::Side::connecting, key_);
    knock.received.clear();
    if (knock.seen.empty()) knock.seen = describe(Handshake::State::incomplete);
    enter(knock, Stage::proving);
    if (!send_all(knock.socket.get(), knock.handshake.take_output(), Clock::now())) rest(knock, kHangsUp);
    return false;
  }
  if (knock.stage == Stage::proving) prove(knock);
  if (knock.stage == Stage::proven) ask(knock);
  return knock.stage == Stage::asked && hear_answer(knock);
}

void TcpSearch::prove(Knock& knock) {
  const Received received = receive_some(knock.socket.get(), knock.received, Clock::now());
  const Handshake::State state = knock.handshake.take(knock.received);
  if (is_refusal(state)) return rest(knock, describe(state));
  if (state == Handshake::State::proven && send_all(knock.socket.get(), knock.handshake.take_output(), Clock::now())) {
    return enter(knock, Stage::proven);
  }
  if (state == Handshake::State::proven || received == Received::end) rest(knock, kHangsUp);
}

// One at a time: a server may have several addresses, and would refuse a rank that joins it twice.
void TcpSearch::ask(Knock& knock) {
  if (std::ranges::any_of(knocks_, [](const Knock& it) { return it.stage == Stage::asked; })) return;
  knock.client = MessageClient(std::move(knock.socket), knock.handshake.session());
  enter(knock, Stage::asked);
  if (!knock.client.send(to_packet(hello_), Clock::now() + kAnswer)) rest(knock, kHangsUp);
}

pollfd TcpSearch::waiting_for(const Knock& knock) {
  switch (knock.stage) {
    case Stage::connecting:
      return {knock.socket.get(), POLLOUT, 0};
    case Stage::proving:
      return {knock.socket.get(), POLLIN, 0};
    case Stage::asked:
      return {knock.client.descriptor(), POLLIN, 0};
    default:
      return {-1, 0, 0};
  }
}

MessageClient TcpSearch::find(Deadline deadline) {
  while (true) {
    std::vector<pollfd> waiting;
    for (Knock& knock : knocks_) {
      if (go_on(knock)) return std::move(knock.client);
      waiting.push_back(waiting_for(knock));
    }
    if (Clock::now() >= deadline) return {};
    ::poll(waiting.data(), waiting.size(), milliseconds_until(std::min<Deadline>(deadline, Clock::now() + kStep)));
  }
}

std::string TcpSearch::met() const {
  std::string text;
  for (const Knock& knock : knocks_) {
    if (!knock.seen.empty()) {
      text += fmt::format("{}{}: {}", text.empty() ? "; there are " : ", ", knock.port, knock.seen);
    }
  }
  return text;
}

bool TcpSearch::met_impostor() const {
  return std::ranges::any_of(knocks_,
                             [](const Knock& knock) { return knock.seen == describe(Handshake::State::impostor); });
}

}  // namespace syslab::comm
