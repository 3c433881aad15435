//! Saved views of a list: links to them, and a form that saves the present filter as one.

use domain::saved::{MAX_VIEW_NAME_LENGTH, SavedView};
use leptos::prelude::*;

/// The saved views of a list.
#[component]
pub fn Views(
    /// The views.
    views: Vec<SavedView>,
    /// The page's path.
    path: String,
    /// The present filter, as an address spells it; empty where everything is shown.
    filter: String,
    /// The team that a view can be shared with.
    team: Option<String>,
) -> impl IntoView {
    if views.is_empty() && filter.is_empty() {
        return ().into_any();
    }
    let some = !views.is_empty();
    let links = views.into_iter().map(|view| {
        let SavedView { id, name, filter: its, shared, by } = view;
        let href = if its.is_empty() { path.clone() } else { format!("{path}?{its}") };
        let current = (its == filter).then_some("true");
        let note = match &by {
            Some(by) => format!(" (by {by})"),
            None if shared => " (shared)".to_owned(),
            None => String::new(),
        };
        let remove = by.is_none().then(|| {
            let (path, filter) = (path.clone(), filter.clone());
            view! {
                <form method="post" action=format!("/views/{id}/remove")>
                    <input type="hidden" name="page" value=path/>
                    <input type="hidden" name="filter" value=filter/>
                    <button type="submit" class="chip-button" aria-label=format!("Remove the view {name}") title="Remove">"×"</button>
                </form>
            }
        });
        view! {
            <li class="chip">
                <span><a href=href aria-current=current>{name}</a> <span class="quiet">{note}</span></span>
                {remove}
            </li>
        }
    });
    let links = links.collect_view();
    let save = (!filter.is_empty()).then(|| {
        view! {
            <details>
                <summary>"Save this as a view"</summary>
                <form class="inline" method="post" action="/views">
                    <input type="hidden" name="page" value=path.clone()/>
                    <input type="hidden" name="filter" value=filter.clone()/>
                    <div class="field">
                        <label for="view-name">"Name"</label>
                        <input type="text" id="view-name" name="name" required maxlength=MAX_VIEW_NAME_LENGTH.to_string()
                            autocomplete="off"/>
                    </div>
                    {team.map(|team| view! {
                        <label class="tick">
                            <input type="checkbox" name="shared" value="yes"/>
                            "Show it to team " {team} " too"
                        </label>
                    })}
                    <button type="submit">"Save"</button>
                </form>
            </details>
        }
    });
    view! {
        <section aria-label="Saved views" id="views">
            {some.then(|| view! {
                <ul class="chips">
                    <li class="quiet">"Views:"</li>
                    {links}
                </ul>
            })}
            {save}
        </section>
    }
    .into_any()
}
