"""The commands by name: what each does in a sentence, its module, and examples of its use.

Nothing is imported here but the standard library: `benchmatrix --help` and completion read it before anything else.
"""

from runner.commands.catalog_entry import CLUSTER, DECIDE, MEASURE, READ, TOOL, CatalogEntry

GROUPS = {
    "images": "Build and push the container images of benchmatrix.",
    "keys": "Make and show the keys that results are signed with.",
}
"""What each group of commands is for."""

COMMANDS = (
    CatalogEntry(
        name="run",
        panel=MEASURE,
        summary="Measure MATRIX, or what is missing of its unfinished run, then collect and report.",
        examples=(
            ("measure the built-in matrix `smoke` on this machine", "run smoke"),
            ("say first how long it takes, and measure nothing", "run smoke --dry-run"),
            ("resume a run by its name, and measure again what failed", "run smoke --run-id RUN_ID --retry-failed"),
            (
                "measure again, in the same run, only what others disturbed",
                "run smoke --run-id RUN_ID --retry-contaminated",
            ),
            ("use a Python of your own; nothing is installed", "run my.yaml --python pytorch=/opt/torch/bin/python"),
            ("sign plan and results with a key of `benchmatrix keys new`", "run smoke --sign signing-key.pem"),
            ("run on a cluster, with a limit", "run smoke --on current --store s3://BUCKET/runs --max-cost 20"),
        ),
    ),
    CatalogEntry(
        name="render",
        panel=MEASURE,
        summary="Print what the cells of MATRIX are and what they take, or write their manifests; measure nothing.",
        examples=(
            ("see the cells of a matrix", "render smoke"),
            ("every field of each cell, for a program", "render my.yaml --json"),
            ("what it will take, by the runs of a store", "render paper-gpu --earlier file://results"),
            (
                "write the manifests, for a pipeline that applies them",
                "render smoke --manifests manifests --profile gke --store gs://BUCKET/runs",
            ),
        ),
    ),
    CatalogEntry(
        name="probe",
        panel=MEASURE,
        summary="Find the largest batch of MODEL that fits into memory, trying each in a fresh process.",
        examples=(
            ("the largest batch for training on the GPU, or the CPU where there is none", "probe resnet18"),
            ("inference in half precision", "probe vit-b-16 --phase infer --precision bf16 --device gpu"),
            ("for `benchmatrix batches --probe`", "probe resnet18 --framework jax --deadline 10m --json"),
        ),
    ),
    CatalogEntry(
        name="status",
        panel=MEASURE,
        summary="Print the progress of a run: how many repeats have which status.",
        examples=(
            ("the newest run of this folder's results", "status"),
            ("a run in a bucket, and what its cluster does", "status RUN_ID --store s3://BUCKET/runs --on current"),
        ),
    ),
    CatalogEntry(
        name="report",
        panel=READ,
        summary="Write a run's report: one HTML file that opens offline. With --site, a folder of pages of all runs.",
        examples=(
            ("of the newest run, into reports/RUN_ID", "report"),
            ("of a run in a bucket, into a folder", "report RUN_ID --store gs://BUCKET/runs --output report"),
            ("of nothing but what a key signed", "report RUN_ID --verify signing-key.pem.pub"),
            ("pages of all runs and nights of a store", "report --store s3://BUCKET/runs --site pages"),
        ),
    ),
    CatalogEntry(
        name="collect",
        panel=READ,
        summary="Merge a run's results into Parquet and CSV tables.",
        examples=(
            ("of the newest run, into reports/RUN_ID", "collect"),
            ("of a run, into a folder of yours", "collect RUN_ID --output tables"),
            ("and the report's tables for a paper", "collect RUN_ID --format latex"),
        ),
    ),
    CatalogEntry(
        name="answers",
        panel=READ,
        summary="Say what a run found, in sentences with their intervals, and what it leaves open.",
        examples=(
            ("of the newest run", "answers"),
            ("for a program", "answers RUN_ID --json"),
        ),
    ),
    CatalogEntry(
        name="plot",
        panel=READ,
        summary="Write a plot of the report to a file for a paper: SVG, PDF with its fonts, or PNG at 300 dpi.",
        examples=(
            ("two columns wide", "plot roofline RUN_ID --output roofline.pdf --columns 2"),
            ("one panel as a picture", "plot latencies RUN_ID --panel 1 --output latencies.png"),
        ),
    ),
    CatalogEntry(
        name="compare",
        panel=READ,
        summary="Say whether B is slower than A, cell by cell: two runs, or two selections of what was measured.",
        examples=(
            ("two runs", "compare RUN_A RUN_B"),
            ("the newest run against an earlier one", "compare RUN_A"),
            ("two frameworks within one run", "compare --a framework=pytorch --b framework=jax --where mode=compiled"),
            ("fail a pipeline if it got slower", "compare RUN_A RUN_B --floor 5 --markdown --output compare.md"),
        ),
    ),
    CatalogEntry(
        name="claims",
        panel=READ,
        summary="Say what runs show about each of the study's claims: a page in Markdown.",
        examples=(
            ("one page about two runs", "claims GPU_RUN CPU_RUN --output claims.md"),
            ("for a program", "claims RUN_ID --json"),
        ),
    ),
    CatalogEntry(
        name="audit",
        panel=READ,
        summary="Hold somebody's table of times or rates against the roofline, and against runs.",
        examples=(
            ("list the tables that come with the tool", "audit --list"),
            ("one of them, by arithmetic alone", "audit nvidia-t4-resnet50"),
            ("your own table, against a run of yours", "audit mine.csv --run RUN_ID --output audit.md"),
        ),
    ),
    CatalogEntry(
        name="cost",
        panel=DECIDE,
        summary="Say what measured cells cost in money, energy and CO2, and which machine is the cheapest or the "
        "fastest.",
        examples=(
            ("what a million samples of the newest run cost", "cost"),
            ("the cheapest machine for a job in a day", "cost RUN_ID --dataset imagenet --epochs 90 --deadline 24h"),
            ("in one region, spot prices too", "cost --cloud aws --region us-east-1 --spot"),
        ),
    ),
    CatalogEntry(
        name="access",
        panel=DECIDE,
        summary="Say what a lab gets of which GPUs at what price: buy or rent, alone, shared or in turns.",
        examples=(
            ("list the scenarios that come with the tool", "access --list"),
            ("one of them", "access one-h100-or-t4s"),
            ("your own, as a page", "access ours.yaml --markdown --output answer.md"),
        ),
    ),
    CatalogEntry(
        name="forecast",
        panel=DECIDE,
        summary="Forecast a series, such as GPU memory: candidates, their backtest, the winner, growth, calibrated "
        "intervals.",
        examples=(
            ("the memory of the largest GPU of a year", "forecast --year 2030"),
            ("a series of your own", "forecast --table mine.csv --value price --date day --unit USD"),
        ),
    ),
    CatalogEntry(
        name="gap",
        panel=DECIDE,
        summary="Forecast what devices have, what models need, and how many devices one model needs, up to a year.",
        examples=(("models against the largest GPU", "gap --demand models.csv --year 2030"),),
    ),
    CatalogEntry(
        name="batches",
        panel=DECIDE,
        summary="Fit memory over batch size to measured cells: the largest batch for cards of 16 to 141 GB, with "
        "intervals.",
        examples=(
            ("from the cells of a run", "batches RUN_ID"),
            ("held against a search", "batches RUN_ID --probe probe.json"),
        ),
    ),
    CatalogEntry(
        name="watch",
        panel=READ,
        summary="Look at the newest night of a matrix: what got slower, and is it so when it is measured again?",
        examples=(
            ("the newest night of a store", "watch --store s3://BUCKET/runs"),
            ("and tell a channel", "watch --store s3://BUCKET/runs --matrix nightly --webhook slack:SLACK_URL"),
        ),
    ),
    CatalogEntry(
        name="doctor",
        panel=CLUSTER,
        summary="Check every prerequisite of running MATRIX on a cluster, and say how to repair what is missing.",
        examples=(
            ("the cluster of your current context", "doctor --on current"),
            ("all that a run would use", "doctor smoke --on CONTEXT --profile gke --store gs://BUCKET/runs"),
        ),
    ),
    CatalogEntry(
        name="setup",
        panel=CLUSTER,
        summary="Apply what a run needs: namespace, accounts, permissions; on kind an S3 server, on request a queue of "
        "Kueue.",
        examples=(
            ("see what would be applied", "setup --on current --profile gke --dry-run"),
            ("apply it, and let somebody run", "setup --on current --profile gke --user ana@example.org"),
            ("a queue of Kueue for 8 GPU cells at once", "setup --on current --queue nights --quota gpu=8"),
        ),
    ),
    CatalogEntry(
        name="cancel",
        panel=CLUSTER,
        summary="Stop a run on a cluster: end its runner, delete its unfinished Jobs, keep what is finished.",
        examples=(
            ("see what would be deleted", "cancel RUN_ID --on current --dry-run"),
            ("stop it", "cancel RUN_ID --on current --store s3://BUCKET/runs"),
        ),
    ),
    CatalogEntry(
        name="clean",
        panel=CLUSTER,
        summary="Delete the Jobs of a finished run (RUN_ID --on), or raw results whose rows the data set has "
        "(--store).",
        examples=(
            ("the Jobs of a run", "clean RUN_ID --on current"),
            ("see which raw results are old", "clean --store s3://BUCKET/runs --raw-older-than 90d"),
            ("delete them, without a question", "clean --store s3://BUCKET/runs --raw-older-than 90d --delete --yes"),
        ),
    ),
    CatalogEntry(
        name="images list",
        function="list_names",
        panel=CLUSTER,
        summary="Print the names of the images, with the tags of a build with these options.",
        examples=(("as your registry has them", "images list --registry registry.example/team"),),
    ),
    CatalogEntry(
        name="images build",
        panel=CLUSTER,
        summary="Build images that are not built yet; a tag is a hash of the content.",
        examples=(
            ("all images for CPUs", "images build"),
            ("see which would be built", "images build pytorch:cuda control --dry-run"),
        ),
    ),
    CatalogEntry(
        name="images push",
        panel=CLUSTER,
        summary="Push built images to a registry; print the lines for your profile and for the chart's values, by "
        "digest.",
        examples=(("all images for CPUs", "images push registry.example/team"),),
    ),
    CatalogEntry(
        name="images sbom",
        panel=CLUSTER,
        summary="Write a software bill of materials (CycloneDX) of each built image.",
        examples=(("of one image", "images sbom pytorch:cuda --output sbom"),),
    ),
    CatalogEntry(
        name="keys new",
        panel=TOOL,
        summary="Make a pair of keys: a secret one that signs results, and a public one that checks them.",
        examples=(
            ("signing-key.pem and signing-key.pem.pub in this folder", "keys new"),
            ("a key for the cells of a cluster", "keys new --output cells.pem"),
        ),
    ),
    CatalogEntry(
        name="keys show",
        panel=TOOL,
        summary="Print the names that signatures have of the keys in a file, or the public keys themselves.",
        examples=(
            ("whose signature is it?", "keys show signing-key.pem.pub"),
            ("the public half of a secret key", "keys show signing-key.pem --public"),
        ),
    ),
    CatalogEntry(
        name="schema",
        panel=TOOL,
        summary="Print the JSON Schema of the documents in the store, or of what a command prints with --json.",
        examples=(
            ("of the documents in the store", "schema"),
            ("of what `benchmatrix status --json` prints", "schema status"),
        ),
    ),
    CatalogEntry(
        name="version",
        panel=TOOL,
        summary="Print the version of the tool.",
        examples=(("the same as `benchmatrix --version`", "version"),),
    ),
)
