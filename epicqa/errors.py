"""The one exception that reaches users as a single line."""


class EpicqaError(Exception):
    """Bad input or a bad state: the message is one line that says where, what is wrong, what would be right.

    The command line prints it and exits with status 2, without a traceback.
    """
