//! Submissions that are not creates: decisions about requests, tokens and hooks. One at a time, each in a savepoint.

use super::{
    approvals, arrivals, change,
    dialect::{self, Connection, FOR_UPDATE, clock},
    errands, exactly_one, hidden, hooks, lists, lives, notifications, people, quotas,
    rows::{self, canonical},
    runs, submit, write_audit,
};
use crate::{
    answer::{Answer, AnswerKind},
    provisioner::Work,
    store::{
        Arrived, AuditEntry, Effect, Held, Hold, NameHolder, StoreError, StoreResult, StoredRequest,
        Submission, Submitted,
    },
};
use domain::{
    action::Kind,
    id::{RequestId, ResourceId, TokenId},
    state::{RequestState, Resolution},
    submission::SubmissionOutcome,
    time::Moment,
    view::EventEntry,
};
use serde::Serialize;
use sqlx::{AssertSqlSafe, Row};

/// What an effect came to, before its key is claimed.
pub(super) enum Decided {
    Done {
        answer: Answer,
        request: Option<RequestId>,
        existing: bool,
        act: &'static str,
        target: String,
    },
    /// A change was taken in; requests that it has stopped are to be told.
    Accepted {
        answer: Answer,
        request: RequestId,
        also: Vec<RequestId>,
        act: &'static str,
        target: String,
        detail: String,
    },
    Not(Submitted),
}

/// Decides one submission within the open transaction.
pub(in crate::store) async fn one(
    connection: &mut Connection,
    submission: &Submission,
) -> StoreResult<Submitted> {
    // Between the look and the claim nobody else comes with this key.
    let scope = &submission.arrived.scope;
    if !dialect::lock_if_free(connection, &submit::key(scope)).await? {
        // Who waits comes again; a connection is not for waiting.
        return Err(StoreError::KeyBusy);
    }
    if let Some(claim) = submit::claim(connection, scope).await? {
        return Ok(Submitted::Repeat(Box::new(claim)));
    }
    let now = submission.arrived.at;
    let decided = match &submission.effect {
        Effect::Step(hold, effect) => return of_step(connection, submission, *hold, effect).await,
        Effect::Create { .. } => {
            return Err(StoreError::Corrupt("a create is decided with its group".into()));
        }
        Effect::Change(change) => change::accept(connection, submission, change, now).await?,
        Effect::Cancel(id) => cancel(connection, *id, now).await?,
        Effect::Retry(id, resource) => retry(connection, *id, *resource, now).await?,
        Effect::Resolve { request, resolution, forced, reason } => {
            let by = submission.arrived.sent_by.as_str();
            let decision = (*resolution, forced.as_deref(), reason.as_deref());
            resolve(connection, *request, decision, (by, now)).await?
        }
        Effect::Decide { request, verdict, reason } => {
            let decision = (*request, *verdict, reason.as_deref());
            approvals::decide(connection, submission, decision, now).await?
        }
        Effect::TokenCreate { token, digest, answer } => {
            people::add_token(connection, submission.arrived.scope.principal, token, *digest).await?;
            Decided::Done {
                answer: answer.clone(),
                request: None,
                existing: false,
                act: "token_create",
                target: token.id.to_string(),
            }
        }
        Effect::TokenRevoke(id) => revoke(connection, submission, *id, now).await?,
        Effect::Hook(effect) => hooks::decide(connection, submission, effect, now).await?,
        Effect::Notification(effect) => {
            let arrived = &submission.arrived;
            let who = (arrived.scope.team.as_str(), arrived.sent_by.as_str());
            notifications::decide(connection, who, effect, now).await?
        }
    };
    let (answer, request, existing, act, target, detail, also) = match decided {
        Decided::Not(submitted) => return Ok(submitted),
        Decided::Done { answer, request, existing, act, target } => {
            (answer, request, existing, act, target, String::new(), None)
        }
        Decided::Accepted { answer, request, also, act, target, detail } => {
            (answer, Some(request), false, act, target, detail, Some(also))
        }
    };
    let arrived = &submission.arrived;
    submit::claim_with(connection, submission, request.map(|id| id.0), existing, &answer).await?;
    let outcome = if existing { SubmissionOutcome::Existing } else { SubmissionOutcome::First };
    arrivals::insert(connection, &Arrived { request, outcome, ..arrived.clone() }).await?;
    let entry = AuditEntry {
        at: now,
        actor: arrived.sent_by.clone(),
        channel: arrived.channel.as_str(),
        act,
        team: arrived.scope.team.clone(),
        target,
        detail,
    };
    write_audit(connection, &entry).await?;
    Ok(match (request, also) {
        (Some(id), Some(also)) => Submitted::Accepted(answer, id, also),
        (Some(id), None) if existing => Submitted::Existing(answer, id),
        (None, None) if existing => Submitted::Gone(answer),
        _ => Submitted::First(answer, request),
    })
}

