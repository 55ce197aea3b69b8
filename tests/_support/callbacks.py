"""A scikit-learn callback for tests."""


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
