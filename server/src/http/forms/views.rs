//! Saved views: save the present filter of a list under a name, remove one. The same again leaves the same, so no key is
//! needed.

use super::{Posted, log_in_first, see_other};
use crate::http::{
    path::PathOf,
    problem::{Refusal, Result},
    sessions,
    state::AppState,
};
use app::{
    context::{Flash, ViewNamed},
    filter::Filter,
};
use axum::{extract::State, response::Response};
use portal::{
    Error,
    service::{ViewOf, ViewToSave},
};

/// The list that a form was sent from, and its address with the filter.
fn sent_from(posted: &Posted) -> Result<(ViewOf, Filter, String)> {
    let of = ViewOf::at(posted.field("page")).ok_or_else(|| Refusal(Error::not_found()))?;
    let filter = Filter::read(posted.field("filter")).map_err(|error| Refusal(error.into()))?;
    let query = filter.query();
    let place = if query.is_empty() { of.path() } else { format!("{}?{query}", of.path()) };
    Ok((of, filter, place))
}

/// Says on the list what came of it.
async fn tell(
    state: &AppState,
    posted: &Posted,
    of: &ViewOf,
    done: portal::Result<()>,
    notice: &str,
) -> Result<()> {
    let flash = match done {
        Ok(()) => Flash { notice: Some(notice.to_owned()), ..Flash::default() },
        Err(error) => Flash { problem: Some(Refusal(error).problem()), ..Flash::default() },
    };
    sessions::keep(state, &posted.session, &of.path(), flash).await
}

/// Saves a view.
pub(super) async fn save(State(state): State<AppState>, mut posted: Posted) -> Result<Response> {
    let (of, filter, place) = sent_from(&posted)?;
    let Some(caller) = posted.visitor.take() else {
        return Ok(log_in_first(&place));
    };
    let view = ViewToSave {
        of: of.clone(),
        name: posted.field("name").to_owned(),
        filter: filter.query(),
        shared: !posted.field("shared").is_empty(),
        replace: !posted.field("replace").is_empty(),
    };
    let (name, shared) = (view.name.trim().to_owned(), view.shared);
    let there = state.portal.views(&caller, &of).await.unwrap_or_default();
    let known = !view.replace && there.iter().any(|known| known.by.is_none() && known.name == name);
    let done = state.portal.save_view(&caller, view).await;
    let for_its_name = |error: &Error| error.fields.iter().any(|fault| fault.pointer == "/name");
    if known && done.as_ref().is_err_and(for_its_name) {
        let flash = Flash { replace: Some(ViewNamed { name, shared }), ..Flash::default() };
        sessions::keep(&state, &posted.session, &of.path(), flash).await?;
    } else {
        tell(&state, &posted, &of, done, "The view is saved.").await?;
    }
    Ok(see_other(&place))
}

/// Removes a view.
pub(super) async fn remove(
    State(state): State<AppState>,
    PathOf(id): PathOf<String>,
    mut posted: Posted,
) -> Result<Response> {
    let (of, _, place) = sent_from(&posted)?;
    let Some(caller) = posted.visitor.take() else {
        return Ok(log_in_first(&place));
    };
    let done = state.portal.remove_view(&caller, &id).await;
    tell(&state, &posted, &of, done, "The view is removed.").await?;
    Ok(see_other(&place))
}