/// Decides what a step asks for. Who lost the parent's run meanwhile asks for nothing any more: the parent may be at its
/// end by now, and nobody would know of what it left behind.
async fn of_step(
    connection: &mut Connection,
    submission: &Submission,
    hold: Hold,
    effect: &Effect,
) -> StoreResult<Submitted> {
    if runs::check(connection, hold).await? == Held::Lost {
        return Ok(Submitted::TooLate("The run that asks for it is held by another worker by now."));
    }
    let inner = Submission { effect: effect.clone(), ..submission.clone() };
    if matches!(effect, Effect::Create { .. }) {
        let decided = submit::create(connection, std::slice::from_ref(&inner)).await?.pop();
        return decided.ok_or_else(|| StoreError::Corrupt("a submission was left undecided".into()));
    }
    Box::pin(one(connection, &inner)).await
}

/// What a request is now, as the answer to what was done to it.
pub(super) async fn shown(
    connection: &mut Connection,
    id: RequestId,
    kind: AnswerKind,
    existing: bool,
    act: &'static str,
) -> StoreResult<Decided> {
    let request = runs::existing(connection, id).await?;
    let answer =
        Answer::of_request(kind, &request.view).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(Decided::Done { answer, request: Some(id), existing, act, target: id.to_string() })
}

async fn cancel(connection: &mut Connection, id: RequestId, now: Moment) -> StoreResult<Decided> {
    let Some(request) = lives::locked_with_request(connection, id).await? else {
        return Ok(Decided::Not(Submitted::Missing));
    };
    match request.view.state {
        RequestState::Canceled => {
            return shown(connection, id, AnswerKind::Done, true, "request_cancel").await;
        }
        RequestState::PendingApproval | RequestState::Queued | RequestState::Running => {}
        state => return Ok(Decided::Not(Submitted::Undecidable(state))),
    }
    let look = format!("SELECT owner, intent, touched FROM run WHERE request = $1{FOR_UPDATE}");
    let run = sqlx::query(AssertSqlSafe(look)).bind(id.0).fetch_optional(&mut *connection).await?;
    let Some(run) = run else {
        runs::set_state(connection, &request, RequestState::Canceled, None, now).await?;
        lives::came_to_nothing(connection, &request, now).await?;
        return shown(connection, id, AnswerKind::Accepted, false, "request_cancel").await;
    };
    if run.try_get::<String, _>("intent")? == "cancel" {
        return shown(connection, id, AnswerKind::Done, true, "request_cancel").await;
    }
    if let Some(Resolution::Adopt | Resolution::Abandon) = resolved(connection, &request).await? {
        return Ok(Decided::Not(Submitted::TooLate(
            "Somebody decided what is to become of it, and that is being carried out.",
        )));
    }
    let owned = run.try_get::<Option<String>, _>("owner")?.is_some();
    let touched: bool = run.try_get("touched")?;
    if touched && Kind::of(&request.view.action) == Kind::Delete {
        return Ok(Decided::Not(Submitted::TooLate(
            "The teardown has begun, or something was stopped half-way for it, so the delete cannot be taken back.",
        )));
    }
    if !owned && !touched {
        // Nothing was begun, so nothing needs to be undone.
        runs::remove(connection, id).await?;
        runs::set_state(connection, &request, RequestState::Canceled, None, now).await?;
        lives::came_to_nothing(connection, &request, now).await?;
    } else {
        let done = sqlx::query(AssertSqlSafe(format!(
            "UPDATE run SET intent = 'cancel', due_at = CASE WHEN owner IS NULL THEN {} ELSE due_at END
              WHERE request = $2",
            clock("$1"),
        )))
        .bind(now.millis())
        .bind(id.0)
        .execute(&mut *connection)
        .await?;
        exactly_one(&done, "run")?;
        let entry = EventEntry::Step { step: "cancel".into(), detail: "asked to stop".into() };
        runs::append(connection, id, request.view.attempt, &[entry], now).await?;
    }
    shown(connection, id, AnswerKind::Accepted, false, "request_cancel").await
}

