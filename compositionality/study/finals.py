"""The last steps of a study, of all replicates together: table, figure, fits, ranks, claims, audit, page, record."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from compositionality.config.problem_sets import read_set
from compositionality.study.model import study_folder
from compositionality.study.request import Request
from compositionality.study.steps import Step
from compositionality.yaml_files import flow_list

Whole = Callable[..., Step]
"""Makes a step of the whole study, of a name, an entry point and words."""
STUDIES = ("composition", "injection", "scaling")
"""Names of the studies that have claims: the page of one shows those of the others."""
RESOURCES = ("flops", "flops_paper", "completions")
CLAIM_INPUTS = {
    "section41_42": {
        "accuracy": ("", "section41_42/results.parquet"),
        "countdown": ("countdown", "section43/results.parquet"),
        "strings": ("countdown", "section43-strings/results.parquet"),
        "passk": ("", "section44/results.parquet"),
        "failures": ("", "section45/results.parquet"),
    },
    "behavior_injection": {
        "igsm": ("", "behavior_injection/results.parquet"),
        "igsm-other": ("other", "behavior_injection/results.parquet"),
        "influence": ("", "influence"),
        "passk": ("", "section44/results.parquet"),
        "strings": ("composition", "section41_42/results.parquet"),
    },
    "scaling_law": {"accuracy": ("", "scaling_law/results.parquet")},
}
"""Of the claims of a section: study (empty: its own) and file of a replicate, by the name of results in the claims."""
PROBLEMS = {
    "section41_42": ("test", [f"string_task/stage2_level{level}/train" for level in ("1", "2", "1to2")]),
    "behavior_injection": ("igsm_test", ["igsm_task/sft", "igsm_task/rl"]),
    "scaling_law": ("scaling_test", [f"scaling_task/train-level{level}" for level in range(1, 7)]),
}
"""Of the page of a section: the profile's list of test files, and the files trained on."""


def final_steps(request: Request, steps: Sequence[Step]) -> Iterator[Step]:
    """The last steps, one after the other, behind all ``steps``."""
    study, section, results = request.loaded, request.section, request.root("results")
    before = [step.key for step in steps]

    def whole(name: str, entry_point: str, *words: str) -> Step:
        made = Step(
            name, request.replicates[0], request.profile, entry_point, words=words, after=tuple(before),
            test_seed=request.test_seed, whole=True, one_lane=request.one_lane,
        )  # fmt: skip
        before.append(name)
        return made

    if study.variants:
        yield _ablation(request, whole)
        return
    tables = flow_list(f"{one.name}:{one.folder('results')}/{section}/results.parquet" for one in request.replicates)
    summary = f"{results}/{section}/seeds.json"
    everywhere = {*request.trained, *study.evaluated}
    models = [f"models={flow_list(name for name in study.arms if name in everywhere)}"] if request.registration else []
    yield whole("summary", "summarise_seeds", f"inputs={tables}", f"output={summary}", f"place={section}", *models)
    figure = f"{results}/{section}/accuracy_by_level"
    yield whole("figure", "draw_figure", f"seeds={summary}", f"output={figure}", f"title={request.name}")
    if request.report and "ranks" in study.compared and sum(name.startswith("sft-") for name in request.trained) >= 3:
        folders = flow_list(f"{one.name}:{one.folder('results')}/influence" for one in request.replicates)
        output = f"{results}/{section}/ranks.json"
        yield whole("ranks", "rank_arms", f"accuracy={tables}", f"influence={folders}", f"output={output}")
    if request.report and "fits" in study.compared:
        yield from _fits(request, whole)
    if request.report and study.claims:
        yield _claims(request, whole, steps)
        yield from _page(request, whole)
    if request.record:
        yield _record(request, whole, steps)


def _ablation(request: Request, whole: Whole) -> Step:
    """The table of all variants."""
    variants = request.variants or tuple(request.loaded.variants)
    places = {name: [one._replace(study=f"{one.study}/{name}") for one in request.replicates] for name in variants}
    bases = flow_list(f"{name}:{found[0].folder('checkpoints')}/base" for name, found in places.items())
    tables = [(name, one) for name, found in places.items() for one in found]
    inputs = flow_list(
        f"{name}/{one.name}:{one.folder('results')}/section41_42/results.parquet" for name, one in tables
    )
    output = f"{request.root('results')}/ablation.json"
    return whole("ablation", "summarise_ablation", f"bases={bases}", f"inputs={inputs}", f"output={output}")


