#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <array>
#include <cstring>
#include <system_error>

#include "comm/gloo/gloo.hpp"
#include "comm/host_communicator.hpp"
#include "comm/reduce.hpp"
#include "comm/signature.hpp"
#include "core/rank_error.hpp"

namespace syslab::comm {
namespace {

// Queued operations and those of the host may run at the same time: these tags keep their messages apart.
constexpr std::uint32_t kQueuedTag = 1, kHostTag = 2;
// Messages between two ranks. Gloo's collectives number their slots by a prefix in the highest byte, which is small.
constexpr std::uint64_t kHeadSlot = 0xf0ULL << 56, kBodySlot = kHeadSlot + 1;

class GlooCommunicator final : public HostCommunicator {
 public:
  GlooCommunicator(std::shared_ptr<gloo::Context> context, const CommunicatorOptions& options)
      : HostCommunicator(context->rank, context->size, options), context_(std::move(context)) {}

  ~GlooCommunicator() override { finish(); }

  std::string_view backend() const override { return "gloo"; }

 protected:
  void perform(std::span<const Call> calls) override {
    by_gloo([&] { perform_now(calls); });
  }

  std::vector<std::string> exchange_now(const Call& call, std::string_view text) override {
    std::vector<std::string> texts;
    by_gloo([&] { texts = gather_texts(call, text); });
    return texts;
  }

  // Ranks that wait for this one see its connections close.
  void spread(std::string_view) noexcept override {
    try {
      context_->closeConnections();
    } catch (...) {  // the others reach their time limit
    }
  }

 private:
  // Gloo throws when a connection closes or times out: another rank's failure, but Gloo does not say which rank's.
  template <typename Body>
  static void by_gloo(const Body& body) {
    try {
      body();
    } catch (const ::gloo::Exception& error) {
      throw RankError(Fault::peer, error.what());
    }
  }

  void perform_now(std::span<const Call> calls) {
    const Call& call = calls[0];
    switch (call.signature.operation) {
      case Operation::all_reduce:
        return all_reduce(call.out, call.signature.count, call.signature);
      case Operation::reduce_scatter:
        return reduce_scatter(call);
      case Operation::all_gather:
        return all_gather(call);
      case Operation::broadcast:
        return broadcast(call);
      default:
        return exchange_messages(calls);
    }
  }

  std::vector<std::string> gather_texts(const Call& call, std::string_view text) {
    const auto ranks = static_cast<std::size_t>(size());
    // First the part of fixed size: each rank's call and the length of its text.
    struct Head {
      Signature signature;
      std::uint64_t length = 0;
    };
    Head mine{call.signature, text.size()};
    std::vector<Head> heads(ranks);
    gather(&mine, heads.data(), sizeof mine, kHostTag);
    std::vector<Signature> signatures;
    std::size_t longest = 0;
    for (const Head& head : heads) {
      signatures.push_back(head.signature);
      longest = std::max<std::size_t>(longest, head.length);
    }
    if (const std::string difference = disagreement(signatures); !difference.empty()) {
      throw RankError(Fault::mismatch, difference);
    }
    std::vector<char> padded(longest), all(ranks * longest);
    text.copy(padded.data(), text.size());
    if (longest > 0) gather(padded.data(), all.data(), longest, kHostTag);
    std::vector<std::string> texts;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      texts.emplace_back(all.data() + rank * longest, heads[rank].length);
    return texts;
  }

  void all_reduce(void* buffer, std::int64_t count, const Signature& signature) {
    const DType dtype = signature.dtype;
    const Reduction reduction = signature.reduction;
    gloo::AllreduceOptions options(context_);
    // Gloo only needs a type of the right size.
    const auto elements = static_cast<std::size_t>(count);
    switch (size_of(dtype)) {
      case 8:
        options.setOutput(static_cast<double*>(buffer), elements);
        break;
      case 4:
        options.setOutput(static_cast<float*>(buffer), elements);
        break;
      default:
        options.setOutput(static_cast<std::uint16_t*>(buffer), elements);
        break;
    }
    options.setReduceFunction([dtype, reduction](void* to, const void* first, const void* second, std::size_t length) {
      const std::array<const void*, 2> sources{first, second};
      reduce_in_order(sources, to, dtype, static_cast<std::int64_t>(length), reduction);
    });
    options.setTag(kQueuedTag);
    gloo::allreduce(options);
  }

