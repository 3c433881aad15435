//! The rehearsal of a `duplicate_window`: what it would have asked about, had the offering had it.

use super::{administrators_only, millis};
use crate::{Caller, Error, Portal, Result, service::create::parameter_hash};
use domain::{
    duplicates::{RehearsalView, RehearsedPair},
    name::Name,
    problem::ProblemKind,
    state::RequestState,
    time::Moment,
    view::{EarlierRequest, RequestView},
};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

/// The most days that a rehearsal looks back, and the longest window of an offering.
const MOST_DAYS: u32 = 366;
const LONGEST_WINDOW: Duration = Duration::from_hours(366 * 24);
/// How many creates a rehearsal reads, and how many at a time.
const MOST_READ: usize = 50_000;
const AT_A_TIME: u32 = 500;
/// How many pairs are listed.
const LISTED: usize = 200;

/// Which team asked for what, by the hash by which the guard compares.
type Meant = (Name, [u8; 32]);

/// A create for which an earlier one may yet come.
struct Waiting {
    request: EarlierRequest,
    askable: bool,
}

impl Portal {
    /// What a window would have asked about among the creates of the last `days` days. For administrators.
    ///
    /// Creates are read newest first, so what is cut off where there are too many is the oldest.
    pub async fn rehearse(
        &self,
        caller: &Caller,
        offering: &str,
        window: Duration,
        days: u32,
    ) -> Result<RehearsalView> {
        administrators_only(caller)?;
        if window.is_zero() || window > LONGEST_WINDOW {
            return Err(wrong("duplicate_window: from 1s to 366d, as 30m, 24h or 7d"));
        }
        if !(1..=MOST_DAYS).contains(&days) {
            return Err(wrong("days: from 1 to 366"));
        }
        let view = self.offering(caller, offering)?;
        let to = self.0.clock.now();
        let past = millis(Duration::from_hours(24) * days);
        let from = Moment::from_millis(to.millis().saturating_sub(past));
        // Those before are not judged, but the first that are may look like them.
        let since = Moment::from_millis(from.millis().saturating_sub(millis(window)));
        let mut play = Play::new(from, window);
        let mut after = None;
        let mut read = 0;
        let complete = loop {
            let found = self.0.store.creates_of(&view.id, since, after, AT_A_TIME).await?;
            let full = u32::try_from(found.len()).is_ok_and(|found| found == AT_A_TIME);
            after = found.last().map(|last| (last.created_at, last.id.0));
            read += found.len();
            for request in &found {
                play.met(request);
            }
            if !full {
                break true;
            }
            if read >= MOST_READ {
                break false;
            }
        };
        let from = match after {
            // The last ones read have not been compared with all that lies in their window.
            Some((at, _)) if !complete => at.max(from),
            _ => from,
        };
        Ok(RehearsalView {
            offering: view.id.to_string(),
            window_seconds: window.as_secs(),
            current_window_seconds: view.guard.duplicate_window_seconds,
            days,
            from,
            to,
            complete,
            judged: play.judged,
            asked: play.asked,
            recorded: play.recorded,
            more_pairs: (play.asked + play.recorded).saturating_sub(LISTED as u64),
            pairs: play.listed(),
        })
    }
}

fn wrong(detail: &str) -> Error {
    Error::new(ProblemKind::InvalidQuery, detail)
}

/// Creates that are met newest first, each as an earlier one of those before and a later one of those to come.
struct Play {
    from: Moment,
    window: i64,
    waiting: HashMap<Meant, VecDeque<Waiting>>,
    pairs: Vec<RehearsedPair>,
    judged: u64,
    asked: u64,
    recorded: u64,
}

impl Play {
    fn new(from: Moment, window: Duration) -> Self {
        Self {
            from,
            window: millis(window),
            waiting: HashMap::new(),
            pairs: Vec::new(),
            judged: 0,
            asked: 0,
            recorded: 0,
        }
    }

    fn met(&mut self, request: &RequestView) {
        let meant = (request.team.clone(), parameter_hash(&request.parameters));
        let window = self.window;
        let waiting = self.waiting.entry(meant).or_default();
        let mut pairs = Vec::new();
        waiting.retain(|later| {
            let apart = later.request.created_at.millis() - request.created_at.millis();
            if apart >= window {
                return false;
            }
            // Two of the same moment: neither is the earlier one. What had come to nothing by then is none either.
            if apart <= 0 || came_to_nothing_before(request, later.request.created_at) {
                return true;
            }
            pairs.push(pair(later, request, apart));
            false
        });
        if request.created_at >= self.from {
            self.judged += 1;
            let askable = request.channel.can_answer();
            waiting.push_back(Waiting { request: request.into(), askable });
        }
        for pair in pairs {
            *(if pair.asked { &mut self.asked } else { &mut self.recorded }) += 1;
            self.pairs.push(pair);
        }
        // Pairs come in the order of the earlier one; no more are kept than are listed, the newest.
        if self.pairs.len() >= 2 * LISTED {
            self.trim();
        }
    }

    fn trim(&mut self) {
        self.pairs.sort_by_key(|pair| std::cmp::Reverse((pair.later.created_at, pair.later.id.0)));
        self.pairs.truncate(LISTED);
    }

    fn listed(mut self) -> Vec<RehearsedPair> {
        self.trim();
        self.pairs
    }
}

/// Whether a request had come to nothing by a moment: then nobody would have been asked about it.
fn came_to_nothing_before(request: &RequestView, moment: Moment) -> bool {
    matches!(request.state, RequestState::Failed | RequestState::Canceled | RequestState::Rejected)
        && request.finished_at.is_none_or(|finished| finished <= moment)
}

fn pair(later: &Waiting, earlier: &RequestView, apart_millis: i64) -> RehearsedPair {
    RehearsedPair {
        team: earlier.team.to_string(),
        same_name: later.request.name == earlier.name,
        same_requester: later.request.requested_by == earlier.requested_by,
        asked: later.askable,
        later: later.request.clone(),
        earlier: earlier.into(),
        apart_millis,
    }
}
