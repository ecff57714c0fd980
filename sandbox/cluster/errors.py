"""What stops the embedded cluster, told to the person at the terminal."""


class SandboxError(Exception):
    """The embedded cluster can't do what was asked; the message says what, why and what to do instead."""


class SupervisorEndedError(SandboxError):
    """The process that everything runs under is gone."""


INSTEAD = "Or use your own cluster: KUBECONFIG=… make up."
