//! The second layer: the same intention under another key. Decided under a lock on team, offering and parameters, so two
//! at the same moment see each other.

use super::{
    dialect::{self, Connection},
    exactly_one, lists, quotas,
    rows::{self, REQUEST},
    submit, write_audit,
};
use crate::{
    answer::{Answer, AnswerKind},
    store::{AuditEntry, Effect, SecondLook, StoreError, StoreResult, StoredRequest, Submission, Submitted},
};
use domain::{time::Moment, view::RequestView};
use sqlx::AssertSqlSafe;

/// Living or successful creates of the same since a moment, newest first.
pub(super) async fn same(
    connection: &mut Connection,
    (team, offering): (&str, &str),
    parameters: &[u8; 32],
    since: Moment,
    limit: u32,
) -> StoreResult<Vec<RequestView>> {
    let found = sqlx::query(AssertSqlSafe(format!(
        "SELECT {REQUEST} FROM request
          WHERE team = $1 AND offering = $2 AND parameter_hash = $3 AND parameter_hash IS NOT NULL AND created_at > $4
            AND state NOT IN ('failed', 'canceled', 'rejected')
          ORDER BY created_at DESC, id DESC LIMIT $5"
    )))
    .bind(team)
    .bind(offering)
    .bind(parameters.as_slice())
    .bind(since.millis())
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| rows::request(row).map(|request| request.view)).collect()
}

/// The order in which locks of the second layer are taken, whatever the order of arrival.
pub(super) fn order(submission: &Submission) -> Option<(&str, &str, [u8; 32])> {
    let (request, look) = looked(submission)?;
    Some((request.view.team.as_str(), request.view.offering.as_str(), look.parameters))
}

fn looked(submission: &Submission) -> Option<(&StoredRequest, &SecondLook)> {
    match &submission.effect {
        Effect::Create { request, second_look: Some(look), .. } => Some((request, look)),
        _ => None,
    }
}

fn cost(submission: &Submission) -> u32 {
    match submission.effect {
        Effect::Create { cost, .. } => cost,
        _ => 0,
    }
}

/// Lets nobody else decide about the same as these until the end of the transaction. They come in their order.
pub(super) async fn lock(connection: &mut Connection, these: &[(usize, &Submission)]) -> StoreResult<()> {
    let mut last = None;
    for (team, offering, parameters) in these.iter().filter_map(|(_, one)| order(one)) {
        if last.replace((team, offering, parameters)) != Some((team, offering, parameters)) {
            let what: [&[u8]; 4] = [b"second look", team.as_bytes(), offering.as_bytes(), &parameters];
            dialect::lock(connection, &what).await?;
        }
    }
    Ok(())
}

/// Decides a create whose offering asks about likely duplicates, under the lock of what it asks for.
pub(super) async fn create(connection: &mut Connection, submission: &Submission) -> StoreResult<Submitted> {
    let Some((request, look)) = looked(submission) else {
        return Err(StoreError::Corrupt("a second look at what has none".into()));
    };
    let view = &request.view;
    let (team, offering) = (view.team.as_str(), view.offering.as_str());
    // The key comes first, and then the name.
    if let Some(claim) = submit::claim(connection, &submission.arrived.scope).await? {
        return Ok(Submitted::Repeat(Box::new(claim)));
    }
    let held = lists::resource(connection, team, view.resource_type.as_str(), view.name.as_str()).await?;
    let earlier = same(connection, (team, offering), &look.parameters, look.since, 1).await?.pop();
    let confirmed =
        look.confirmed.as_ref().filter(|told| Some(told.of) == earlier.as_ref().map(|one| one.id));
    let asked = earlier.as_ref().filter(|_| look.askable && confirmed.is_none());
    if held.is_none()
        && let Some(earlier) = asked
    {
        // What has no place is not asked about.
        if let Some(short) = quotas::lacking(connection, team, cost(submission)).await? {
            return Ok(Submitted::QuotaExceeded(short));
        }
        return Ok(Submitted::Suspected(Box::new(earlier.clone())));
    }
    let decided = submit::plain(connection, &[submission]).await?.pop();
    let decided = decided.ok_or_else(|| StoreError::Corrupt("a create was left undecided".into()))?;
    let Submitted::First(_, Some(id)) = &decided else { return Ok(decided) };
    if asked.is_some() {
        // The name became free between the looks.
        return Err(submit::moved_on());
    }
    let done = sqlx::query(
        "UPDATE request SET parameter_hash = $1, duplicate_of = $2, duplicate_reason = $3 WHERE id = $4",
    )
    .bind(look.parameters.as_slice())
    .bind(earlier.as_ref().map(|one| one.id.0))
    .bind(confirmed.map(|told| told.reason.as_str()))
    .bind(id.0)
    .execute(&mut *connection)
    .await?;
    exactly_one(&done, "request")?;
    let Some(earlier) = earlier else { return Ok(decided) };
    let entry = AuditEntry {
        at: submission.arrived.at,
        actor: submission.arrived.sent_by.clone(),
        channel: submission.arrived.channel.as_str(),
        act: if confirmed.is_some() { "duplicate_confirm" } else { "duplicate_unasked" },
        team: team.to_owned(),
        target: id.to_string(),
        detail: match confirmed {
            Some(told) => format!("{}: {}", earlier.id, told.reason),
            None => earlier.id.to_string(),
        },
    };
    write_audit(connection, &entry).await?;
    // The first answer says it too.
    let made = lists::request(connection, *id).await?.ok_or_else(submit::moved_on)?;
    let answer = Answer::of_request(AnswerKind::Accepted, &made.view)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    submit::answer_with(connection, &submission.arrived.scope, &answer).await?;
    Ok(Submitted::First(answer, Some(*id)))
}
