//! What a form does next: from what happened to what is to be done, without a browser.
//!
//! True here: at most one try is under way; every try of one opened form carries the same ID until a person asks for
//! a fresh one; nothing is called failed unless the portal refused it, and no outcome unknown that the portal told.

use super::reply::Reply;
use domain::{
    backoff::{BROWSER, BROWSER_RETRY_WINDOW},
    problem::{FieldError, Problem, ProblemKind},
};
use std::time::Duration;

/// Something that happened. `now` is milliseconds on any clock that only goes forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The person asked to send the form, or to check again.
    Submit {
        /// When.
        now: u64,
    },
    /// The form cannot be sent as it is filled in.
    Unfit {
        /// What does not fit.
        problem: Problem,
    },
    /// A try ended.
    Answered {
        /// The try.
        turn: u32,
        /// How.
        reply: Reply,
        /// When.
        now: u64,
        /// A random number, uniform over all of `u32`.
        random: u32,
    },
    /// The wait before the next try is over.
    WaitOver {
        /// The try that waited.
        turn: u32,
    },
    /// The person chose to send the form as something new.
    AsNew {
        /// The fresh ID.
        id: String,
        /// When.
        now: u64,
    },
    /// The person chose to request it although it looks like a duplicate.
    Anyway {
        /// Why.
        reason: String,
        /// When.
        now: u64,
    },
    /// The person chose to send the form although the resource has changed since it was opened.
    OnTop {
        /// When.
        now: u64,
    },
    /// The browser showed the page again out of its back/forward cache.
    ShownAgain,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Keep what is typed, with what is known about the submission.
    Keep,
    /// Take the form's values as they are now; the tries that follow send them.
    TakeValues,
    /// Send one try.
    Send {
        /// Its number; the answer names it.
        turn: u32,
    },
    /// Come back after a time.
    Wait {
        /// The number of the try that waits.
        turn: u32,
        /// How long.
        time: Duration,
    },
    /// Put the ID into the page and the history entry.
    TakeId,
    /// Put the version that the resource has now into the page.
    TakeVersion {
        /// Its `ETag`.
        etag: String,
    },
    /// Move to what happened: the message, the choice.
    Focus,
    /// Go to the request's page.
    Open {
        /// Its address.
        address: String,
    },
    /// Go and log in, and come back to this form.
    LogIn,
}

/// An answer to the question whether it is a duplicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// The earlier request.
    pub of: String,
    /// Why it is wanted all the same.
    pub reason: String,
}

/// A question that only a person can answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// The ID stands for something else already, or for something that ended long ago.
    Reused(Problem),
    /// The same thing was requested a short while ago.
    Duplicate(Problem),
    /// The resource has changed since the form was opened.
    Conflict(Problem),
}

/// Where the form stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It can be filled in and sent.
    Ready,
    /// A try is under way, or waits for its turn.
    Sending,
    /// It was sent, and nobody can tell yet whether it arrived.
    OutcomeUnknown {
        /// What was answered last, if anything was.
        said: Option<String>,
    },
    /// The portal could not take it in, at no try, and asks to come again later than is waited by itself.
    NotNow {
        /// What it said last.
        said: String,
    },
    /// The portal said no; nothing was changed by that try.
    Refused {
        /// Why.
        problem: Problem,
        /// Whether an earlier try may still have arrived.
        doubtful: bool,
    },
    /// A person has to choose.
    Asked(Question),
    /// The answer is there; the page is about to change.
    Leaving,
}

/// One opened form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    id: String,
    phase: Phase,
    confirmation: Option<Confirmation>,
    turn: u32,
    tries: u32,
    started: u64,
    /// A try is out and unanswered, or will be without anybody's doing.
    under_way: bool,
    /// A try of this ID ended without an answer that settles it.
    doubtful: bool,
    said: Option<String>,
    /// When the last answer asked to come again, by the same clock as `now`.
    not_before: Option<u64>,
    /// The request that this form led to.
    request: Option<String>,
    /// The question whether it is a duplicate, while its answer is under way.
    answered: Option<Problem>,
}

