//! `/teams/{team}/requests`: what the people of a team have requested.

use super::list::{Kind, List};
use crate::components::listing::{OfTeam, Requests};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;

/// The requests of a team.
#[component]
pub fn TeamRequests() -> impl IntoView {
    let params = use_params_map();
    let team = Memo::new(move |_| params.read().get("team").unwrap_or_default());
    let kind = Kind {
        head: |team| view! { <Head team=team.unwrap_or_default()/> }.into_any(),
        empty: || {
            view! { <p class="note">"The team has requested nothing yet. " <a href="/">"Choose something from the catalog."</a></p> }
                .into_any()
        },
        rows: |rows| {
            let requests = rows.into_iter().map(|row| row.request).collect();
            view! { <Requests requests of_team=true/> }.into_any()
        },
    };
    move || {
        let team = team.get();
        let path = format!("/teams/{team}/requests");
        view! { <List kind path=Signal::stored(path) team=Some(team)/> }
    }
}

#[component]
fn Head(team: String) -> impl IntoView {
    view! {
        <Title text=format!("Requests of team {team}")/>
        <h1>"Requests of team " {team.clone()}</h1>
        <OfTeam team requests=true/>
    }
}
