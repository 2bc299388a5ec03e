"""Answers to gold answers, labelled by hand: what a careful grader would accept in a box, and what not."""

RIGHT = [
    ("5", "5"), ("5", " 5 "), ("5", "5.0"), ("5", "+5"), ("5", "x=5"), ("5", "x = 5."), ("1234", "1,234"), ("-3", "−3"),
    ("0.5", "\\frac{1}{2}"), ("\\frac{1}{2}", ".5"), ("\\frac{1}{2}", "1/2"), ("\\frac12", "\\dfrac{1}{2}"),
    ("\\frac{3}{2}", "1\\frac{1}{2}"), ("\\frac{1}{3}", "\\frac{2}{6}"), ("\\frac{1}{3}", "0.3333333"),
    ("-\\frac{2}{3}", "\\frac{-2}{3}"), ("1.2\\times 10^{5}", "120000"), ("120000", "1.2 \\times 10^5"),
    ("50\\%", "50"), ("50", "50\\%"), ("\\$18", "18"), ("18", "\\$18"), ("90^\\circ", "90"), ("90", "90°"),
    ("12", "12 \\text{ cm}"), ("12", "12\\text{ square units}"), ("12\\text{ cm}^2", "12"),
    ("\\pi", "π"), ("2\\pi", "2 \\cdot \\pi"), ("\\sqrt{8}", "2\\sqrt{2}"), ("\\sqrt2", "\\sqrt{2}"),
    ("\\frac{\\sqrt{3}}{3}", "\\frac{1}{\\sqrt{3}}"), ("x^2+2x+1", "(x+1)^2"), ("2x+1", "1+2x"), ("y=2x+1", "2x+1"),
    ("(1,2)", "(1, 2)"), ("(1,2)", "\\left(1,\\frac{4}{2}\\right)"), ("[0,1)", "[0, 1)"), ("(-\\infty,3]", "(-∞, 3]"),
    ("\\{1,2,3\\}", "\\{3,2,1\\}"), ("1,-2", "-2, 1"), ("1, 2", "1,2"), ("\\text{yes}", "yes"), ("\\text{Yes}", "yes"),
    ("\\text{(C)}", "(C)"), ("C", "\\text{C}"), ("\\text{Evelyn}", "Evelyn"), ("2^{10}", "1024"), ("10^{6}", "1000000"),
    ("3-2i", "-2i+3"), ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}"),
    ("(-2,1)\\cup(1,2)", "(-2, 1) \\cup (1, 2)"), ("1000", "1{,}000"), ("1000", "\\$1{,}000.00"), ("-5", "–5"),
    ("\\emptyset", "\\varnothing"), ("3+4\\mathrm{i}", "3+4i"), ("12", "12 = 3 \\cdot 4"),
    ("0.5", "x=\\frac{1}{2}=0.5"), ("\\frac{x-1}{2}", "f^{-1}(x)=\\frac{x-1}{2}"), ("60", "\\angle ABC=60^\\circ"),
    ("5", "5\\text{ m/s}^2"), ("5", "5\\text{ m}"), ("5", "5~\\mathrm{N\\cdot m}"), ("5", "5\\text{ cm per s}"),
]  # fmt: skip
"""Gold answer and an answer in a box that is right."""

WRONG = [
    ("5", "6"), ("5", "500"), ("5", "0.05"), ("0.5", "50\\%"), ("0.5", "50"), ("50", "0.5"), ("5", "-5"), ("5", "5,5"),
    ("5", "\\{5, 6\\}"), ("5", "4 \\text{ or } 5"), ("5", "5 \\text{ or } 6"), ("5", "5\\text{ million}"),
    ("5", "50^\\circ"),
    ("\\frac{1}{2}", "\\frac{2}{1}"), ("\\frac{1}{3}", "0.33"), ("3.14159", "3.15"), ("\\pi", "3.14"), ("\\pi", "3"),
    ("\\pi", "p i"), ("2\\pi", "2"), ("(1,2)", "(2,1)"), ("(1,2)", "[1,2]"), ("[0,1)", "[0,1]"), ("(1,2)", "1,2"),
    ("(1,2)", "(1,2,3)"), ("\\{1,2\\}", "\\{1,2,3\\}"), ("\\{1,2\\}", "\\{1,1\\}"), ("1,2", "1"), ("1", "1,2"),
    ("12", "1,2"),
    ("\\sqrt{2}", "1.41"), ("\\sqrt{2}", "\\sqrt{3}"), ("x^2", "x^3"), ("x^2+2x+1", "x^2+2x"), ("x", "y"), ("2x", "x"),
    ("\\text{yes}", "no"), ("\\text{yes}", "yes or no"), ("\\text{Evelyn}", "Evelyn, Briana"), ("C", "ABCD"),
    ("C", "D"),
    ("5", "5 = 6"), ("5", "\\frac{3}{4}1"), ("7", "x"), ("7", "nan"), ("7", "\\infty"), ("7", "0*x+7+y"), ("7", "??"),
    ("5", "5!"), ("120", "5!"), ("5", "9^{9^{9^{9}}}"), ("5", "9**9**9**9"), ("5", "10^{999999999}"),
    ("5", "1e999999999"),
    ("5", "__import__('os').system('true')"), ("5", "lambda: 0"), ("5", "\\int_0^{10} e^{x^x} dx"), ("5", "\\input{a}"),
    ("5", "\\sum_{n=1}^{99999999} n"), ("5", "(" * 190), ("5", "٥"), ("5", "５"), ("7", "7" * 300),
    ("3", "\\text{3 apples or 4}"), ("5", "4=5"), ("5", "x=6=5"), ("5", "5\\text{ ; 6}"), ("5", "5\\text{, not 7}"),
    ("5", "5\\text{ millions}"), ("5", "5\\mathrm{i}"), ("7", "3+4\\mathrm{i}"), ("3+4\\mathrm{i}", "7"),
    ("5", "5\\text{ squared}"), ("5", "x>=5"), ("5", "x\\not=5"),
    ("5", "5\\text{ + 6}"), ("5", "5\\text{ k}"), ("5", "\\Gamma(99999999999)"),
    ("5", "\\dbinom{999999999999}{99999999}"),
    ("x+1", "(x+y+z+a+b+c)^{99}"), ("5", "(1+\\sqrt{2}+\\sqrt{3}+\\sqrt{5}+\\sqrt{7}+\\sqrt{11})^{99}"),
]  # fmt: skip
"""Gold answer and an answer in a box that is wrong, or that nobody can take for right."""

TEXTS = [
    ("the answer is 5", False), ("5", False), ("\\boxed{6} no, \\boxed{5}", True), ("\\boxed{5} no, \\boxed{6}", False),
    ("\\boxed{\\boxed{5}", True), ("\\boxed{5", False), ("\\boxed{}", False), ("\\boxed 5", False), ("\\fbox{5}", True),
    ("<think>\\boxed{5}</think> I do not know", False), ("<think>\\boxed{6}</think>\\boxed{5}", True),
    ("so\nAnswer: 5", True), ("so\n#### 5", True), ("#### 5\nbut really 6", False), ("Answer: 5\n\\boxed{6}", False),
    ("**Answer:** 5", True), ("Answer: 5 or 6", False), ("\\boxed{5}" + "{" * 100_000, True),
    ("\\boxed{" * 50_000, False),
]  # fmt: skip
"""A whole completion to the gold answer 5, and whether it is right."""
