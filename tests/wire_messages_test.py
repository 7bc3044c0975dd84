#!/usr/bin/env python3
"""What syslab's Python processes write is JSON, whatever text a user's code raises.

    wire_messages_test.py ROOT
"""
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1])
del sys.argv[1:]
sys.path.insert(0, str(ROOT / "src" / "python"))
sys.dont_write_bytecode = True
from syslab_wire import json_bytes  # noqa: E402


class Messages(unittest.TestCase):
    def test_half_a_pair_of_surrogates_is_spelled_out(self):
        for half, letters in (("\ud800", "\\ud800"), ("\udcff", "\\udcff"), ("\udc80\ud83d", "\\udc80\\ud83d")):
            with self.subTest(letters=letters):
                self.assertEqual(json.loads(json_bytes({half: [f'"{half}\\']}).decode()), {letters: [f'"{letters}\\']})

    def test_all_other_text_stays_what_it_is(self):
        message = {"text": "µs \U0001f600 \x00\n\x7f\u2028\"\\ud800", "value": [1, 2.5, None, True]}
        self.assertEqual(json.loads(json_bytes(message).decode()), message)


if __name__ == "__main__":
    unittest.main()
