"""What stops the embedded cluster, told to the person at the terminal."""


class SandboxError(Exception):
    """The embedded cluster can't do what was asked; the message says what, why and what to do instead."""


class SupervisorEndedError(SandboxError):
    """The process that everything runs under is gone."""


class StateUnusableError(SandboxError):
    """What the cluster kept can't be read any more."""


INSTEAD = "Or use your own cluster: KUBECONFIG=… make up."
"""Where an embedded cluster can't be had."""