def _fits(request: Request, whole: Whole) -> Iterator[Step]:
    """Laws and figures by each resource, of the runs that differ in their model alone."""
    arms = {name: request.loaded.arms[name] for name in request.trained}
    sizes = [arm for arm in arms.values() if arm.script == "scaling_law/train" and not arm.words]
    runs = flow_list(
        f"{one.name}-{Path(arm.model).parent}:{one.folder('checkpoints')}/{Path(arm.model).parent}"
        for one in request.replicates
        for arm in sizes
    )
    for resource in RESOURCES if sizes else ():
        output = f"{request.root('results')}/scaling_law/{resource}"
        words = (f"points={runs}", f"resource={resource}", "metric=val-core/*", f"output={output}")
        yield whole(f"fit-{resource}", "fit_scaling", *words)
        yield whole(f"figure-{resource}", "draw_scaling", f"fits={output}/scaling.json", f"output={output}/figures")


def _results(request: Request, steps: Sequence[Step]) -> list[str]:
    """Return RESULTS/SEED:PATH of what this plan makes and of what exists, as claims and record take them."""
    made = {output for step in steps for output in step.outputs}
    names = {"countdown": request.countdown, "other": f"{request.name}-other"}
    names["composition"] = request.name.replace("injection", "composition")
    found = []
    for kind, (other, file) in CLAIM_INPUTS[request.section].items():
        for place in request.replicates:
            path = Path((place._replace(study=names[other]) if other else place).folder("results"), file)
            if path.exists() or str(path.parent) in made or any(path in Path(one).parents for one in made):
                found.append(f"{kind}/{place.name}:{path}")
    if request.section == "scaling_law":
        first = request.replicates[0].name
        for kind, resource in (("scaling", "flops"), ("completions", "completions")):
            found.append(f"{kind}/{first}:{request.root('results')}/scaling_law/{resource}/scaling.json")
    return found


def _claims(request: Request, whole: Whole, steps: Sequence[Step]) -> Step:
    """Return the step of the claims; those of missing results are "not run"."""
    results = request.root("results")
    claims = [] if request.loaded.claims == "composition" else [f"claims={request.loaded.claims}"]
    registered = [f"registration={results}/registration"] if request.registration else []
    words = (f"results={flow_list(_results(request, steps))}", f"output={results}/claims.json", *claims, *registered)
    return whole("claims", "claims", *words)


def _page(request: Request, whole: Whole) -> Iterator[Step]:
    """The audit of the test files, and the page."""
    section, results, data = request.section, request.root("results"), request.replicates[0].folder("data")
    key, training = PROBLEMS[section]
    known = {file for name in (*request.loaded.owns, "string") for file in read_set(name, request.settings).files}
    files, against = (
        flow_list(f"{data}/{name}.parquet" for name in names if name.partition("/")[2] in known)
        for names in (request.settings.files[key], training)
    )
    audit = f"{results}/data_audit.json"
    yield whole("audit", "audit_data", f"files={files}", f"against={against}", f"output={audit}")
    words = [f"study={results}", f"section={section}", f"output={results}/report"]
    words += [f"checkpoints={request.root('checkpoints')}", f"data={request.root('data')}"]
    countdown = study_folder("results", request.countdown)
    if section == "section41_42" and request.countdown and Path(countdown).is_dir():
        words.append(f"countdown={countdown}")
    ending = request.name.removeprefix(request.loaded.name)
    others = [study_folder("results", f"{name}{ending}") for name in STUDIES if name != request.loaded.name]
    others = [folder for folder in others if Path(folder, "claims.json").is_file()]
    yield whole("page", "report", *words, *([f"others={flow_list(others)}"] if others else []))


def _record(request: Request, whole: Whole, steps: Sequence[Step]) -> Step:
    """Return the step that writes what is committed of the study."""
    section, results = request.section, request.root("results")
    profile = f"compositionality/config/profile/{request.profile.partition('/')[0]}.yaml"
    folders = dict.fromkeys(one.folder("checkpoints") for place in request.replicates for one in (place.shared, place))
    runs = [path.parent for folder in folders for path in sorted(Path(folder).glob("*/metrics.jsonl"))]
    words = [
        *(f"seeds={results}/{section}/seeds.json", f"claims={results}/claims.json"),
        *(f"output=results/records/{request.name}", f"config=[profile:{profile}]"),
        *(f"results={flow_list(_results(request, steps))}", f"figure={results}/{section}/accuracy_by_level.png"),
        f"times={flow_list([f'all:{results}/{section}/times.tsv'])}",
        f"runs={flow_list(f'{run.parent.name}-{run.name}:{run}' for run in runs)}",
    ]
    if Path(results, section, "ranks.json").is_file():
        words.append(f"ranks={results}/{section}/ranks.json")
    fits = [one for one in RESOURCES if Path(results, section, one, "scaling.json").is_file()]
    if fits:
        words.append(f"fits={flow_list(f'{one}:{results}/{section}/{one}/scaling.json' for one in fits)}")
    if request.registration:
        words.append(f"registration={results}/registration")
        words.append(f"command=REGISTRATION={request.registration} bash bash/confirmatory.sh")
    return whole("record", "write_record", *words)
