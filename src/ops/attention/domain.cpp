#include "ops/attention/domain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "ops/attention/attention.hpp"

namespace syslab::attention {
namespace {

// Keys as a class or a manifest spells them, and as they are called as axes on the command line.
struct Key {
  const char* name;
  const char* axis;
};
constexpr std::array<Key, 7> kKeys{{{"dtypes", "dtype"},
                                    {"head_dims", "head_dim"},
                                    {"causal", "causal"},
                                    {"multiple_of", "multiple_of"},
                                    {"max_seq", "max_seq"},
                                    {"square", "square"},
                                    {"deterministic", "deterministic"}}};
constexpr std::array<DType, 3> kDtypes{DType::f32, DType::f16, DType::bf16};
constexpr std::int64_t kMostDim = 256;

template <typename T>
bool has(const std::vector<T>& list, T value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Reads the values of one key. Every error message names the owner of the domain.
class Reader {
 public:
  Reader(std::string_view whose, std::string key, const Json& value)
      : whose_(whose), key_(std::move(key)), values_(value.is_array() ? value : Json::array({value})) {
    if (values_.empty()) fail("is empty; leave it out, or name what is promised");
  }

  std::vector<DType> dtypes() const {
    std::vector<DType> list;
    for (const Json& value : values_) {
      const auto known = std::find_if(kDtypes.begin(), kDtypes.end(), [&](DType dtype) {
        return value.is_string() && value.get<std::string>() == to_string(dtype);
      });
      if (known == kDtypes.end()) fail(fmt::format("has {}; known are fp32, fp16 and bf16", value.dump()));
      if (!has(list, *known)) list.push_back(*known);
    }
    return list;
  }

  std::vector<std::int64_t> integers(std::int64_t least, std::int64_t most) const {
    std::vector<std::int64_t> list;
    for (const Json& value : values_) {
      if (!value.is_number_integer() || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
        fail(fmt::format("has {}; it takes whole numbers from {} to {}", value.dump(), least, most));
      }
      list.push_back(value.get<std::int64_t>());
    }
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  std::vector<bool> flags() const {
    std::vector<bool> list;
    for (const Json& value : values_) {
      if (!value.is_boolean()) fail(fmt::format("has {}; it takes true and false", value.dump()));
      if (!has(list, value.get<bool>())) list.push_back(value.get<bool>());
    }
    return list;
  }

  template <typename T>
  T only(const std::vector<T>& list) const {
    if (list.size() != 1) fail(fmt::format("has {} values; it takes one", list.size()));
    return list.front();
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorKind::usage, fmt::format("{}: '{}' {}", whose_, key_, why));
  }

  std::string_view whose_;
  std::string key_;
  Json values_;
};

}  // namespace

std::optional<std::string> Domain::outside(const Problem& problem) const {
  const bool causal_asked = problem.mask != Mask::none;
  if (!dtypes.empty() && !has(dtypes, problem.dtype)) {
    return fmt::format("{} is not among the declared dtypes", to_string(problem.dtype));
  }
  if (!head_dims.empty() && !has(head_dims, problem.head_dim)) {
    return fmt::format("head_dim {} is not among the declared ones ({})", problem.head_dim, fmt::join(head_dims, ", "));
  }
  if (!causal.empty() && !has(causal, causal_asked)) return causal_asked ? "a causal mask" : "a full mask";
  for (const std::int64_t length : {problem.seq_q, problem.seq_k}) {
    if (multiple_of > 0 && length % multiple_of != 0) {
      return fmt::format("length {} is no multiple of {}", length, multiple_of);
    }
    if (max_seq > 0 && length > max_seq) return fmt::format("length {} is beyond max_seq {}", length, max_seq);
    if (length < shortest()) return fmt::format("length {} is below {}", length, shortest());
  }
  if (square && problem.seq_q != problem.seq_k) return "seq_q and seq_k differ";
  return std::nullopt;
}

std::int64_t Domain::shortest() const {
  constexpr std::int64_t kUsual = 16;
  if (multiple_of > 0) return multiple_of;
  return max_seq > 0 ? std::min(kUsual, max_seq) : kUsual;
}

Domain parse_domain(const Json& declared, std::string_view whose) {
  Domain domain;
  if (!declared.is_object()) {
    throw Error(ErrorKind::usage, fmt::format("{}: a domain is a JSON object, found {}", whose, declared.dump()));
  }
  std::vector<std::string> known;
  for (const Key& key : kKeys) known.emplace_back(key.name);
  for (const auto& [name, value] : declared.items()) {
    const Reader read(whose, name, value);
    domain.declared = true;
    if (name == "dtypes") {
      domain.dtypes = read.dtypes();
    } else if (name == "head_dims") {
      domain.head_dims = read.integers(1, kMostDim);
    } else if (name == "causal") {
      domain.causal = read.flags();
      if (value == Json(true)) domain.causal = {false, true};  // it knows the mask, too
    } else if (name == "multiple_of") {
      domain.multiple_of = read.only(read.integers(1, 1 << 20));
    } else if (name == "max_seq") {
      domain.max_seq = read.only(read.integers(1, std::int64_t{1} << 40));
    } else if (name == "square") {
      domain.square = read.only(read.flags());
    } else if (name == "deterministic") {
      domain.deterministic = read.only(read.flags());
    } else {
      throw Error(ErrorKind::usage, fmt::format("{}: {}", whose, unknown_name("domain key", name, known)));
    }
  }
  if (domain.max_seq > 0 && domain.multiple_of > domain.max_seq) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: no multiple of {} is within max_seq {}", whose, domain.multiple_of, domain.max_seq));
  }
  return domain;
}

bool is_domain_axis(std::string_view name) {
  return std::any_of(kKeys.begin(), kKeys.end(), [name](const Key& key) { return name == key.axis; });
}

Json domain_json(const std::string& name, const std::vector<std::string>& texts) {
  const auto key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& one) { return name == one.axis; });
  if (key == kKeys.end()) {
    std::vector<std::string> known;
    for (const Key& one : kKeys) known.emplace_back(one.axis);
    throw Error(ErrorKind::usage, unknown_name("domain axis", name, known));
  }
  Json values = Json::array();
  for (const std::string& text : texts) {
    const Json value = json_or_discarded(text);  // 64, true; a word stays one
    values.push_back(value.is_number_integer() || value.is_boolean() ? value : Json(text));
  }
  return Json{{key->name, values}};
}

std::string to_string(const Domain& domain) {
  std::vector<std::string> parts;
  for (const DType dtype : domain.dtypes) parts.emplace_back(to_string(dtype));
  if (!domain.head_dims.empty()) parts.push_back(fmt::format("head_dim {}", fmt::join(domain.head_dims, ", ")));
  if (domain.causal.size() == 1) parts.emplace_back(domain.causal.front() ? "causal only" : "full mask only");
  if (domain.multiple_of > 1) parts.push_back(fmt::format("lengths that are multiples of {}", domain.multiple_of));
  if (domain.max_seq > 0) parts.push_back(fmt::format("lengths up to {}", domain.max_seq));
  if (domain.square) parts.emplace_back("seq_q == seq_k");
  if (domain.deterministic) parts.emplace_back("deterministic");
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace syslab::attention
