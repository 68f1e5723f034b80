"""Checks of reasoning tasks run in a small subset of Python and always end."""

import pytest

from judge_calibration.bank.solving import CheckError, constants, only_returns_an_input, parse_check, solve


class TestSolve:
    def test_loops_and_helpers(self) -> None:
        code = """
def square(x):
    return x ** 2

def solve(values):
    total = 0
    for value in values:
        if value % 2:
            total += square(value)
    return total
"""
        assert solve(code, {"values": [1, 2, 3]}) == 10  # 1 + 9

    def test_who_sits_where(self) -> None:
        # Ann is not first; Bo is right before Cid: only Bo, Cid, Ann is left.
        code = """
def solve(people):
    for seats in permutations(people):
        ann, bo, cid = [seats.index(name) for name in people]
        if ann != 0 and cid == bo + 1:
            return list(seats)
"""
        assert solve(code, {"people": ["Ann", "Bo", "Cid"]}) == ["Bo", "Cid", "Ann"]

    @pytest.mark.parametrize(
        "code",
        [
            "import os\ndef solve():\n    return 1",
            "def solve():\n    while True:\n        pass",
            "def solve():\n    return (lambda: 1)()",
            "def solve(x):\n    return x.__class__",
            "def solve(x):\n    return f'{x:9999999999d}'",
            "def solve():\n    return __import__('os')",
            "x = 1\ndef solve():\n    return x",
            "def other():\n    return 1",
            "def solve(:\n    return 1",
            "def solve():\n    return b'bytes'",
            "def solve():\n    global x\n    return 1",
            "def _tick():\n    return 1\ndef solve():\n    return 1",
            "def solve(_counted):\n    return 1",
            "@sum\ndef solve():\n    return 1",
        ],
    )
    def test_what_is_not_allowed_is_refused(self, code: str) -> None:
        with pytest.raises(CheckError):
            parse_check(code)

    @pytest.mark.parametrize(
        "body",
        [
            "sum(1 for a in range(10**4) for b in range(10**4))",
            "len(range(10**12))",
            "9 ** 9 ** 9",
            "'x' * 10**9",
            "[0] * 10**9",
            "10**9 * [0]",
            "factorial(10**7)",
            "comb(10**6, 10**5)",
            "len(list(permutations(range(15))))",
            "'%1000000000d' % 1",
            "solve()",
            "1 / 0",
            "[][1]",
            "open('x')",
        ],
    )
    def test_what_would_not_end_or_fails_is_refused(self, body: str) -> None:
        with pytest.raises(CheckError):
            solve(f"def solve():\n    return {body}", {})

    def test_repeated_squaring_is_bounded(self) -> None:
        code = "def solve():\n    x = 10\n    for i in range(100):\n        x = x * x\n    return x"
        with pytest.raises(CheckError, match="too large"):
            solve(code, {})

    def test_sorting_by_a_function_counts_its_calls(self) -> None:
        code = "def key(x):\n    return -x\ndef solve(xs):\n    return sorted(xs, key=key)"
        assert solve(code, {"xs": [1, 3, 2]}) == [3, 2, 1]


def test_constants_hold_negative_numbers_and_text() -> None:
    assert set(constants("def solve(x):\n    return x + -3 if x else 'no'")) == {3, -3, "no"}


def test_handing_an_input_back_is_seen() -> None:
    assert only_returns_an_input("def solve(x, y):\n    return y")
    assert not only_returns_an_input("def solve(x, y):\n    return y + x")
