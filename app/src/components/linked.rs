//! What the portal says of requests, with a way to each.

use domain::id::RequestId;
use leptos::prelude::*;

/// The word before an ID that says whose it is.
const WORD: &str = "request ";
/// How many characters an ID has.
const ID: usize = 36;

/// A text in which each request that is named, as in `made by request <ID>`, leads to its page.
#[component]
pub fn Linked(
    /// The text.
    text: String,
) -> impl IntoView {
    let parts = parts(&text).into_iter().map(|part| match part {
        Part::Text(text) => text.to_owned().into_any(),
        Part::Request(id) => view! { <a href=format!("/requests/{id}")>{id.to_string()}</a> }.into_any(),
    });
    parts.collect_view()
}

#[derive(Debug, PartialEq, Eq)]
enum Part<'t> {
    Text(&'t str),
    Request(RequestId),
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut told) = (Vec::new(), 0);
    for (place, word) in text.match_indices(WORD) {
        let begin = place + word.len();
        if let Some(id) = text.get(begin..begin + ID).and_then(|id| id.parse().ok()) {
            parts.extend([Part::Text(&text[told..begin]), Part::Request(id)]);
            told = begin + ID;
        }
    }
    parts.extend(Some(&text[told..]).filter(|rest| !rest.is_empty()).map(Part::Text));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_to_be_a_request_and_has_an_id_is_one() {
        let (one, other) = ("01990a5d-ac96-774b-8cce-000000000000", "01990a5d-ac96-774b-8cce-000000000001");
        let text = format!("request {one} failed: request é, request {other}, {one}, request x{one}");
        assert_eq!(
            parts(&text),
            [
                Part::Text("request "),
                Part::Request(one.parse().unwrap()),
                Part::Text(" failed: request é, request "),
                Part::Request(other.parse().unwrap()),
                Part::Text(&format!(", {one}, request x{one}")),
            ]
        );
        assert_eq!(parts("request "), [Part::Text("request ")]);
    }
}
