#include "experiments/ddp/certificate_law.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <string>

#include "certify/certificate.hpp"
#include "check/search.hpp"
#include "comm/local/local.hpp"
#include "device/stream.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/verdict.hpp"

namespace syslab {
namespace {

using parallel::CertificateCase;
using parallel::RowBlock;

constexpr const char* kId = "ddp.certificate";
constexpr const char* kStatement = "any model, ranks, deal of rows and buckets: the bits of one process";
constexpr std::chrono::seconds kPatience{20};  // of a rank with the others

// Rows in blocks of any size, also none, in any order of ranks.
std::vector<RowBlock> dealt(std::int64_t rows, int ranks) {
  std::vector<std::int64_t> cuts{0, rows};
  for (int i = 1; i < ranks; ++i) cuts.push_back(property::draw_below("cut", rows + 1));
  std::ranges::sort(cuts);
  std::vector<RowBlock> blocks;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) blocks.push_back({cuts[i], cuts[i + 1] - cuts[i]});
  std::rotate(blocks.begin(), blocks.begin() + property::draw_below("rank of the first rows", ranks), blocks.end());
  return blocks;
}

CertificateCase drawn(const CertifiedStrategies& ours, int ranks) {
  CertificateCase asked;
  asked.seed = property::draw_seed();
  asked.model = parallel::drawn_model(asked.seed);
  asked.steps = static_cast<int>(1 + property::draw_below("further steps", 3));
  asked.rows = std::int64_t{1} << property::draw_below("log2 of rows", 5);
  asked.parts = static_cast<int>(1 + property::draw_below("further parts", 3));
  asked.rows_of = dealt(asked.rows, ranks);
  const auto one_of = [](const char* name, const auto& values) {
    return values[static_cast<std::size_t>(property::draw_below(name, static_cast<std::int64_t>(values.size())))];
  };
  asked.sync.strategy = one_of("strategy", ours.strategies);
  asked.sharding = one_of("sharding", ours.shardings);
  asked.sync.bucket_mb = {static_cast<double>(1 + property::draw_below("limit in bytes, less 1", 400)) / 0x1p20};
  const int pieces = parallel::ToyNetwork(asked.model, {}).pieces().size();
  std::vector<int> ends;
  for (int end = 1; end < pieces; ++end) {
    if (property::draw_below("a bucket ends here", 2) == 1) ends.push_back(end);
  }
  ends.push_back(pieces);
  asked.sync.schedule = parallel::BucketSchedule(std::move(ends));
  asked.model.alignment = ranks * (1 + property::draw_below("further alignment a rank", 3));
  return asked;
}

std::optional<std::string> found_difference(const CertificateCase& asked, int count) {
  const parallel::Trained alone = parallel::train_alone(asked);
  std::vector<std::optional<std::string>> found(static_cast<std::size_t>(count));
  comm::run_local(count, {.limit = kPatience}, [&](comm::Communicator& ranks) {
    const device::OwnedStream compute = device::OwnedStream::queue(), communication = device::OwnedStream::queue();
    const parallel::Trained together = parallel::train_together(asked, ranks, compute, communication);
    found[static_cast<std::size_t>(ranks.rank())] = parallel::difference(asked, together, alone);
  });
  for (int rank = 0; rank < count; ++rank) {
    if (const auto& one = found[static_cast<std::size_t>(rank)]) return "rank " + std::to_string(rank) + ": " + *one;
  }
  return std::nullopt;
}

}  // namespace

check::Law certificate_law(const CertifiedStrategies& ours) {
  return {kId, kStatement, [ours](const check::LawRequest& request) {
            return check::search(kId, request, [&](check::Observation&) {
              const auto ranks = static_cast<int>(1 + property::draw_below("further ranks", 4));
              if (const auto why = found_difference(drawn(ours, ranks), ranks)) property::fail(*why);
            });
          }};
}

LawInfo certificate_law_info() { return {.id = kId, .statement = kStatement, .bound = LawInfo::Bound::ours}; }

}  // namespace syslab
