#!/usr/bin/env python3
"""Runs `fm chat` on a pseudo terminal, types during an answer, and prints what the terminal shows.

usage: chat_terminal.py FM
"""
import os
import pty
import sys
import termios

# The pseudo terminal is not the one that the tests run in.
os.environ["TERM"] = "xterm"
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], ["fm", "chat", "--greedy", "--max-tokens", "40"])


def read_until(text):
    seen = b""
    while text not in seen:
        seen += os.read(terminal, 65_536)
    sys.stdout.buffer.write(seen)


read_until(b"\x1b[K> ")
os.write(terminal, b"Write about the sea.\r")
read_until(b"the sea.\r\n")
# The answer has not ended: the report on the context follows it.
os.write(terminal, b"typed ahead")
read_until(b"\x1b[K> typed ahead")
# Pasted text is one message, whatever its lines.
os.write(terminal, b"\x15\x1b[200~Write about\nthe hills.\n\x1b[201~\r")
read_until("> Write about↵the hills.\r\n".encode())
read_until(b"\x1b[K> ")
os.write(terminal, b"\x15/quit\r")
# Reading fails when the process has ended.
try:
    while os.read(terminal, 65_536):
        pass
except OSError:
    pass
_, status = os.waitpid(child, 0)
echoes = termios.tcgetattr(terminal)[3] & termios.ECHO != 0
print(f"\nexit code {os.waitstatus_to_exitcode(status)}, echo {'on' if echoes else 'off'}")