  // Gloo has no reduce-scatter: reduce everything and keep this rank's part.
  void reduce_scatter(const Call& call) {
    const std::size_t bytes = call.signature.bytes(), all = bytes * static_cast<std::size_t>(size());
    scratch_.resize(all / sizeof(double) + 1);  // aligned for every dtype
    std::memcpy(scratch_.data(), call.in, all);
    all_reduce(scratch_.data(), call.signature.count * size(), call.signature);
    const auto* summed = reinterpret_cast<const std::byte*>(scratch_.data());
    std::memcpy(call.out, summed + static_cast<std::size_t>(rank()) * bytes, bytes);
  }

  void gather(const void* part, void* all, std::size_t bytes, std::uint32_t tag) {
    gloo::AllgatherOptions options(context_);
    auto* const own = static_cast<char*>(all) + static_cast<std::size_t>(rank()) * bytes;
    // Without an input Gloo takes the rank's own piece of the output.
    if (own != part) std::memcpy(own, part, bytes);
    options.setOutput(static_cast<char*>(all), bytes * static_cast<std::size_t>(size()));
    options.setTag(tag);
    gloo::allgather(options);
  }

  void all_gather(const Call& call) { gather(call.in, call.out, call.signature.bytes(), kQueuedTag); }

  void broadcast(const Call& call) {
    gloo::BroadcastOptions options(context_);
    options.setOutput(static_cast<char*>(call.out), call.signature.bytes());
    options.setRoot(call.signature.peer);
    options.setTag(kQueuedTag);
    gloo::broadcast(options);
  }

  // The signature is sent first, so that sizes can be compared: Gloo aborts a process that receives another size.
  void exchange_messages(std::span<const Call> calls) {
    struct Message {
      Signature signature;  // ours where it is sent, then theirs where it is received
      std::unique_ptr<gloo::transport::UnboundBuffer> head, body;
    };
    std::vector<Message> messages(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Signature& signature = calls[i].signature;
      Message& message = messages[i];
      message.signature = signature;
      message.head = context_->createUnboundBuffer(&message.signature, sizeof(Signature));
      if (signature.operation == Operation::send) {
        message.body = context_->createUnboundBuffer(const_cast<void*>(calls[i].in), signature.bytes());
        message.head->send(signature.peer, kHeadSlot);
        message.body->send(signature.peer, kBodySlot);
      }
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Signature& ours = calls[i].signature;
      if (ours.operation != Operation::receive) continue;
      Message& message = messages[i];
      message.head->recv(ours.peer, kHeadSlot);
      message.head->waitRecv(options().limit);
      const std::string difference = disagreement(ours.peer, message.signature, rank(), ours);
      if (!difference.empty()) throw RankError(Fault::mismatch, difference);
      message.body = context_->createUnboundBuffer(calls[i].out, ours.bytes());
      message.body->recv(ours.peer, kBodySlot);
      message.body->waitRecv(options().limit);
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].signature.operation != Operation::send) continue;
      messages[i].head->waitSend(options().limit);
      messages[i].body->waitSend(options().limit);
    }
  }

  std::shared_ptr<gloo::Context> context_;
  std::vector<double> scratch_;
};

}  // namespace

bool gloo_is_built() { return true; }

std::unique_ptr<Communicator> connect_gloo(const std::filesystem::path& directory, int rank, int size,
                                           CommunicatorOptions options, GlooChecks checks) {
  options.check_signatures = checks == GlooChecks::signatures;
  if (size < 1 || rank < 0 || rank >= size) {
    throw Error(ErrorKind::config, fmt::format("gloo: there is no rank {} among {}", rank, size));
  }
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  if (size == 1) return std::make_unique<GlooCommunicator>(context, options);
  const std::filesystem::path meeting = directory / "gloo";
  std::error_code error;
  std::filesystem::create_directories(meeting, error);
  try {
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice("127.0.0.1");
    gloo::rendezvous::FileStore store(meeting.string());
    context->setTimeout(options.limit);
    context->connectFullMesh(store, device);
    gloo::BarrierOptions met(context);
    met.setTag(kHostTag);
    gloo::barrier(met);
  } catch (const std::exception& failure) {
    if (rank == 0) std::filesystem::remove_all(meeting, error);
    throw RankError(Fault::rendezvous, fmt::format("rank {} of {} could not meet the others over Gloo in {}: {}", rank,
                                                   size, meeting.string(), failure.what()));
  }
  if (rank == 0) std::filesystem::remove_all(meeting, error);
  return std::make_unique<GlooCommunicator>(context, options);
}

}  // namespace syslab::comm
