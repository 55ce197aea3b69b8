"""Callbacks of scikit-learn for tests."""


class AtPass:
    """Calls a function when a pass of a fit ends, once."""

    def __init__(self, number, function):
        self.left, self.function = number, function

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        if context.task_name == "pass":
            self.left -= 1
            if self.left == 0:
                self.function()

    def teardown(self, estimator, context):
        pass


class Listener:
    """Writes down all tasks, and stops one kind of them after some."""

    max_propagation_depth = None

    def __init__(self, stop="", after=0):
        self.stop, self.after = stop, after
        self.events, self.fitted, self.told = [], [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(("begin", context.task_name, context.task_id))
        self.told.append((X, y, metadata))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.events.append(("end", context.task_name, context.task_id))
        self.fitted.append((context.task_name, fitted_estimator))
        ended = sum(event[:2] == ("end", self.stop) for event in self.events)
        return context.task_name == self.stop and ended >= self.after
