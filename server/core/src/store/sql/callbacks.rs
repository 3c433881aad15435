//! Reports on errands: each is taken in once, with its effect, under the lock of the request that it is about.

use super::{
    decide,
    dialect::{self, Connection},
    duplicates, errands, exactly_one, lists, rows, runs, write_audit,
};
use crate::{
    provisioner::Work,
    store::{AuditEntry, Report, StoreError, StoreResult, StoredRequest, Taken},
};
use domain::{
    action::Kind,
    callback::{Before, Heard, OrphanView, Progress, Standing, TAKEN_OVER, is_second, is_the_same, judge},
    duplicates::Rule,
    id::{ErrandId, RequestId},
    state::RequestState,
    time::Moment,
    view::{EventEntry, Page},
};
use sqlx::Row;
use uuid::Uuid;

/// The most refusals of one ID that a history tells of, if they are not the same.
const MOST_REFUSALS: i64 = 100;

/// The most reports that are kept of one errand, the one that ends it aside.
const MOST_REPORTS: i64 = 10_000;

/// What of an errand decides about a report.
struct Subject {
    request: RequestId,
    attempt: u32,
    work: Work,
    before: Option<Before>,
    events: i64,
    orphaned: bool,
}

/// Takes a report in; the request that it is about with what became of it, if there is one to tell of.
pub(super) async fn report(
    connection: &mut Connection,
    report: &Report,
) -> StoreResult<(Taken, Option<RequestId>)> {
    let id: Option<Uuid> = sqlx::query_scalar("SELECT request FROM errand WHERE id = $1")
        .bind(report.errand.0)
        .fetch_optional(&mut *connection)
        .await?;
    let Some(id) = id else { return Ok((Taken::Missing, None)) };
    // Whatever comes at the same moment, on whichever server, comes after this or before it.
    dialect::lock_request(connection, RequestId(id)).await?;
    let Some(subject) = subject(connection, report).await? else { return Ok((Taken::Missing, None)) };
    let request = runs::existing(connection, subject.request).await?;
    if let Some(taken) = met_before(connection, report, &subject).await? {
        let rule = if taken == Taken::Reused { Rule::Mismatched } else { Rule::Replayed };
        let service = format!("service of {}", request.view.offering);
        duplicates::count_one(connection, report.at, rule, "callback", &service).await?;
        return Ok((taken, Some(subject.request)));
    }
    let taken_back = subject.work == Work::Apply
        && errands::is_taken_back(connection, subject.request, subject.attempt).await?;
    let standing = standing(&request, &subject, report.earlier, taken_back);
    let heard = judge(standing, subject.before, report.sequence, report.progress);
    // Whoever reported too much on the way may still report the end, which counts once.
    // What came before to another attempt's callback says nothing of the attempt that this is about.
    let before = subject.before.filter(|_| !report.earlier);
    let second = heard == Heard::EarlierAttempt
        && subject.work == Work::Apply
        && !subject.orphaned
        && is_second(standing, before, report.progress)
        && !(request.view.state == RequestState::Succeeded
            && is_the_same(&report.outputs, &request.view.outputs));
    let ends = second || report.progress.is_final() && matches!(heard, Heard::Applied | Heard::Orphaned);
    if subject.events >= MOST_REPORTS && !ends {
        return Ok((Taken::Full, None));
    }
    keep(connection, report, heard).await?;
    let mut entries = vec![said(report, heard.as_str())];
    if heard == Heard::Applied {
        entries.extend(report.entries.iter().cloned());
    }
    if second {
        entries.push(about_orphan(format!(
            "an earlier attempt made something after all, which may stand beside what attempt {} makes: {}",
            request.view.attempt,
            Heard::Orphaned
        )));
    }
    if second || heard == Heard::Orphaned {
        entries.extend(report.made.clone());
    }
    runs::append(connection, subject.request, subject.attempt, &entries, report.at).await?;
    match heard {
        Heard::Applied => {
            counts(connection, report, None).await?;
            if report.progress.is_final() {
                settle(connection, &request, &subject, report).await?;
            }
        }
        Heard::Orphaned => {
            counts(connection, report, Some(report.at)).await?;
            let why = if standing == Standing::TakenBack {
                "while it was being taken back".to_owned()
            } else {
                format!("after the request was {}", request.view.state)
            };
            audit_orphan(connection, report, &subject, &request, &why).await?;
        }
        Heard::EarlierAttempt if second => {
            // What is known of the attempt that goes on is not touched.
            if report.earlier {
                flag(connection, report).await?;
            } else {
                counts(connection, report, Some(report.at)).await?;
            }
            let why = format!("at an attempt before attempt {}", request.view.attempt);
            audit_orphan(connection, report, &subject, &request, &why).await?;
        }
        Heard::Older | Heard::EarlierAttempt | Heard::Ended => {}
    }
    Ok((Taken::In { heard, at: report.at, again: false }, Some(subject.request)))
}

