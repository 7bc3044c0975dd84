"""A worker that serves cases in bursts, or gets one thing about it wrong: what the tests of paired launches spawn."""
import json
import os
import struct
import sys
import threading
import time

behaviour = sys.argv[1]
out = os.dup(1)
os.dup2(2, 1)


def say(**message):
    text = json.dumps(message).encode()
    os.write(out, struct.pack("<I", len(text)) + text)


def hear():
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        sys.exit(0)
    return json.loads(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))


def end():
    say(type="check", name="reference:end", outcome="passed")
    say(type="sample", series="time", unit="s", values=taken)
    say(type="end", status="ok", detail="")


def spin():
    while True:
        pass


def work_in_the_others_turn():
    """By a child that no stop of this group reaches: for ever, or for 100 ms."""
    parent = os.getpid()
    if os.fork() == 0:
        os.setsid()
        until = time.monotonic() + (0.1 if behaviour == "restless_once" else 3600)
        while time.monotonic() < until and os.getppid() == parent:
            pass
        os._exit(0)


def leave_a_rank_alone():
    """Rank 1 has answered and dies, or talks, while rank 0 is not done, for ever or for three seconds."""
    if behaviour == "dies_answered" and rank == 0:
        time.sleep(3600)
    if behaviour == "talks_answered" and rank == 0:
        time.sleep(3)
    time.sleep(0.002)
    say(type="burst", seconds_per_call=0.0004)
    if behaviour == "dies_answered":
        os._exit(3)
    if behaviour == "talks_answered" and rank == 1:
        time.sleep(0.1)
        print("a word that nobody asked for", file=sys.stderr, flush=True)


def start_with_the_other(folder):
    """Is there once the other side's worker is there, too, and does nothing until it is told to."""
    open(os.path.join(folder, str(os.getpid())), "w").close()
    while len(os.listdir(folder)) < 2:
        time.sleep(0.01)
    if behaviour == "starts_badly":
        say(type="end", status="error", detail="no such file")
        return
    say(type="started")
    assert hear()["type"] == "go"


rank = cases = 0
taken: list = []
while (message := hear())["type"] != "bye":
    if message["type"] == "hello":
        serves = ["case"] if behaviour == "knows_no_bursts" else ["case", "bursts"]
        serves += ["fresh"] if behaviour == "serves_fresh" else []
        say(type="hello", protocol=1, name="fake", language="Python", serves=serves)
    elif message["type"] == "case":
        rank = message["rank"]
        assert message["task"] == "paired" and message["burst_ns"] > 0, message
        if message.get("starts"):
            start_with_the_other(sys.argv[2])
            if behaviour == "starts_badly":
                continue
        if behaviour == "babbles":
            say(type="burp")
        if behaviour in ("knows_no_bursts", "ends_at_once"):
            end()
        elif behaviour == "times_out":
            say(type="end", status="timeout", detail="rank 1 said nothing while others waited for it")
        elif behaviour == "never_ready":
            time.sleep(3600)
        else:
            if behaviour.startswith("slowly_ready"):
                time.sleep(0.7)
            cases, taken = cases + 1, []
            say(type="ready", calls_per_burst=4 * cases, seconds_per_call=0.0005 / cases)
    elif message["type"] == "burst" and behaviour.endswith("_answered") and not taken:
        taken.append(0.0004)
        leave_a_rank_alone()
    elif message["type"] == "burst":
        time.sleep(0.3 if behaviour == "slow_bursts" else 0.002 * max(cases, 1))
        if behaviour.startswith("restless") and not taken:
            work_in_the_others_turn()
        if behaviour == "spin" and not taken:
            threading.Thread(target=spin, daemon=True).start()
        taken.append({"zero_seconds": 0.0, "tells_too_much": 3600.0}.get(behaviour, 0.0004))
        if behaviour == "slowly_ready_unsteady" and len(taken) % 3 == 0:
            taken[-1] = 0.0008
        say(type="burst", seconds_per_call=taken[-1])
    elif message["type"] == "finish":
        end()
