#include "contract/submitted.hpp"

#include <type_traits>
#include <utility>

#include "core/text/command_text.hpp"

namespace syslab {

const std::string& Submitted::path() const {
  return std::visit(
      [](const auto& one) -> const std::string& {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, Command>) {
          return one.text;
        } else {
          return one.file;
        }
      },
      what);
}

std::string Submitted::inside() const {
  return std::visit(
      [](const auto& one) -> std::string {
        if constexpr (requires { one.name; }) {
          return one.name;
        } else {
          return {};
        }
      },
      what);
}

const Comparison* Submitted::comparison() const {
  if (const Function* const function = std::get_if<Function>(&what)) return &function->with;
  const Symbol* const symbol = std::get_if<Symbol>(&what);
  return symbol != nullptr && !symbol->with.reference.empty() ? &symbol->with : nullptr;
}

bool Submitted::is_python() const {
  return std::holds_alternative<PythonClass>(what) || std::holds_alternative<Function>(what);
}

Submitted compared_with(Submitted submitted, const Comparison& comparison) {
  if (Symbol* const symbol = std::get_if<Symbol>(&submitted.what)) {
    symbol->with = comparison;
  } else {
    submitted.what = Function{submitted.path(), submitted.inside(), comparison};
  }
  return submitted;
}

Submitted submitted_of(std::string name, std::string file, std::string inside, const Comparison& comparison) {
  Submitted made{.name = std::move(name), .what = Library{file}, .digest = {}};
  if (parse_command_place(file)) {
    made.what = Command{std::move(file)};
  } else if (file.ends_with(".py")) {
    made.what = PythonClass{std::move(file), std::move(inside)};
  } else if (!inside.empty()) {
    made.what = Symbol{std::move(file), std::move(inside)};
  }
  return comparison.reference.empty() ? made : compared_with(std::move(made), comparison);
}

}  // namespace syslab
