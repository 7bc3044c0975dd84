#include "comm/rendezvous/reception.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <utility>

#include "core/error.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 20ms;
constexpr auto kLeast = 50ms;  // that each connection is given, however many there are
// More than the whole proof takes. A peer that sends more before it is admitted is dropped.
constexpr std::size_t kLongestProof = 4096;

bool watch(const FileDescriptor& epoll, const FileDescriptor& descriptor) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor.get(), &event) == 0;
}

}  // namespace

Reception::Reception(FileDescriptor listener, const Key& key)
    : key_(key),
      listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!epoll_ || !timer_ || !watch(epoll_, listener_) || !watch(epoll_, timer_))
    throw_errno(ErrorKind::comm, "watch sockets", errno, "epoll_create1");
}

// Otherwise the listener would stay readable, and polling it would spin.
void Reception::stop_accepting() {
  accept_at_ = Clock::now() + kPause;
  itimerspec pause{};
  pause.it_value.tv_nsec = std::chrono::nanoseconds(kPause).count();
  ::timerfd_settime(timer_.get(), 0, &pause, nullptr);  // wakes the thread that polls us
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
}

// Many peers with valid proofs may connect at once: each gets the time for its proof, and further ones wait in the
// listener's backlog.
bool Reception::has_room() {
  if (strangers_.size() < kStrangers) return true;
  if (strangers_.front().until - Clock::now() > kProofLimit - kLeast) return false;
  strangers_.pop_front();
  return true;
}

void Reception::accept_all() {
  if (accept_at_ != Deadline{}) {
    if (Clock::now() < accept_at_) return;
    const itimerspec never{};
    ::timerfd_settime(timer_.get(), 0, &never, nullptr);  // the timer is no longer readable
    if (!watch(epoll_, listener_)) return stop_accepting();
    accept_at_ = {};
  }
  while (true) {
    if (!has_room()) return stop_accepting();
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) stop_accepting();
      return;
    }
    if (!watch(epoll_, socket)) return stop_accepting();
    strangers_.push_back(
        {std::move(socket), Handshake(Handshake::Side::accepting, key_), Clock::now() + kProofLimit, {}});
  }
}

Reception::Verdict Reception::hear(Stranger& stranger) {
  // Reads only what has arrived: an endless sender must not block this.
  const Received received = receive_some(stranger.socket.get(), stranger.received, Clock::now());
  const Handshake::State state = stranger.handshake.take(stranger.received);
  // An answer of a hundred bytes fits the buffer of a new connection.
  if (!send_all(stranger.socket.get(), stranger.handshake.take_output(), Clock::now())) return Verdict::leaves;
  if (state == Handshake::State::proven) return Verdict::admitted;
  // A peer with another key sees that ours differs, and closes the connection.
  if (state == Handshake::State::impostor || (received == Received::end && stranger.handshake.greeted())) ++unproven_;
  if (is_refusal(state) || received == Received::end || stranger.received.size() > kLongestProof ||
      Clock::now() > stranger.until) {
    return Verdict::leaves;
  }
  return Verdict::waits;
}

std::vector<Admitted> Reception::admit() {
  std::vector<Admitted> admitted;
  accept_all();
  for (auto at = strangers_.begin(); at != strangers_.end();) {
    const Verdict verdict = hear(*at);
    if (verdict == Verdict::waits) {
      ++at;
      continue;
    }
    if (verdict == Verdict::admitted) {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->socket.get(), nullptr);
      admitted.push_back({std::move(at->socket), at->handshake.session(), std::move(at->received)});
    }
    at = strangers_.erase(at);
  }
  return admitted;
}

}  // namespace syslab::comm
