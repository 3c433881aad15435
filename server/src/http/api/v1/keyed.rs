//! What the description of every change under a key says: the key that it needs, and how it may be refused.

use domain::problem::Problem;
use std::collections::BTreeMap;
use utoipa::{
    IntoParams, IntoResponses, ToSchema,
    openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, response::Response},
};

/// The key of a change.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes the header, which is read with the call")]
pub(super) struct Key {
    /// 1 to 255 visible ASCII characters of the caller's making.
    #[param(rename = "Idempotency-Key")]
    idempotency_key: String,
}

/// The refusals that any change under a key may meet; a call that knows more of them says so itself.
#[derive(Debug)]
pub(super) struct Refused;

impl IntoResponses for Refused {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let said = |(status, why): (u16, &str)| {
            let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
            let response =
                ResponseBuilder::new().description(why).content("application/problem+json", problem).build();
            (status.to_string(), RefOr::T(response))
        };
        [
            (400, "No key, no well-formed one, or no well-formed body"),
            (401, "Nobody is logged in, or the token is none"),
            (403, "Seen, but not the caller's to change"),
            (404, "Not there, or not for the caller to see"),
            (409, "Another call with this key is at work, or what is there now does not allow it"),
            (410, "The key's time is over"),
            (413, "The body is too large"),
            (415, "The body is not JSON"),
            (422, "The key was used for something else, or a value does not fit"),
            (429, "Too many calls; see Retry-After"),
            (503, "Nothing can be written now; see Retry-After"),
        ]
        .map(said)
        .into()
    }
}
