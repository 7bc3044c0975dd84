#include "parallel/certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"
#include "device/stream.hpp"
#include "parallel/gradient_sync.hpp"
#include "parallel/replicas.hpp"

namespace syslab::parallel {
namespace {

constexpr double kRate = 0x1p-4;

// The first half of the rows use the rare parameter.
bool use_rare(const CertificateCase& asked, const RowBlock& rows) {
  return rows.first < asked.rows / 2 && rows.count > 0;
}

// Rows [block.first, block.first + block.count) of a step's batch, which belong to `own` rows of a rank.
ToyBatch batch_of(const CertificateCase& asked, int step, const RowBlock& block, const RowBlock& own) {
  const RandomStream x = RandomStream::derive(asked.seed, "certificate", "inputs", std::to_string(step));
  const RandomStream y = RandomStream::derive(asked.seed, "certificate", "targets", std::to_string(step));
  const RandomStream rare = RandomStream::derive(asked.seed, "certificate", "rare", std::to_string(step));
  const std::int64_t in = asked.model.layers.front().in, out = asked.model.layers.back().out;
  ToyBatch batch{.rows = block.count};
  for (std::int64_t i = block.first * in; i < (block.first + block.count) * in; ++i) {
    batch.x.push_back(static_cast<double>(x.bits(static_cast<std::uint64_t>(i)) % 3) - 1);
  }
  for (std::int64_t i = block.first * out; i < (block.first + block.count) * out; ++i) {
    batch.y.push_back(static_cast<double>(y.bits(static_cast<std::uint64_t>(i)) % 5) - 2);
  }
  if (!use_rare(asked, own)) return batch;
  // Never empty for a rank that uses it at all, also in a part none of whose rows do.
  batch.rare.assign(static_cast<std::size_t>(std::max<std::int64_t>(block.count, 1) * kRareElements), 0);
  for (std::int64_t i = 0; i < block.count * kRareElements; ++i) {
    const std::int64_t at = block.first * kRareElements + i;
    if (at >= asked.rows / 2 * kRareElements) break;
    batch.rare[static_cast<std::size_t>(i)] = static_cast<double>(rare.bits(static_cast<std::uint64_t>(at)) % 3) - 1;
  }
  return batch;
}

// Part `part` of a rank's rows.
RowBlock part_of(const RowBlock& rows, int part, int parts) {
  const RowBlock of = even_blocks(rows.count, parts)[static_cast<std::size_t>(part)];
  return {rows.first + of.first, of.count};
}

Trained outcome(ToyNetwork& network) {
  Trained made{.weights = network.read_weights()};  // waits for all
  made.gradients = network.history();
  made.inexact = network.inexact();
  return made;
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0 || (a == 0 && b == 0); }

}  // namespace

std::vector<RowBlock> even_blocks(std::int64_t rows, int ranks) {
  std::vector<RowBlock> blocks;
  std::int64_t first = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t count = rows / ranks + (rank < rows % ranks ? 1 : 0);
    blocks.push_back({first, count});
    first += count;
  }
  return blocks;
}

ToyModel drawn_model(std::uint64_t seed) {
  const RandomStream random(seed);
  std::uint64_t at = 0;
  const auto below = [&](std::int64_t end) { return static_cast<std::int64_t>(random.bits(at++)) % end; };
  const std::int64_t layers = 1 + below(3);
  std::vector<std::int64_t> widths;
  for (std::int64_t i = 0; i <= layers; ++i) widths.push_back(1 + below(6));
  const bool tied = layers == 3 && below(2) == 0;
  if (tied) widths = {widths[0], widths[0], widths[0], widths[3]};
  ToyModel model{.fixed = below(2) == 0, .padding = below(5)};
  for (std::size_t i = 0; i < static_cast<std::size_t>(layers); ++i) {
    ToyLayer layer{.in = widths[i], .out = widths[i + 1], .bias = below(2) == 0};
    layer.frozen_bias = layer.bias && below(3) == 0;
    if (tied && i == 1) layer.tied_to = 0;
    model.layers.push_back(layer);
  }
  if (below(2) == 0) model.rare = static_cast<int>(below(5));
  return model;
}

Trained train_alone(const CertificateCase& asked) {
  ToyNetwork network(asked.model, {});
  network.draw_dyadic(asked.seed);
  for (int step = 0; step < asked.steps; ++step) {
    const RowBlock all{0, asked.rows};
    network.pass(batch_of(asked, step, all, all), 1 / static_cast<double>(asked.rows), true, true, {});
    network.update(kRate, true);
  }
  return outcome(network);
}