async fn retry(
    connection: &mut Connection,
    id: RequestId,
    resource: ResourceId,
    now: Moment,
) -> StoreResult<Decided> {
    let Some(request) = lives::locked_with_request(connection, id).await? else {
        return Ok(Decided::Not(Submitted::Missing));
    };
    if request.view.state != RequestState::Failed {
        return Ok(Decided::Not(Submitted::Undecidable(request.view.state)));
    }
    if Kind::of(&request.view.action) != Kind::Create {
        return match change::retry(connection, &request, now).await? {
            Ok(()) => {
                keep_keys(connection, id).await?;
                shown(connection, id, AnswerKind::Accepted, false, "request_retry").await
            }
            Err(refused) => Ok(Decided::Not(refused)),
        };
    }
    let brought = request.view.parameters.values().any(domain::hidden::is_mark);
    if brought && !hidden::is_kept(connection, id).await? {
        return Ok(Decided::Not(Submitted::TooLate(
            "Its secret parameters are not kept any more, since it failed too long ago. Send it as a new request.",
        )));
    }
    if let Some(held) = reserve(connection, &request, resource, now).await? {
        return Ok(Decided::Not(held));
    }
    let attempt = request.view.attempt + 1;
    let done = sqlx::query(
        "UPDATE request SET state = 'queued', reason = NULL, attempt = $1, resource = $2, updated_at = $3,
                            finished_at = NULL, swept = $6
          WHERE id = $4 AND attempt = $5",
    )
    .bind(i64::from(attempt))
    .bind(resource.0)
    .bind(now.millis())
    .bind(id.0)
    .bind(i64::from(request.view.attempt))
    .bind(false)
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "request")?;
    keep_keys(connection, id).await?;
    let entry = EventEntry::State { state: RequestState::Queued, reason: None };
    runs::append(connection, id, attempt, &[entry], now).await?;
    // It was surely not made, so whoever asks for another try means that it be made, also where nobody can look.
    queue(connection, id, attempt, ("apply", true), now).await?;
    shown(connection, id, AnswerKind::Accepted, false, "request_retry").await
}

/// Keeps the keys of a request that is opened again until its next end, those too that were bound after the earlier one. Of
/// these there are most often none.
async fn keep_keys(connection: &mut Connection, id: RequestId) -> StoreResult<()> {
    sqlx::query(AssertSqlSafe(format!(
        "UPDATE claim SET late = $1
          WHERE id IN (SELECT id FROM claim WHERE request = $2 AND late AND retired_at IS NULL
                        ORDER BY team, principal, key{FOR_UPDATE})",
    )))
    .bind(false)
    .bind(id.0)
    .execute(connection)
    .await?;
    Ok(())
}