async fn audit_orphan(
    connection: &mut Connection,
    report: &Report,
    subject: &Subject,
    request: &StoredRequest,
    why: &str,
) -> StoreResult<()> {
    let entry = AuditEntry {
        at: report.at,
        actor: format!("callback {}", report.errand),
        channel: "callback",
        act: "orphan",
        team: request.view.team.to_string(),
        target: subject.request.to_string(),
        detail: format!("{} succeeded elsewhere {why}", subject.work.as_str()),
    };
    write_audit(connection, &entry).await
}

async fn subject(connection: &mut Connection, report: &Report) -> StoreResult<Option<Subject>> {
    let row = sqlx::query(
        "SELECT request, attempt, operation, state, sequence, events, orphaned_at FROM errand WHERE id = $1",
    )
    .bind(report.errand.0)
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let (state, sequence): (Option<String>, Option<i64>) = (row.try_get("state")?, row.try_get("sequence")?);
    let before = match (state, sequence) {
        (Some(state), Some(sequence)) => Some(Before { sequence, progress: errands::progress(&state)? }),
        _ => None,
    };
    Ok(Some(Subject {
        request: RequestId(row.try_get("request")?),
        attempt: rows::number(&row, "attempt")?,
        work: errands::work(row.try_get("operation")?)?,
        before,
        events: row.try_get("events")?,
        orphaned: row.try_get::<Option<i64>, _>("orphaned_at")?.is_some(),
    }))
}

/// What became of the first report of this ID, if this is not it.
async fn met_before(
    connection: &mut Connection,
    report: &Report,
    subject: &Subject,
) -> StoreResult<Option<Taken>> {
    let row = sqlx::query(
        "SELECT body_hash, outcome, at, mismatches FROM callback WHERE errand = $1 AND event = $2",
    )
    .bind(report.errand.0)
    .bind(&report.event)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let same = row.try_get::<Vec<u8>, _>("body_hash")? == report.body_hash;
    let count = if same {
        "UPDATE callback SET repeats = repeats + 1 WHERE errand = $1 AND event = $2"
    } else {
        "UPDATE callback SET mismatches = mismatches + 1 WHERE errand = $1 AND event = $2"
    };
    let done = sqlx::query(count).bind(report.errand.0).bind(&report.event).execute(&mut *connection).await?;
    exactly_one(&done, "callback")?;
    if !same {
        // Each once; however often it comes, the count goes on.
        let entry = said(report, "refused: another report was taken in under this ID");
        if row.try_get::<i64, _>("mismatches")? < MOST_REFUSALS
            && !runs::is_told(connection, subject.request, &entry).await?
        {
            runs::append(connection, subject.request, subject.attempt, &[entry], report.at).await?;
        }
        return Ok(Some(Taken::Reused));
    }
    Ok(Some(Taken::In {
        heard: rows::parsed(&row, "outcome")?,
        at: Moment::from_millis(row.try_get("at")?),
        again: true,
    }))
}

fn standing(request: &StoredRequest, subject: &Subject, earlier: bool, taken_back: bool) -> Standing {
    let later = earlier || subject.attempt < request.view.attempt;
    let state = request.view.state;
    // Nothing stands that was taken back or removed after all.
    let leaves = state.is_final() && state != RequestState::Succeeded && subject.work == Work::Apply;
    match (leaves, later) {
        (true, true) => Standing::LaterEndedOtherwise,
        (true, false) => Standing::EndedOtherwise,
        (false, true) => Standing::LaterAttempt,
        (false, false) if state.is_final() => Standing::Succeeded,
        (false, false) if taken_back => Standing::TakenBack,
        (false, false) if state == RequestState::Unknown => Standing::Unknown,
        (false, false) => Standing::Open,
    }
}

fn said(report: &Report, what: &str) -> EventEntry {
    EventEntry::Step {
        step: "callback".into(),
        detail: format!(
            "{} (number {}, event {}): {what}",
            report.progress.as_str(),
            report.sequence,
            report.event
        ),
    }
}

/// A line about what stands elsewhere and whether somebody answers for it.
fn about_orphan(detail: String) -> EventEntry {
    EventEntry::Step { step: "callback".into(), detail }
}

async fn keep(connection: &mut Connection, report: &Report, heard: Heard) -> StoreResult<()> {
    let done = sqlx::query(
        "INSERT INTO callback (errand, event, body_hash, outcome, sequence, at) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(report.errand.0)
    .bind(&report.event)
    .bind(report.body_hash.as_slice())
    .bind(heard.as_str())
    .bind(report.sequence)
    .bind(report.at.millis())
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "callback")?;
    let done = sqlx::query("UPDATE errand SET events = events + 1 WHERE id = $1")
        .bind(report.errand.0)
        .execute(connection)
        .await?;
    exactly_one(&done, "errand")
}

