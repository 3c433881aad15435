//! A group of submissions, decided together.

use super::{
    sql::{decide, submit},
    writer::Pieces,
};
use crate::store::{Effect, StoreError, StoreResult, Submission, Submitted};

/// Decides a group of submissions in the order of their arrival, within the open transaction.
///
/// The outcomes come in the same order. If the group's statements fail, its members are decided one by one, so that one
/// bad submission never fails its neighbours.
pub(super) async fn group(
    pieces: &mut Pieces<'_>,
    submissions: Vec<Submission>,
) -> StoreResult<Vec<StoreResult<Submitted>>> {
    let mut outcomes: Vec<Option<StoreResult<Submitted>>> = submissions.iter().map(|_| None).collect();
    let (creates, others): (Vec<_>, Vec<_>) =
        submissions.into_iter().enumerate().partition(|(_, one)| matches!(one.effect, Effect::Create { .. }));
    let (places, creates): (Vec<usize>, Vec<Submission>) = creates.into_iter().unzip();
    if !creates.is_empty() {
        let together = submit::create(pieces.begin().await?, &creates).await;
        pieces.end(together.is_ok()).await?;
        match together {
            Ok(decided) => {
                for (place, outcome) in places.into_iter().zip(decided) {
                    outcomes[place] = Some(Ok(outcome));
                }
            }
            Err(error) if creates.len() == 1 => outcomes[places[0]] = Some(Err(error)),
            Err(_) => {
                for (place, one) in places.into_iter().zip(&creates) {
                    let alone = submit::create(pieces.begin().await?, std::slice::from_ref(one)).await;
                    pieces.end(alone.is_ok()).await?;
                    outcomes[place] =
                        Some(alone.and_then(|decided| decided.into_iter().next().ok_or_else(undecided)));
                }
            }
        }
    }
    for (place, submission) in others {
        let outcome = decide::one(pieces.begin().await?, &submission).await;
        pieces.end(outcome.is_ok()).await?;
        outcomes[place] = Some(outcome);
    }
    Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(undecided()))).collect())
}

fn undecided() -> StoreError {
    StoreError::Corrupt("a submission was left undecided".into())
}
