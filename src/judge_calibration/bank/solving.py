"""Run the small functions that prove the reasoning tasks, without trusting their text.

A bank is data that anyone may write, so its checks are not simply executed. A check is parsed and refused
unless every node is on a short list: one or more functions, arithmetic, comparisons, `if`, `for`,
comprehensions, and calls of the names in :data:`NAMES`. There are no imports, no `while`, no lambdas, no
string formatting, and no attributes but a few harmless ones. Every loop step and every function call draws
on one budget, and powers, factorials and repetitions are bounded, so that a check always ends.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, ClassVar

from judge_calibration.errors import JudgeCalibrationError

STEPS = 2_000_000
_BIG = 10**60


class CheckError(JudgeCalibrationError):
    """A reasoning check is not allowed, does not end in its budget, or fails while it runs."""


_NODES = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.For,
    ast.If, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Tuple, ast.List,
    ast.Dict, ast.Set, ast.Subscript, ast.Slice, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.comprehension, ast.Starred, ast.Attribute, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_ATTRIBUTES = {
    "append", "add", "items", "keys", "values", "get", "count", "index", "days", "weekday", "year", "month",
    "day", "numerator", "denominator", "lower", "upper", "isoformat",
}  # fmt: skip


def _power(base: Any, exponent: Any) -> Any:
    if abs(exponent) > 5_000 or (abs(base) > 1 and abs(exponent) * math.log(abs(base)) > 5_000):
        raise CheckError("a power in a check is too large")
    return base**exponent


def _times(left: Any, right: Any) -> Any:
    for number, other in ((left, right), (right, left)):
        if hasattr(other, "__len__") and (not isinstance(number, int) or number * len(other) > 10_000):
            raise CheckError("a repetition in a check is too long")
    product = left * right
    if isinstance(product, int) and abs(product) > _BIG**40:
        raise CheckError("a product in a check is too large")
    return product


def _modulo(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        raise CheckError("string formatting is not allowed in a check")
    return left % right


def _factorial(n: int) -> int:
    if n > 500:
        raise CheckError("a factorial in a check is too large")
    return math.factorial(n)


def _comb(n: int, k: int) -> int:
    if n > 5_000:
        raise CheckError("a binomial coefficient in a check is too large")
    return math.comb(n, k)


class _Budget:
    """The steps that one run of a check may take."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def tick(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise CheckError(f"a check did not end within {STEPS} steps")

    def counted(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.tick()
            yield value

    def range(self, *bounds: int) -> range:
        made = range(*(int(bound) for bound in bounds))
        self.left -= len(made)
        if self.left < 0:
            raise CheckError(f"a check did not end within {STEPS} steps")
        return made

    def chain(self, function: Callable[..., Iterable[Any]]) -> Callable[..., Iterator[Any]]:
        return lambda *args, **kwargs: self.counted(function(*args, **kwargs))


def _namespace(budget: _Budget) -> dict[str, Any]:
    plain = {
        "abs": abs, "min": min, "max": max, "sum": sum, "len": len, "sorted": sorted, "round": round,
        "int": int, "float": float, "str": str, "bool": bool, "list": list, "tuple": tuple, "dict": dict,
        "set": set, "enumerate": enumerate, "zip": zip, "all": all, "any": any, "divmod": divmod,
        "Fraction": Fraction, "date": date, "timedelta": timedelta, "sqrt": math.sqrt, "floor": math.floor,
        "ceil": math.ceil,
        "log": math.log, "exp": math.exp, "sin": math.sin, "cos": math.cos, "tan": math.tan,
        "atan": math.atan, "radians": math.radians, "degrees": math.degrees, "pi": math.pi, "gcd": math.gcd,
        "lcm": math.lcm, "comb": _comb, "factorial": _factorial,
    }  # fmt: skip
    return plain | {
        "range": budget.range,
        "permutations": budget.chain(itertools.permutations),
        "combinations": budget.chain(itertools.combinations),
        "product": budget.chain(itertools.product),
        "__builtins__": {},
        "_tick": budget.tick,
        "_counted": budget.counted,
        "_power": _power,
        "_times": _times,
        "_modulo": _modulo,
    }


NAMES = tuple(name for name in _namespace(_Budget(0)) if not name.startswith("_"))
"""The names that a check may use besides its own."""


class _Guard(ast.NodeTransformer):
    """Route every loop, call, power, product and remainder through its bounded form."""

    _operators: ClassVar[dict[type[ast.operator], str]] = {
        ast.Pow: "_power",
        ast.Mult: "_times",
        ast.Mod: "_modulo",
    }

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call("_tick")))
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _call("_counted", node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = _call("_counted", node.iter)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = self._operators.get(type(node.op))
        return _call(name, node.left, node.right) if name else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        name = self._operators.get(type(node.op))
        if not name:
            return node
        if not isinstance(node.target, ast.Name):
            raise CheckError("write `x = x * y` in full for anything but a plain name")
        return ast.Assign([node.target], _call(name, ast.Name(node.target.id, ast.Load()), node.value))


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def parse_check(code: str) -> ast.Module:
    """Return the check's syntax tree, if everything in it is allowed.

    Raises
    ------
    CheckError
        Naming the first thing that is not.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise CheckError(f"the check is not Python: line {error.lineno}: {error.msg}") from error
    for node in ast.walk(tree):
        line = getattr(node, "lineno", "?")
        if not isinstance(node, _NODES):
            raise CheckError(f"line {line}: {type(node).__name__} is not allowed in a check")
        if isinstance(node, ast.Name) and node.id.startswith("_"):
            raise CheckError(f"line {line}: names may not begin with an underscore")
        if isinstance(node, ast.arg) and node.arg.startswith("_"):
            raise CheckError(f"line {line}: names may not begin with an underscore")
        if isinstance(node, ast.FunctionDef) and (node.decorator_list or node.name.startswith("_")):
            raise CheckError(f"line {line}: no decorators, and no name that begins with an underscore")
        if isinstance(node, ast.Attribute) and node.attr not in _ATTRIBUTES:
            raise CheckError(f"line {line}: the attribute .{node.attr} is not allowed in a check")
        if isinstance(node, ast.Constant) and not isinstance(
            node.value, bool | int | float | str | type(None)
        ):
            raise CheckError(f"line {line}: a constant of a kind that is not allowed")
    if not all(isinstance(node, ast.FunctionDef) for node in tree.body):
        raise CheckError("a check holds functions only")
    if not any(isinstance(node, ast.FunctionDef) and node.name == "solve" for node in tree.body):
        raise CheckError("a check needs a function called solve")
    return tree


def solve(code: str, numbers: Mapping[str, Any]) -> Any:
    r"""Run the check's function `solve` on the task's numbers and return what it returns.

    Parameters
    ----------
    code : str
        Python functions in the allowed subset, one of them called ``solve``.
    numbers : mapping
        Its arguments by name.

    Raises
    ------
    CheckError
        If the code is not allowed, fails, or takes too long.

    Examples
    --------
    >>> solve("def solve(price, share):\n    return price * share", {"price": 80, "share": 0.25})
    20.0
    >>> solve("def solve():\n    return open('x')", {})
    Traceback (most recent call last):
    ...
    judge_calibration.bank.solving.CheckError: NameError: name 'open' is not defined
    """
    tree = ast.fix_missing_locations(_Guard().visit(parse_check(code)))
    names = _namespace(_Budget(STEPS))
    try:
        exec(compile(tree, "<check>", "exec"), names)  # noqa: S102 - every node was allowed by parse_check
        return names["solve"](**numbers)
    except CheckError:
        raise
    except (
        ArithmeticError,
        LookupError,
        NameError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise CheckError(f"{type(error).__name__}: {error}") from error


def constants(code: str) -> list[Any]:
    """Return every number and string that the check's code holds, negative numbers with their sign too."""
    found: list[Any] = []
    for node in ast.walk(parse_check(code)):
        if isinstance(node, ast.Constant) and not isinstance(node.value, bool) and node.value is not None:
            found.append(node.value)
        if (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.USub)
            and isinstance(node.operand, ast.Constant)
            and isinstance(node.operand.value, int | float)
        ):
            found.append(-node.operand.value)
    return found


def only_returns_an_input(code: str) -> bool:
    """Whether `solve` does nothing but give back one of its arguments."""
    tree = parse_check(code)
    body = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "solve").body
    statements = [n for n in body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
    return (
        len(statements) == 1
        and isinstance(statements[0], ast.Return)
        and isinstance(statements[0].value, ast.Name)
    )
