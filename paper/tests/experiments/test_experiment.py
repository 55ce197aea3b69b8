"""Jobs of unequal cost, one after the other: their rows, the progress, Ctrl-C."""

from paper.experiments.experiment import Job, collect, no_progress


def test_rows_of_all_jobs_and_shares_from_zero_to_one():
    told = []
    jobs = [Job("long", 8.0, lambda: [1, 2]), Job("short", 2.0, lambda: [3])]
    found = collect("toy", {"a": "b"}, jobs, lambda doing, share: told.append((doing, share)))
    assert found == ("toy", {"a": "b"}, (1, 2, 3), False)
    assert told == [("long", 0.0), ("long", 0.8), ("short", 0.8), ("short", 1.0)]


def test_ctrl_c_keeps_the_rows_of_complete_jobs():
    def broken_off():
        raise KeyboardInterrupt

    jobs = [Job("first", 1.0, lambda: [1]), Job("second", 1.0, broken_off), Job("third", 1.0, lambda: [3])]
    assert collect("toy", {}, jobs, no_progress) == ("toy", {}, (1,), True)
