//! Approvals: what waits for one, who decided, and what nobody decided about in time.
//!
//! A decision takes the locks of a cancel, and so does the end of the time to decide: of any that come at once, one finds the
//! request still waiting, and the others find it decided.

use super::{
    change,
    decide::{Decided, shown},
    dialect::{Connection, Database, clock, words::UNINDEXED},
    exactly_one, lives,
    rows::{self, REQUEST, millis},
    runs, write_audit,
};
use crate::{
    answer::{Answer, AnswerKind},
    store::{Approvals, AuditEntry, StoreError, StoreResult, StoredRequest, Submission, Submitted},
};
use async_trait::async_trait;
use domain::{
    action::Kind,
    approval::Verdict,
    id::RequestId,
    name::Name,
    state::RequestState,
    time::Moment,
    view::{EventEntry, RequestView},
};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

const TOO_LATE: &str = "The time to decide about it is over, so it is about to be rejected.";

#[async_trait]
impl Approvals for Database {
    async fn waiting(&self, team: Option<&Name>, limit: u32) -> StoreResult<Vec<RequestView>> {
        self.read((team, limit), |(team, limit), connection| Box::pin(waiting(connection, *team, *limit)))
            .await
    }

    async fn undecided(&self, now: Moment, limit: u32) -> StoreResult<Vec<RequestId>> {
        self.read((now, limit), |(now, limit), connection| Box::pin(undecided(connection, *now, *limit)))
            .await
    }

    async fn time_out(&self, request: RequestId, now: Moment) -> StoreResult<bool> {
        let timed_out = self
            .write((request, now), |(request, now), connection| {
                Box::pin(time_out(connection, *request, *now))
            })
            .await?;
        if timed_out {
            self.tell(request);
        }
        Ok(timed_out)
    }
}

/// Writes down whose approval a new request waits for, and until when; the request as it stands then. Its time begins by the
/// one clock by which it also ends.
pub(super) async fn ask(connection: &mut Connection, request: &RequestView) -> StoreResult<RequestView> {
    let mut request = request.clone();
    let Some(approval) = &mut request.approval else { return Ok(request) };
    let until: Option<i64> = sqlx::query_scalar(AssertSqlSafe(format!(
        "UPDATE request SET approval_by = $1, decide_until = {} + $2
          WHERE id = $4 AND state = 'pending_approval' RETURNING decide_until",
        clock("$3"),
    )))
    .bind(approval.by.as_str())
    .bind(millis(approval.expires_at.since(request.created_at)))
    .bind(request.created_at.millis())
    .bind(request.id.0)
    .fetch_optional(connection)
    .await?
    .flatten();
    let until = until.ok_or_else(|| StoreError::Corrupt("request: none waits for the approval".into()))?;
    approval.expires_at = Moment::from_millis(until);
    Ok(request)
}

/// Decides about a request that waits; a delete that is approved stops other requests, which are told too.
pub(super) async fn decide(
    connection: &mut Connection,
    submission: &Submission,
    (id, verdict, why): (RequestId, Verdict, Option<&str>),
    now: Moment,
) -> StoreResult<Decided> {
    let act = if verdict == Verdict::Approved { "request_approve" } else { "request_reject" };
    let Some(request) = lives::locked_with_request(connection, id).await? else {
        return Ok(Decided::Not(Submitted::Missing));
    };
    if request.view.state != RequestState::PendingApproval {
        let before = request.view.approval.as_ref().and_then(|approval| approval.verdict);
        return match before {
            Some(before) if before.is_as_good_as(verdict) => {
                shown(connection, id, AnswerKind::Done, true, act).await
            }
            _ => Ok(Decided::Not(Submitted::Undecidable(request.view.state))),
        };
    }
    if is_over(connection, id, now).await? {
        return Ok(Decided::Not(Submitted::TooLate(TOO_LATE)));
    }
    let who = submission.arrived.sent_by.as_str();
    let also = if verdict == Verdict::Approved {
        write_verdict(connection, &request, (verdict, Some(who), why), now).await?;
        runs::set_state(connection, &request, RequestState::Queued, None, now).await?;
        begin(connection, &request, now).await?
    } else {
        let reason = match why {
            Some(why) => format!("{who} rejected it: {why}"),
            None => format!("{who} rejected it."),
        };
        reject(connection, &request, (verdict, Some(who), why), &reason, now).await?;
        Vec::new()
    };
    let decided = runs::existing(connection, id).await?;
    let answer = Answer::of_request(AnswerKind::Accepted, &decided.view)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let detail = why.unwrap_or_default().to_owned();
    Ok(Decided::Accepted { answer, request: id, also, act, target: id.to_string(), detail })
}

