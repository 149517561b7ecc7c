"""What schedulers themselves say: Slurm's controller, PBS, LSF."""

from functools import partial

from ncdiag.model.finding import FindingClass
from ncdiag.read.signatures.fragments import either
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

# The job's number is left out: one node may fail under several jobs, and that is one sign.
_controller = partial(
    Signature,
    class_=FindingClass.JOB_CANCELLED,
    levels=OUTSIDE,
    kind="slurm",
    source="Slurm slurmctld",
)
_batch = partial(Signature, class_=FindingClass.JOB_TIME_LIMIT, levels=OUTSIDE)

ROWS: tuple[Signature, ...] = (
    _controller(
        name="slurm_node_down",
        needle=" not responding, setting DOWN",
        pattern=Pattern(
            r"error: (?P<reason>Nodes? (?P<d_node>\S{1,400}) not responding), setting DOWN"
        ),
        sample="slurmctld: error: Nodes gpu[041] not responding, setting DOWN",
        near_miss="slurmctld: error: Nodes gpu[041] not responding",
    ),
    _controller(
        name="slurm_failed_node",
        needle="due to failure of node ",
        further=(" on failed node ",),
        pattern=Pattern(
            r"(?:[Rr]equeue job JobId=\S{1,64} due to (?P<reason>failure of node)|"
            r"Killing JobId=\S{1,64} on (?P<reason_>failed node)) (?P<d_node>\S{1,400})"
        ),
        sample="slurmctld: requeue job JobId=8812 due to failure of node gpu041",
        near_miss="slurmctld: requeue job JobId=8812 due to failure of its prolog",
        refine=either("reason"),
    ),
    _batch(
        name="pbs_walltime",
        needle="PBS: job killed: walltime",
        pattern=Pattern(r"=>> PBS: job killed: walltime \d{1,12} exceeded limit \d"),
        sample="=>> PBS: job killed: walltime 7231 exceeded limit 7200",
        near_miss="=>> PBS: job killed: mem 7231kb exceeded limit 7200kb",
        source="OpenPBS pbs_mom",
    ),
    _batch(
        name="lsf_run_limit",
        needle="TERM_RUNLIMIT: job killed",
        pattern=Pattern(r"\bTERM_RUNLIMIT: job killed after reaching LSF run time limit"),
        sample="TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
        near_miss="TERM_RUNLIMIT is one of the reasons that bhist names",
        source="IBM Spectrum LSF sbatchd",
    ),
)
