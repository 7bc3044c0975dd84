# Ends what a script has started and what that has started, when the script itself is ended. Sourced by .ci/run.
#
# Bash that SIGTERM or SIGHUP ends while it waits for a program runs its EXIT trap at once, and leaves the program. An
# interrupt of the terminal reaches programs in the script's own process group, and those alone.
# shellcheck shell=bash

# started_by ID : the ids of all processes below it, whatever group or session they are in: Meson, ninja and tools/mutants
# begin groups and sessions of their own.
started_by() {
  grep -hE '^P?Pid:' /proc/[0-9]*/status 2>/dev/null | awk -v root="$1" '
    $1 == "Pid:" { id = $2 }
    $1 == "PPid:" { below[$2] = below[$2] " " id }
    function list(of, ids, n, i) {
      n = split(below[of], ids, " ")
      for (i = 1; i <= n; i++) { print ids[i]; list(ids[i]) }
    }
    END { list(root) }'
}

# end_started : for an EXIT trap. What has not ended 5 s after SIGTERM is killed. Nothing is left of a script that went to its end.
end_started() {
  local ids=() files rounds
  for rounds in 1 2 3; do # stopped first, since who goes on could start another meanwhile
    mapfile -t ids < <(started_by $$)
    kill -STOP "${ids[@]}" 2>/dev/null
  done
  kill -TERM "${ids[@]}" 2>/dev/null
  kill -CONT "${ids[@]}" 2>/dev/null
  files=("${ids[@]/#//proc/}")
  files=("${files[@]/%//status}")
  for ((rounds = 0; rounds < 50; rounds++)); do
    grep -qsE '^State:[[:space:]]+[^XZ]' "${files[@]}" </dev/null || return 0
    sleep 0.1
  done
  kill -KILL "${ids[@]}" 2>/dev/null
  return 0
}
