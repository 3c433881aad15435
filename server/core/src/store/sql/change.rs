//! Accepting changes of a resource: each is worked out on what the resource is at that moment, under the lock of its life.

use super::{
    approvals, arrivals,
    decide::{Decided, queue},
    dialect::{Connection, clock},
    exactly_one, lists,
    lives::{self, DELETING, Lost, Turn, WAITS},
    notifications,
    rows::{self, canonical},
    runs,
};
use crate::{
    answer::{Answer, AnswerKind},
    store::{
        Arrived, Delta, NewChange, StoreError, StoreResult, StoredRequest, StoredResource, Submission,
        Submitted, search::Sought,
    },
};
use domain::{
    action::Kind,
    id::RequestId,
    state::RequestState,
    time::Moment,
    view::{EventEntry, Object, RequestView},
};
use sqlx::{AssertSqlSafe, Row};

/// The living resource that a change is about, locked.
async fn living(connection: &mut Connection, change: &NewChange) -> StoreResult<Option<StoredResource>> {
    let (team, kind, name) = (change.team.as_str(), change.kind.as_str(), change.name.as_str());
    let mut last = None;
    // It may end between the look and the lock; then another life may have begun.
    for _ in 0..4 {
        let Some(seen) = lists::resource(connection, team, kind, name).await? else { return Ok(None) };
        let id = seen.view.id;
        if last != Some(id) {
            lives::lock(connection, id).await?;
        }
        last = Some(id);
        let now = lives::locked(connection, id).await?;
        if now.view.state != "gone" {
            return Ok(Some(now));
        }
    }
    Err(StoreError::Contended("a resource's lives follow each other too fast".into()))
}

/// Accepts a change, in the transaction that claims its key.
pub(super) async fn accept(
    connection: &mut Connection,
    submission: &Submission,
    change: &NewChange,
    now: Moment,
) -> StoreResult<Decided> {
    let kind = Kind::of(&change.action);
    let Some(life) = living(connection, change).await? else {
        let (team, kind_of, name) = (change.team.as_str(), change.kind.as_str(), change.name.as_str());
        return match lives::last_deleted(connection, team, kind_of, name).await? {
            Some(past) if kind == Kind::Delete => already(connection, change, &past).await,
            _ => Ok(Decided::Not(Submitted::Missing)),
        };
    };
    if life.view.state == DELETING && kind == Kind::Delete {
        return already(connection, change, &life).await;
    }
    let planned = match change.plan.on(&life) {
        Ok(planned) => planned,
        Err(error) => return Ok(Decided::Not(Submitted::Unfit(Box::new(error)))),
    };
    if life.view.state == DELETING {
        return Ok(Decided::Not(Submitted::Deleting(life.ended_by.unwrap_or(life.view.created_by.id))));
    }
    if kind == Kind::Delete
        && planned.approval.is_some()
        && let Some(waiting) = lives::waiting_delete(connection, life.view.id).await?
    {
        return asked_before(connection, change, waiting).await;
    }
    let version = life.view.version + 1;
    let correlation_id = change.correlation_id.clone().unwrap_or_else(|| change.id.to_string());
    let view = RequestView {
        id: change.id,
        team: change.team.clone(),
        offering: life.view.offering.clone(),
        offering_version: planned.offering_version,
        resource_type: change.kind.clone(),
        name: change.name.clone(),
        action: change.action.clone(),
        state: if planned.approval.is_some() { RequestState::PendingApproval } else { RequestState::Queued },
        reason: None,
        attempt: 1,
        parameters: planned.parameters,
        patch: planned.patch,
        desired: planned.desired,
        labels: change.labels.shown_with(&correlation_id),
        correlation_id,
        parent_id: change.parent_id,
        requested_by: submission.arrived.sent_by.clone(),
        channel: submission.arrived.channel,
        outputs: Object::new(),
        secret_outputs: Vec::new(),
        created_at: now,
        updated_at: now,
        finished_at: None,
        duplicate: None,
        approval: planned.approval.map(|needed| needed.asked_at(now)),
    };
    let mut request =
        StoredRequest { view, principal: submission.arrived.scope.principal, resource: life.view.id };
    let before = lives::open(connection, &life).await?;
    let (delta, sealed) = (planned.delta.as_ref(), change.hidden.as_deref());
    insert(connection, &request, &submission.arrived, version, (delta, sealed), now).await?;
    let waits = request.view.approval.is_some();
    let mut also = Vec::new();
    if waits {
        // It keeps its turn. A delete that waits stops nothing yet: somebody may decide against it.
        request.view = approvals::ask(connection, &request.view).await?;
    } else {
        also = begin(connection, &life, (change.id, kind), &before, now).await?;
    }
    let desired = request.view.desired.as_ref().unwrap_or(&life.view.parameters);
    let delete = (kind == Kind::Delete && !waits).then_some(change.id);
    move_on(connection, &life, desired, delete, now).await?;
    let mut answer = Answer::of_request(AnswerKind::Accepted, &request.view)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    answer.etag = Some(domain::etag::Version { resource: life.view.id, number: version }.to_string());
    Ok(Decided::Accepted {
        answer,
        request: change.id,
        also,
        act: match kind {
            Kind::Create => "request_create",
            Kind::Update => "request_update",
            Kind::Delete => "request_delete",
            Kind::Action => "request_action",
        },
        target: format!("{}/{}", change.kind, change.name),
        detail: if kind == Kind::Action { change.action.clone() } else { String::new() },
    })
}