/// Puts what was approved onto the queue, in its turn.
async fn begin(
    connection: &mut Connection,
    request: &StoredRequest,
    now: Moment,
) -> StoreResult<Vec<RequestId>> {
    let (id, kind) = (request.view.id, Kind::of(&request.view.action));
    if kind == Kind::Create {
        let done = sqlx::query(AssertSqlSafe(format!(
            "INSERT INTO run (request, attempt, due_at) VALUES ($1, $2, {})",
            clock("$3"),
        )))
        .bind(id.0)
        .bind(i64::from(request.view.attempt))
        .bind(now.millis())
        .execute(connection)
        .await?;
        exactly_one(&done, "run")?;
        return Ok(Vec::new());
    }
    let life = lives::locked(connection, request.resource).await?;
    let others = lives::in_the_way(connection, &life, id, kind).await?;
    if kind == Kind::Delete {
        lives::begin_delete(connection, request.resource, id, now).await?;
    }
    change::begin(connection, &life, (id, kind), &others, now).await
}

/// Ends a request that is not carried out: what it held is free, and its retention counts from here.
async fn reject(
    connection: &mut Connection,
    request: &StoredRequest,
    verdict: (Verdict, Option<&str>, Option<&str>),
    reason: &str,
    now: Moment,
) -> StoreResult<()> {
    write_verdict(connection, request, verdict, now).await?;
    runs::set_state(connection, request, RequestState::Rejected, Some(reason), now).await?;
    lives::came_to_nothing(connection, request, now).await
}

async fn write_verdict(
    connection: &mut Connection,
    request: &StoredRequest,
    (verdict, who, why): (Verdict, Option<&str>, Option<&str>),
    now: Moment,
) -> StoreResult<()> {
    let done = sqlx::query(
        "UPDATE request SET verdict = $1, decided_by = $2, decided_at = $3, decided_why = $4
          WHERE id = $5 AND verdict IS NULL AND state = 'pending_approval'",
    )
    .bind(verdict.as_str())
    .bind(who)
    .bind(now.millis())
    .bind(why.map(rows::text))
    .bind(request.view.id.0)
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "request")?;
    let by = who.map(|who| format!("{} by {who}", verdict.as_str()));
    let because = why.map(|why| format!(": {why}")).unwrap_or_default();
    let detail = by.unwrap_or_else(|| "nobody decided in time".into()) + &because;
    let entry = EventEntry::Step { step: "approval".into(), detail };
    runs::append(connection, request.view.id, request.view.attempt, &[entry], now).await
}

async fn is_over(connection: &mut Connection, id: RequestId, now: Moment) -> StoreResult<bool> {
    let text = format!("SELECT decide_until <= {} FROM request WHERE id = $2", clock("$1"));
    let over: Option<bool> =
        sqlx::query_scalar(AssertSqlSafe(text)).bind(now.millis()).bind(id.0).fetch_one(connection).await?;
    Ok(over.unwrap_or_default())
}

async fn waiting(
    connection: &mut Connection,
    team: Option<&Name>,
    limit: u32,
) -> StoreResult<Vec<RequestView>> {
    // By the index of what waits: that is little, whatever else its team has requested.
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT {REQUEST} FROM request
          WHERE state = 'pending_approval' AND decide_until IS NOT NULL AND ($1 IS NULL OR {UNINDEXED}team = $1)
          ORDER BY decide_until, id LIMIT $2",
    )))
    .bind(team.map(Name::as_str))
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| rows::request(row).map(|request| request.view)).collect()
}

async fn undecided(connection: &mut Connection, now: Moment, limit: u32) -> StoreResult<Vec<RequestId>> {
    let text = format!(
        "SELECT id FROM request WHERE state = 'pending_approval' AND decide_until <= {} ORDER BY decide_until LIMIT $2",
        clock("$1"),
    );
    let ids: Vec<Uuid> = sqlx::query_scalar(AssertSqlSafe(text))
        .bind(now.millis())
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
    Ok(ids.into_iter().map(RequestId).collect())
}

async fn time_out(connection: &mut Connection, id: RequestId, now: Moment) -> StoreResult<bool> {
    let Some(request) = lives::locked_with_request(connection, id).await? else { return Ok(false) };
    if request.view.state != RequestState::PendingApproval || !is_over(connection, id, now).await? {
        return Ok(false);
    }
    let verdict = (Verdict::TimedOut, None, None);
    let reason = "Nobody decided about it in time, so it is not carried out.";
    reject(connection, &request, verdict, reason, now).await?;
    let entry = AuditEntry {
        at: now,
        actor: "portal".into(),
        channel: "worker",
        act: "request_time_out",
        team: request.view.team.to_string(),
        target: id.to_string(),
        detail: String::new(),
    };
    write_audit(connection, &entry).await?;
    Ok(true)
}
