//! `/help`: what the guard promises, in a page.

use super::load;
use crate::rpc::team::guard;
use domain::view::GuardView;
use leptos::prelude::*;
use leptos_meta::Title;

/// What is promised.
#[component]
pub fn Help() -> impl IntoView {
    let policy = Resource::new_blocking(|| (), |()| guard());
    view! {
        <Title text="Help"/>
        <h1>"What is promised"</h1>
        <p class="lead">
            "A submission carries an identifier that its sender made. The portal carries it out once, and every repeat "
            "gets the first result: a second click, a retry after a lost connection, a script that runs again."
        </p>
        <h2>"In a form"</h2>
        <ul>
            <li>"Every form you open has one request ID. Clicking twice, reloading, going back and trying again all use it."</li>
            <li>"If no answer arrives, the form says that the outcome is not known, and “Check again” finds it out."</li>
            <li>"A refusal changes nothing: what you typed stays, the reason stands at its field, and you can send again."</li>
            <li>
                "A form that changes something knows how it stood when you opened it. If somebody changed it since, you see "
                "both and choose; nothing is overwritten unseen."
            </li>
            <li>"If your session ends, nothing runs. After the login you find the filled form again."</li>
        </ul>
        <h2>"In a script"</h2>
        <ul>
            <li>
                "Send the header " <code>"Idempotency-Key"</code>
                ", new for each new intention and the same for each repeat."
            </li>
            <li>
                "A repeat gets the first answer, byte for byte, with " <code>"Idempotency-Replayed: true"</code> "."
            </li>
            <li>"The same key with something else is refused and names what differs."</li>
            <li>
                "Tokens are made on the page " <a href="/tokens">"Tokens"</a> "; the calls are described in "
                <a href="/openapi.json" rel="external">"/openapi.json"</a> "."
            </li>
        </ul>
        <h2>"How long"</h2>
        {load(policy, |policy| view! { <Policy policy/> })}
    }
}

#[component]
fn Policy(policy: GuardView) -> impl IntoView {
    view! {
        <dl class="facts">
            <div>
                <dt>"A key is"</dt>
                <dd>
                    {policy.key.min_length} " to " {policy.key.max_length} " characters: " {policy.key.characters}
                </dd>
            </div>
            <div>
                <dt>"Repeats get the first answer"</dt>
                <dd>"until " {span(policy.retention_seconds)} " after the request came to its end"</dd>
            </div>
            <div>
                <dt>"A late repeat is still recognised"</dt>
                <dd>"for " {span(policy.tombstone_seconds)} " more; nothing runs then"</dd>
            </div>
            <div>
                <dt>"A repeat at the same moment waits"</dt>
                <dd>"at most " {span(policy.wait_seconds)} " for the first to be written"</dd>
            </div>
        </dl>
    }
}

fn span(seconds: u64) -> String {
    let (count, unit) = match seconds {
        s if s >= 86_400 && s % 86_400 == 0 => (s / 86_400, "day"),
        s if s >= 3_600 && s % 3_600 == 0 => (s / 3_600, "hour"),
        s if s >= 60 && s % 60 == 0 => (s / 60, "minute"),
        s => (s, "second"),
    };
    if count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn spans_are_told_in_their_largest_whole_unit() {
        for (seconds, words) in
            [(604_800, "7 days"), (3_600, "1 hour"), (90, "90 seconds"), (120, "2 minutes"), (0, "0 seconds")]
        {
            assert_eq!(span(seconds), words);
        }
    }
}
