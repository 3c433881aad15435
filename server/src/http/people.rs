//! A problem that meets a person: a browser that asked for a page gets one it can read, not JSON.

use super::problem::Refused;
use axum::{
    extract::Request,
    http::{HeaderMap, HeaderValue, header},
    middleware::Next,
    response::{Html, IntoResponse, Response},
};

/// Turns a problem into a page where a page was asked for. Status and other headers stay.
pub(crate) async fn readable(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let page = !path.starts_with("/api/") && !path.starts_with("/rpc/") && wants_page(request.headers());
    let response = next.run(request).await;
    match response.extensions().get::<Refused>() {
        Some(refused) if page => {
            let shown = Html(text(refused));
            let (mut parts, _) = response.into_parts();
            parts.headers.remove(header::CONTENT_LENGTH);
            parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            Response::from_parts(parts, shown.into_response().into_body())
        }
        _ => response,
    }
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

fn text(refused: &Refused) -> String {
    let title = escaped(refused.kind.title());
    let detail = escaped(&refused.detail);
    let help = escaped(refused.kind.help());
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head><body>\
         <h1>{title}</h1><p>{detail}</p><p>{help}</p><p><a href=\"/\">To the front page</a></p></body></html>"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::problem::ProblemKind;

    #[test]
    fn a_page_shows_markup_as_text() {
        let refused = Refused { kind: ProblemKind::InvalidQuery, detail: "<script>\"&".into() };
        assert!(text(&refused).contains("&lt;script&gt;&quot;&amp;"));
    }
}
