#!/usr/bin/env python3
"""Checks the comments of our headers, and the names and parameters of all functions.

  tests/comments.py                 all sources; one line a complaint, exit status 1 if there are any
  tests/comments.py physics/base    those below a folder, or a file, or several of them
  tests/comments.py --verbs         the verbs that may begin a comment; a missing one is added to VERBS

The rule for headers:

  every sentence      At most 25 words, and no opening that leans on the line before: What, Where, The same, Of, As, ...
                      A formula ("x = a + b") is one word, units and shapes in brackets are none.
  of a declaration    The first sentence begins with a verb ("Returns", "Holds", "Call"), every further one holds one.
                      A declaration is a function, a type, a constant or a macro directly below the comment.
  of a field          Beside or above a field or an enumerator a noun with shape and unit is enough.
  of a table          Sentences of *.inc are only limited in length.

Two kinds of lines are no prose, and not read: a line indented by two spaces or more inside its comment (formulas,
tables, code), and a heading ("---- memory ----"). The comment at the head of a file and one that stands alone between
empty lines may begin with a noun.

The rule for functions of *.c, *.cu and *.h: at most 8 parameters; local ones have no public prefix (sn_).

Example:

  $ tests/comments.py physics/base/lane.h
  physics/base/lane.h:17: begins with no verb: Memory that the lanes of one world share for reductions.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_WORDS = 25
MAX_PARAMETERS = 8
ENDINGS = (".c", ".cu", ".h", ".inc")

# Words that leave out what they speak of, or that it is a sentence at all.
OPENERS = {"and", "as", "ditto", "its", "likewise", "nor", "of", "or", "same", "that", "the same", "their", "those"}
OPENERS |= {"what", "where", "which", "whose"}

# What begins a comment or makes a sentence, without the s of the third person. With a star: as often a noun ("Limits of
# a joint" names something, "Limits the force" says what is done).
VERBS = """
abandon abort accelerate accept access accumulate acquire act activate adapt add address* adjust admit advance advise affect
agree align allocate allow alter analyse announce answer anticipate append apply appoint approximate arrange ask assemble
assert assign assume attach attempt average avoid await back backpropagate balance become begin behave belong bind block*
book* borrow bound* break bring broadcast buffer* build bypass cache* calculate call* cancel cap* capture carry cast* catch
chain* change* check* choose chop clamp classify clean clear clip clone close coalesce collapse collect collide combine come
commit compare compile complete compose compress compute concatenate concern configure confirm connect consider consist
construct consume contain continue contribute control* convert convey convolve cooperate copy correct correspond cost*
count* cover* create crop cross* cut* deal decay decide declare decode decrease default* defer define delay* delegate delete
deliver demand denormalise denote deny depend dereference derive describe destroy detach detect determine diagonalise differ
differentiate diminish disable discard discharge disconnect dispatch dispose distinguish distort distribute diverge divide
do dominate double drain draw drive* drop* dump* duplicate echo elapse embed emit employ empty emulate enable encapsulate
enclose encode end* enforce enlarge enqueue ensure entail enter entitle enumerate equal equip erase escape establish
estimate* evaluate evict exceed exchange* exclude execute exist expand expect expire explain exploit export express extend
extract extrapolate factorise fade fail fall* feed fetch fill filter finalise find finish fit* fix* flag* flatten flip flush
fly fold follow forbid force* forget fork form* format* forward frame* free freeze gain gather generalise generate get give
go govern grant greet group* grow guard* guess halt halve hand* handle hang happen hash* have head* help hide hint* hit*
hoist hold honour identify ignore imply import improve include increase increment index* indicate inflate inform inherit
initialise inject inline insert inspect install instantiate integrate intend interleave interpolate interpret interrupt
intersect introduce invalidate inverse invert invoke involve isolate issue* iterate join judge jump* keep know label* last
lay lead* learn leave lend let lie lift limit* linearise link* list* listen live load* locate lock* log* look loop* lose
lower maintain make manage map* mark* mask* match* matter mean measure* meet mention merge minimise mirror* mix* model*
modify monitor move multiply mutate name* need* negate nest normalise note* notice notify number* obey observe obtain occur
offer* omit open optimise order* orthogonalise outlive overflow overlap overwrite owe own pack* pad* pair* parse part*
partition pass* pause peek perform permit permute persist perturb pick pin place* plan* point* poison poll* pop post*
precede precompute predict preempt prefer prefix* prepare present preserve presume pretend prevent print probe* process*
produce profile* prohibit project* promise propagate protect prove provide prune publish pull purge push put qualify
quantise query* queue* quit raise randomise rank* reach* read rebase rebuild recall receive reckon recognise recompute
reconnect record* recover recreate redirect redo reduce refer refill refine refit reflect refresh refuse regard register
reinitialise reject relate relax release rely remain remember remove rename render renew reopen reorder repair repeat
replace replay reply report represent reproduce request* require rerun rescale reseed reserve reset* reside resize resolve
respect respond restart restore restrict resume retain retarget rethrow retire retrieve retry return* reuse reveal reverse
revert revisit rewind rewrite roll* rotate round* route* rule* run* sample* satisfy saturate save say scale* scan* scatter
schedule score* scrub search* see seed* seek seem select send separate serialise serve set* settle shadow share* shift* ship
show shrink shut sign* signal* simulate sit size* skip sleep slice* slide* slow smooth solve sort span* spare spawn speak
specify spend spin split spread* square* stall stamp* stand* start* state* stay steer step* stop* store* stream* stretch
strip* subscribe substitute subsume subtract suffice suit sum* summarise supply* support* suppress surpass survive swallow
swap* sweep* switch* symmetrise synchronise synthesise take tally target* tear tell tend terminate test* think throw tick*
tie* tighten time* total* touch* trace* track* transfer* transform translate transmit transpose trap* traverse treat trigger
trim truncate try tune turn* type* uncompress underlie undo unite unlock unmap unpack unregister unroll unwind update
upgrade upload use* validate vanish vary verify view* violate visit vote wait wake walk want warm warn watch* weigh widen
win wire* withdraw work* wrap* write yield zero
"""

AUXILIARIES = {"am", "are", "be", "been", "can", "cannot", "could", "did", "do", "does", "had", "has", "have", "is", "may", "might"}
AUXILIARIES |= {"must", "shall", "should", "was", "were", "will", "would"}
ARTICLES = {"a", "an", "any", "each", "every", "its", "no", "of", "one", "per", "the", "their", "this", "with"}
AFTER_IMPERATIVE = {"a", "all", "an", "at", "both", "each", "every", "from", "it", "only", "the", "this"}
AFTER_NOUN = {"are", "for", "in", "of", "which", "whose"}
ABBREVIATIONS = {"al.", "approx.", "cf.", "e.g.", "eq.", "fig.", "i.e.", "incl.", "max.", "min.", "resp.", "sec.", "vs."}
OPERATORS = {"=", "+", "-", "*", "/", "<", ">", "<=", ">=", "==", "!=", ".", "|", "&", "^", "~", ":=", "+=", "-=", "*=", "->", "<-"}


# Lines of a comment that are not read: displayed ones, headings, words to clang-format, empty ones.
NO_PROSE = re.compile(r"   | ?-{3,}| clang-format (on|off)$|\s*$")


class Trouble(Exception):
    """A request that cannot be met: exit status 2."""


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence of a comment."""

    line: int
    words: tuple[str, ...]
    first: bool  # of its comment

    @property
    def text(self) -> str:
        """The sentence as it reads."""
        return " ".join(self.words)