/// Reserves the request's name and its share of the quota for a new life; or says why it cannot have them.
async fn reserve(
    connection: &mut Connection,
    request: &StoredRequest,
    resource: ResourceId,
    now: Moment,
) -> StoreResult<Option<Submitted>> {
    let view = &request.view;
    dialect::lock_teams(connection, &[view.team.as_str()]).await?;
    // It costs what it did at first, whatever the catalog says by now.
    let cost: Option<i64> = sqlx::query_scalar(
        "INSERT INTO resource (id, team, type, name, offering, state, parameters, request, created_at, updated_at, cost)
         SELECT $1, $2, $3, $4, $5, 'creating', $6, $7, $8, $8, cost FROM resource WHERE id = $9
         ON CONFLICT (team, type, name) WHERE ended_at IS NULL DO NOTHING
         RETURNING cost",
    )
    .bind(resource.0)
    .bind(view.team.as_str())
    .bind(view.resource_type.as_str())
    .bind(view.name.as_str())
    .bind(view.offering.as_str())
    .bind(canonical(&view.parameters))
    .bind(view.id.0)
    .bind(now.millis())
    .bind(request.resource.0)
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(cost) = cost {
        let cost = u32::try_from(cost).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let wants = quotas::Wants { team: view.team.as_str(), request: view.id.0, cost };
        let Some(short) = quotas::short(connection, &[wants]).await?.remove(&view.id.0) else {
            return Ok(None);
        };
        let done = sqlx::query("DELETE FROM resource WHERE id = $1")
            .bind(resource.0)
            .execute(&mut *connection)
            .await?;
        exactly_one(&done, "resource")?;
        return Ok(Some(Submitted::QuotaExceeded(short)));
    }
    let held =
        lists::resource(connection, view.team.as_str(), view.resource_type.as_str(), view.name.as_str())
            .await?
            .ok_or_else(submit::moved_on)?
            .view;
    Ok(Some(if held.state == "deleting" {
        Submitted::Deleting(held.created_by.id)
    } else {
        Submitted::NameTaken(Box::new(NameHolder {
            request: held.created_by.id,
            offering: held.offering,
            parameters: held.parameters,
        }))
    }))
}

/// Puts a request that had a run before onto the queue again; what an earlier run did outside is in doubt. With `insisted`,
/// a person has decided what to do even if that stays so.
pub(super) async fn queue(
    connection: &mut Connection,
    id: RequestId,
    attempt: u32,
    (intent, insisted): (&'static str, bool),
    now: Moment,
) -> StoreResult<()> {
    // The fence begins where no earlier hold of this request can have been.
    let done = sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO run (request, attempt, due_at, fence, intent, touched, insisted)
         VALUES ($1, $2, {now}, {now}, $4, $5, $6)",
        now = clock("$3"),
    )))
    .bind(id.0)
    .bind(i64::from(attempt))
    .bind(now.millis())
    .bind(intent)
    .bind(true)
    .bind(insisted)
    .execute(connection)
    .await?;
    exactly_one(&done, "run")
}