Trained train_together(const CertificateCase& asked, comm::Communicator& ranks, device::Stream compute,
                       device::Stream communication, const Interference& interference) {
  ToyNetwork network(asked.model, compute);
  network.draw_dyadic(asked.seed + static_cast<std::uint64_t>(ranks.rank()));
  make_replicas(ranks, network.weights(), communication);
  network.set_weights(network.read_weights());

  GradientSync sync(ranks, network.pieces(), network.gradients(), asked.sync, communication);
  const auto before = [&](device::Stream stream) {
    if (interference.before_work) interference.before_work(stream);
  };
  const ToyNetwork::Watching watching{.work = [&] { before(compute); },
                                      .piece_final =
                                          [&](int piece) {
                                            before(communication);
                                            sync.grad_final(piece, compute);
                                          },
                                      .contribution = interference.contribution};
  const std::vector<RowBlock> blocks = asked.rows_of.empty() ? even_blocks(asked.rows, ranks.size()) : asked.rows_of;
  const RowBlock own = blocks[static_cast<std::size_t>(ranks.rank())];
  const double scale = interference.scale / static_cast<double>(asked.rows);
  for (int step = 0; step < asked.steps; ++step) {
    for (int part = 0; part < asked.parts; ++part) {
      const bool last = part == asked.parts - 1;
      if (last) {
        sync.begin(compute);
        if (network.rare_piece() && !use_rare(asked, own)) {
          network.spoil(*network.rare_piece());
          before(compute);
          sync.unused(*network.rare_piece(), compute);
        }
      }
      network.pass(batch_of(asked, step, part_of(own, part, asked.parts), own), scale, part == 0, last, watching);
    }
    before(communication);
    sync.finish(compute);
    network.update(kRate, true);
  }
  device::synchronize(communication);
  Trained made = outcome(network);
  if (ranks.failed()) throw Error(ErrorKind::comm, ranks.failure());
  sync.check_bytes();
  return made;
}

std::optional<std::string> difference(const CertificateCase& asked, const Trained& together, const Trained& alone) {
  if (together.inexact || alone.inexact) return "a number was rounded: the certificate's bounds do not hold";
  const ToyNetwork network(asked.model, {});
  const GradientPieces& pieces = network.pieces();
  for (std::size_t step = 0; step < alone.gradients.size(); ++step) {
    for (int piece = 0; piece < pieces.size(); ++piece) {
      for (std::int64_t i = 0; i < pieces[piece].elements; ++i) {
        const auto at = static_cast<std::size_t>(pieces[piece].first + i);
        const float found = together.gradients.at(step)[at], expected = alone.gradients[step][at];
        if (same_bits(found, expected)) continue;
        return fmt::format("gradient of '{}'[{}] in step {} is {}, alone {}", pieces[piece].name, i, step, found,
                           expected);
      }
    }
  }
  for (std::size_t i = 0; i < alone.weights.size(); ++i) {
    if (same_bits(together.weights[i], alone.weights[i])) continue;
    return fmt::format("weight {} is {} after {} steps, alone {}", i, together.weights[i], asked.steps,
                       alone.weights[i]);
  }
  return std::nullopt;
}

std::int64_t certify(comm::Communicator& ranks, SyncOptions options, std::uint64_t seed, device::Stream compute,
                     device::Stream communication) {
  constexpr int kModels = 4;
  options.wire.reset();
  options.left_out_wait = -1;
  std::int64_t compared = 0;
  for (std::uint64_t number = 0; number < kModels; ++number) {
    CertificateCase asked{
        .model = drawn_model(seed + number), .seed = seed + number, .parts = 1 + static_cast<int>(number % 2)};
    asked.sync = options;
    const GradientPieces pieces = ToyNetwork(asked.model, {}).pieces();
    // Limits and plans are the real model's: here two buckets or three show what they are for.
    if (options.strategy == Strategy::planned)
      asked.sync.plan = plan_by_count(pieces, 2 + static_cast<int>(number % 2));
    if (options.strategy == Strategy::bucketed) asked.sync.bucket_mb = {40 / 0x1p20};
    const Trained together = train_together(asked, ranks, compute, communication);
    const std::optional<std::string> found = difference(asked, together, train_alone(asked));
    for (const std::string& text : ranks.exchange(found.value_or(""))) {
      if (text.empty()) continue;
      throw Error(ErrorKind::check,
                  fmt::format("{} over {} ranks ({}) is not equal to one process: {} (model {})",
                              to_string(options.strategy), ranks.size(), ranks.backend(), text, seed + number));
    }
    compared += static_cast<std::int64_t>(together.weights.size());
  }
  return compared;
}

}  // namespace syslab::parallel
