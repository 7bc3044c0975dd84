// What a judged implementation asks of its Python that this one does not have: a fact that travels as a field, from the
// exception to the verdict. The judged process only claims it; a process of ours establishes it
// (worker/judged/lacks.hpp).
//
//   Lack{.kind = LackKind::attribute, .of = "torch.nn.parameter.Parameter", .name = "register_hook_of_later"}
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/text/json.hpp"

namespace syslab {

enum class LackKind {
  attribute,  // of a module or class of torch
  argument,   // of a function of torch
  dtype,      // that a kernel of torch (`of`) does not compute in
  module,     // that cannot be imported: a part of torch, or a package
  package,    // that is installed and does not work here; `of` is the class of its exception
  python,     // a newer one than this: its files do not parse, and they require another
};
inline constexpr std::array kLackKinds{LackKind::attribute, LackKind::argument, LackKind::dtype,
                                       LackKind::module,    LackKind::package,  LackKind::python};

// Whether a path of names is torch, or a part of it.
bool is_of_torch(std::string_view path);

std::string_view to_string(LackKind kind);  // "attribute", as on the wire and in the store
std::optional<LackKind> lack_kind_of(std::string_view word);

struct Lack {
  LackKind kind = LackKind::attribute;
  std::string of, name;  // "torch.nn.parameter.Parameter"; a module, and Python, have only a name
  // What a process of ours found out; empty, false: nobody has established it.
  std::string torch;      // the version that lacks it, "1.13.0"
  bool declared = false;  // of a package, or of Python: the submission's own files require it

  bool is_established() const { return !torch.empty(); }
  // "torch 1.13.0 has no register_hook_of_later of torch.nn.parameter.Parameter"
  std::string text() const;

  bool operator==(const Lack&) const = default;
};

Json to_json(const Lack& lack);
// Nothing where it is none. A claim has no more than `kind`, `of` and `name`, whatever else is there.
std::optional<Lack> lack_of(const Json& json);
std::optional<Lack> claim_of(const Json& json);

}  // namespace syslab
