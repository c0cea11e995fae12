"""The process of the command `reprt`, which may be interrupted from its start on."""

import signal
import sys


def main() -> int:
    """Runs the command of this process and returns its exit status."""
    try:
        # Imported here, because Ctrl-C may come while it loads.
        from reprt import termination

        termination.listen()
        from reprt import cli

        status = cli.main()
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        status = 130
    # The command has done what it could. Only Python still has to end.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    return status


if __name__ == "__main__":
    sys.exit(main())
