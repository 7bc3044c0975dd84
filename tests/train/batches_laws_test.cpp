// Laws of batches: what a run reads depends on its seed and on nothing else.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/laws/expect_law.hpp"
#include "tests/temporary_folder.hpp"
#include "train/batches.hpp"

namespace syslab::train {
namespace {

constexpr std::int64_t kBytes = 256;  // the vocabulary of a text

std::int64_t size(const char* name, int first, int end) { return *rc::gen::inRange(first, end).as(name); }

// Ranks that share a batch draw together what one alone draws, however its rows are divided and in whatever order.
TEST(BatchLaws, PartsOfABatchAreItsRows) {
  const test::TemporaryFolder folder;
  property::expect_law("train.batch_parts", 100, [&](check::Observation&) {
    const auto text = *rc::gen::container<std::string>(300, rc::gen::inRange<char>(1, 127));
    test::write_bytes(folder / "t", text);
    const TokenFile file(folder / "t");
    BatchOptions options{.rows = size("rows", 1, 9), .context = size("context", 1, 100), .vocab = kBytes};
    options.seed = static_cast<std::uint64_t>(size("seed", 0, 1000));
    const auto number = static_cast<std::uint64_t>(size("number", 0, 1000));
    const bool random = *rc::gen::arbitrary<bool>().as("random ids");
    const auto draw = [&](const BatchOptions& of) {
      Batch batch;
      if (random) {
        RandomBatches(of).draw(number, batch);
      } else {
        TokenBatches(file, of).draw(number, batch);
      }
      return batch;
    };
    const Batch whole = draw(options);
    const std::int64_t cut = size("rows of the first part", 1, static_cast<int>(options.rows) + 1);
    Batch joined;
    for (std::int64_t first = 0; first < options.rows; first += cut) {
      BatchOptions part = options;
      part.first_row = first;
      part.all_rows = options.rows;
      part.rows = std::min(cut, options.rows - first);
      const Batch drawn = draw(part);
      joined.x.insert(joined.x.end(), drawn.x.begin(), drawn.x.end());
      joined.y.insert(joined.y.end(), drawn.y.begin(), drawn.y.end());
    }
    RC_ASSERT(joined.x == whole.x);
    RC_ASSERT(joined.y == whole.y);
    for (const std::int64_t id : whole.x) RC_ASSERT(id >= 0 && id < kBytes);
  });
}

TEST(BatchLaws, BytesComeBackAsTheTextTheyWere) {
  const test::TemporaryFolder folder;
  property::expect_law("train.bytes_round_trip", 100, [&](check::Observation&) {
    const auto text = *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
    test::write_bytes(folder / "any", text);
    const TokenFile file(folder / "any", TokenFormat::bytes);
    std::string back;
    for (std::int64_t at = 0; at < file.size(); ++at) {
      RC_ASSERT(file[at] >= 0 && file[at] < kBytes);
      back += static_cast<char>(static_cast<unsigned char>(file[at]));
    }
    RC_ASSERT(back == text);
  });
}

}  // namespace
}  // namespace syslab::train