@dataclasses.dataclass(frozen=True)
class Comment:
    """A comment. kind: head (of a file), declaration, field, body (of a function), note (anything else)."""

    kind: str
    sentences: tuple[Sentence, ...]


# ---- sentences ----


def third_person(verb: str) -> str:
    """The verb with its s.

    >>> [third_person(verb) for verb in ("read", "copy", "pass", "do", "lay")]
    ['reads', 'copies', 'passes', 'does', 'lays']
    """
    if verb == "have":
        return "has"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


NOUNS = {verb[:-1] for verb in VERBS.split() if verb.endswith("*")}
BASE_OF = {form: verb for star in VERBS.split() for verb in [star.rstrip("*")] for form in (verb, third_person(verb))}


def plain(word: str) -> str:
    """A word without quotes, brackets, points, and in small letters.

    >>> plain('"Reads,')
    'reads'
    """
    return word.strip("\"'`.,:;!?()[]").lower()


def ends_sentence(word: str, following: str) -> bool:
    """Whether a sentence ends behind a word. A lone point is a product, three are a list that goes on.

    >>> ends_sentence("row.", "The"), ends_sentence("u", "."), ends_sentence(".", "(v"), ends_sentence("e.g.", "The")
    (True, False, False, False)
    >>> ends_sentence("...", "of"), ends_sentence("end.)", "A"), ends_sentence("(nq)", "A")
    (False, True, False)
    """
    bare = word.rstrip("\"'`)]")
    if not bare.endswith((".", "!", "?")) or bare == "." or bare.lstrip("(").lower() in ABBREVIATIONS:
        return False
    return not bare.endswith("..") or following[:1].isupper()


