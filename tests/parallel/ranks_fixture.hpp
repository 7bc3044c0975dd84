// Ranks as threads, each with a stream for its computing and one for its communication.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "certify/certificate.hpp"
#include "comm/local/local.hpp"
#include "core/random.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"
#include "tests/parallel/interference.hpp"

namespace syslab::test {

using RankBody = std::function<void(comm::Communicator& ranks, device::Stream compute, device::Stream communication)>;

inline void with_ranks(int count, const RankBody& body) {
  comm::run_local(count, {.limit = std::chrono::seconds(20)}, [&](comm::Communicator& ranks) {
    const device::OwnedStream compute = device::OwnedStream::queue(), communication = device::OwnedStream::queue();
    body(ranks, compute, communication);
  });
}

// Whether a rank threw, and said so much. Not of which kind: a rank that is slower than another which is ended by what
// they all found meets the end of the communication, with the other's text.
template <typename... Parts>
::testing::AssertionResult threw(const std::exception_ptr& error, Parts... parts) {
  if (!error) return ::testing::AssertionFailure() << "it threw nothing";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& told) {
    for (const std::string_view part : {std::string_view(parts)...}) {
      if (std::string_view(told.what()).find(part) == std::string_view::npos) {
        return ::testing::AssertionFailure() << "'" << part << "' is not in: " << told.what();
      }
    }
  }
  return ::testing::AssertionSuccess();
}

inline void sleep_in(device::Stream stream, std::chrono::microseconds time) {
  device::enqueue(stream, [time] { std::this_thread::sleep_for(time); });
}

// Delays of at most `most` before one piece of work in four, on either stream, other ones on every rank.
inline std::function<void(device::Stream)> random_delays(std::uint64_t seed, std::chrono::microseconds most) {
  return [random = RandomStream(seed), most, at = std::make_shared<std::uint64_t>(0)](device::Stream stream) {
    const std::uint32_t bits = random.bits((*at)++);
    if (bits % 4 == 0) sleep_in(stream, most * (bits / 4 % 256) / 256);
  };
}

// Three layers, biases, a frozen one, a tied weight, a parameter that one half of the rows use, padding: five pieces in
// three buckets.
inline parallel::CertificateCase everything(parallel::Strategy strategy) {
  parallel::CertificateCase asked;
  asked.model = {.layers = {{4, 4, true}, {4, 4, true, true, 0}, {4, 3, true}}, .fixed = true, .rare = 0, .padding = 3};
  asked.sync = {.strategy = strategy, .bucket_mb = {64 / 0x1p20}};
  asked.sync.schedule = parallel::BucketSchedule({2, 3, 5});
  return asked;
}

// What each rank found to differ from one process; nothing where none did.
inline std::optional<std::string> certificate_difference(
    const parallel::CertificateCase& asked, int ranks, const std::function<Interference(int rank)>& interference = {},
    const std::function<std::unique_ptr<comm::Communicator>(comm::Communicator& ranks)>& around = {}) {
  const parallel::Trained alone = train_alone(asked);
  std::vector<std::optional<std::string>> found(static_cast<std::size_t>(ranks));
  with_ranks(ranks, [&](comm::Communicator& group, device::Stream compute, device::Stream communication) {
    const std::unique_ptr<comm::Communicator> wrapped = around ? around(group) : nullptr;
    InterferingObserver observer(interference ? interference(group.rank()) : Interference{});
    parallel::CertificateCase watched = asked;
    watched.sync.observer = &observer;
    const parallel::Trained together = train_together(watched, wrapped ? *wrapped : group, compute, communication);
    found[static_cast<std::size_t>(group.rank())] = difference(asked, together, alone);
  });
  for (const std::optional<std::string>& one : found) {
    if (one) return one;
  }
  return std::nullopt;
}

}  // namespace syslab::test
