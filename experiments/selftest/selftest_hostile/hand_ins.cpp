#include "experiments/selftest/selftest_hostile/hand_ins.hpp"

namespace syslab::experiment_selftest_hostile {
namespace {

constexpr double kWorks = 0.02, kWorksBriefly = 0.01;  // seconds that these classes sleep or spin in each call

void add(std::vector<HandIn>& all, const char* file, Wants wants, double works_s,
         std::initializer_list<const char*> names) {
  for (const char* name : names) all.push_back({file, name, wants, works_s});
}

}  // namespace

std::vector<HandIn> hand_ins(const std::string& kind) {
  std::vector<HandIn> all;
  if (kind == "library") {
    add(all, "hostile.c", Wants::to_pass, 0,
        {"kForge", "kInputs", "kCloseAll", "kExit", "kLongjmp", "kCrash", "kHang", "kOldCalls"});
    add(all, "hostile.c", Wants::to_reach, 0, {"kReach", "kWatch"});
    add(all, "hostile.c", Wants::to_harm, 0, {"kKill", "kFork", "kSpawn"});
    add(all, "hostile.c", Wants::to_be_fast, kWorks, {"kAhead", "kClock", "kDone"});
    return all;
  }
  add(all, "cheats.py", Wants::to_be_fast, kWorks, {"LyingClock"});
  add(all, "cheats.py", Wants::to_reach, 0, {"Reaches"});
  add(all, "cheats.py", Wants::to_pass, 0, {"ForgedRecords", "ParentsPipes", "CutsMemory", "Lazy"});
  add(all, "cheats.py", Wants::to_be_fast, kWorksBriefly, {"AnswersEarly"});
  add(all, "cheats.py", Wants::to_harm, 0, {"KillsParent", "KillsGroup"});
  add(all, "shortcuts.py", Wants::to_pass, 0,
      {"CachesByShape",  "CachesByAddress", "OneCallLate",     "DriftsLater",      "Uninitialised",
       "NanWildcard",    "Zeros",           "ZeroesInputs",    "SkipsLateRows",    "IgnoresTheMask",
       "FindsTheAnswer", "ReplacesModules", "ExpectsTheSeed",  "ReturnsItsInput",  "WorksBehindItsBack",
       "LeavesWithZero", "PatchesRandom",   "EverySecondCall", "EverySeventhCall", "HalfOfTheRows"});
  add(all, "shortcuts.py", Wants::to_be_fast, kWorks,
      {"PatchesTheClock", "AnswersLazily", "RemembersContent", "RemembersACorner", "SlowWarmUp"});
  add(all, "reader.py", Wants::to_pass, 0,
      {"ForgesTheScreen", "RewritesTheLog", "Floods", "Shouts", "FlipsWords", "LeavesFolders"});
  add(all, "reader.py", Wants::to_reach, 0, {"SetsTheClock"});
  add(all, "reader.py", Wants::to_harm, 0, {"Signals"});
  add(all, "insider.py", Wants::to_reach, 0, {"WakesItself", "Types"});
  add(all, "insider.py", Wants::to_pass, 0, {"Brackets"});
  add(all, "outsider.py", Wants::to_reach, 0, {"Watches"});
  add(all, "outsider.py", Wants::to_pass, 0, {"PunchesHoles", "GrowsMemory"});
  add(all, "outsider.py", Wants::to_harm, 0, {"StaysAround"});
  return all;
}

}  // namespace syslab::experiment_selftest_hostile