/// Lets the report stand for what is known of its errand.
async fn counts(connection: &mut Connection, report: &Report, orphaned: Option<Moment>) -> StoreResult<()> {
    let done = sqlx::query(
        "UPDATE errand SET state = $1, sequence = CASE WHEN sequence > $2 THEN sequence ELSE $2 END,
                           outcome = coalesce($3, outcome), reported_at = $4,
                           orphaned_at = coalesce($5, orphaned_at)
          WHERE id = $6",
    )
    .bind(report.progress.as_str())
    .bind(report.sequence)
    .bind(report.outcome.as_deref())
    .bind(report.at.millis())
    .bind(orphaned.map(Moment::millis))
    .bind(report.errand.0)
    .execute(connection)
    .await?;
    exactly_one(&done, "errand")
}

/// Flags what a report tells of that came to another attempt's callback, and nothing else.
async fn flag(connection: &mut Connection, report: &Report) -> StoreResult<()> {
    let done = sqlx::query("UPDATE errand SET orphaned_at = $1 WHERE id = $2")
        .bind(report.at.millis())
        .bind(report.errand.0)
        .execute(connection)
        .await?;
    exactly_one(&done, "errand")
}

/// Takes a flag back, since the request came to the same; the request, if there was a flag.
pub(super) async fn take_over(
    connection: &mut Connection,
    errand: ErrandId,
    now: Moment,
) -> StoreResult<Option<RequestId>> {
    let found = sqlx::query("SELECT request, attempt FROM errand WHERE id = $1 AND orphaned_at IS NOT NULL")
        .bind(errand.0)
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = found else { return Ok(None) };
    let request = RequestId(row.try_get("request")?);
    let attempt: u32 = rows::number(&row, "attempt")?;
    dialect::lock_request(connection, request).await?;
    let done = sqlx::query("UPDATE errand SET orphaned_at = NULL WHERE id = $1 AND orphaned_at IS NOT NULL")
        .bind(errand.0)
        .execute(&mut *connection)
        .await?;
    // Another server may have been quicker.
    if done.rows_affected() == 0 {
        return Ok(None);
    }
    let came_to = runs::existing(connection, request).await?.view.attempt;
    let entry = about_orphan(format!(
        "what attempt {attempt} made after all is what attempt {came_to} came to: {TAKEN_OVER}"
    ));
    runs::append(connection, request, came_to, &[entry], now).await?;
    Ok(Some(request))
}

/// Lets the request go on, now that its end is known.
async fn settle(
    connection: &mut Connection,
    request: &StoredRequest,
    subject: &Subject,
    report: &Report,
) -> StoreResult<()> {
    let id = request.view.id;
    if request.view.state != RequestState::Unknown {
        return errands::wake(connection, id, report.at).await;
    }
    // Nobody could tell; now somebody does. After a failure the next hold looks what stands, and takes that back.
    let takes_back = subject.work != Work::Apply && Kind::of(&request.view.action) != Kind::Delete;
    let intent = match report.progress {
        _ if takes_back => "abandon",
        Progress::Succeeded => "adopt",
        _ => "apply",
    };
    decide::queue(connection, id, request.view.attempt, (intent, false), report.at).await?;
    if takes_back {
        let done = sqlx::query("UPDATE run SET why = $1 WHERE request = $2")
            .bind(request.view.reason.as_deref().map(rows::text))
            .bind(id.0)
            .execute(&mut *connection)
            .await?;
        exactly_one(&done, "run")?;
    }
    runs::set_state(connection, request, RequestState::Queued, None, report.at).await
}

/// What succeeded elsewhere after its request had come to another end or attempt.
pub(super) async fn orphans(
    connection: &mut Connection,
    after: Option<(Moment, Uuid)>,
    size: u32,
) -> StoreResult<Page<OrphanView>> {
    // They are few, and gone with their keys' retention.
    let total = sqlx::query_scalar("SELECT count(*) FROM errand WHERE orphaned_at IS NOT NULL")
        .fetch_one(&mut *connection)
        .await?;
    let (at, id) = after.map_or((i64::MAX, Uuid::max()), |(at, id)| (at.millis(), id));
    let found = sqlx::query(
        "SELECT id, request, attempt, orphaned_at FROM errand
          WHERE orphaned_at IS NOT NULL AND (orphaned_at, id) < ($1, $2)
          ORDER BY orphaned_at DESC, id DESC LIMIT $3",
    )
    .bind(at)
    .bind(id)
    .bind(i64::from(size) + 1)
    .fetch_all(&mut *connection)
    .await?;
    let mut orphans = Vec::new();
    for row in found {
        let id = RequestId(row.try_get("request")?);
        let request = lists::request(connection, id)
            .await?
            .ok_or_else(|| StoreError::Corrupt(format!("request {id} is missing")))?;
        orphans.push(OrphanView {
            callback: ErrandId(row.try_get("id")?),
            attempt: rows::number(&row, "attempt")?,
            at: Moment::from_millis(row.try_get("orphaned_at")?),
            request: request.view,
        });
    }
    Ok(lists::paged(orphans, size, total, |last| (last.at, last.callback.0)))
}