impl Machine {
    /// A form that was just opened, or came back: `sent` if an earlier try of it got no answer, `request` if it led to
    /// one.
    #[must_use]
    pub fn open(id: String, sent: bool, request: Option<String>) -> Self {
        let phase =
            if sent && request.is_none() { Phase::OutcomeUnknown { said: None } } else { Phase::Ready };
        let doubtful = sent && request.is_none();
        Self {
            id,
            phase,
            confirmation: None,
            turn: 0,
            tries: 0,
            started: 0,
            under_way: false,
            doubtful,
            said: None,
            not_before: None,
            request,
            answered: None,
        }
    }

    /// The same with a refusal that came with the page.
    #[must_use]
    pub fn refused(mut self, problem: Problem) -> Self {
        self.refuse(problem);
        self
    }

    /// The ID under which this form is sent.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where it stands.
    #[must_use]
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The answer to the duplicate question, to be sent along.
    #[must_use]
    pub fn confirmation(&self) -> Option<&Confirmation> {
        self.confirmation.as_ref()
    }

    /// Whether this ID was sent and nobody can tell yet whether it arrived. Worth keeping: the page may be gone before
    /// the answer comes.
    #[must_use]
    pub fn may_have_arrived(&self) -> bool {
        self.under_way || self.doubtful
    }

    /// The request that this form led to.
    #[must_use]
    pub fn request(&self) -> Option<&str> {
        self.request.as_deref()
    }

    /// When the last answer asked to come again, if it did; on the clock of the events.
    #[must_use]
    pub fn not_before(&self) -> Option<u64> {
        self.not_before
    }

    /// Whether the try under way is not the first.
    #[must_use]
    pub fn is_trying_again(&self) -> bool {
        self.tries > 0
    }

