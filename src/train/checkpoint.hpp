// A training run on disk: weights, moments, progress and settings, in one safetensors file. A run that is resumed
// continues bit for bit; one with other settings is refused.
//
//   save_checkpoint("run.safetensors", arena, {.step = 1000, .next_batch = 1000}, settings);
//   const TrainingState state = load_checkpoint("run.safetensors", arena, settings);
//
// Tensors: the weights under their own names (so that programs that read weights can read a checkpoint, too), the
// moments under "optimizer.m." and "optimizer.v."; everything else is metadata, as text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "model/arena.hpp"
#include "train/loss_scaler.hpp"

namespace syslab::train {

struct TrainingState {
  std::int64_t step = 0;                    // optimizer steps taken; what was skipped is none
  std::uint64_t next_batch = 0;             // number of the next batch to draw
  std::optional<LossScaler::State> scaler;  // where losses are scaled
  bool operator==(const TrainingState&) const = default;
};

// Name → value, as text: all that decides how a run goes on (learning rates, precision, seed, data …).
using Settings = std::map<std::string, std::string>;
// "model.vocab" → "10000" and so on.
Settings settings_of(const model::ModelConfig& config);

// Whole or not at all: the file that was there before stays until the new one is on the disk. Waits for the arena's
// stream. The arena has moments.
void save_checkpoint(const std::filesystem::path& path, const model::ParameterArena& arena, const TrainingState& state,
                     const Settings& settings);

// Error(usage), as save_checkpoint() would say it, for a name under which none can be written: creates and removes a
// file in the same folder. So a run learns of it before its first step rather than after its last.
void check_place(const std::filesystem::path& path);

// Reads weights (and their copy) and moments into the arena. Error(usage) before anything is written: a file that is
// not a checkpoint or not of this model, one kept in another dtype than the arena's, or settings that differ from those
// it was saved with, naming each with both values.
TrainingState load_checkpoint(const std::filesystem::path& path, model::ParameterArena& arena,
                              const Settings& settings);

}  // namespace syslab::train
