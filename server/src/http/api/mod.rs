//! The public API and the document that describes it, generated from the handlers.

mod complete;
pub(crate) mod v1;

use super::state::AppState;
use utoipa::openapi::{
    Components, Info, OpenApi, OpenApiBuilder,
    security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme},
};
use utoipa_axum::router::OpenApiRouter;

/// Every operation of the API and of the health room, with its routes.
pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(described()).nest("/api/v1", v1::routes()).merge(super::health::routes())
}

/// The OpenAPI document as JSON.
pub(crate) fn document() -> String {
    let mut document = serde_json::to_value(router().into_openapi()).unwrap_or_default();
    complete::complete(&mut document);
    document.to_string()
}

fn described() -> OpenApi {
    let mut info = Info::new("Keyturn", env!("CARGO_PKG_VERSION"));
    info.description = Some(
        "A portal that carries each request out once, however often it is sent. Every call that changes something \
         needs an Idempotency-Key of the caller's making; a repeat with the same key gets the first answer. So whoever \
         has no answer, or got 408, 429, 503 or a 409 with Retry-After, sends the same again with the same key, after \
         Retry-After where it came; every other 4xx stays until something changes. Problems are \
         application/problem+json (RFC 9457), and each type, /problems/<name>, is a page of the portal."
            .into(),
    );
    let mut components = Components::new();
    components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    components.add_security_scheme(
        "session",
        SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new(super::sessions::COOKIE))),
    );
    components.add_security_scheme(
        "signature",
        SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(
            "webhook-signature",
            "An event's signature by the hook's secret: as Standard Webhooks say, as GitHub does (X-Hub-Signature-256), or \
             the secret itself as Authorization: Bearer.",
        ))),
    );
    OpenApiBuilder::new().info(info).components(Some(components)).build()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_document_names_its_maker_and_every_operation() {
        let document: serde_json::Value = serde_json::from_str(&super::document()).unwrap();
        assert_eq!(document["info"]["title"], "Keyturn");
        let mut operations: Vec<String> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, item)| {
                item.as_object()
                    .unwrap()
                    .keys()
                    .map(move |method| format!("{} {path}", method.to_uppercase()))
            })
            .collect();
        operations.sort();
        insta::assert_snapshot!(operations.join("\n"));
    }
}