    /// Whether the button does anything.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !matches!(self.phase, Phase::Sending | Phase::Leaving)
    }

    /// Takes in what happened and says what to do.
    pub fn on(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Submit { now } if self.is_ready() => {
                // Checking again asks for the very same; anything else is a fresh decision.
                if !matches!(self.phase, Phase::OutcomeUnknown { .. } | Phase::NotNow { .. }) {
                    self.confirmation = None;
                }
                self.begin(now)
            }
            Event::Unfit { problem } if self.is_ready() => {
                self.phase = Phase::Refused { problem, doubtful: self.doubtful };
                vec![Effect::Focus]
            }
            Event::AsNew { id, now } if self.is_ready() => {
                self.id = id;
                self.doubtful = false;
                self.request = None;
                self.confirmation = None;
                let mut effects = vec![Effect::TakeId];
                effects.extend(self.begin(now));
                effects
            }
            Event::Anyway { reason, now } => {
                let Phase::Asked(Question::Duplicate(problem)) = &self.phase else {
                    return Vec::new();
                };
                let Some(earlier) = &problem.request else {
                    return Vec::new();
                };
                self.confirmation = Some(Confirmation { of: earlier.id.to_string(), reason });
                self.answered = Some(problem.clone());
                self.begin(now)
            }
            Event::OnTop { now } => {
                let Phase::Asked(Question::Conflict(problem)) = &self.phase else {
                    return Vec::new();
                };
                let Some(versions) = problem.versions.as_ref().filter(|versions| versions.one_life()) else {
                    return Vec::new();
                };
                let mut effects = vec![Effect::TakeVersion { etag: versions.current.clone() }];
                effects.extend(self.begin(now));
                effects
            }
            Event::WaitOver { turn } if turn == self.turn && self.phase == Phase::Sending => {
                self.turn += 1;
                vec![Effect::Send { turn: self.turn }]
            }
            Event::Answered { turn, reply, now, random }
                if turn == self.turn && self.phase == Phase::Sending =>
            {
                self.answered(reply, now, random)
            }
            Event::ShownAgain => {
                self.shown_again();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn begin(&mut self, now: u64) -> Vec<Effect> {
        self.phase = Phase::Sending;
        self.started = now;
        self.tries = 0;
        self.turn += 1;
        self.said = None;
        self.not_before = None;
        self.under_way = true;
        vec![Effect::TakeValues, Effect::Keep, Effect::Send { turn: self.turn }]
    }

    fn answered(&mut self, reply: Reply, now: u64, random: u32) -> Vec<Effect> {
        self.under_way = false;
        match reply {
            Reply::Taken { request, repeat, existing } => {
                let mark = if existing {
                    "?existing=1"
                } else if repeat {
                    "?repeat=1"
                } else {
                    ""
                };
                let address = format!("/requests/{request}{mark}");
                self.phase = Phase::Leaving;
                self.doubtful = false;
                self.request = Some(request);
                vec![Effect::Keep, Effect::Open { address }]
            }
            Reply::Refused(problem) if problem.slug() == ProblemKind::NotAuthenticated.slug() => {
                self.phase = Phase::Leaving;
                vec![Effect::Keep, Effect::LogIn]
            }
            Reply::Refused(problem) => {
                self.refuse(problem);
                vec![Effect::Keep, Effect::Focus]
            }
            Reply::Later { detail, after, untouched } => {
                self.said = Some(detail);
                self.doubtful |= !untouched;
                self.not_before = after.map(|after| now.saturating_add(millis(after)));
                self.again(now, random, after.unwrap_or_default())
            }
            Reply::Lost => {
                self.doubtful = true;
                self.not_before = None;
                self.again(now, random, Duration::ZERO)
            }
        }
    }

    fn again(&mut self, now: u64, random: u32, at_least: Duration) -> Vec<Effect> {
        let time = at_least + BROWSER.wait(self.tries, random);
        self.tries += 1;
        let passed = Duration::from_millis(now.saturating_sub(self.started));
        if passed + time > BROWSER_RETRY_WINDOW {
            self.phase = match self.said.take() {
                Some(said) if !self.doubtful => Phase::NotNow { said },
                said => Phase::OutcomeUnknown { said },
            };
            return vec![Effect::Keep, Effect::Focus];
        }
        self.under_way = true;
        vec![Effect::Wait { turn: self.turn, time }]
    }

    fn refuse(&mut self, problem: Problem) {
        let kind = ProblemKind::from_slug(problem.slug());
        // Only the answer is refused, so the question stands.
        let asked = self.answered.take().filter(|_| problem.errors.iter().any(is_about_the_reason));
        self.phase = match (asked, kind) {
            (Some(asked), _) => {
                Phase::Asked(Question::Duplicate(Problem { errors: problem.errors, ..asked }))
            }
            (None, Some(ProblemKind::KeyReused | ProblemKind::KeyExpired)) => {
                Phase::Asked(Question::Reused(problem))
            }
            (None, Some(ProblemKind::SuspectedDuplicate)) => Phase::Asked(Question::Duplicate(problem)),
            (None, Some(ProblemKind::PreconditionFailed)) => Phase::Asked(Question::Conflict(problem)),
            (None, _) => Phase::Refused { problem, doubtful: false },
        };
        // The portal looks the key up before it says these, so it is known what became of the earlier tries.
        self.doubtful &= !kind.is_some_and(comes_after_the_look_up);
        if let Phase::Refused { doubtful, .. } = &mut self.phase {
            *doubtful = self.doubtful;
        }
    }

    fn shown_again(&mut self) {
        match self.phase {
            Phase::Sending => {
                self.under_way = false;
                self.doubtful = true;
                self.phase = Phase::OutcomeUnknown { said: None };
            }
            Phase::Leaving => self.phase = Phase::Ready,
            _ => {}
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a fault is one of the reason for which another one is wanted.
#[must_use]
pub fn is_about_the_reason(error: &FieldError) -> bool {
    error.pointer == "/confirm_duplicate/reason"
}

fn comes_after_the_look_up(kind: ProblemKind) -> bool {
    matches!(
        kind,
        ProblemKind::KeyReused
            | ProblemKind::KeyExpired
            | ProblemKind::SuspectedDuplicate
            | ProblemKind::PreconditionFailed
            | ProblemKind::PreconditionRequired
            | ProblemKind::InvalidParameters
            | ProblemKind::NameTaken
            | ProblemKind::QuotaExceeded
            | ProblemKind::DeletionInProgress
            | ProblemKind::OfferingUnavailable
            | ProblemKind::UnknownOffering
    )
}

#[cfg(test)]
mod tests;
