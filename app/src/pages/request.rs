//! `/requests/{id}`: one request: where it stands, what happened, what came of it, and who asked for it how often.

pub mod approval;
pub mod chain;
pub mod history;
mod live;
pub mod steps;

use super::load;
use crate::{
    components::{
        linked::Linked,
        moment::When,
        secret::Secret,
        state::{State, door, meaning},
        submissions::{Submissions, tally},
        told::Said,
        values::Members,
    },
    rpc::requests::{RequestPage, Since, see_request},
};
use approval::Approval;
use chain::Chain;
use domain::{
    action::Kind,
    callback::{Heard, TAKEN_OVER},
    chain::ChainEntry,
    correlation::CORRELATION_LABEL,
    name::Name,
    search::{encoded, label},
    state::{RequestState, Resolution},
    time::Moment,
    view::{EventEntry, EventView, RequestView},
};
use history::History;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::{use_params_map, use_query_map};
use std::collections::BTreeMap;
use steps::NextSteps;

/// The longest reason of a decision, as a form's field is told.
const LONGEST_REASON: u32 = 1000;

/// The page of a request.
#[component]
pub fn Request() -> impl IntoView {
    let params = use_params_map();
    let page = Resource::new_blocking(move || params.read().get("id").unwrap_or_default(), see_request);
    load(page, |page| view! { <Live page/> })
}

/// The request as it stands now, kept up to date while it is under way.
#[component]
fn Live(page: RequestPage) -> impl IntoView {
    let action = page.request.action.clone();
    let kind = Kind::of(&action);
    let heading = format!("{}: {}", wish(&action), page.request.name);
    let way = if page.own {
        view! { <a href="/requests">"My requests"</a> }.into_any()
    } else {
        let team = page.request.team.to_string();
        view! { <a href=format!("/teams/{team}/requests")>"Requests of team " {team.clone()}</a> }.into_any()
    };
    let flash = page.flash.clone();
    let page = RwSignal::new(page);
    live::follow(page);
    let request = Memo::new(move |_| page.read().request.clone());
    let state = Memo::new(move |_| request.read().state);
    let submissions = Memo::new(move |_| page.read().submissions.clone());
    let clean = Memo::new(move |_| {
        let nothing_left =
            state.get() == RequestState::Failed && kind == Kind::Create && page.with(came_to_nothing);
        nothing_left.then_some(" Nothing of it is left behind but what its reason names.")
    });
    let progress = Memo::new(move |_| page.with(progress));
    view! {
        <Title text=heading.clone()/>
        <nav class="crumbs" aria-label="Where this is">{way}</nav>
        <h1>{heading}</h1>
        <Repeated action=action state=state.get_untracked()/>
        <Said flash/>
        <div class="standing" role="status">
            <p>{move || view! { <State state=state.get()/> }} " " {move || meaning(state.get(), kind)} {move || clean.get()}</p>
            {move || request.read().reason.clone().map(|reason| view! { <p><Linked text=reason/></p> })}
            {move || progress.get().map(|progress| view! { <p id="progress">"So far: " {progress}</p> })}
            <Held page/>
        </div>
        {move || (!state.get().is_final()).then(|| view! {
            <noscript>
                <p class="quiet">"This page does not change by itself without script. Load it again to see what is new."</p>
            </noscript>
        })}
        <Approval page/>
        <Orphaned page/>
        <NextSteps page/>
        <h2>"What came of it"</h2>
        {move || {
            let (reveal, since) = page.with_untracked(|page| (page.next.reveal, page.since.clone()));
            view! { <Outcome request=request.get() reveal since/> }
        }}
        <h2>"What was asked for"</h2>
        {move || view! { <Facts request=request.get() titles=page.with_untracked(|page| page.titles.clone())/> }}
        <Chain page/>
        <h2>"What happened"</h2>
        <History page/>
        <h2>"Submissions"</h2>
        <p>
            "Everything that arrived for this request. One made it; repeats got its result, changed nothing, and appear
             here within a second or two."
        </p>
        <p class="quiet">{move || tally(&submissions.read())} "."</p>
        {move || view! { <Submissions submissions=submissions.get()/> }}
    }
}

/// What a request with this action asks for, as a heading says it.
fn wish(action: &str) -> String {
    match Kind::of(action) {
        Kind::Create => "Request".to_owned(),
        Kind::Update => "Change".to_owned(),
        Kind::Delete => "Delete".to_owned(),
        Kind::Action => {
            let words = action.replace('-', " ");
            let mut chars = words.chars();
            let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
            first + chars.as_str()
        }
    }
}