/// Puts a change onto the queue behind these others, which a delete stops; those that a worker has yet to stop are to be
/// told.
pub(super) async fn begin(
    connection: &mut Connection,
    life: &StoredResource,
    (id, kind): (RequestId, Kind),
    others: &[Turn],
    now: Moment,
) -> StoreResult<Vec<RequestId>> {
    let mut lost = Lost::default();
    if kind == Kind::Delete {
        let reason = format!("{} That was asked for by request {id}.", lives::LOST);
        lost = lives::lose(connection, others, &reason, now).await?;
    }
    let is_first = others.len() == lost.ended;
    // Where something begun is stopped half-way for the delete, or was never told to its end, the thing is looked at
    // before it is torn down, and the delete cannot be taken back any more.
    let doubtful = lost.begun || (kind == Kind::Delete && life.applied.is_none());
    let done = sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO run (request, attempt, due_at, touched) VALUES ($1, 1, {}, $3)",
        if is_first { clock("$2") } else { "$2".to_owned() },
    )))
    .bind(id.0)
    .bind(if is_first { now.millis() } else { WAITS })
    .bind(doubtful)
    .execute(connection)
    .await?;
    exactly_one(&done, "run")?;
    Ok(lost.told)
}

async fn insert(
    connection: &mut Connection,
    request: &StoredRequest,
    arrived: &Arrived,
    turn: i64,
    (delta, hidden): (Option<&Delta>, Option<&[u8]>),
    now: Moment,
) -> StoreResult<()> {
    let view = &request.view;
    let done = sqlx::query(
        "INSERT INTO request (id, team, principal, requested_by, channel, action, offering, offering_version, type, name,
                              resource, parameters, patch, desired, delta, turn, labels, correlation_id, parent_id,
                              step, state, created_at, updated_at, hidden)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
                 $22, $23)",
    )
    .bind(view.id.0)
    .bind(view.team.as_str())
    .bind(request.principal.0)
    .bind(&view.requested_by)
    .bind(view.channel.as_str())
    .bind(&view.action)
    .bind(view.offering.as_str())
    .bind(&view.offering_version)
    .bind(view.resource_type.as_str())
    .bind(view.name.as_str())
    .bind(request.resource.0)
    .bind(canonical(&view.parameters))
    .bind(view.patch.as_ref().map(canonical))
    .bind(view.desired.as_ref().map(canonical))
    .bind(delta.map(serde_json::to_string).transpose().map_err(|error| StoreError::Corrupt(error.to_string()))?)
    .bind(turn)
    .bind(&arrived.labels)
    .bind(&view.correlation_id)
    .bind(view.parent_id.map(|id| id.0))
    .bind(arrived.step())
    .bind(view.state.as_str())
    .bind(now.millis())
    .bind(hidden)
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "request")?;
    arrivals::sought(connection, view.id.0, Sought::of(view, None)).await?;
    let entry = EventEntry::State { state: view.state, reason: None };
    runs::append(connection, view.id, 1, &[entry], now).await?;
    notifications::tell(connection, request, view.state, now).await
}

