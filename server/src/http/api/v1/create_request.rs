//! `POST /teams/{team}/requests`: asks for something.

use super::{
    keyed::{Key, Refused},
    shown,
};
use crate::http::{answer::guarded, arrive::WithBody, path::PathOf, problem::Result, state::AppState};
use axum::{extract::State, response::Response};
use domain::{
    plan::PlanView,
    view::{Object, RequestView},
};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// What is asked for. The portal reads it strictly: a member that is not listed here is refused.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewRequest {
    /// The offering's ID.
    offering: String,
    /// The resource's name, a lower-case RFC 1123 label.
    name: String,
    /// Parameters by the offering's schema.
    #[schema(value_type = Object)]
    parameters: Object,
    /// Labels of the sender's choice.
    labels: Option<BTreeMap<String, String>>,
    /// Groups this request with others; without one it is the request's own ID.
    correlation_id: Option<String>,
    /// The request that this one descends from.
    parent_id: Option<String>,
}

/// What may stand in the address.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query, which is read pair by pair")]
pub(super) struct InQuery {
    /// A label as `key:value`; may be repeated.
    labels: Option<Vec<String>>,
    /// `true` asks what would come of it: no key is needed, nothing is claimed and nothing is stored.
    dry_run: Option<bool>,
}

/// Asks for a new resource. The first answer is 202; a repeat with the same key gets it again, byte for byte.
#[utoipa::path(post, path = "/teams/{team}/requests", tag = "requests", security(("token" = []), ("session" = [])),
    params(
        ("team" = String, Path, description = "The team it is for"),
        Key,
        InQuery,
    ),
    request_body = NewRequest,
    responses(
        (status = 202, description = "Taken in, or a repeat of what was", body = RequestView),
        (status = 200, description = "Already there as asked (Keyturn-Outcome: existing); of a dry run, the plan",
            content((RequestView = "application/json"), (PlanView = "application/json; dry_run=true"))),
        Refused,
    ))]
pub(super) async fn create_request(
    State(state): State<AppState>,
    PathOf(team): PathOf<String>,
    WithBody { caller, arrival, body, mut query }: WithBody,
) -> Result<Response> {
    let labels = query.all("labels");
    let dry_run = query.dry_run()?;
    query.done()?;
    if dry_run {
        return Ok(shown(&state.portal.plan_request(&caller, &team, &body, labels).await?));
    }
    guarded(&state, Box::pin(state.portal.create_request(&caller, &team, arrival, body, labels))).await
}
