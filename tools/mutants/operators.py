"""The changes that make mutants: operators of cosmic-ray, and some of our own in the same form.

An operator has `mutation_positions(node)`, which yields the start and end of each change that it can make at a node of
parso's tree, and `mutate(node, index)`, which makes one and returns the node to put there, or None to remove it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, Final, Protocol

Position = tuple[tuple[int, int], tuple[int, int]]


class Operator(Protocol):
    """An operator of cosmic-ray."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Start and end of each change at this node, as line and column."""

    def mutate(self, node: Any, index: int) -> Any:
        """Make the change of that number at this node."""


_COMPARED: Final = (
    *("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt"),
    *("Lt_GtE", "GtE_Lt", "Gt_LtE", "LtE_Gt", "Is_IsNot", "IsNot_Is"),
)
_BINARY: Final = ("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Mod_FloorDiv", "BitAnd_BitOr", "BitOr_BitAnd")
COSMIC_RAY: Final = (
    *(f"ReplaceComparisonOperator_{each}" for each in _COMPARED),
    *(f"ReplaceBinaryOperator_{each}" for each in _BINARY),
    *(f"ReplaceUnaryOperator_{each}" for each in ("Delete_Not", "Delete_Invert", "Delete_USub")),
    "AddNot",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "NumberReplacer",
    "ZeroIterationForLoop",
)
"""The operators of cosmic-ray that are used. Its other operators make changes that fail at once (`a ** b` for `a + b`),
replace equality by identity, or need arguments."""


class _Leaf:
    """Changes a single name or operator of the tree into another."""

    swaps: ClassVar[dict[str, str]]

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if getattr(node, "value", None) in self.swaps and self.fits(node):
            yield node.start_pos, node.end_pos

    def fits(self, node: Any) -> bool:
        """Whether the node is used in the way that the operator changes."""
        raise NotImplementedError

    def mutate(self, node: Any, index: int) -> Any:
        node.value = self.swaps[node.value]
        return node


class SwapMinMax(_Leaf):
    """Replace calls: `min` by `max`, `any` by `all`, first by last, less by greater, and vice versa."""

    swaps: ClassVar = {
        **{"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"},
        **{"less": "less_equal", "less_equal": "less", "greater": "greater_equal", "greater_equal": "greater"},
        **{"equal": "not_equal", "not_equal": "equal", "argmin": "argmax", "argmax": "argmin"},
        **{"or_": "and_", "and_": "or_", "logical_or": "logical_and", "logical_and": "logical_or"},
        **{"is_null": "is_valid", "is_valid": "is_null"},
    }

    def fits(self, node: Any) -> bool:
        following = node.get_next_leaf()
        return node.type == "name" and following is not None and following.value == "("


class SwapIn(_Leaf):
    """Replace `in` by `not in` in a condition."""

    swaps: ClassVar = {"in": "not in"}

    def fits(self, node: Any) -> bool:
        return bool(node.parent.type == "comparison")


class DeleteNotIn:
    """Replace `not in` by `in`."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "comp_op" and node.children[0].value == "not":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[0].value = ""
        return node


class DropStatement:
    """Replace a statement by `pass`: a call, an assignment to an attribute or element, a `raise`, `del`, `continue` or
    `yield`."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type != "simple_stmt" or node.parent.type == "file_input":
            return
        statement = node.children[0]
        kind = statement.type
        if kind in ("return_stmt", "import_from", "import_name", "string", "pass_stmt", "strings", "global_stmt"):
            return
        if kind == "keyword" and statement.value in ("pass", "break"):
            return
        if kind == "expr_stmt" and (node.parent.parent.type == "classdef" or self._is_first(statement)):
            return
        yield statement.start_pos, statement.end_pos

    @staticmethod
    def _is_first(statement: Any) -> bool:
        """Whether the statement gives a name its first value. Without it, the name would be missing and everything
        would fail."""
        names = {name.value for name in statement.get_defined_names()}
        around = statement.parent
        while around.type not in ("funcdef", "file_input"):
            around = around.parent
        leaf = around.get_first_leaf()
        while leaf is not None and leaf.start_pos < statement.start_pos:
            names.discard(leaf.value)
            leaf = leaf.get_next_leaf()
        return bool(names)

    def mutate(self, node: Any, index: int) -> Any:
        parso = importlib.import_module("parso")
        prefix = node.get_first_leaf().prefix
        dropped = parso.parse("pass").children[0]
        dropped.prefix = prefix
        node.children[0] = dropped
        return node


class ReturnNothing:
    """Replace a returned value by None, and a returned condition by False."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "return_stmt" and node.children[1].get_code().strip() not in ("None", "False"):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        parso = importlib.import_module("parso")
        conditions = ("comparison", "not_test", "and_test", "or_test")
        value = "False" if node.children[1].type in conditions else "None"
        returned = parso.parse(value).children[0]
        returned.prefix = " "
        node.children[1] = returned
        return node


class SwapArguments:
    """Swap the first two positional arguments of a call whose order matters."""

    _SYMMETRICAL: Final = ("max", "min", "maximum", "minimum", "equal", "array_equal", "union1d")

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        is_of_call = node.type == "arglist" and node.parent.type == "trailer"
        if is_of_call and len(self._positional(node)) > 1 and self._called(node) not in self._SYMMETRICAL:
            yield node.start_pos, node.end_pos

    @staticmethod
    def _called(node: Any) -> str:
        return str(node.parent.get_first_leaf().get_previous_leaf().value)

    def mutate(self, node: Any, index: int) -> Any:
        first, second = self._positional(node)[:2]
        one, other = node.children[first], node.children[second]
        # The space or line end before an argument stays where it is.
        one_leaf, other_leaf = one.get_first_leaf(), other.get_first_leaf()
        one_leaf.prefix, other_leaf.prefix = other_leaf.prefix, one_leaf.prefix
        node.children[first], node.children[second] = other, one
        return node

    @staticmethod
    def _positional(node: Any) -> list[int]:
        return [
            at
            for at, child in enumerate(node.children)
            if child.type not in ("operator", "argument") and getattr(child, "value", None) not in (",", "*", "**")
        ]


OURS: Final[tuple[type[Any], ...]] = (SwapMinMax, SwapIn, DeleteNotIn, DropStatement, ReturnNothing, SwapArguments)


@cache
def operators() -> dict[str, Operator]:
    """All operators by name. Raises ModuleNotFoundError without cosmic-ray."""
    provider = importlib.import_module("cosmic_ray.operators.provider").OperatorProvider()
    return {name: provider[name]() for name in COSMIC_RAY} | {each.__name__: each() for each in OURS}
