"""Red-team payload 311: descriptor passing (SCM_RIGHTS) and out-of-band bytes over the reply channel.

layer: os; category: protocol; defence: seccomp: no sendmsg, no MSG_OOB; the parent uses recv only
Signs of success: an observation that starts with PWNED, or the marker /tmp/synthgym-redteam/311_send_descriptor. Harmless if it succeeds.
"""


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        import ctypes, os, socket
        libc = ctypes.CDLL(None, use_errno=True)
        for descriptor in range(3, 64):
            if libc.send(descriptor, b"x", 1, socket.MSG_OOB) == 1:
                return "PWNED out-of-band byte over %d" % descriptor
            try:
                channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptor)
                socket.send_fds(channel, [b"x"], [descriptor])
                channel.detach()
                return "PWNED sent descriptor %d" % descriptor
            except OSError:
                pass
        return "blocked"

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
