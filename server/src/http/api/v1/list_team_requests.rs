//! `GET /teams/{team}/requests`: the requests of a team; and how a list of requests is asked for.

use super::shown;
use crate::http::{
    auth::Known,
    path::PathOf,
    problem::Result,
    query::{Parameters, wrong},
    state::AppState,
};
use axum::{extract::State, http::Uri, response::Response};
use domain::{
    correlation::CORRELATION_LABEL,
    problem::Problem,
    state::RequestState,
    view::{Page, RequestView},
};
use portal::service::{ListOf, RequestQuery};
use utoipa::IntoParams;

/// The most rows of one page.
pub(super) const LARGEST_PAGE: u32 = 1000;
const USUAL_PAGE: u32 = 50;

/// How a list of requests is asked for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query, which is read pair by pair")]
pub(super) struct Listing {
    /// How many rows, 1 to 1000; 50 without it.
    size: Option<u32>,
    /// What the page before gave as `next`.
    cursor: Option<String>,
    /// Only requests in this state; our words or Kestra's, in any case.
    #[param(rename = "filters[state][EQUALS]")]
    state: Option<String>,
    /// Only requests in one of these states, separated by commas.
    #[param(rename = "filters[state][IN]")]
    states: Option<String>,
    /// Only requests of this offering.
    #[param(rename = "filters[offering][EQUALS]")]
    offering: Option<String>,
    /// Only requests with this action.
    #[param(rename = "filters[action][EQUALS]")]
    action: Option<String>,
    /// Only requests of resources of this type.
    #[param(rename = "filters[type][EQUALS]")]
    kind: Option<String>,
    /// Only requests of a resource of this name.
    #[param(rename = "filters[name][EQUALS]")]
    name: Option<String>,
    /// Only requests with this correlation ID.
    #[param(rename = "filters[labels][EQUALS][system.correlationId]")]
    correlation_id: Option<String>,
}

impl Listing {
    /// The query that an address spells.
    pub(super) fn read(uri: &Uri, scope: ListOf) -> Result<RequestQuery> {
        let mut sent = Parameters::of(uri);
        let size = page_size(&mut sent)?;
        let cursor = sent.one("cursor")?;
        let mut states = Vec::new();
        for name in ["filters[state][EQUALS]", "filters[state][IN]"] {
            let Some(text) = sent.one(name)? else { continue };
            let words: Vec<&str> =
                if name.ends_with("[IN]") { text.split(',').collect() } else { vec![&text] };
            let read = |word: &str| word.trim().parse::<RequestState>();
            let these: Result<Vec<_>, _> = words.into_iter().map(read).collect();
            states.extend(these.map_err(|_| wrong(name, "names a state that there is not"))?);
        }
        let query = RequestQuery {
            scope,
            size,
            cursor,
            states,
            offering: sent.one("filters[offering][EQUALS]")?,
            action: sent.one("filters[action][EQUALS]")?,
            kind: sent.one("filters[type][EQUALS]")?,
            name: sent.one("filters[name][EQUALS]")?,
            correlation_id: sent.one(&format!("filters[labels][EQUALS][{CORRELATION_LABEL}]"))?,
        };
        sent.done()?;
        Ok(query)
    }
}

/// How many rows a page is to have.
pub(super) fn page_size(sent: &mut Parameters) -> Result<u32> {
    const RULE: &str = "is a whole number from 1 to 1000";
    match sent.read::<u32>("size", RULE)? {
        None => Ok(USUAL_PAGE),
        Some(size @ 1..=LARGEST_PAGE) => Ok(size),
        Some(_) => Err(wrong("size", RULE)),
    }
}

/// The requests of a team, newest first.
#[utoipa::path(get, path = "/teams/{team}/requests", tag = "requests", security(("token" = []), ("session" = [])),
    params(("team" = String, Path, description = "The team"), Listing),
    responses(
        (status = 200, body = Page<RequestView>),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_team_requests(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(team): PathOf<String>,
    uri: Uri,
) -> Result<Response> {
    let query = Listing::read(&uri, ListOf::Team(team))?;
    Ok(shown(&state.portal.requests(&caller, query).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<RequestQuery> {
        Listing::read(&format!("/api/v1/requests?{query}").parse().unwrap(), ListOf::All)
    }

    #[test]
    fn a_list_is_asked_for_in_known_words_only() {
        assert_eq!(read("").unwrap().size, 50);
        let query =
            read("size=1&filters[state][IN]=SUCCESS,failed&filters[labels][EQUALS][system.correlationId]=c");
        let query = query.unwrap();
        assert_eq!(query.states, [RequestState::Succeeded, RequestState::Failed]);
        assert_eq!((query.size, query.correlation_id.as_deref()), (1, Some("c")));
        for bad in [
            "size=0",
            "size=1001",
            "size=-1",
            "size=x",
            "size=1&size=2",
            "filters[state][EQUALS]=done",
            "sort=name",
            "filters[colour][EQUALS]=red",
            "filters[state][LIKE]=x",
            "filters[state][EQUALS]=failed,succeeded",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
