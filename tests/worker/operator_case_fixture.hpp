// An operator case small enough to read, and what running it left behind.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "worker/cases/operator_case.hpp"

namespace syslab::worker {

inline constexpr std::int64_t kRows = 8, kColumns = 32;
inline constexpr std::int64_t kElements = kRows * kColumns;

inline float* data(const TensorView& view) { return view.as<float>(); }

// y = 2x, with a bound of one rounding (which an exact doubling never uses up).
inline Operation doubling() {
  Operation made;
  made.inputs = {{"x", DType::f32, {kRows, kColumns}}};
  made.outputs = {{"y", DType::f32, {kRows, kColumns}}};
  made.call = [](const Inputs& in, const Outputs& out, device::Stream) {
    const float* x = in[0].as<float>();
    for (std::int64_t i = 0; i < kElements; ++i) data(out[0])[i] = 2 * x[i];
  };
  made.expect = [](const Inputs& in) {
    Expected y;
    y.value = to_doubles(in[0]);
    for (double& value : y.value) value *= 2;
    y.tolerance = {1e-6};
    return std::vector<Expected>{y};
  };
  made.flops = static_cast<double>(kElements);
  made.bytes = 8.0 * kElements;
  return made;
}

// What a case left behind.
struct Outcome {
  std::vector<Record> records;
  std::string failure;  // of CheckFailed

  template <typename T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const Record& record : records) {
      if (const T* held = std::get_if<T>(&record)) found.push_back(*held);
    }
    return found;
  }
  const MetricRecord& metric(const std::string& name) const {
    for (const Record& record : records) {
      const auto* held = std::get_if<MetricRecord>(&record);
      if (held != nullptr && held->name == name) return *held;
    }
    throw std::runtime_error("no metric " + name);
  }
  const CheckRecord& check(const std::string& name) const {
    for (const Record& record : records) {
      const auto* held = std::get_if<CheckRecord>(&record);
      if (held != nullptr && held->name == name) return *held;
    }
    throw std::runtime_error("no check " + name);
  }
  Json facts() const { return Json::parse(all<FactRecord>().at(0).json); }
};

inline CaseRequest request(const std::string& data = "normal", std::uint64_t seed = 11) {
  CaseRequest made;
  made.experiment = "doubling";
  made.implementation = "ours";
  made.case_uid = "case";
  made.seed = seed;
  made.protocol = "quick";
  made.data = data;
  return made;
}

inline Outcome run(const Operation& operation, const CaseRequest& asked = request()) {
  Outcome outcome;
  CaseContext context(asked, [&outcome](const Record& record) { outcome.records.push_back(record); });
  try {
    run_operator_case(context, operation);
  } catch (const CheckFailed& failed) {
    outcome.failure = failed.what();
  }
  return outcome;
}

}  // namespace syslab::worker