/// When a service last reported success after the request had come to another end, or to another attempt; unless the
/// request came to the same since.
fn orphaned(page: &RequestPage) -> Option<(Moment, bool)> {
    let state = page.request.state;
    let ended_otherwise = state.is_final() && state != RequestState::Succeeded;
    let said = |event: &EventView| match &event.entry {
        EventEntry::Step { step, detail } if step == "callback" => match detail.rsplit(": ").next() {
            Some(word) if word == Heard::Orphaned.as_str() => Some(Some(event.at)),
            Some(TAKEN_OVER) => Some(None),
            _ => None,
        },
        _ => None,
    };
    page.events.iter().rev().find_map(said).flatten().map(|at| (at, ended_otherwise))
}

/// Whether a create that failed was taken back as far as anybody knows: not closed by force, and nothing was reported since.
fn came_to_nothing(page: &RequestPage) -> bool {
    let forced = |event: &EventView| match &event.entry {
        EventEntry::Step { step, detail } => step == "resolve" && Resolution::is_forced(detail),
        _ => false,
    };
    orphaned(page).is_none() && !page.events.iter().any(forced)
}

/// What was told last of how far the work has come, while it goes on.
fn progress(page: &RequestPage) -> Option<String> {
    if page.request.state != RequestState::Running {
        return None;
    }
    page.events.iter().rev().find_map(|event| match &event.entry {
        EventEntry::Step { step, detail } if step == "progress" && event.attempt == page.request.attempt => {
            Some(detail.clone())
        }
        _ => None,
    })
}

/// Names the steps on which the whole waits until somebody decides.
#[component]
fn Held(page: RwSignal<RequestPage>) -> impl IntoView {
    let undecided = Memo::new(move |_| {
        let page = page.read();
        let ours = |one: &&ChainEntry| {
            one.parent_id == Some(page.request.id) && one.step.is_some() && one.state == RequestState::Unknown
        };
        let steps = page.chain.results.iter().filter(ours);
        steps
            .map(|one| (one.id, one.step.clone().unwrap_or_default(), one.name.to_string()))
            .collect::<Vec<_>>()
    });
    move || {
        let steps = undecided.get().into_iter().map(|(id, step, name)| {
            view! {
                <p class="held">
                    "It waits: nobody can tell what became of step " {step} ". "
                    <a href=format!("/requests/{id}")>"Decide about " {name}</a> "."
                </p>
            }
        });
        steps.collect_view()
    }
}

/// Warns of what may stand although the request ended without it, or beside what its later attempt makes.
#[component]
fn Orphaned(page: RwSignal<RequestPage>) -> impl IntoView {
    let late = Memo::new(move |_| page.with(orphaned));
    move || {
        late.get().map(|(at, ended_otherwise)| {
            let (told, so) = if ended_otherwise {
                (
                    "A service reported this as done after it had ended, at ",
                    ". Something may stand there; administrators see it under Orphans.",
                )
            } else {
                (
                    "A service reported that an earlier attempt was done after all, at ",
                    ". What that made may stand beside what this one makes; administrators see it under Orphans.",
                )
            };
            view! { <p class="note caution" id="orphaned">{told} <When at/> {so}</p> }
        })
    }
}

/// Says that the page is the first result of something sent before.
#[component]
fn Repeated(action: String, state: RequestState) -> impl IntoView {
    let query = use_query_map();
    let (repeat, existing) =
        query.with_untracked(|query| (query.get("repeat").is_some(), query.get("existing").is_some()));
    let was_there = match (Kind::of(&action), state) {
        (Kind::Delete, RequestState::Succeeded) => {
            "It was deleted before, just as you asked. Here is the request that did it. Nothing was done twice."
        }
        (Kind::Delete, _) => {
            "To delete it was asked for before. Here is that request, and where it stands. Nothing was done twice."
        }
        (_, RequestState::Succeeded) => {
            "This is there already, just as you asked for it. Here is the request that made it. Nothing was made twice."
        }
        (_, _) => {
            "The same was asked for before. Here is that request, and where it stands. Nothing was made twice."
        }
    };
    view! {
        {repeat.then(|| view! {
            <p class="note" id="repeat">
                "This was sent before. Here is its first result: one request, however often it was sent. Nothing was made twice."
            </p>
        })}
        {existing.then(|| view! { <p class="note" id="existing">{was_there}</p> })}
    }
}