/// A delete of what is deleted, or about to be.
async fn already(
    connection: &mut Connection,
    change: &NewChange,
    life: &StoredResource,
) -> StoreResult<Decided> {
    if let Err(error) = change.plan.on(life) {
        return Ok(Decided::Not(Submitted::Unfit(Box::new(error))));
    }
    let id = life.ended_by.ok_or_else(|| StoreError::Corrupt("a life is deleted by nobody".into()))?;
    asked_before(connection, change, id).await
}

/// A delete that finds itself asked for by another request.
async fn asked_before(
    connection: &mut Connection,
    change: &NewChange,
    id: RequestId,
) -> StoreResult<Decided> {
    let request = runs::existing(connection, id).await?;
    let answer = Answer::of_request(AnswerKind::Done, &request.view)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(Decided::Done {
        answer,
        request: Some(id),
        existing: true,
        act: "request_delete",
        target: format!("{}/{}", change.kind, change.name),
    })
}

/// Moves the version of a life and what it is meant to be; with `delete`, that it is being deleted.
async fn move_on(
    connection: &mut Connection,
    life: &StoredResource,
    desired: &Object,
    delete: Option<RequestId>,
    now: Moment,
) -> StoreResult<()> {
    let done = sqlx::query(
        "UPDATE resource SET parameters = $1, version = version + 1, updated_at = $2,
                             state = CASE WHEN $3 THEN 'deleting' ELSE state END, ended_by = coalesce($4, ended_by)
          WHERE id = $5 AND version = $6 AND ended_at IS NULL",
    )
    .bind(canonical(desired))
    .bind(now.millis())
    .bind(delete.is_some())
    .bind(delete.map(|id| id.0))
    .bind(life.view.id.0)
    .bind(life.view.version)
    .execute(connection)
    .await?;
    exactly_one(&done, "resource")
}

/// Opens the next attempt of a change that failed, unless the resource has gone on without it.
pub(super) async fn retry(
    connection: &mut Connection,
    request: &StoredRequest,
    now: Moment,
) -> StoreResult<Result<(), Submitted>> {
    let life = lives::locked(connection, request.resource).await?;
    if life.view.state == "gone" {
        return Ok(Err(Submitted::TooLate(
            "The resource that the change was for is gone, and what may stand at its name now is another.",
        )));
    }
    if life.view.state == DELETING {
        return Ok(Err(Submitted::Deleting(life.ended_by.unwrap_or(request.view.id))));
    }
    let (turn, delta) = {
        let row = sqlx::query("SELECT turn, delta FROM request WHERE id = $1")
            .bind(request.view.id.0)
            .fetch_one(&mut *connection)
            .await?;
        (row.try_get::<i64, _>("turn")?, rows::json_if_any::<Delta>(&row, "delta")?)
    };
    let later: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM request WHERE resource = $1 AND action <> 'create' AND turn > $2)",
    )
    .bind(life.view.id.0)
    .bind(turn)
    .fetch_one(&mut *connection)
    .await?;
    if later {
        return Ok(Err(Submitted::TooLate(
            "Another change of the resource was accepted since, so this one would meet something else than it was meant \
             for. Look at the resource and send the change anew.",
        )));
    }
    let Ok(desired) = delta.map(|delta| delta.on(&life.view.parameters)).transpose() else {
        return Ok(Err(Submitted::TooLate(
            "The change does not fit what the resource is meant to be by now. Send it anew.",
        )));
    };
    let attempt = request.view.attempt + 1;
    let text = desired.as_ref().map(canonical);
    let done = sqlx::query(
        "UPDATE request SET state = 'queued', reason = NULL, attempt = $1, turn = $2, desired = $3,
                            parameters = CASE WHEN action = 'update' THEN coalesce($3, parameters) ELSE parameters END,
                            updated_at = $4, finished_at = NULL, swept = $7
          WHERE id = $5 AND attempt = $6",
    )
    .bind(i64::from(attempt))
    .bind(life.view.version + 1)
    .bind(text)
    .bind(now.millis())
    .bind(request.view.id.0)
    .bind(i64::from(request.view.attempt))
    .bind(false)
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "request")?;
    let entry = EventEntry::State { state: RequestState::Queued, reason: None };
    runs::append(connection, request.view.id, attempt, &[entry], now).await?;
    let delete = (Kind::of(&request.view.action) == Kind::Delete).then_some(request.view.id);
    let desired = desired.unwrap_or_else(|| life.view.parameters.clone());
    move_on(connection, &life, &desired, delete, now).await?;
    queue(connection, request.view.id, attempt, ("apply", false), now).await?;
    Ok(Ok(()))
}
