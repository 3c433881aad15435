//! `GET /teams/{team}/requests`: the requests of a team; and how a list of requests is asked for.

use crate::http::{
    auth::Known,
    export::listed,
    path::PathOf,
    problem::Result,
    query::{Parameters, wrong},
    state::AppState,
};
use axum::{
    extract::State,
    http::{HeaderMap, Uri},
    response::Response,
};
use domain::{
    problem::Problem,
    search::{LARGEST_PAGE, USUAL_PAGE},
    view::{Page, RequestView},
};
use portal::service::ListOf;
use utoipa::IntoParams;

/// How a list of requests is asked for.
///
/// Any of the fields `state`, `offering`, `type`, `name`, `action`, `requested_by`, `channel`, `correlation_id`,
/// `parent_id`, `created_at` and `finished_at` is compared by `filters[<field>][<operator>]=value`; the operators are
/// `EQUALS`, `NOT_EQUALS`, `IN`, `NOT_IN`, `CONTAINS`, `STARTS_WITH`, `GREATER_THAN_OR_EQUAL_TO` and `LESS_THAN`.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query, which is read pair by pair")]
pub(super) struct Listing {
    /// How many rows, 1 to 1000; 50 without it.
    size: Option<u32>,
    /// What the page before gave as `next`.
    cursor: Option<String>,
    /// Free text, in any case: only requests with it in the name, ID, requester, correlation ID, a label (`key:value`), a
    /// parameter's value (its first 256 characters) or a key that is bound to them.
    q: Option<String>,
    /// Only requests in this state; our words or Kestra's, in any case. Likewise `offering`, `type`, `name`, `action`,
    /// `requested_by`, `channel`, `correlation_id` and `parent_id`.
    #[param(rename = "filters[state][EQUALS]")]
    state: Option<String>,
    /// Only requests in one of these states, separated by commas. In every `IN` and `NOT_IN`, a value that holds a comma
    /// stands in quotation marks, and a quotation mark in those is written twice.
    #[param(rename = "filters[state][IN]")]
    states: Option<String>,
    /// Only requests whose name holds this, character by character; likewise `STARTS_WITH`, and for the other texts.
    #[param(rename = "filters[name][CONTAINS]")]
    name: Option<String>,
    /// Only requests that were accepted at this time (RFC 3339, any offset) or later; likewise `finished_at`.
    #[param(rename = "filters[created_at][GREATER_THAN_OR_EQUAL_TO]")]
    from: Option<String>,
    /// Only requests that were accepted before this time; likewise `finished_at`.
    #[param(rename = "filters[created_at][LESS_THAN]")]
    until: Option<String>,
    /// Only requests with this correlation ID, or for which it was sent once more. Any other label is asked for in the same
    /// way: `filters[labels][EQUALS][<key>]=value`, several at once too.
    #[param(rename = "filters[labels][EQUALS][system.correlationId]")]
    correlation_id: Option<String>,
    /// Only requests whose parameter of this name has this value: a text as it is, a number, `true` or `false` as JSON
    /// writes it. One that is a list has each of its values.
    #[param(rename = "filters[parameters][EQUALS][<name>]")]
    parameter: Option<String>,
    /// `csv` or `ndjson`: all matches as a file, whatever `size` and `cursor` say, as with `Accept: text/csv` and
    /// `application/x-ndjson`. In CSV, what a spreadsheet would take for a formula begins with an apostrophe.
    format: Option<String>,
    /// The zone of the times in a CSV file, as `Europe/Berlin`; each is written with its difference to UTC. UTC without it.
    zone: Option<String>,
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
        (status = 200, content((Page<RequestView> = "application/json"), (String = "text/csv"),
                               (RequestView = "application/x-ndjson"))),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list_team_requests(
    State(state): State<AppState>,
    Known(caller): Known,
    PathOf(team): PathOf<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    listed(&state, &caller, ListOf::Team(team), &uri, &headers).await
}

#[cfg(test)]
mod tests {
    use crate::http::query::pairs;
    use domain::{
        search::{Search, SearchError},
        state::RequestState,
    };

    fn read(query: &str) -> Result<Search, SearchError> {
        Search::read(pairs(&format!("/api/v1/requests?{query}").parse().unwrap()))
    }

    #[test]
    fn a_list_is_asked_for_in_known_words_only() {
        assert_eq!(read("").unwrap().size(), 50);
        let query =
            read("size=1&filters[state][IN]=SUCCESS,failed&filters[labels][EQUALS][system.correlationId]=c");
        let query = query.unwrap();
        assert_eq!(query.filters().next().unwrap().states(), [RequestState::Succeeded, RequestState::Failed]);
        let correlation_id = query.labels().get("system.correlationId").map(String::as_str);
        assert_eq!((query.size(), correlation_id), (1, Some("c")));
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
