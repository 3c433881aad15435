//! What a person may do about a request next. Plain forms, each with its own key, so that a second click changes
//! nothing.

use super::LONGEST_REASON;
use crate::{components::posted::Part, rpc::requests::RequestPage};
use domain::{
    action::Kind,
    state::{RequestState, Resolution},
};
use leptos::prelude::*;

/// The next steps, as far as there are any for this person now.
#[component]
pub fn NextSteps(
    /// The page.
    page: RwSignal<RequestPage>,
) -> impl IntoView {
    let next = Memo::new(move |_| {
        let page = page.read();
        let request = &page.request;
        let made_of =
            page.chain.results.iter().any(|one| one.parent_id == Some(request.id) && one.step.is_some());
        (request.id.to_string(), Kind::of(&request.action), request.state, made_of, page.next.clone())
    });
    move || {
        let (id, kind, state, made_of, next) = next.get();
        let canceled = cancellation(kind, state, made_of);
        let action = |step: &str| format!("/requests/{id}/{step}");
        view! {
            {next.cancel.map(|key| view! {
                <form method="post" action=action("cancel") class="actions">
                    <input type="hidden" name="request_id" value=key/>
                    <button type="submit" class="danger">"Cancel the request"</button>
                    <span class="quiet">{canceled}</span>
                </form>
            })}
            {next.retry.map(|key| view! {
                <form method="post" action=action("retry") class="actions">
                    <input type="hidden" name="request_id" value=key/>
                    <button type="submit" class="primary">"Try again"</button>
                    <span class="quiet">"Opens the next attempt of this same request."</span>
                </form>
            })}
            {next.resolve.map(|key| {
                let forced = next.force.map(|key| view! { <Force key action=action("resolve")/> });
                view! {
                    <section class="note caution" aria-labelledby="resolve-title">
                        <h2 id="resolve-title">"Somebody has to decide"</h2>
                        <p>"Look at the system itself first, then say what became of it."</p>
                        <Resolve kind key action=action("resolve")/>
                        {forced}
                    </section>
                }
            })}
        }
    }
}

/// What it comes to when a request is canceled that stands like this, and has steps of its own or not.
fn cancellation(kind: Kind, state: RequestState, made_of: bool) -> &'static str {
    let begun = state != RequestState::Queued;
    match kind {
        Kind::Create if state == RequestState::PendingApproval => {
            "Nothing is begun yet. Its name becomes free again."
        }
        _ if state == RequestState::PendingApproval => "Nothing is begun yet. The resource stays as it is.",
        Kind::Create if made_of => "Its steps are stopped, and what they made is removed, last first.",
        Kind::Create if begun => "A running program is stopped and what it made is taken away.",
        Kind::Create => "What was begun of it, if anything was, is taken away, and its name is free again.",
        Kind::Update if begun => "A running program is stopped and what it changed is put back.",
        Kind::Update => "The resource stays as it is, or is put back if something was begun.",
        Kind::Action if begun => "A running program is stopped. What it did by then cannot be put back.",
        Kind::Action => {
            "If it was begun, what it did by then cannot be put back; else the resource stays as it is."
        }
        Kind::Delete => "Only until it has begun; what is half removed is removed to its end.",
    }
}

/// What each choice comes to, of a request that does this to its resource.
fn choices(kind: Kind) -> [(Resolution, &'static str, &'static str); 3] {
    let (adopt, retry, abandon) = match kind {
        Kind::Create => (
            "The thing is there and ours: take it as done.",
            "Look once more; carry it out if it is not there.",
            "Remove what may be there, close it as failed, free the name.",
        ),
        Kind::Update => (
            "It was carried out: take it as done.",
            "Look once more; carry it out if it is not done.",
            "Take the change back; the resource stays.",
        ),
        Kind::Action => (
            "It was carried out: take it as done.",
            "Look once more; carry it out if it is not done.",
            "It was not carried out: close it as failed. Nothing is put back.",
        ),
        Kind::Delete => (
            "Nothing stands there any more: take it as deleted.",
            "Look once more; remove it if it is still there.",
            "Leave what still stands, and close it as failed; the resource stays.",
        ),
    };
    [
        (Resolution::Adopt, "Adopt", adopt),
        (Resolution::Retry, "Look and try again", retry),
        (Resolution::Abandon, "Abandon", abandon),
    ]
}

#[component]
fn Resolve(kind: Kind, key: String, action: String) -> impl IntoView {
    let choices = choices(kind).map(|(resolution, title, meaning)| {
        let hint = format!("resolve-{}", resolution.as_str());
        view! {
            <label class="tick">
                <input
                    type="radio" name="resolution" value=resolution.as_str() required=true aria-describedby=hint.clone()
                />
                {title}
            </label>
            <p class="hint" id=hint>{meaning}</p>
        }
    });
    view! {
        <form class="stack" method="post" action=action>
            <input type="hidden" name="request_id" value=key/>
            <fieldset class="field">
                <legend>"What became of it"</legend>
                {choices.into_iter().collect_view()}
            </fieldset>
            <Part
                name="reason" of="resolve" title="How you know" hint="Optional. Everybody who sees the request reads it."
                value=String::new() wrong=String::new() longest=LONGEST_REASON
            />
            <div class="actions"><button type="submit" class="primary">"Decide"</button></div>
        </form>
    }
}

/// Closes what nobody can look at any more, which nobody comes to by one slip.
#[component]
fn Force(key: String, action: String) -> impl IntoView {
    view! {
        <details class="removal">
            <summary>"Close it by force…"</summary>
            <p>
                "Nothing is looked at and nothing is removed: the request is closed as failed and its name is free,
                 whatever still stands."
            </p>
            <form class="stack" method="post" action=action>
                <input type="hidden" name="request_id" value=key/>
                <input type="hidden" name="resolution" value=Resolution::Abandon.as_str()/>
                <input type="hidden" name="force" value="true"/>
                <Part
                    name="reason" of="force" title="Why it is closed by force" hint="Everybody who sees the request reads it."
                    value=String::new() wrong=String::new() longest=LONGEST_REASON required=true
                />
                <div class="actions"><button type="submit" class="danger">"Close by force"</button></div>
            </form>
        </details>
    }
}
