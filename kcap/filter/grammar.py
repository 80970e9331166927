"""The grammar of display filters, and the names of its parts for error messages.

In: text. Out: lark's tree. The syntax is Wireshark's (wireshark-filter(4)): words and signs for operators, a bare name for
presence.
"""

from functools import cache
from typing import Final

from lark import Lark

from kcap.folders import private_folder

GRAMMAR: Final = r"""
start: or
?or: xor (("||" | "or") xor)*
?xor: and (("^^" | "xor") and)*
?and: not (("&&" | "and") not)*
?not: ("!" | "not") not -> negated | test
?test: "(" or ")" | quantifier relation | relation
?relation: operand -> present
    | operand OPERATOR value -> compare
    | operand "in" "{" item ("," item | item)* "}" -> member
    | operand ("not" | "!") "in" "{" item ("," item | item)* "}" -> stranger
quantifier: QUANTIFIER
?operand: name | WORD "(" operand ")" -> call
name: WORD
value: literal | WORD "(" operand ")" -> call
item: literal | literal ".." literal -> range
literal: WORD -> word | STRING -> quoted | REGEX -> quoted

QUANTIFIER.2: /(any|all)(?=\s+[A-Za-z])/
OPERATOR.2: /===|==|!==|!=|~=|<=|>=|<|>|~/ | /(eq|ne|any_eq|all_eq|any_ne|all_ne|lt|le|gt|ge|contains|matches)\b(?!\s*\()/
STRING: /"(\\.|[^"\\])*"/ | /'(\\.|[^'\\])*'/
REGEX.1: /r"[^"]*"/
WORD: /(?:[A-Za-z0-9_:\/+\-]|\.(?!\.))+/

%import common.WS
%ignore WS
"""

NAMES: Final = {
    "OPERATOR": "an operator (== != < > contains matches in)",
    "WORD": "a name or a value",
    "STRING": "a text in quotes",
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "AND": "'and'",
    "OR": "'or'",
    "NOT": "'not'",
    "IN": "'in'",
    "$END": "the end",
}
"""Terminal -> its name in messages; terminals without one are not suggested."""


@cache
def parser() -> Lark:
    """The parser. Its tables are cached between runs: making them takes 30 ms, reading them 2 ms. lark makes them again if the
    grammar, lark or Python changes. They are a pickle, so only a folder that this user alone can write is trusted."""
    folder = private_folder("filters")
    kept = str(folder / "tables") if folder is not None else False
    return Lark(GRAMMAR, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False, cache=kept)