def split_sentences(words: Sequence[tuple[str, int]], first: bool) -> Iterator[Sentence]:
    """Parts a paragraph, given as words with their lines.

    >>> [s.text for s in split_sentences([(w, 1) for w in "Reads x. Returns a . b, e.g. 3.5. Done".split()], True)]
    ['Reads x.', 'Returns a . b, e.g. 3.5.', 'Done']
    """
    begin = 0
    for i, (word, _) in enumerate(words):
        if i + 1 == len(words) or ends_sentence(word, words[i + 1][0]):
            yield Sentence(words[begin][1], tuple(w for w, _ in words[begin : i + 1]), first and begin == 0)
            begin = i + 1


def read_text(lines: Iterable[tuple[str, int]]) -> tuple[Sentence, ...]:
    """The sentences of a comment, given as lines without their slashes. A displayed line ends a sentence.

    >>> [s.text for s in read_text([(" Returns", 1), (" the sum", 2), ("   y = a x", 3), (" over x.", 4), ("", 5), (" Fast", 6)])]
    ['Returns the sum', 'over x.', 'Fast']
    >>> read_text([(" ---- memory ----", 1)])
    ()
    """
    found: list[Sentence] = []
    words: list[tuple[str, int]] = []
    for text, line in [*lines, ("", 0)]:
        prose = not re.match(NO_PROSE, text)
        if not prose or text.startswith(" - "):
            found += split_sentences(words, not found)
            words = []
        if prose:
            words += [(word, line) for word in text.removeprefix(" - ").split()]
    return tuple(found)


def count_words(words: Sequence[str]) -> int:
    """How many there are: a formula is one, brackets with a unit or a shape and signs are none.

    >>> count_words("Returns x = a + b, the sum [m] of (nq, 3) rows".split())
    6
    """
    tokens = re.sub(r"\[[^\]]*\]|\([\w\s+*-]*,[\w\s,+*-]*\)|\(\w+\)", "", " ".join(words)).split()
    before = ["", *tokens]
    return sum(any(c.isalnum() for c in token) and last not in OPERATORS for token, last in zip(tokens, before, strict=False))


def opener(words: Sequence[str]) -> str:
    """The opening among OPENERS that a sentence has, or "".

    >>> opener(["The", "same,", "without"]), opener(["What", "it", "is"]), opener(["The", "row"])
    ('the same', 'what', '')
    """
    one, two = plain(words[0]), " ".join(plain(word) for word in words[:2])
    return two if two in OPENERS else one if one in OPENERS else ""


def begins_with_verb(words: Sequence[str]) -> bool:
    """Whether a sentence begins with a verb of the table, in the imperative or the third person. The name of a source
    before it is passed over.

    >>> [begins_with_verb(text.split()) for text in ("Limits the force.", "Limits of a joint.", "Set the rate.")]
    [True, False, True]
    >>> [begins_with_verb(text.split()) for text in ("Step size.", "tendon.c: copies x.", "Host only.", "Consists of rows.")]
    [False, True, False, True]
    """
    words = words[1:] if re.fullmatch(r"\w+\.(c|cu|h):", words[0]) else words
    word, following = [*map(plain, words[:2]), "", ""][:2]
    verb = BASE_OF.get(word, "")
    if verb not in NOUNS:
        return verb != "" and (following != "of" or verb in ("consist", "dispose", "speak", "think"))
    if word == verb:
        return following in AFTER_IMPERATIVE
    return following not in AFTER_NOUN and not words[0].endswith(":")


