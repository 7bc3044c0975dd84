#include "comm/rendezvous/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/error.hpp"

namespace syslab::comm {
namespace {

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Null, and the reason in `why`, if the name cannot be resolved.
AddressList addresses_of(const std::string& host, int port, int flags, std::string& why) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) why = fmt::format("host '{}': {}", host, ::gai_strerror(error));
  return {error == 0 ? found : nullptr, [](addrinfo* list) {
            if (list != nullptr) ::freeaddrinfo(list);
          }};
}

bool is_loopback_name(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Tries to bind: an address that reaches us may belong to another host that forwards connections.
bool is_of_this_host(const addrinfo& address) {
  const FileDescriptor probe(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage any_port{};
  std::memcpy(&any_port, address.ai_addr, address.ai_addrlen);
  (address.ai_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(any_port).sin6_port
                                 : reinterpret_cast<sockaddr_in&>(any_port).sin_port) = 0;
  return probe && ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&any_port), address.ai_addrlen) == 0;
}

void set_nodelay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Connecting to a free port of one's own host may, by chance, connect a socket to itself.
bool is_connected_to_itself(int socket) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &here_size) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&there), &there_size) == 0 && here_size == there_size &&
         std::memcmp(&here, &there, here_size) == 0;
}

// The error of a connection attempt; 0: it is connected.
int finish_connecting(int socket, Deadline deadline) {
  pollfd waiting{socket, POLLOUT, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return ETIMEDOUT;
  return ready < 0 ? errno : end_connecting(socket);
}

// "/proc/self/fd/7/name": short whatever the directory is.
struct ShortPath {
  FileDescriptor directory;
  sockaddr_un address{};

  ShortPath(const std::filesystem::path& folder, const std::string& name)
      : directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    address.sun_family = AF_UNIX;
    const std::string path = fmt::format("/proc/self/fd/{}/{}", directory.get(), name);
    std::copy_n(path.data(), std::min(path.size(), sizeof address.sun_path - 1), address.sun_path);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

}  // namespace

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

FileDescriptor listen_tcp(const std::string& host, int port) {
  std::string why;
  AddressList list = addresses_of(host, port, is_loopback_name(host) ? AI_PASSIVE : AI_PASSIVE | AI_NUMERICHOST, why);
  if (list == nullptr || !is_of_this_host(*list)) list = addresses_of("", port, AI_PASSIVE, why);
  if (list == nullptr) throw Error(ErrorKind::comm, "cannot listen: " + why, "getaddrinfo");
  FileDescriptor listener(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) throw_errno(ErrorKind::comm, "open a socket", errno, "socket");
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.get(), list->ai_addr, list->ai_addrlen) != 0 || ::listen(listener.get(), SOMAXCONN) != 0) {
    const int error = errno;
    listener.reset();
    // EACCES: ports below 1024 are privileged. The caller tries the next port in that case too.
    if (error != EADDRINUSE && error != EACCES)
      throw_errno(ErrorKind::comm, fmt::format("listen on port {}", port), error, "bind");
    errno = error;
  }
  return listener;
}

int port_of(const FileDescriptor& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_errno(ErrorKind::comm, "ask a socket for its port", errno, "getsockname");
  }
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

FileDescriptor listen_unix(const std::filesystem::path& directory, const std::string& name) {
  const ShortPath path(directory, name);
  FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!path.directory || !listener || ::bind(listener.get(), path.get(), sizeof path.address) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    throw_errno(ErrorKind::comm, fmt::format("listen on the socket '{}/{}'", directory.string(), name), errno, "bind");
  }
  return listener;
}

std::vector<TcpAddress> TcpAddress::look_up(const std::string& host, std::string& why) {
  std::vector<TcpAddress> found;
  const AddressList list = addresses_of(host, 0, 0, why);
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    TcpAddress& address = found.emplace_back();
    std::memcpy(&address.address_, at->ai_addr, at->ai_addrlen);
    address.size_ = at->ai_addrlen;
  }
  return found;
}

FileDescriptor TcpAddress::begin_connecting(int port) const {
  sockaddr_storage address = address_;
  (address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                 : reinterpret_cast<sockaddr_in&>(address).sin_port) =
      htons(static_cast<std::uint16_t>(port));
  FileDescriptor socket(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size_) != 0 &&
      errno != EINPROGRESS) {
    const int error = errno;
    socket.reset();
    errno = error;
  }
  return socket;
}

int end_connecting(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  if (error == 0 && is_connected_to_itself(socket)) error = ECONNREFUSED;
  if (error == 0) set_nodelay(socket);
  return error;
}

Connected connect_tcp(const std::string& host, int port, Deadline deadline) {
  Connected made;
  for (const TcpAddress& address : TcpAddress::look_up(host, made.why)) {
    FileDescriptor socket = address.begin_connecting(port);
    const int error = socket ? finish_connecting(socket.get(), deadline) : errno;
    if (error == 0) {
      made.socket = std::move(socket);
      return made;
    }
    made.why = std::strerror(error);
  }
  return made;
}

Connected connect_unix(const std::filesystem::path& directory, const std::string& name) {
  Connected made;
  const ShortPath path(directory, name);
  made.socket = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!path.directory || !made.socket || ::connect(made.socket.get(), path.get(), sizeof path.address) != 0) {
    made.why = std::strerror(errno);
    made.socket.reset();
  }
  return made;
}

bool send_all(int socket, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return false;
    pollfd waiting{socket, POLLOUT, 0};
    if (::poll(&waiting, 1, milliseconds_until(deadline)) == 0) return false;
  }
  return true;
}

Received receive_some(int socket, std::string& into, Deadline deadline, int wake) {
  std::array<char, 16384> chunk;
  while (true) {
    const ssize_t got = ::recv(socket, chunk.data(), chunk.size(), 0);
    if (got > 0) {
      into.append(chunk.data(), static_cast<std::size_t>(got));
      return Received::bytes;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) return Received::end;
    if (errno == EINTR) continue;
    std::array<pollfd, 2> waiting{pollfd{socket, POLLIN, 0}, pollfd{wake, POLLIN, 0}};
    const int ready = ::poll(waiting.data(), wake >= 0 ? 2 : 1, milliseconds_until(deadline));
    if (ready == 0 || (ready > 0 && waiting[0].revents == 0)) return Received::nothing;
  }
}

}  // namespace syslab::comm
