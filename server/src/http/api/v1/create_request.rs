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
use serde_json::Value;
use utoipa::{
    IntoParams, ToSchema,
    openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type},
};

/// What is asked for. The portal reads it strictly: a member that is not listed here is refused.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewRequest {
    /// The offering's ID.
    offering: String,
    /// The resource's name, a lower-case RFC 1123 label.
    name: String,
    /// Parameters by the offering's schema.
    #[schema(value_type = Option<Object>)]
    parameters: Option<Object>,
    /// Labels of the sender's choice: an object of strings, or texts of the form `key:value`.
    #[schema(schema_with = labels, required = false)]
    labels: Option<Value>,
    /// Groups this request with others; without one it is the request's own ID.
    correlation_id: Option<String>,
    /// The request that this one descends from.
    parent_id: Option<String>,
    /// Says that another is wanted although the same was requested a short while ago.
    confirm_duplicate: Option<Confirmed>,
}

/// What is said about an earlier request that looks the same.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Confirmed {
    /// The earlier request's ID, as the question named it.
    of: String,
    /// Why another is wanted, in 1 to 500 characters of one line.
    reason: String,
}

fn labels() -> Schema {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    OneOfBuilder::new()
        .description(Some(
            "Labels of the sender's choice: an object of strings, or texts of the form key:value.",
        ))
        .item(ObjectBuilder::new().additional_properties(Some(text())))
        .item(ArrayBuilder::new().items(text()))
        .into()
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

/// The request; of a dry run, what would come of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the answer, which is either of both")]
pub(super) enum RequestOrPlan {
    /// What was made or was there.
    Request(Box<RequestView>),
    /// What would be.
    Plan(Box<PlanView>),
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
            body = RequestOrPlan),
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
