"""The paper's Algorithm 1 and the contracts around it; imports neither a model nor a device.

In the order of reading:

- ``algorithm``: one iteration, and what a run consists of: its inputs, the current iterate, state and result.
- ``method``: the contract of a method, and its declaration as an update.
- ``compute``: the E-steps that methods ask for, in plain NumPy, and the choice among faster ones.
- ``source`` and ``model``: the contracts of data, of models, and of models bound to data.
- ``draws`` and ``schedules``: sample indices and step sizes as functions of k.
- ``loop``: one run from its start to its end, with records, Ctrl-C and checkpoints.
- ``problem``: a model bound to its data, and the memory budget of its runs.
- ``checkpoint``, with ``state_file``, ``describe`` and ``files``: what is on disk.
- ``checks``, ``messages``, ``process``, ``types``: arguments, messages, the clock, names of types.
"""
