"""Makes what came from outside safe to print, once, before any format renders it."""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from ncdiag.model.text import visible
from ncdiag.model.verdict import Culprit, HostVerdict, LinkVerdict, SweepReport


def presentable(report: SweepReport) -> SweepReport:
    """Return ``report`` with control characters visible in every name, reason and error.

    Each format still escapes what has a meaning in that format.
    """
    diagnosis = report.diagnosis
    plan = report.plan
    return replace(
        report,
        started=visible(report.started),
        plan=replace(
            plan,
            mode=visible(plan.mode),
            engine=visible(plan.engine),
            launcher=visible(plan.launcher),
        ),
        diagnosis=replace(
            diagnosis,
            links=tuple(_link(link) for link in diagnosis.links),
            hosts=tuple(_host(host) for host in diagnosis.hosts),
            culprits=tuple(_culprit(culprit) for culprit in diagnosis.culprits),
            contention=tuple(replace(one, name=visible(one.name)) for one in diagnosis.contention),
            untested=tuple((visible(one), visible(two)) for one, two in diagnosis.untested),
            isolate=_texts(diagnosis.isolate),
            good=_texts(diagnosis.good),
            notes=_texts(diagnosis.notes),
        ),
        settings=_mapping(report.settings),
        versions=_mapping(report.versions),
    )


def _link(link: LinkVerdict) -> LinkVerdict:
    texts = (link.source, link.target, link.expected_from, link.error, link.engine)
    shown = tuple(map(_visible, texts))
    if shown == texts:  # nearly always, of a million links
        return link
    source, target, expected_from, error, engine = shown
    return replace(
        link,
        source=source or "",
        target=target or "",
        expected_from=expected_from,
        error=error,
        engine=engine,
    )


@lru_cache(maxsize=100_000)
def _visible(text: str | None) -> str | None:
    return text and visible(text)


def _host(host: HostVerdict) -> HostVerdict:
    return replace(host, name=visible(host.name), reason=visible(host.reason))


def _culprit(culprit: Culprit) -> Culprit:
    return replace(
        culprit,
        name=visible(culprit.name),
        reason=visible(culprit.reason),
        next=visible(culprit.next),
    )


def _texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(visible(text) for text in texts)


def _mapping(texts: dict[str, str]) -> dict[str, str]:
    return {visible(key): visible(value) for key, value in texts.items()}
