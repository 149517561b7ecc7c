"""A finding while it is being thought about."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ncdiag.diagnose.postmortem.classes import RULES, ClassRule, Tier
from ncdiag.model.finding import FindingClass, Role, Severity, Suspect
from ncdiag.model.log import Event
from ncdiag.model.place import Place

# By the name, since every event is asked for its role many times.
_USUAL_ROLES = {str(class_): rule.role for class_, rule in RULES.items()}


@dataclass(slots=True, eq=False)
class Draft:
    """One fault: the events that tell of it and what was concluded so far.

    ``events`` are in the order in which they happened, as far as it is known; ``first`` is the one
    that speaks for all. ``cause`` is the draft that explains this one. ``notes`` are sentences with
    names in them that the explanation ends with. ``isolate`` maps hosts to the reason.
    ``standing`` are the events that nothing before them explains; ``returns`` say that what was
    lost came back. ``also_hosts`` are hosts concerned that no event names. ``signs`` counts what
    speaks for it independently, besides the first sign. ``derived`` drafts come of comparing
    records, not of a message.
    """

    class_: FindingClass
    events: list[Event]
    role: Role
    severity: Severity
    first: Event
    confidence: float
    key: str | None = None
    host: str | None = None
    cause: "Draft | None" = None
    suspects: list[Suspect] = field(default_factory=list)
    victims: list[str] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    isolate: dict[str, str] = field(default_factory=dict)
    standing: list[Event] = field(default_factory=list)
    returns: list[Event] = field(default_factory=list)
    also_hosts: list[str] = field(default_factory=list)
    signs: int = 0
    derived: bool = False

    @property
    def rule(self) -> ClassRule:
        """What holds for its class."""
        return RULES[self.class_]

    @property
    def tier(self) -> Tier:
        """Its place in the order of roots."""
        return self.rule.tier

    @property
    def root(self) -> bool:
        """Whether it stands as a root."""
        return self.role is Role.ROOT

    @property
    def count(self) -> int:
        """How many messages say so."""
        return sum(event.count for event in self.events)

    @property
    def strong(self) -> list[Event]:
        """The events that carry its role: warnings and echoes of a root's class left out."""
        return [event for event in self.events if role_of(event) is Role.ROOT] or self.events

    def count_as(self, count: int) -> None:
        """Let a derived fault stand for ``count`` observations."""
        self.first.count = count

    def explain_by(self, cause: "Draft") -> None:
        """Make it the consequence of ``cause``."""
        self.cause = cause
        self.role = Role.CONSEQUENCE

    @property
    def accusing(self) -> list[Event]:
        """The events that conclusions are drawn from."""
        return self.standing or self.strong


def role_of(event: Event) -> Role:
    """The role of an event, before anything around it is known."""
    return Role(event.role) if event.role else _USUAL_ROLES[event.class_name]


def severity_of(event: Event) -> Severity:
    """The severity of an event."""
    if event.severity:
        return Severity(event.severity)
    return RULES[FindingClass(event.class_name)].severity


def derived(
    class_: FindingClass,
    place: Place,
    text: str,
    *,
    attributes: dict[str, str] | None = None,
    ranks: Iterable[int] = (),
    role: Role | None = None,
) -> Draft:
    """A draft of a fault that no single message tells of; ``text`` says what was seen there."""
    event = Event(
        class_name=class_,
        form="derived",
        place=place,
        text=text,
        attributes=attributes or {},
        ranks=tuple(ranks),
        role=role,
    )
    rule = RULES[class_]
    return Draft(
        class_=class_,
        events=[event],
        role=role or rule.role,
        severity=rule.severity,
        first=event,
        confidence=rule.base,
        attributes=dict(event.attributes),
        ranks=list(event.ranks),
        derived=True,
    )
