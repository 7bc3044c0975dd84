// The certificate of full sharding, on ranks that are threads.
#pragma once

#include "certify/fsdp_certificate.hpp"
#include "tests/parallel/ranks_fixture.hpp"

namespace syslab::test {

// Three layers of odd sizes, the lowest of which has the bias that is final last.
inline parallel::FsdpCertificateCase three_layers() {
  parallel::FsdpCertificateCase asked;
  asked.asked.model = {.layers = {{4, 5, true}, {5, 3, false}, {3, 6, true}}};
  asked.options.gather.poison = true;
  return asked;
}

// A communicator that is late: something is done in the stream's order before every call.
class Late final : public comm::Communicator {
 public:
  Late(comm::Communicator& inner, std::function<void(device::Stream)> before)
      : Communicator(inner.rank(), inner.size(), inner.options()), inner_(inner), before_(std::move(before)) {}
  std::string_view backend() const override { return "late"; }

 protected:
  void queue(std::span<const comm::Call> calls) override {
    for (const comm::Call& call : calls) {
      before_(call.stream);
      const comm::Signature& asked = call.signature;
      const comm::Purpose purpose{asked.kind.view(), asked.label.view()};
      const std::int64_t all = asked.count * size();
      switch (asked.operation) {
        case comm::Operation::all_gather:
          inner_.all_gather({call.in, asked.dtype, {asked.count}}, {call.out, asked.dtype, {all}}, purpose,
                            call.stream);
          break;
        case comm::Operation::reduce_scatter:
          inner_.reduce_scatter({const_cast<void*>(call.in), asked.dtype, {all}},
                                {call.out, asked.dtype, {asked.count}}, comm::Reduction::sum, purpose, call.stream);
          break;
        default:
          inner_.all_reduce({call.out, asked.dtype, {asked.count}}, comm::Reduction::sum, purpose, call.stream);
      }
    }
  }
  void queue_alone(const comm::Call& call) override { comm::copy_alone(call); }
  void wait_until_done(std::uint64_t) override {}
  std::vector<std::string> exchange_now(const comm::Call&, std::string_view text) override {
    return inner_.exchange(text);
  }
  void spread(std::string_view failure) noexcept override { inner_.abort(failure); }

 private:
  comm::Communicator& inner_;
  std::function<void(device::Stream)> before_;
};

// Work that is done late, of one rank: before each piece of it on a stream, and before each call of the communicator.
struct Lateness {
  std::function<void(device::Stream)> work, call;
  std::function<bool(const WaitOf&)> waits = {};  // Interference's
};

// What any rank found to differ from one process.
inline std::optional<std::string> sharded_difference(const parallel::FsdpCertificateCase& asked, int ranks,
                                                     const std::function<Lateness(int rank)>& lateness = {}) {
  const parallel::Trained alone = train_alone(asked.asked);
  std::vector<std::optional<std::string>> found(static_cast<std::size_t>(ranks));
  with_ranks(ranks, [&](comm::Communicator& group, device::Stream compute, device::Stream communication) {
    const Lateness late = lateness ? lateness(group.rank()) : Lateness{};
    Late wrapped(group, late.call);
    InterferingObserver observer({.waits = late.waits, .before_work = late.work});
    parallel::FsdpCertificateCase watched = asked;
    watched.options.observer = &observer;
    const parallel::Trained together = train_sharded(watched, late.call ? wrapped : group, compute, communication);
    found[static_cast<std::size_t>(group.rank())] = difference(asked.asked, together, alone);
  });
  for (const std::optional<std::string>& one : found) {
    if (one) return one;
  }
  return std::nullopt;
}

}  // namespace syslab::test
