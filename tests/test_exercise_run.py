"""A call that never ends is stopped, everywhere, and nothing stays behind."""

import contextlib
import os
import signal
import threading
import time

import pytest
from made_up import judge

from tutorial_exercises import run
from tutorial_exercises.run import Printed, TimeUp, time_limit

LIMIT = 0.2


def busy():
    while True:
        pass


def patient():
    while True:
        time.sleep(0.01)


def stubborn():
    while True:
        with contextlib.suppress(Exception):
            busy()


def very_stubborn():
    with contextlib.suppress(BaseException):
        busy()
    busy()


def insatiable():
    while True:
        try:
            busy()
        except BaseException:
            continue


def talkative():
    while True:
        print("still here")


HANGING = [busy, patient, stubborn, very_stubborn, talkative]


def in_this_thread(run):
    return run()


def in_another_thread(run):
    results = []
    thread = threading.Thread(target=lambda: results.append(run()))
    thread.start()
    thread.join()
    return results[0]


def without_signals(run):
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(signal, "setitimer", raising=False)
        return run()


PLACES = [in_this_thread, in_another_thread, without_signals]


@pytest.mark.parametrize("answer", HANGING)
@pytest.mark.parametrize("place", PLACES)
def test_a_loop_without_end_is_stopped_and_pointed_at(answer, place):
    result = place(lambda: judge(answer, seconds=LIMIT))
    assert result.code == "time"
    assert "still running after 0.2 s: does a loop never end?" in result.message
    assert "of test_exercise_run.py: `" in result.message


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signals")
def test_a_loop_that_swallows_every_stop_is_stopped():
    assert judge(insatiable, seconds=LIMIT).code == "time"
    assert judge(lambda: 1, oracle=lambda: 1).passed
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signals")
def test_a_long_wait_is_cut_short():
    never = threading.Event()  # uncut, this test would not end
    assert judge(lambda: never.wait(), seconds=LIMIT).code == "time"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("answer", [busy, lambda: 1])
def test_no_timer_signal_or_thread_is_left_over(answer, place):
    handler, threads = signal.getsignal(signal.SIGALRM), threading.active_count()
    place(lambda: judge(answer, seconds=LIMIT, oracle=lambda: 1))
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert threading.active_count() == threads
    time.sleep(LIMIT + 2 * run.AGAIN)  # a late stop would end this test


def test_an_alarm_of_one_s_own_still_rings():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        assert judge(lambda: 1, oracle=lambda: 1).passed
        deadline = time.monotonic() + 5
        while not rung and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung


@pytest.mark.parametrize("place", PLACES)
def test_what_ends_in_time_is_not_stopped(place):
    def work():
        with time_limit(30):
            return sum(range(1000))

    assert place(work) == 499500


def test_time_up_is_no_exception_that_code_would_catch():
    assert not issubclass(TimeUp, Exception)


def test_the_usual_limit_stands_in_one_place(monkeypatch):
    monkeypatch.setattr(run, "SECONDS", LIMIT)
    assert "after 0.2 s" in judge(busy).message


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_during_a_loop_goes_through_and_is_cleaned_up():
    timer = threading.Timer(LIMIT, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        judge(busy, seconds=30)
    timer.join()
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_what_is_printed_is_kept_up_to_a_limit():
    printed = Printed()
    for _ in range(10_000):
        printed.write("x" * 100)
    assert len(printed.text) == run.PRINTED_CHARACTERS
    assert printed.lines()[-1] == "…"
