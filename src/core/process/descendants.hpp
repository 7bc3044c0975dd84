// Whatever a process starts ends with it: also what left its process group (setsid), what a child left behind, and what
// is still there when the process itself is killed.
//
// Two means, both after keep_descendants(): orphans below a child stay below it, and become ours when it ends
// (PR_SET_CHILD_SUBREAPER); and a keeper, a small process, waits for our end, however it comes, then kills all that
// bears our mark in its environment, and all that is in a process group that we have made. Not found when we are killed
// is what has done both, thrown its environment away and left its group; what is judged cannot leave it.
#pragma once

#include <sys/types.h>

#include <mutex>

namespace syslab {

// Once, before any thread is started. Where the system cannot do one of the two, the other is done.
void keep_descendants();
// The first of the two alone, for a process whose own parent keeps its descendants: a worker.
void keep_orphans();
bool keeps_descendants();

// The children that Process starts. All others are orphans, but for those that were here before keep_descendants().
class OwnChildren {
 public:
  OwnChildren();  // holds a lock: nothing is started or reaped meanwhile
  void add(pid_t pid, bool own_group);
  void remove(pid_t pid);
  struct Orphans {
    int running = 0;     // had to be killed
    bool alive = false;  // and there are some that did not end in time: a device holds them, say
  };
  // Kills and reaps what is left below children that have ended.
  Orphans end_orphans();

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace syslab
