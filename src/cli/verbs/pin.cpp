#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "session/session.hpp"
#include "session/stored_case.hpp"
#include "session/stored_run.hpp"

namespace syslab::cli {
namespace {

// A pin must never be taken for a uid, nor for the word that stands for the newest run.
void check_name(const std::string& name) {
  const bool word =
      !name.empty() &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == std::string::npos;
  const bool like_a_uid = name.find_first_not_of("0123456789abcdefABCDEF-") == std::string::npos;
  if (word && !like_a_uid && name != "latest") return;
  throw Error(
      ErrorKind::usage,
      fmt::format("'{}' cannot be a pin: a pin is a word of letters, digits, '_', '-' and '.', not 'latest', and "
                  "nothing that could be a uid (it needs a letter beyond f)",
                  name));
}

// `pin RUN NAME`: the first is a run, the second none.
void refuse_wrong_order(const Context& context, const PinOptions& options) {
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  if (store.find_pin(*options.run) || store.find_run(*options.run) || !store.find_run(*options.name)) return;
  throw Error(ErrorKind::usage, fmt::format("'{}' is a run and '{}' is none: the name comes first; syslab pin {} {}",
                                            *options.name, *options.run, *options.run, *options.name));
}

Json to_json(const store::PinRow& pin, bool current) {
  return {{"name", pin.name}, {"run", pin.run_uid}, {"at", pin.at}, {"note", pin.note}, {"current", current}};
}

std::string line(const store::PinRow& pin) {
  return fmt::format("{}  {}{}", pin.run_uid, pin.at, pin.note.empty() ? "" : "  " + pin.note);
}

// All pins of one name, or all pins; of each name the newest first, its earlier meanings indented below.
void list(const Context& context, const store::Store& store, const std::optional<std::string>& name) {
  Json all = Json::array();
  std::string text, last;
  for (const store::PinRow& pin : store.pins()) {
    if (name && pin.name != *name) continue;
    const bool current = pin.name != last;
    last = pin.name;
    all.push_back(to_json(pin, current));
    text += current ? fmt::format("{}  {}\n", pin.name, line(pin)) : fmt::format("  before: {}\n", line(pin));
  }
  if (name && all.empty()) {
    throw Error(ErrorKind::usage, fmt::format("no pin '{}'; `syslab pin {} RUN` makes it", *name, *name));
  }
  if (context.console.json()) {
    context.console.print_document({{"pins", all}});
  } else {
    context.console.print(text.empty() ? "no pins; `syslab pin NAME RUN` makes one\n" : text);
  }
}

}  // namespace

Exit execute(const Context& context, const PinOptions& options) {
  require_database(context);
  if (!options.run) {
    if (!options.note.empty())
      throw Error(ErrorKind::usage, "--note belongs to a new pin: syslab pin NAME RUN --note …");
    list(context, store::Store::open(context.global.database, store::Mode::read_only), options.name);
    return Exit::well;
  }
  refuse_wrong_order(context, options);
  check_name(*options.name);
  store::Store store = open_for_writing(context);
  if (*options.run == "latest") warn_of_future_runs(context, store);
  const store::StoredRun run = find_run_or_pin(store, *options.run);
  if (const auto arrival = self_reported(store, run.uid)) {
    context.console.note(fmt::format("run {} is self-reported: {} of '{}', not measured here", run.uid, arrival->how,
                                     printable(arrival->source)));
  }
  store.add_pin(*options.name, run.uid, options.note);
  list(context, store, options.name);
  return Exit::well;
}

}  // namespace syslab::cli
