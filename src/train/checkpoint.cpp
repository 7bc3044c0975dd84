#include "train/checkpoint.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "model/weights/weights_file.hpp"

namespace syslab::train {
namespace {

using model::FileMetadata;
using model::Plane;
using model::SafetensorsReader;
using model::SafetensorsWriter;

constexpr const char* kFormat = "syslab.checkpoint";  // → version
constexpr const char* kVersion = "1";
constexpr const char* kStep = "syslab.step";
constexpr const char* kNextBatch = "syslab.next_batch";
constexpr const char* kScale = "syslab.scaler.scale";
constexpr const char* kCleanSteps = "syslab.scaler.clean_steps";
constexpr std::string_view kSetting = "syslab.setting.";

constexpr const char* kFirstMoment = "optimizer.m.";
constexpr const char* kSecondMoment = "optimizer.v.";

[[noreturn]] void refuse(const SafetensorsReader& reader, const std::string& why) {
  throw Error(ErrorKind::usage, fmt::format("cannot resume from '{}': {}", reader.path().string(), why));
}

template <typename Number>
Number number_in(const SafetensorsReader& reader, const char* name) {
  const auto found = reader.metadata().find(name);
  if (found == reader.metadata().end()) refuse(reader, fmt::format("it does not tell '{}'", name));
  const std::string& text = found->second;
  Number number{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) {
    refuse(reader, fmt::format("its '{}' is '{}', which is no such number", name, text));
  }
  return number;
}

struct CheckpointInfo {
  TrainingState state;
  Settings settings;
};

FileMetadata metadata_of(const TrainingState& state, const Settings& settings) {
  FileMetadata metadata{
      {kFormat, kVersion}, {kStep, fmt::format("{}", state.step)}, {kNextBatch, fmt::format("{}", state.next_batch)}};
  if (state.scaler) {
    metadata[kScale] = fmt::format("{}", state.scaler->scale);  // shortest text that reads as the same number
    metadata[kCleanSteps] = fmt::format("{}", state.scaler->clean_steps);
  }
  for (const auto& [name, value] : settings) metadata[std::string(kSetting) + name] = value;
  return metadata;
}

CheckpointInfo info_of(const SafetensorsReader& reader) {
  const auto format = reader.metadata().find(kFormat);
  if (format == reader.metadata().end()) {
    refuse(reader, "it is a safetensors file but no checkpoint; if it holds weights, begin a run with them instead");
  }
  if (format->second != kVersion) {
    refuse(reader, fmt::format("it is a checkpoint of version {}, and read is version {}", format->second, kVersion));
  }
  CheckpointInfo info;
  info.state.step = number_in<std::int64_t>(reader, kStep);
  info.state.next_batch = number_in<std::uint64_t>(reader, kNextBatch);
  if (info.state.step < 0) refuse(reader, fmt::format("its step is {}", info.state.step));
  if (reader.metadata().contains(kScale)) {
    info.state.scaler = {number_in<float>(reader, kScale), number_in<std::int64_t>(reader, kCleanSteps)};
    if (!(info.state.scaler->scale > 0) || !std::isfinite(info.state.scaler->scale)) {
      refuse(reader, fmt::format("its loss scale is {}", info.state.scaler->scale));
    }
  }
  for (const auto& [name, value] : reader.metadata()) {
    if (name.starts_with(kSetting)) info.settings[name.substr(kSetting.size())] = value;
  }
  return info;
}

void check_settings(const SafetensorsReader& reader, const Settings& saved, const Settings& now) {
  std::vector<std::string> differences;
  for (const auto& [name, value] : saved) {
    const auto found = now.find(name);
    if (found == now.end()) {
      differences.push_back(fmt::format("{} was {} and is not set now", name, value));
    } else if (found->second != value) {
      differences.push_back(fmt::format("{} was {} and is {} now", name, value, found->second));
    }
  }
  for (const auto& [name, value] : now) {
    if (!saved.contains(name)) differences.push_back(fmt::format("{} was not set and is {} now", name, value));
  }
  if (!differences.empty()) {
    refuse(reader,
           fmt::format("it was saved by a run with other settings: {}; resume with the same, or begin a new run with "
                       "its weights",
                       fmt::join(differences, "; ")));
  }
}

}  // namespace

Settings settings_of(const model::ModelConfig& config) {
  return {
      {"model.vocab", fmt::format("{}", config.vocab)},
      {"model.context", fmt::format("{}", config.context)},
      {"model.d_model", fmt::format("{}", config.d_model)},
      {"model.d_ff", fmt::format("{}", config.d_ff)},
      {"model.layers", fmt::format("{}", config.layers)},
      {"model.heads", fmt::format("{}", config.heads)},
      {"model.rope_theta", config.rope_theta ? fmt::format("{}", *config.rope_theta) : "none"},
      {"model.handout", std::string(to_string(config.handout))},
  };
}

void save_checkpoint(const std::filesystem::path& path, const model::ParameterArena& arena, const TrainingState& state,
                     const Settings& settings) {
  const model::ParameterLayout& layout = arena.layout();
  const DType dtype = arena.dtype(Plane::weight);
  std::vector<model::FileTensor> tensors;
  for (const char* prefix : {"", kFirstMoment, kSecondMoment}) {
    for (model::FileTensor& tensor : file_tensors(layout, prefix, model::file_dtype_of(dtype))) {
      tensors.push_back(std::move(tensor));
    }
  }
  SafetensorsWriter writer(path, std::move(tensors), metadata_of(state, settings));
  for (const Plane plane : {Plane::weight, Plane::first_moment, Plane::second_moment}) {
    write_plane(writer, arena, plane, dtype);
  }
  writer.finish();
}

void check_place(const std::filesystem::path& path) { const model::SafetensorsWriter unfinished(path, {}); }

TrainingState load_checkpoint(const std::filesystem::path& path, model::ParameterArena& arena,
                              const Settings& settings) {
  const SafetensorsReader reader(path);
  const CheckpointInfo info = info_of(reader);
  check_settings(reader, info.settings, settings);
  for (const char* prefix : {"", kFirstMoment, kSecondMoment}) check_plane(reader, arena.layout(), prefix);
  if (reader.tensors().size() != 3 * arena.layout().infos().size()) {
    refuse(reader, fmt::format("it holds {} tensors, and this model with two moments has {}", reader.tensors().size(),
                               3 * arena.layout().infos().size()));
  }
  const model::FileDType dtype = model::file_dtype_of(arena.dtype(Plane::weight));
  for (const model::FileTensor& tensor : reader.tensors()) {
    if (tensor.dtype != dtype) {
      refuse(reader, fmt::format("its '{}' is kept in {}, and this run's in {}; numbers would be rounded", tensor.name,
                                 to_string(tensor.dtype), to_string(dtype)));
    }
  }
  read_plane(reader, arena, Plane::weight, "");
  read_plane(reader, arena, Plane::first_moment, kFirstMoment);
  read_plane(reader, arena, Plane::second_moment, kSecondMoment);
  return info.state;
}

}  // namespace syslab::train
