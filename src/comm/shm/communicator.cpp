#include "comm/host_communicator.hpp"
#include "comm/shm/channel.hpp"
#include "comm/shm/rendezvous.hpp"
#include "comm/shm/shm.hpp"
#include "core/error.hpp"

namespace syslab::comm {
namespace {

class ShmCommunicator final : public HostCommunicator {
 public:
  ShmCommunicator(std::unique_ptr<ShmSegment> segment, const CommunicatorOptions& options)
      : HostCommunicator(segment->rank(), segment->size(), options),
        segment_(std::move(segment)),
        queued_(*segment_, 0),
        of_host_(*segment_, 1) {}

  ~ShmCommunicator() override { finish(); }

  std::string_view backend() const override { return "shm"; }

 protected:
  void perform(std::span<const Call> calls) override {
    const std::uint64_t before = queued_.moved_bytes();
    told([&] { queued_.perform(calls); });
    for (const Call& call : calls) {
      const Signature& signature = call.signature;
      if (signature.operation == Operation::receive) counted().add_moved(signature, signature.bytes());
      if (!is_pairwise(signature.operation)) counted().add_moved(signature, queued_.moved_bytes() - before);
    }
  }

  std::vector<std::string> exchange_now(const Call& call, std::string_view text) override {
    std::vector<std::string> texts;
    told([&] { texts = of_host_.exchange(call, text); });
    return texts;
  }

  void spread(std::string_view failure) noexcept override { segment_->fail(failure, failure_state().blame()); }
  void hear() const override {
    if (!segment_->failed()) return;
    const std::string reason = segment_->failure();
    failure_state().set(reason, segment_->blame());
  }
  bool compares_signatures() const override { return true; }

 private:
  // What a channel throws names rank and operation already, in the same words on all ranks.
  template <typename Body>
  void told(const Body& body) {
    try {
      body();
    } catch (const Error& error) {
      if (!failed()) fail(error.what(), blame_of(error, rank()));
      throw_if_failed();
    }
  }

  std::unique_ptr<ShmSegment> segment_;
  ShmChannel queued_, of_host_;
};

}  // namespace

std::unique_ptr<Communicator> connect_shm(Rendezvous& rendezvous, const CommunicatorOptions& options,
                                          ShmOptions memory) {
  memory.limit = options.limit;
  std::unique_ptr<ShmSegment> segment;
  if (rendezvous.rank() == 0) {
    segment = ShmSegment::create(rendezvous.size(), memory);
    rendezvous.set("shm/address", segment->address());
  } else {
    segment =
        ShmSegment::join(rendezvous.get("shm/address", options.limit), rendezvous.rank(), rendezvous.size(), memory);
  }
  rendezvous.wait_all("shm/joined", options.limit);
  segment->wait_for_all();
  return std::make_unique<ShmCommunicator>(std::move(segment), options);
}

std::unique_ptr<Communicator> connect_shm(const std::filesystem::path& directory, int rank, int size,
                                          const CommunicatorOptions& options, ShmOptions memory) {
  memory.limit = options.limit;
  if (size == 1 && rank == 0) return std::move(make_shm_for_threads(1, options, memory)[0]);
  return std::make_unique<ShmCommunicator>(meet_in_directory(directory, rank, size, memory), options);
}

std::vector<std::unique_ptr<Communicator>> make_shm_for_threads(int size, const CommunicatorOptions& options,
                                                                ShmOptions memory) {
  memory.limit = options.limit;
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (std::unique_ptr<ShmSegment>& segment : ShmSegment::for_threads(size, memory)) {
    ranks.push_back(std::make_unique<ShmCommunicator>(std::move(segment), options));
  }
  return ranks;
}

}  // namespace syslab::comm