#[component]
fn Outcome(request: RequestView, reveal: bool, since: Since) -> impl IntoView {
    let succeeded = request.state == RequestState::Succeeded;
    let (team, kind, name) =
        (request.team.to_string(), request.resource_type.to_string(), request.name.to_string());
    let resource = format!("/teams/{team}/resources/{kind}/{name}");
    // What a create did not make, and a delete took away, is nowhere.
    let is_there = match Kind::of(&request.action) {
        Kind::Create => succeeded,
        Kind::Update | Kind::Action => true,
        Kind::Delete => !succeeded,
    };
    let stands = since == Since::Stands;
    let nothing = request.outputs.is_empty() && (request.secret_outputs.is_empty() || !succeeded);
    let secrets = request.secret_outputs.into_iter().filter(|_| succeeded && stands).map(|output| {
        view! { <Secret team=team.clone() kind=kind.clone() resource=name.clone() output may=reveal/> }
    });
    let secrets = secrets.collect_view();
    view! {
        {nothing.then(|| view! {
            <p class="quiet">
                {if request.state.is_final() { "No outputs." } else { "Nothing yet. Outputs appear here once it is carried out." }}
            </p>
        })}
        <Members members=request.outputs/>
        <dl class="facts">{secrets}</dl>
        {match since {
            Since::Stands => is_there.then(|| view! { <p><a href=resource>"Open the resource"</a></p> }).into_any(),
            Since::Deleted(request) => {
                view! { <p id="since">"It was " <a href=format!("/requests/{}", request.id)>"deleted since"</a> "."</p> }.into_any()
            }
            Since::Followed => view! {
                <p id="since">"It was deleted since; " <a href=resource>"another one"</a> " has its name by now."</p>
            }
            .into_any(),
        }}
    }
}

/// The team's requests with this label.
fn same(team: &Name, key: &str, value: &str) -> String {
    format!("/teams/{team}/requests?{}", encoded(&[(label(key), value.to_owned())]))
}

#[component]
fn Facts(request: RequestView, titles: BTreeMap<String, String>) -> impl IntoView {
    let labels = request.labels.into_iter().map(|(key, value)| {
        let text = format!("{key}:{value}");
        view! { <li><a href=same(&request.team, &key, &value)><code>{text}</code></a></li> }
    });
    let labels = labels.collect_view();
    // Of an update all parameters would hide the few that were asked to change.
    let asked = match request.patch {
        Some(patch) => view! { <Members members=patch patch=true titles/> }.into_any(),
        None => view! { <Members members=request.parameters titles/> }.into_any(),
    };
    view! {
        {asked}
        <dl class="facts">
            <div>
                <dt>"Offering"</dt>
                <dd>{request.offering.to_string()} ", version " {request.offering_version}</dd>
            </div>
            <div>
                <dt>"Team"</dt>
                <dd>{request.team.to_string()}</dd>
            </div>
            <div>
                <dt>"Action"</dt>
                <dd>{request.action} ", attempt " {request.attempt}</dd>
            </div>
            <div>
                <dt>"Requested by"</dt>
                <dd>{request.requested_by} " by " {door(request.channel)} ", " <When at=request.created_at/></dd>
            </div>
            {request.finished_at.map(|at| view! {
                <div>
                    <dt>"Finished"</dt>
                    <dd><When at/></dd>
                </div>
            })}
            <div>
                <dt>"Request ID"</dt>
                <dd><code>{request.id.to_string()}</code></dd>
            </div>
            <div>
                <dt>"Correlation ID"</dt>
                <dd>
                    <a href=same(&request.team, CORRELATION_LABEL, &request.correlation_id) title="All requests with it">
                        <code>{request.correlation_id.clone()}</code>
                    </a>
                </dd>
            </div>
            {request.parent_id.map(|parent| view! {
                <div>
                    <dt>"Descends from"</dt>
                    <dd><a href=format!("/requests/{parent}")>{parent.to_string()}</a></dd>
                </div>
            })}
            <div>
                <dt>"Labels"</dt>
                <dd><ul class="plain-list">{labels}</ul></dd>
            </div>
        </dl>
    }
}

#[cfg(test)]
mod tests {
    use super::wish;

    #[test]
    fn a_heading_says_what_was_asked_for() {
        for (action, says) in
            [("create", "Request"), ("update", "Change"), ("delete", "Delete"), ("add-disks", "Add disks")]
        {
            assert_eq!(wish(action), says);
        }
    }
}