def holds_verb(words: Sequence[str]) -> bool:
    """Whether any word may be its verb: an auxiliary, or one of the table that no article makes a noun.

    >>> holds_verb("Host only.".split()), holds_verb("NULL is allowed.".split()), holds_verb("The size in bytes.".split())
    (False, True, False)
    """
    small = [plain(word) for word in words]
    return any(word in AUXILIARIES or (word in BASE_OF and (i == 0 or small[i - 1] not in ARTICLES)) for i, word in enumerate(small))


# ---- files ----


@dataclasses.dataclass
class Line:
    """A line of a file: code without texts of strings, comment behind the slashes (None: none) and its column."""

    number: int
    code: str
    comment: str | None
    column: int
    directive: bool
    place: str = ""  # what it begins in: "" (file), fields, body


def split_line(number: int, text: str, directive: bool) -> Line:
    """Parts code and comment.

    >>> split_line(1, 'x("//");  // that', False)
    Line(number=1, code='x("");', comment=' that', column=10, directive=False, place='')
    """
    code = ""
    at = 0
    for token in re.finditer(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//.*', text):
        code += text[at : token.start()]
        at = token.end()
        if token[0].startswith("//"):
            return Line(number, code.rstrip(), token[0][2:], token.start(), directive)
        code += token[0][0] * 2
    return Line(number, (code + text[at:]).rstrip(), None, 0, directive)


def read_lines(text: str) -> list[Line]:
    """All lines."""
    lines: list[Line] = []
    for number, line in enumerate(text.splitlines(), 1):
        continued = bool(lines) and lines[-1].directive and lines[-1].code.endswith("\\")
        lines.append(split_line(number, line, continued or line.lstrip().startswith("#")))
    return lines


@dataclasses.dataclass(frozen=True)
class Function:
    """A function that is declared or defined."""

    name: str
    line: int
    parameters: int
    local: bool  # static or SN_LOCAL


def read_function(text: str, line: int) -> Function | None:
    """The function that a declaration (up to its body or semicolon) declares.

    >>> read_function("SN_LOCAL void ten_x(int a, void (*f)(int, int), int b)", 7)
    Function(name='ten_x', line=7, parameters=3, local=True)
    >>> read_function("typedef int SnX", 1), read_function("int x = f(y)", 1)
    (None, None)
    """
    text = re.sub(r"__attribute__\(\(.*?\)\)\)?", "", text).strip()
    if not text.endswith(")") or text.startswith("typedef"):
        return None
    depth, parameters, begin = 0, 1, len(text)
    while begin > 0:
        begin -= 1
        depth += {")": 1, "(": -1}.get(text[begin], 0)
        parameters += text[begin] == "," and depth == 1
        if depth == 0:
            break
    name = re.search(r"[\w*]\s+\**(\w+)$|\*(\w+)$", text[:begin])
    if not name or "=" in text[:begin]:
        return None
    return Function(name[1] or name[2], line, parameters, re.search(r"\b(static|SN_LOCAL)\b", text[:begin]) is not None)


def read_code(lines: Sequence[Line]) -> list[Function]:
    """The functions of a file; notes for each line what it begins in."""
    functions: list[Function] = []
    stack: list[str] = []
    text, start = "", 0
    for line in lines:
        line.place = stack[-1] if stack else ""
        if line.directive:
            continue
        if not stack and line.code[:1].strip(" }"):
            text, start = "", line.number
        for token in re.split(r"([{};])", line.code):
            if token not in ("{", "}", ";"):
                text += token + " "
                continue
            function = None if stack or token == "}" else read_function(text, start)
            functions += [function] if function else []
            if token == "{" and (stack or not re.search(r'extern ""\s*$', text)):
                stack.append("body" if function or "body" in stack[-1:] else "fields")
            elif token == "}" and stack:
                stack.pop()
            text = ""
    return functions


def kind_of(lines: Sequence[Line], begin: int, end: int) -> str:
    """The kind of the whole-line comment lines[begin:end]."""
    if lines[begin].place == "body":
        return "body"
    if lines[begin].place == "fields":
        return "field"
    if not any(line.code for line in lines[:begin]):
        return "head"
    below = end
    while below < len(lines) and re.match(r"\s*#\s*(if|ifdef|ifndef)\b", lines[below].code):
        below += 1
    code = lines[below].code if below < len(lines) else ""
    if not code or code.startswith(("}", 'extern ""')) or re.match(r"\s*#\s*(?!define)", code):
        return "note"
    return "declaration"


def read_comments(lines: Sequence[Line]) -> list[Comment]:
    """The comments of a file: whole lines below each other, or those beside code with what goes on in their column."""
    comments: list[Comment] = []
    i = 0
    while i < len(lines):
        begin = lines[i]
        i += 1
        if begin.comment is None:
            continue
        while i < len(lines) and lines[i].comment is not None and not lines[i].code and lines[i].column == begin.column:
            i += 1
        rows = lines[begin.number - 1 : i]
        kind = kind_of(lines, begin.number - 1, i)
        if begin.code:
            kind = "body" if begin.place == "body" else "field"
        sentences = read_text((row.comment or "", row.number) for row in rows)
        if sentences:
            comments.append(Comment(kind, sentences))
    return comments


def list_files(places: Sequence[str]) -> list[str]:
    """Our sources, in some places, or in all."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    files = [name for name in done.stdout.decode().split("\0") if name.endswith(ENDINGS) and (ROOT / name).is_file()]
    if not places:
        return files
    chosen: set[str] = set()
    for place in places:
        clean = place.removeprefix("./").rstrip("/")
        below = {name for name in files if name == clean or name.startswith(clean + "/") or clean == "."}
        if not below:
            raise Trouble(f"{place}: no source of ours")
        chosen |= below
    return [name for name in files if name in chosen]


# ---- the rule ----


def judge(sentence: Sentence, kind: str) -> Iterator[str]:
    """What is wrong with a sentence of a header.

    >>> def say(text, kind): return list(judge(Sentence(1, tuple(text.split()), True), kind))
    >>> say("The number of rows.", "declaration"), say("The number of rows.", "field"), say("of the rows", "field")
    (['begins with no verb'], [], ['begins with "of"'])
    >>> say("Returns " + "a b c d e " * 5, "note"), say("of " + "a b c d e " * 5, "table")
    (['26 words in a sentence'], ['26 words in a sentence'])
    """
    count = count_words(sentence.words)
    opening = opener(sentence.words)
    if count > MAX_WORDS:
        yield f"{count} words in a sentence"
    if kind == "table":
        return
    if opening:
        yield f'begins with "{opening}"'
    elif kind == "declaration" and sentence.first and not begins_with_verb(sentence.words):
        yield "begins with no verb"
    elif kind == "declaration" and not sentence.first and not holds_verb(sentence.words):
        yield "holds no verb"


def check_functions(name: str, functions: Sequence[Function]) -> Iterator[str]:
    """What is wrong with the functions of a file. Names in capitals are macros."""
    for function in functions:
        if function.parameters > MAX_PARAMETERS and not function.name.isupper():
            yield f"{name}:{function.line}: {function.name} has {function.parameters} parameters, allowed are {MAX_PARAMETERS}"
        if function.local and function.name.startswith("sn_") and not name.endswith(".h"):
            yield f"{name}:{function.line}: {function.name} is local: its name begins with the file's prefix, not with sn_"


def check_file(name: str) -> Iterator[str]:
    """What is wrong with a file."""
    lines = read_lines((ROOT / name).read_text())
    yield from check_functions(name, read_code(lines))
    if not name.endswith((".h", ".inc")):
        return
    for line in lines:
        if "/*" in line.code:
            yield f"{name}:{line.number}: a comment of another kind than //, which is not read"
    for comment in read_comments(lines):
        for sentence in comment.sentences:
            for why in judge(sentence, "table" if name.endswith(".inc") else comment.kind):
                text = sentence.text if len(sentence.text) < 100 else sentence.text[:97] + "..."
                yield f"{name}:{sentence.line}: {why}: {text}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests/comments.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verbs", action="store_true", help="print the verbs that may begin a comment")
    parser.add_argument("place", nargs="*", metavar="PATH", help="folders or files, from the top of the tree (default: all)")
    args = parser.parse_args()
    if args.verbs:
        print(VERBS.strip().replace("*", ""))
        return 0
    try:
        wrong = [line for name in list_files(args.place) for line in check_file(name)]
    except Trouble as trouble:
        print(f"comments: {trouble}", file=sys.stderr)
        return 2
    print("".join(line + "\n" for line in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