async fn resolve(
    connection: &mut Connection,
    id: RequestId,
    (resolution, forced, reason): (Resolution, Option<&str>, Option<&str>),
    (by, now): (&str, Moment),
) -> StoreResult<Decided> {
    let Some(request) = lives::locked_with_request(connection, id).await? else {
        return Ok(Decided::Not(Submitted::Missing));
    };
    if request.view.state != RequestState::Unknown {
        if forced.is_none() && resolved(connection, &request).await? == Some(resolution) {
            return shown(connection, id, AnswerKind::Done, true, "request_resolve").await;
        }
        return Ok(Decided::Not(Submitted::Undecidable(request.view.state)));
    }
    if let Some(reason) = forced {
        runs::set_state(connection, &request, RequestState::Failed, Some(reason), now).await?;
        lives::came_to_nothing(connection, &request, now).await?;
    } else {
        let intent = match resolution {
            Resolution::Adopt => ("adopt", false),
            Resolution::Retry => ("apply", true),
            Resolution::Abandon => ("abandon", true),
        };
        queue(connection, id, request.view.attempt, intent, now).await?;
        if resolution == Resolution::Abandon {
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            let done = sqlx::query("UPDATE run SET why = $1 WHERE request = $2")
                .bind(rows::text(&format!("abandoned by {by}{reason}")))
                .bind(id.0)
                .execute(&mut *connection)
                .await?;
            exactly_one(&done, "run")?;
        }
        let again: &[Work] = match (resolution, Kind::of(&request.view.action)) {
            (Resolution::Retry, Kind::Delete) => &[Work::Destroy],
            (Resolution::Retry, _) => &[Work::Apply],
            (Resolution::Abandon, Kind::Create | Kind::Update) => &[Work::Destroy, Work::Undo],
            _ => &[],
        };
        errands::reopen(connection, id, request.view.attempt, again).await?;
        runs::set_state(connection, &request, RequestState::Queued, None, now).await?;
    }
    let line = resolution.line(forced.is_some(), by, forced.or(reason));
    let entry = EventEntry::Step { step: "resolve".into(), detail: line };
    runs::append(connection, id, request.view.attempt, &[entry], now).await?;
    shown(connection, id, AnswerKind::Accepted, false, "request_resolve").await
}

/// What was decided last about this attempt of a request, if anything was.
async fn resolved(connection: &mut Connection, request: &StoredRequest) -> StoreResult<Option<Resolution>> {
    let mut beginnings = Vec::new();
    for resolution in [Resolution::Adopt, Resolution::Retry, Resolution::Abandon] {
        let entry = EventEntry::Step { step: "resolve".into(), detail: resolution.as_str().into() };
        let entry = serde_json::to_string(&entry).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        beginnings.push(entry.trim_end_matches("\"}").to_owned());
    }
    let last: Option<String> = sqlx::query_scalar(
        "SELECT entry FROM event
          WHERE request = $1 AND attempt = $2
            AND (substr(entry, 1, length($3)) = $3 OR substr(entry, 1, length($4)) = $4
                 OR substr(entry, 1, length($5)) = $5)
          ORDER BY seq DESC LIMIT 1",
    )
    .bind(request.view.id.0)
    .bind(i64::from(request.view.attempt))
    .bind(&beginnings[0])
    .bind(&beginnings[1])
    .bind(&beginnings[2])
    .fetch_optional(connection)
    .await?;
    let entry = last.map(|last| serde_json::from_str(&last)).transpose();
    Ok(match entry.map_err(|error| StoreError::Corrupt(error.to_string()))? {
        Some(EventEntry::Step { detail, .. }) => Resolution::of_line(&detail),
        _ => None,
    })
}

/// What the end of a thing comes to that had ended before: just that, without another end.
pub(super) fn gone_before(shown: &impl Serialize, act: &'static str, target: String) -> StoreResult<Decided> {
    let answer = Answer::showing(AnswerKind::Done, None, shown);
    let answer = answer.map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(Decided::Done { answer, request: None, existing: true, act, target })
}

async fn revoke(
    connection: &mut Connection,
    submission: &Submission,
    id: TokenId,
    now: Moment,
) -> StoreResult<Decided> {
    let principal = submission.arrived.scope.principal;
    let Some(token) = people::token(connection, principal, id, FOR_UPDATE).await? else {
        return Ok(Decided::Not(Submitted::Missing));
    };
    if token.revoked_at.is_some() {
        return gone_before(&token, "token_revoke", id.to_string());
    }
    let done = sqlx::query("UPDATE token SET revoked_at = $1 WHERE id = $2")
        .bind(now.millis())
        .bind(id.0)
        .execute(connection)
        .await?;
    exactly_one(&done, "token")?;
    Ok(Decided::Done {
        answer: Answer::empty(),
        request: None,
        existing: false,
        act: "token_revoke",
        target: id.to_string(),
    })
}
